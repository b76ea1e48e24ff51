"""Which ways to the clipboard there are, in which order, and what is said where there is none."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from pyagent.ui.clipboard import clipboard_routes, copy_by_program, copy_sequences
from pyagent.ui.sequences import clipboard_sequence

Install = Callable[..., str]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Puts programs into a folder, which is the PATH it gives."""

    def make(*names: str, script: str = "exit 0") -> str:
        for name in names:
            path = tmp_path / name
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        return str(tmp_path)

    return make


@pytest.mark.parametrize(
    ("environ", "program"),
    [
        ({}, "pbcopy"),
        ({"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}, "wl-copy"),
        ({"DISPLAY": ":0"}, "xclip"),
        ({}, ""),
        ({"TMUX": "/tmp/x,1,0"}, "tmux"),
        ({"SSH_CONNECTION": "1 2 3 4", "DISPLAY": ":10"}, ""),
        ({"SSH_TTY": "/dev/pts/1", "TMUX": "/tmp/x,1,0", "DISPLAY": ":10"}, "tmux"),
    ],
)
def test_the_program_of_this_desktop_is_taken_and_over_ssh_none_of_them(
    install: Install, environ: dict[str, str], program: str
) -> None:
    names = ["pbcopy"] if program == "pbcopy" else ["wl-copy", "xclip", "xsel", "tmux"]
    path = install(*names)
    command = clipboard_routes({**environ, "PATH": path}).command
    assert (Path(command[0]).name if command else "") == program


def test_the_terminal_is_asked_also_where_it_is_not_likely_to_listen() -> None:
    routes = clipboard_routes({"TERM": "xterm-256color", "VTE_VERSION": "7600", "PATH": ""})
    assert routes.sequences
    assert not routes.can_copy
    assert "Nothing here can copy" in routes.remark(5)
    assert clipboard_routes({"TERM": "xterm-256color", "PATH": ""}).remark(1_234) == "Copied 1 234 characters."


def test_a_console_that_would_print_the_sequence_is_not_asked() -> None:
    assert not clipboard_routes({"TERM": "linux", "PATH": ""}).sequences


def test_within_tmux_the_text_goes_to_tmux_and_through_it() -> None:
    plain = clipboard_sequence("hällo")
    assert plain == f"\x1b]52;c;{base64.b64encode('hällo'.encode()).decode()}\a"
    assert copy_sequences({}, "hällo") == [plain]
    wrapped = "\x1bPtmux;\x1b" + plain + "\x1b\\"
    assert copy_sequences({"TMUX": "/tmp/x,1,0"}, "hällo") == [plain, wrapped]


def test_gnu_screen_gets_a_long_text_in_pieces_it_can_take() -> None:
    through = copy_sequences({"STY": "1.x"}, "x" * 2_000)[1]
    pieces = through.removesuffix("\x1b\\").split("\x1b\\")
    assert "".join(piece.removeprefix("\x1bP") for piece in pieces) == clipboard_sequence("x" * 2_000)
    assert max(len(piece) for piece in pieces) <= 256


def test_a_program_gets_the_text_and_its_failure_is_noticed(install: Install, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    path = install("xclip", script=f"cat > {copied}")
    environ = {"PATH": f"{path}:/usr/bin:/bin", "DISPLAY": ":0"}
    command = clipboard_routes(environ).command
    assert copy_by_program(command, "some [text]", environ)
    assert copied.read_text() == "some [text]"
    install("xclip", script="exit 1")
    assert not copy_by_program(command, "x", environ)
    assert not copy_by_program((str(tmp_path / "gone"),), "x", environ)


def test_only_where_the_terminal_is_no_help_a_failed_program_is_spoken_of(install: Install) -> None:
    path = install("xclip")
    assert clipboard_routes({"PATH": path, "DISPLAY": ":0", "TERM": "xterm"}).failed_remark() == ""
    console = clipboard_routes({"PATH": path, "DISPLAY": ":0", "TERM": "linux"})
    assert console.failed_remark().startswith("xclip could not copy.")
