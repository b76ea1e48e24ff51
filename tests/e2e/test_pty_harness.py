"""The pseudo-terminal harness, tried on small scripts."""

import os
import signal
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.e2e.emulator import Emulator
from tests.e2e.pty_harness import Terminal, isolated_environment, key_bytes


def python(script: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", script]


WAITING = "import sys; sys.stdin.readline()"


def test_what_is_typed_comes_back_from_cat(tmp_path: Path) -> None:
    with Terminal.spawn(["cat"], home=tmp_path) as terminal:
        terminal.type("hello")
        terminal.press("enter")
        terminal.wait_for(lambda screen: screen.splitlines()[:2] == ["hello", "hello"])
        terminal.press("ctrl+d")
        assert terminal.wait_for_exit() == 0
        terminal.assert_restored()


def test_the_terminal_is_the_controlling_one(tmp_path: Path) -> None:
    # A signal that is waited for cannot come just before the wait and be missed.
    script = (
        "import signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        "open('/dev/tty', 'w').write('mine')\n"
        "print(signal.sigwait({signal.SIGINT}).name)"
    )
    with Terminal.spawn(python(script), home=tmp_path) as terminal:
        terminal.wait_for("mine")
        terminal.press("ctrl+c")
        terminal.wait_for("SIGINT")
        assert terminal.wait_for_exit() == 0


def test_ctrl_c_ends_a_command_even_if_the_tests_themselves_run_where_it_is_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        terminal = Terminal.spawn(["cat"], home=tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    with terminal:
        terminal.type("up\r")
        terminal.wait_for("up\nup")
        terminal.press("ctrl+c")
        assert terminal.wait_for_exit() == -signal.SIGINT


def test_the_environment_is_isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    environment = isolated_environment(tmp_path, {"EXTRA": "1"})
    assert "ANTHROPIC_API_KEY" not in environment
    script = "import os; print(os.environ['HOME'] == os.getcwd(), os.environ.get('ANTHROPIC_API_KEY'), os.isatty(1))"
    with Terminal.spawn(python(script), home=tmp_path) as terminal:
        terminal.wait_for_exit()
        assert terminal.text.startswith("True None True")


def test_a_resize_reaches_the_command(tmp_path: Path) -> None:
    script = (
        "import os, signal\n"
        "def tell(word): os.write(1, b'%s %d %d\\n' % (word, *os.get_terminal_size()))\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})\n"
        "tell(b'start')\n"
        "while signal.sigwait({signal.SIGWINCH}): tell(b'now')"
    )
    with Terminal.spawn(python(script), home=tmp_path, columns=100, lines=30) as terminal:
        terminal.wait_for("start 100 30")
        terminal.resize(60, 20)
        terminal.wait_for("now 60 20")
        terminal.signal(signal.SIGTERM)
        assert terminal.wait_for_exit() == -signal.SIGTERM


ALL_MODES = (
    r"print('\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[?25l\x1b[>1u\x1b[>4;2mfull screen',"
    " flush=True)"
)
UNDO = r"print('\x1b[<u\x1b[>4;0m\x1b[?25h\x1b[?1004l\x1b[?2004l\x1b[?1006l\x1b[?1000l\x1b[?1049l', flush=True)"


def test_modes_are_tracked_and_missing_restoration_is_named(tmp_path: Path) -> None:
    script = f"print('before', flush=True)\n{ALL_MODES}\ninput()\nimport sys\nif sys.argv[1:]:\n {UNDO}"
    for arguments, is_restored in (["tidy"], True), ([], False):
        with Terminal.spawn([*python(script), *arguments], home=tmp_path) as terminal:
            screen = terminal.wait_for("full screen")
            assert "before" not in screen
            assert terminal.modes.is_alternate_screen
            assert terminal.modes.has_mouse
            assert terminal.modes.kitty_flags == [1]
            terminal.press("enter")
            assert terminal.wait_for_exit() == 0
            if is_restored:
                terminal.assert_restored()
                assert terminal.text.startswith("before")
            else:
                with pytest.raises(AssertionError, match=r"alternate screen, mouse, bracketed paste, focus .*kitty"):
                    terminal.assert_restored()


def test_raw_mode_left_on_is_named(tmp_path: Path) -> None:
    with Terminal.spawn(["stty", "raw", "-echo"], home=tmp_path) as terminal:
        assert terminal.wait_for_exit() == 0
        with pytest.raises(AssertionError, match="line discipline"):
            terminal.assert_restored()


def test_a_paste_is_bracketed_where_asked_for(tmp_path: Path) -> None:
    script = (
        "import os, sys, tty\n"
        "tty.setraw(0)\n"
        "if sys.argv[1:]: os.write(1, b'\\x1b[?2004h')\n"
        "os.write(1, b'ready')\n"
        "got = b''\n"
        "while not got.endswith(b'!'): got += os.read(0, 99)\n"
        "os.write(1, repr(got).encode())"
    )
    for arguments, expected in (["b"], r"'\x1b[200~a\rb\x1b[201~!'"), ([], r"'a\rb!'"):
        with Terminal.spawn([*python(script), *arguments], home=tmp_path) as terminal:
            terminal.wait_for("ready")
            terminal.paste("a\nb")
            terminal.type("!")
            terminal.wait_for(expected)


def test_queries_are_answered_like_a_terminal_answers(tmp_path: Path) -> None:
    script = (
        "import os, tty\n"
        "tty.setraw(0)\n"
        "os.write(1, b'ab\\x1b[6n\\x1b[?2026$p\\x1b[c')\n"
        "got = b''\n"
        "while not got.endswith(b'c'): got += os.read(0, 99)\n"
        "os.write(1, repr(got).encode())"
    )
    with Terminal.spawn(python(script), home=tmp_path) as terminal:
        terminal.wait_for(r"\x1b[1;3R\x1b[?2026;2$y\x1b[?62;22c")


def test_waiting_fails_at_once_when_the_command_ends(tmp_path: Path) -> None:
    with (
        Terminal.spawn(python("print('last words')"), home=tmp_path) as terminal,
        pytest.raises(AssertionError, match=r"the command ended while waiting for 'never'(?s:.*)last words"),
    ):
        terminal.wait_for("never")


def test_closing_kills_a_command_that_ignores_signals(tmp_path: Path) -> None:
    script = (
        "import signal\n"
        "for n in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT): signal.signal(n, signal.SIG_IGN)\n"
        "print('here', flush=True)\n"
        "while True: signal.pause()"
    )
    with Terminal.spawn(python(script), home=tmp_path) as terminal:
        terminal.wait_for("here")
    with pytest.raises(ProcessLookupError):
        os.kill(terminal.pid, 0)


def test_a_closed_window_hangs_the_command_up(tmp_path: Path) -> None:
    with Terminal.spawn(python("print('here', flush=True)\n" + WAITING), home=tmp_path) as terminal:
        terminal.wait_for("here")
        terminal.hang_up()
        assert terminal.wait_for_exit() == -signal.SIGHUP


def test_output_held_back_arrives_whole_after_resuming(tmp_path: Path) -> None:
    script = "import os\nos.write(1, b'begin ')\ninput()\nos.write(1, b'x' * 100_000)\nos.write(1, b'\\r\\nend\\r\\n')"
    with Terminal.spawn(python(script), home=tmp_path) as terminal:
        terminal.wait_for("begin")
        terminal.pause_reading()
        terminal.press("enter")
        assert terminal.output.count(b"x") < 100_000
        terminal.resume_reading()
        assert terminal.wait_for_exit() == 0
        assert terminal.output.count(b"x") == 100_000
        assert terminal.text.rstrip().endswith("end")


def test_lines_that_scroll_away_stay_in_the_scrollback(tmp_path: Path) -> None:
    with Terminal.spawn(python("for n in range(60): print('line', n)"), home=tmp_path, lines=10) as terminal:
        terminal.wait_for_exit()
        assert "line 3\n" not in terminal.text
        assert [f"line {n}" for n in range(60)] == terminal.scrollback.split("\n")[:60]


def test_a_picture_of_the_screen_shows_its_colours(tmp_path: Path) -> None:
    script = r"print('\x1b[41m \x1b[48;2;1;2;3m  \x1b[0m\x1b[1;4mbold\x1b[0m', flush=True); input()"
    with Terminal.spawn(python(script), home=tmp_path, columns=20, lines=4) as terminal:
        terminal.wait_for("bold")
        terminal.screenshot(tmp_path / "screen.png")
        with Image.open(tmp_path / "screen.png") as picture:
            wide = picture.width // 20
            assert picture.getpixel((wide // 2, 5)) == (0xCC, 0x55, 0x55)
            assert picture.getpixel((wide + wide // 2, 5)) == (1, 2, 3)


def test_keys_are_what_a_terminal_sends() -> None:
    assert [key_bytes(name) for name in ("ctrl+c", "alt+b", "up", "é")] == [b"\x03", b"\x1bb", b"\x1b[A", "é".encode()]
    with pytest.raises(ValueError, match="no key 'hyper'"):
        key_bytes("hyper")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\x1b[>4;1mb\x1b[?4mc", "abc"),
        ("a\x1b[4:3mb\x1b[38:2::1:2:3mc", "abc"),
        ("a\x1bP+q544e\x1b\\b\x1b_Gi=1\x1b\\c", "abc"),
        ("a\x1b]8;;http://x\x1b\\b\x1b]8;;\x07c", "abc"),
        ("a\x1b[?2026$pb\x1b[=0;1uc", "abc"),
        ("a😀b", "a😀b"),
    ],
)
def test_sequences_pyte_would_print_or_misread_leave_no_trace_however_they_are_split(raw: str, shown: str) -> None:
    data = raw.encode()
    for size in (1, 2, len(data)):
        emulator = Emulator(20, 3)
        for at in range(0, len(data), size):
            emulator.feed(data[at : at + size])
        assert emulator.lines[0] == shown
        assert not emulator.screen.cursor.attrs.underscore or "4:3" in raw


def test_half_drawn_updates_are_not_settled() -> None:
    emulator = Emulator(20, 3)
    emulator.feed(b"\x1b[?2026hhalf")
    assert not emulator.is_settled
    emulator.feed(b"\x1b[?2026l")
    assert emulator.is_settled
