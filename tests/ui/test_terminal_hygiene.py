"""What the program leaves behind in a real terminal, whatever ends it, and what it does in terminals that are none."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.pty_harness import Terminal, isolated_environment

Start = Callable[..., Terminal]

READY = "claude-test-5 ·"
PROGRAM = [sys.executable, "-m", "tests.ui.fake_program"]
RESET = [sys.executable, "-m", "pyagent", "reset"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the full screen with a scripted agent and waits until it can be typed into."""
    with ExitStack() as running:

        def begin(*args: str, wait_for: str = READY, argv: list[str] | None = None, **changes: str) -> Terminal:
            command = [*(argv or PROGRAM), *args]
            terminal = running.enter_context(Terminal.spawn(command, home=tmp_path, env=changes, columns=100))
            terminal.wait_for(wait_for)
            return terminal

        yield begin


@pytest.fixture
def log(tmp_path: Path) -> Callable[[], str]:
    """Reads the log file."""
    return lambda: (tmp_path / ".pyagent" / "logs" / "pyagent.log").read_text()


def shell(*lines: str) -> list[str]:
    """A shell that runs these lines; `{program}` and `{reset}` are our commands."""
    script = "\n".join(lines).format(program=" ".join(PROGRAM), reset=" ".join(RESET))
    return ["/bin/sh", "-c", script]


def test_exit_restores_the_terminal_and_names_the_session_to_resume(start: Start) -> None:
    terminal = start()
    terminal.type("hello\r")
    terminal.wait_for("You said: hello")
    terminal.type("/exit\r")
    assert terminal.wait_for_exit() == 0
    terminal.assert_restored()
    assert "pyagent --resume 5f0c1a52-7d7e-4d7e-9b55-0d2f6f1e7a11" in terminal.text


# ── signals ──

SIGNALS = [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGQUIT, 131)]


@pytest.mark.parametrize(("number", "exit_code"), SIGNALS, ids=lambda value: getattr(value, "name", None))
@pytest.mark.parametrize(
    ("typed", "shown"),
    [("hang\r", "working on it"), ("ask\r", "make install"), ("", READY)],
    ids=["turn", "dialog", ""],
)
def test_a_signal_ends_the_program_with_its_code_and_a_clean_terminal(
    start: Start, number: signal.Signals, exit_code: int, typed: str, shown: str
) -> None:
    terminal = start()
    terminal.type(typed)
    terminal.wait_for(shown)
    terminal.signal(number)
    assert terminal.wait_for_exit() == exit_code
    terminal.assert_restored()


def test_a_signal_before_the_first_paint_leaves_a_clean_terminal(tmp_path: Path) -> None:
    with Terminal.spawn(PROGRAM, home=tmp_path) as terminal:
        terminal.wait_until(lambda terminal: terminal.modes.is_alternate_screen)
        terminal.signal(signal.SIGTERM)
        assert terminal.wait_for_exit() == 143
        terminal.assert_restored()


def test_an_agent_that_never_ends_is_left_behind_by_the_watchdog(start: Start) -> None:
    terminal = start(STUCK="1")
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_for_exit() == 143
    terminal.assert_restored()


# ── mistakes of ours, and stray output ──


@pytest.mark.parametrize("where", ["handler", "worker", "pump", "callback"])
def test_a_mistake_ends_the_program_with_a_clean_terminal_and_its_trace_in_the_log(
    start: Start, log: Callable[[], str], where: str
) -> None:
    terminal = start()
    terminal.type(f"{where}\r")
    assert terminal.wait_for_exit() == 1
    terminal.assert_restored()
    assert "Traceback" not in terminal.scrollback
    assert "pyagent.log" in terminal.text.replace("\n", "")
    assert "Traceback" in log()


def test_a_thread_that_fails_and_stray_output_go_to_the_log_and_nothing_ends(
    start: Start, log: Callable[[], str]
) -> None:
    terminal = start()
    for words in ("thread", "stray"):
        terminal.type(f"{words}\r")
        terminal.wait_for(f"You said: {'a ' if words == 'thread' else ''}{words}")
    assert "mistake" not in terminal.text
    assert "stray on" not in terminal.text
    for words in ("a mistake in a thread", "stray on 1", "stray on 2", "stray print", "stray error"):
        assert words in log()
    terminal.type("/exit\r")
    assert terminal.wait_for_exit() == 0
    terminal.assert_restored()


def test_an_agent_that_has_died_leaves_a_screen_that_can_be_left(start: Start) -> None:
    terminal = start()
    terminal.type("agent\r")
    terminal.wait_for("pyagent made a mistake")
    terminal.wait_for("The agent has ended")
    terminal.press("ctrl+d", "ctrl+d")
    assert terminal.wait_for_exit() == 0
    terminal.assert_restored()


def test_ctrl_c_ends_a_program_whose_agent_does_not(start: Start) -> None:
    terminal = start(STUCK="1")
    terminal.type("/exit\r")
    terminal.wait_until(lambda terminal: not terminal.modes.leftovers())
    terminal.wait_until_cooked()
    terminal.press("ctrl+c")
    assert terminal.wait_for_exit() == 130
    terminal.assert_restored()


def test_a_crash_of_the_interpreter_is_in_the_log(start: Start, log: Callable[[], str]) -> None:
    terminal = start()
    terminal.type("abort\r")
    assert terminal.wait_for_exit() == -signal.SIGSEGV
    assert "Segmentation fault" in log()
    assert "fake_program" in log()


# ── what restores nothing, and its cures ──


@pytest.mark.parametrize("how", ["kill -9", "os._exit", "abort"])
def test_a_killed_program_s_terminal_is_repaired_by_the_reset_command(start: Start, how: str) -> None:
    terminal = start(argv=shell("{program}", "echo it is dead", "read x", "{reset}", "echo it is cured", "read x"))
    terminal.type(f"{how}\r")
    terminal.wait_for("it is dead")
    assert {"alternate screen", "mouse", "bracketed paste", "focus reports"} <= set(terminal.modes.leftovers())
    terminal.send("\n")
    terminal.wait_for("it is cured")
    terminal.assert_restored()


@pytest.mark.parametrize("mode", ["", " --plain"], ids=["screen", "plain"])
def test_a_killed_program_s_terminal_is_repaired_by_the_next_start(start: Start, mode: str) -> None:
    terminal = start(argv=shell("{program}", "echo it is dead", "read x", f"{{program}}{mode}"))
    terminal.type("kill -9\r")
    terminal.wait_for("it is dead")
    terminal.send("\n")
    terminal.wait_for("\n>" if mode else READY)
    terminal.type("once more\r")
    terminal.wait_for("You said: once more")
    terminal.type("/exit\r")
    assert terminal.wait_for_exit() == 0
    terminal.assert_restored()


def test_a_killed_real_program_s_terminal_is_repaired_by_its_next_start(start: Start, tmp_path: Path) -> None:
    real = f"{sys.executable} -P -m pyagent --model offline"
    terminal = start(
        argv=shell(f"(sh -c 'echo $$ >pid; exec {real}')", "echo it is dead", "read x", real), wait_for="to compact"
    )
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    terminal.wait_for("it is dead")
    terminal.send("\n")
    terminal.wait_for(lambda screen: "to compact" in screen and "it is dead" not in screen)
    terminal.type("/exit")
    terminal.wait_for("/exit")
    terminal.press("enter")
    assert terminal.wait_for_exit() == 0
    terminal.assert_restored()


def test_a_terminal_left_in_order_is_not_reset_by_the_next_start(start: Start) -> None:
    terminal = start(argv=shell("{program}", "echo at the prompt", "read x", "{program} --plain"))
    terminal.type("/exit\r")
    terminal.wait_for("at the prompt")
    before = terminal.output
    terminal.send("\n")
    terminal.wait_for("\n>")
    assert b"\x1b[?1049l" not in terminal.output.removeprefix(before)


def test_without_a_terminal_there_is_nothing_to_reset(tmp_path: Path) -> None:
    done = subprocess.run(
        RESET, env=isolated_environment(tmp_path), start_new_session=True, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pyagent: There is no terminal to reset.")


# ── suspending ──


def test_a_stop_from_outside_is_a_suspension_too(start: Start) -> None:
    terminal = start()
    terminal.signal(signal.SIGTSTP)
    terminal.wait_until_stopped()
    terminal.wait_until(lambda terminal: not terminal.modes.leftovers())
    terminal.assert_restored()
    terminal.signal(signal.SIGCONT)
    terminal.wait_for("/help shows commands and keys")
    terminal.type("hello\r")
    terminal.wait_for("You said: hello")


def test_ctrl_c_in_the_editor_ends_the_editor_only(start: Start, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho editing\nexec cat\n")
    editor.chmod(0o755)
    terminal = start(EDITOR=str(editor), VISUAL="")
    terminal.type("draft")
    terminal.wait_for("draft")
    terminal.press("ctrl+g")
    terminal.wait_for("editing")
    terminal.press("ctrl+c")
    terminal.wait_for(lambda screen: READY in screen and "draft" in screen)
    terminal.type(" goes on\r")
    terminal.wait_for("You said: draft goes on")


def test_a_program_ended_while_the_editor_has_the_terminal_leaves_it_in_order(start: Start, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho editing\nexec cat\n")
    editor.chmod(0o755)
    terminal = start(EDITOR=str(editor), VISUAL="")
    terminal.press("ctrl+g")
    terminal.wait_for("editing")
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_for_exit() == 143
    terminal.assert_restored()


@pytest.mark.parametrize(
    ("typed", "shown"), [("draft", "draft"), ("hang\r", "working on it"), ("ask\r", "make install")]
)
def test_ctrl_z_gives_the_terminal_back_and_fg_goes_on_also_twice(start: Start, typed: str, shown: str) -> None:
    terminal = start()
    terminal.type(typed)
    terminal.wait_for(shown)
    for _ in range(2):
        terminal.type("\x1a")
        terminal.wait_until_stopped()
        terminal.wait_until(lambda terminal: not terminal.modes.leftovers())
        terminal.assert_restored()
        terminal.signal(signal.SIGCONT)
        terminal.wait_for(lambda screen: shown in screen and "/help shows commands and keys" in screen)
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_for_exit() == 143
    terminal.assert_restored()


def test_a_suspended_program_that_is_ended_leaves_a_clean_terminal(start: Start) -> None:
    terminal = start()
    terminal.type("\x1a")
    terminal.wait_until(lambda terminal: not terminal.modes.is_alternate_screen)
    terminal.wait_until_stopped()
    terminal.signal(signal.SIGTERM)
    terminal.signal(signal.SIGCONT)
    assert terminal.wait_for_exit() == 143
    terminal.assert_restored()


# ── terminals that stall, go away, or are of another kind ──


@pytest.mark.parametrize("typed", ["", "hang\r", "ask\r"], ids=["idle", "turn", "dialog"])
def test_a_closed_window_ends_the_program(start: Start, typed: str) -> None:
    terminal = start()
    terminal.type(typed)
    terminal.wait_for({"": READY, "hang\r": "working on it", "ask\r": "make install"}[typed])
    terminal.hang_up()
    assert terminal.wait_for_exit() == 129


def test_a_terminal_that_stalls_for_a_while_loses_nothing(start: Start) -> None:
    terminal = start()
    terminal.pause_reading()
    terminal.type("long\r")
    terminal.wait_for_unread_output()
    terminal.resume_reading()
    terminal.wait_for("the last row")
    terminal.type("/exit\r")
    assert terminal.wait_for_exit() == 0
    terminal.assert_restored()


BROKEN_REPORTS = {
    "cut": b"\x1b[<35;10;",
    "two numbers": b"\x1b[<35;10M",
    "four numbers": b"\x1b[<0;1;2;3M",
    "strange end": b"\x1b[<0;1;2x",
    "without its escape": b"[<35;10;10M",
    "negative": b"\x1b[<0;-5;-3M",
    "enormous": b"\x1b[<35;99999;99999M\x1b[<999999999;1;1M",
    "raw": b"\x1b[MC!!\x1b[MC$$",
    "raw and no UTF-8": b"\x1b[MC\xfe\xff\x1b[MC\xc3\xa9",
    "raw and cut": b"\x1b[MC\xff",
    "an impossible key": b"\x1b[99999999999;5u",
}


@pytest.mark.parametrize("report", BROKEN_REPORTS.values(), ids=list(BROKEN_REPORTS))
def test_a_broken_mouse_report_neither_ends_the_reading_nor_is_it_typed(start: Start, report: bytes) -> None:
    terminal = start()
    terminal.type("be")
    terminal.wait_for("be")
    terminal.send(report)
    # What follows a cut report within a moment could be its end, so the screen's own answer is waited for.
    terminal.send(b"\x1b[I")
    terminal.type("fore\r")
    terminal.wait_for("You said: before")
    terminal.type("/exit\r")
    assert terminal.wait_for_exit() == 0
    terminal.assert_restored()


def test_without_colorterm_there_are_256_colours_and_without_a_known_name_16(start: Start) -> None:
    assert b"38;2;" in start().output
    few = start(COLORTERM="", TERM="xterm-256color")
    assert b"38;5;" in few.output
    assert b"38;2;" not in few.output
    fewest = start(COLORTERM="", TERM="xterm")
    assert b"38;5;" not in fewest.output
    assert b"38;2;" not in fewest.output


@pytest.mark.parametrize("name", ["dumb", "unknown", ""])
def test_a_terminal_of_no_known_kind_gets_plain_lines(start: Start, name: str) -> None:
    terminal = start(wait_for="\n>", TERM=name)
    terminal.type("hello\r")
    terminal.wait_for("pyagent: You said: hello")
    assert b"\x1b[?1049h" not in terminal.output
    assert b"\x1b]" not in terminal.output
    assert "you: hello" not in terminal.text
    terminal.type("/exit\r")
    assert terminal.wait_for_exit() == 0
    terminal.assert_restored()


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("echo hello | {program}", ""),
        ("{program} 2>err", "hello\r/exit\r"),
        ("echo hello | {program} >out", ""),
        ("{program} </dev/null", ""),
    ],
)
def test_streams_that_are_no_terminal_get_plain_text(start: Start, tmp_path: Path, line: str, typed: str) -> None:
    terminal = start(argv=shell(line, "echo ended with $?", "read x"), wait_for="" if not typed else "\n>")
    terminal.type(typed)
    terminal.wait_for("ended with 0")
    terminal.assert_restored()
    written = terminal.output + b"".join(
        (tmp_path / name).read_bytes() for name in os.listdir(tmp_path) if name in ("out", "err")
    )
    assert b"\x1b[?1049h" not in written
    if "</dev/null" not in line:
        assert b"You said: hello" in written


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_in_tmux_the_program_is_gone_on_with_after_a_reattach(tmp_path: Path) -> None:
    tmux = ["tmux", "-S", str(tmp_path / "socket"), "-f", "/dev/null"]
    environ = isolated_environment(tmp_path)
    with Terminal.spawn([*tmux, "new-session", " ".join(PROGRAM)], home=tmp_path) as first:
        first.wait_for(READY)
        first.type("draft")
        first.wait_for("draft")
        subprocess.run([*tmux, "detach-client"], env=environ, check=True)
        assert first.wait_for_exit() == 0
        first.assert_restored()
    with Terminal.spawn([*tmux, "attach-session"], home=tmp_path) as second:
        second.wait_for("draft")
        second.send(b"\x1b[MC!!")
        second.type(" goes on\r")
        second.wait_for("You said: draft goes on")
        second.type("/exit\r")
        assert second.wait_for_exit() == 0
        second.assert_restored()
