"""Leaves the terminal as it was found, whatever ends the program, and keeps stray output off the screen.

Textual restores the terminal on every orderly way out. This module sees to the others: signals become an orderly
end, a watchdog writes the reset string itself if that end hangs, and errors go to a log file instead of the screen.
"""

from __future__ import annotations

import asyncio
import faulthandler
import io
import logging
import os
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

WATCHDOG_S = 2.0
"""An orderly end takes 0.2 to 0.5 s; one that takes four times as long hangs (a closed terminal did in 1 of 8 runs)."""

RESET_SEQUENCE = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"  # mouse reports
    "\x1b[?2004l\x1b[?1004l\x1b[?2048l\x1b[?2026l"  # bracketed paste, focus, resize reports, held-back frames
    "\x1b[<u\x1b[=0u"  # enhanced keyboard reports
    "\x1b[?1049l\x1b[?25h\x1b[0m\r"  # back to the normal screen, with a cursor and plain colours
)
"""Undoes every mode Textual sets."""

MAX_LOG_BYTES = 1_000_000
"""The log starts afresh above this: it is there for the last crash, not for the year."""

_log = logging.getLogger("pyagent")


def open_log(home: Path) -> io.TextIOWrapper | None:
    """The log file under pyagent's folder, owner-only; None if it cannot be written."""
    path = home / "logs" / "pyagent.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
            flags |= os.O_TRUNC
        return os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8", errors="backslashreplace", buffering=1)
    except OSError:
        return None


@contextmanager
def errors_to_log(home: Path) -> Iterator[Path]:
    """While inside, uncaught exceptions, crashes and log records go to the log file, whose path is given."""
    path = home / "logs" / "pyagent.log"
    log = open_log(home)
    if log is None:
        yield path
        return
    handler = logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    faulthandler.enable(log)
    hooks = sys.excepthook, threading.excepthook

    def log_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _log.critical("uncaught exception", exc_info=(kind, error, trace))

    def log_thread_exception(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            log_exception(args.exc_type, args.exc_value, args.exc_traceback)

    sys.excepthook, threading.excepthook = log_exception, log_thread_exception
    try:
        yield path
    finally:
        sys.excepthook, threading.excepthook = hooks
        faulthandler.disable()
        root.removeHandler(handler)
        log.close()


@contextmanager
def streams_guarded(home: Path) -> Iterator[None]:
    """While inside, what writes to descriptors 1 and 2 (a library, a child process) ends in the log, not on the screen.

    The screen itself is drawn on private copies, which become `sys.__stdout__` and `sys.__stderr__`. A program that
    is to have the terminal (an editor) must be given these as its streams.
    """
    log = open_log(home)
    if log is None:
        yield
        return
    before = sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__
    private_out, private_err = os.dup(1), os.dup(2)
    sys.stdout.flush()
    sys.stderr.flush()
    screen_out = os.fdopen(private_out, "w", encoding="utf-8", errors="replace", closefd=False)
    screen_err = os.fdopen(private_err, "w", encoding="utf-8", errors="replace", closefd=False)
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    _set_streams(log, log, screen_out, screen_err)
    try:
        yield
    finally:
        for stream in (screen_out, screen_err):
            with suppress(OSError):
                stream.flush()
        os.dup2(private_out, 1)
        os.dup2(private_err, 2)
        os.close(private_out)
        os.close(private_err)
        _set_streams(*before)
        log.close()


def _set_streams(out: Any, err: Any, original_out: Any, original_err: Any) -> None:
    sys.stdout, sys.stderr = out, err
    sys.__stdout__, sys.__stderr__ = original_out, original_err  # type: ignore[misc]  # Textual draws on these


class Watchdog:
    """Ends the process by force, with the terminal reset, if an orderly end does not come in time."""

    def __init__(self, tty_fd: int) -> None:
        self._tty_fd = tty_fd
        self._timer: threading.Timer | None = None
        self._modes: list[Any] | None = None
        with suppress(termios.error, OSError):
            self._modes = termios.tcgetattr(tty_fd)

    def arm(self, exit_code: int, after_s: float = WATCHDOG_S) -> None:
        """Give the process `after_s` seconds from now."""
        if self._timer is None:
            self._timer = threading.Timer(after_s, self.end_now, [exit_code])
            self._timer.daemon = True
            self._timer.start()

    def arm_from_signals(self) -> Callable[[int], None]:
        """Gives a function that arms the dog from within a signal handler, whatever the main thread is stuck in.

        It only writes a byte; a thread that waits for nothing else does the rest. A handler of the event loop does not
        do: a terminal that stops reading blocks the loop in a write.
        """
        read_fd, write_fd = os.pipe()

        def wait() -> None:
            code = os.read(read_fd, 1)
            if code:
                self.arm(code[0])

        def arm(exit_code: int) -> None:
            os.write(write_fd, bytes([exit_code]))

        threading.Thread(target=wait, name="signal watchdog", daemon=True).start()
        return arm

    def disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end_now(self, exit_code: int) -> None:
        """Reset the terminal and leave at once."""
        self.reset_terminal()
        os._exit(exit_code)

    def reset_terminal(self) -> None:
        """Write the reset string and set the line modes found at the start. A terminal that is gone is no error."""
        with suppress(OSError):
            os.set_blocking(self._tty_fd, False)
            os.write(self._tty_fd, RESET_SEQUENCE.encode("ascii"))
        with suppress(OSError):
            os.set_blocking(self._tty_fd, True)
        if self._modes is not None:
            with suppress(termios.error, OSError):
                termios.tcsetattr(self._tty_fd, termios.TCSANOW, self._modes)


EXIT_CODES = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130}
"""128 + the signal's number, as shells report it."""


def watch_signals(loop: asyncio.AbstractEventLoop, end: Callable[[int], None], at_once: Callable[[int], None]) -> None:
    """Call `end` on the loop with the exit code when SIGTERM, SIGHUP or a SIGINT from outside comes; `at_once` before
    that, in the signal's handler, for a loop that never gets to it."""
    for number, exit_code in EXIT_CODES.items():
        loop.add_signal_handler(number, end, exit_code)
        # The loop hears of the signal through its wake-up descriptor, so its own empty handler may be replaced.
        signal.signal(number, lambda came, _frame: at_once(EXIT_CODES[signal.Signals(came)]))


def unwatch_signals(loop: asyncio.AbstractEventLoop) -> None:
    """Undo `watch_signals`."""
    for number in EXIT_CODES:
        loop.remove_signal_handler(number)
