"""Holds a session line by line, from a terminal or a pipe to the exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from types import FrameType
from typing import TextIO

from pyagent.commands import Shutdown
from pyagent.events import Event
from pyagent.launch import AgentStarter
from pyagent.ui.cli import EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_TERMINATED, Invocation, silence
from pyagent.ui.handover import hand_over
from pyagent.ui.history import PromptHistory, history_path
from pyagent.ui.leftovers import cure_terminal
from pyagent.ui.log_file import errors_to_log
from pyagent.ui.plain import PlainSession
from pyagent.ui.plain_input import LineReader, StreamReader, TerminalReader
from pyagent.ui.plain_output import PlainPrinter

CLOSE_TIMEOUT_S = 5.0
"""How long the agent gets, once the person has left, to stop tools and close its log."""


class _Terminated(Exception):
    """SIGTERM or SIGHUP came."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def run_plain(invocation: Invocation, starter: AgentStarter) -> int:
    """Hold a session line by line and return the exit code."""
    options = invocation.options
    history = PromptHistory(history_path(options.home, options.cwd))
    is_tty = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if is_tty:
        cure_terminal(options.home, sys.stdout.fileno())
    reader: LineReader = StreamReader(sys.stdin)
    if is_tty:
        reader = TerminalReader(history, options.cwd, tells_deleted=bool(invocation.screen_reader_via))
    for number, exit_code in ((signal.SIGTERM, EXIT_TERMINATED), (signal.SIGHUP, 129)):
        signal.signal(number, _raising(exit_code))
    with errors_to_log(options.log_path, options.environ):
        return _hold_session(invocation, starter, reader)


def _hold_session(invocation: Invocation, starter: AgentStarter, reader: LineReader) -> int:
    inbox: SimpleQueue[Event] = SimpleQueue()
    handle = starter(invocation.options, lambda event: inbox.put(event))
    is_spoken = bool(invocation.screen_reader_via)
    printer = PlainPrinter(
        _write,
        is_verbose=invocation.is_verbose,
        is_spoken=is_spoken,
        write_error=None if reader.is_interactive else partial(_write, to=sys.stderr),
    )
    session = PlainSession(invocation, handle, inbox, reader, printer)
    try:
        exit_code = session.run()
    except BrokenPipeError:
        silence(sys.stdout)
        exit_code = EXIT_FAILURE
    except _Terminated as terminated:
        exit_code = terminated.exit_code
    except KeyboardInterrupt:
        exit_code = EXIT_INTERRUPTED
    handle.send(Shutdown())
    handle.close(CLOSE_TIMEOUT_S)
    if session.handover is not None and exit_code == 0:
        hand_over(session.handover, invocation)
    return exit_code


def _raising(exit_code: int) -> Callable[[int, FrameType | None], None]:
    def handler(_number: int, _frame: FrameType | None) -> None:
        raise _Terminated(exit_code)

    return handler


def _write(text: str, to: TextIO | None = None) -> None:
    """Print at once, on standard output if nothing else is said, whatever the encoding of the stream can hold."""
    stream = to or sys.stdout
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()
