"""Leaves the terminal as it was found, whatever ends the program.

Textual restores the terminal on every orderly way out. This module sees to the others: signals become an orderly
end, and a watchdog writes the reset string itself if that end hangs. What no process can do anything about (kill -9) is
cured afterwards; see `pyagent.ui.leftovers`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from pyagent.ui.last_words import silence_others, write_last

WATCHDOG_S = 2.0
"""An orderly end takes 0.2 to 0.5 s; one that takes four times as long hangs (a closed terminal did in 1 of 8 runs)."""

RESET_SEQUENCE = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"  # mouse reports
    "\x1b[?2004l\x1b[?1004l\x1b[?2048l\x1b[?2026l"  # bracketed paste, focus, resize reports, held-back frames
    "\x1b[<u\x1b[=0u"  # enhanced keyboard reports
    "\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[0m\r"  # line wrap; back to the normal screen, with a cursor and plain colours
    "\x1b[23;0t"  # the window title from before
)
"""Undoes every mode Textual and the window title set."""


class Watchdog:
    """Ends the process by force, with the terminal reset, if an orderly end does not come in time."""

    def __init__(
        self, tty_fd: int, *, modes: list[Any] | None = None, leave: Callable[[int], object] = os._exit
    ) -> None:
        """`modes` are the terminal's line modes from before the program, if they have been changed since; `leave` ends
        the process at once."""
        self._tty_fd = tty_fd
        self._leave = leave
        self._timer: threading.Timer | None = None
        self.has_screen = True
        """Whether the screen may hold the terminal. Once it gave it back, a second reset would move the cursor."""
        self.mark: Path | None = None
        """The file that says that the screen holds the terminal; it goes with a reset."""
        self._modes = modes
        if modes is None:
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
        """Reset the terminal and leave at once, whatever other threads were about to draw."""
        silence_others(self._tty_fd)
        self.reset_terminal()
        self._leave(exit_code)

    def reset_terminal(self) -> None:
        """Write the reset string and set the line modes found at the start. A terminal that is gone is no error."""
        if self.has_screen:
            write_last(self._tty_fd, RESET_SEQUENCE.encode("ascii"))
        if self._modes is not None:
            with suppress(termios.error, OSError):
                termios.tcsetattr(self._tty_fd, termios.TCSANOW, self._modes)
        if self.mark is not None:
            with suppress(OSError):
                self.mark.unlink()


EXIT_CODES = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130, signal.SIGQUIT: 131}
"""128 + the signal's number, as shells report it."""


def end_on_signals(watchdog: Watchdog) -> None:
    """Until `watch_signals`: end at once, with the terminal reset. There is nothing to be saved yet."""

    def end(number: int, _frame: FrameType | None) -> None:
        watchdog.end_now(EXIT_CODES[signal.Signals(number)])

    for number in EXIT_CODES:
        signal.signal(number, end)


def watch_signals(loop: asyncio.AbstractEventLoop, end: Callable[[int], None], at_once: Callable[[int], None]) -> None:
    """Call `end` on the loop with the exit code when SIGTERM, SIGHUP, SIGQUIT or a SIGINT from outside comes; `at_once`
    before that, in the signal's handler, for a loop that never gets to it."""
    for number, exit_code in EXIT_CODES.items():
        loop.add_signal_handler(number, end, exit_code)
        # The loop hears of the signal through its wake-up descriptor, so its own empty handler may be replaced.
        signal.signal(number, lambda came, _frame: at_once(EXIT_CODES[signal.Signals(came)]))


@contextmanager
def interrupts_left_to_others() -> Iterator[None]:
    """While a program of the person's has the terminal, Ctrl+C is meant for it: it goes to both, and we let it pass.

    For the main thread. The event loop would hear of the signal by its wake-up descriptor, if only later.
    """
    wake_fd = signal.set_wakeup_fd(-1)
    before = signal.signal(signal.SIGINT, _pass)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(wake_fd)


def _pass(_number: int, _frame: FrameType | None) -> None:
    """Not `SIG_IGN`, which the program would inherit."""


def unwatch_signals(loop: asyncio.AbstractEventLoop) -> None:
    """Undo `watch_signals`."""
    for number in EXIT_CODES:
        loop.remove_signal_handler(number)
