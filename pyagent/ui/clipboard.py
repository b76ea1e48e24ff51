"""The ways to the clipboard: the terminal's own (OSC 52), and the desktop's or multiplexer's program.

The first is the only one that reaches the person's machine from a remote one, but many terminals refuse it silently; so
all that may work is done, and where nothing can, that is said.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from pyagent.ui.sequences import clipboard_sequence, through
from pyagent.ui.terminal_kind import has_clipboard, is_remote, multiplexer, takes_sequences

_TIMEOUT_S = 2.0
"""A clipboard tool without its display server waits for ever."""

NO_WAY = "Nothing here can copy: the terminal takes no text from programs, and there is no wl-copy, xclip or xsel."
_SELECT_INSTEAD = "Select with Shift and the mouse instead."


@dataclass(frozen=True, slots=True)
class ClipboardRoutes:
    """How a text can be copied here."""

    sequences: bool
    """Whether to ask the terminal, which may or may not listen."""
    is_terminal_likely: bool
    command: tuple[str, ...] = ()
    """The program that takes it on its standard input."""

    @property
    def can_copy(self) -> bool:
        """Whether any of them is likely to work."""
        return self.is_terminal_likely or bool(self.command)

    def remark(self, copied_chars: int) -> str:
        """What to tell the person."""
        if not self.can_copy:
            return f"{NO_WAY} {_SELECT_INSTEAD}"
        return f"Copied {copied_chars:,} characters.".replace(",", " ")

    def failed_remark(self) -> str:
        """What to tell the person once the program has failed; empty if the terminal is likely to have done it."""
        if self.is_terminal_likely or not self.command:
            return ""
        return f"{PurePath(self.command[0]).name} could not copy. {_SELECT_INSTEAD}"


def clipboard_routes(environ: Mapping[str, str]) -> ClipboardRoutes:
    """The ways that may work. The desktop's programs would set the clipboard of the wrong machine over SSH."""
    return ClipboardRoutes(takes_sequences(environ), has_clipboard(environ), _command(environ))


def _command(environ: Mapping[str, str]) -> tuple[str, ...]:
    desktop = (
        ("pbcopy", (), ""),
        ("wl-copy", (), "WAYLAND_DISPLAY"),
        ("xclip", ("-selection", "clipboard"), "DISPLAY"),
        ("xsel", ("--clipboard", "--input"), "DISPLAY"),
        ("clip.exe", (), ""),
    )
    # tmux hands the text on to the terminal, by default also where it hands no sequence of a program's through.
    within = (("tmux", ("load-buffer", "-w", "-"), "TMUX"),)
    for name, arguments, needs in within if is_remote(environ) else (*desktop, *within):
        if needs and not environ.get(needs):
            continue
        path = shutil.which(name, path=environ.get("PATH"))
        if path:
            return (path, *arguments)
    return ()


def copy_sequences(environ: Mapping[str, str], text: str) -> list[str]:
    """What to write to the terminal: for the multiplexer itself, and for the terminal around it."""
    sequence = clipboard_sequence(text)
    between = multiplexer(environ)
    return [sequence, through(between, sequence)] if between else [sequence]


def copy_by_program(command: Sequence[str], text: str, environ: Mapping[str, str]) -> bool:
    """Copy with a program; False if that did not work. May take 2 s: not for the screen's thread."""
    try:
        done = subprocess.run(
            list(command),
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
