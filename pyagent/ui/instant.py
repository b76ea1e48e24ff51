"""The instant prompt: drawn and taking keys before Textual is imported, then handed over to it in place.

The terminal is set up as Textual's driver would do it, so that its own set-up changes nothing that can be seen. A
thread echoes what is typed while the main thread imports. Whatever ends the program before the hand-over, the
terminal is as it was. Loaded before everything else, so it imports nothing slow; a failure here only means a start
without it.
"""

from __future__ import annotations

import os
import sys

from pyagent import __version__
from pyagent.ui.instant_frame import Inks, Picture
from pyagent.ui.instant_line import BURST_SETTLE_S, INTERRUPT, LEAVE, REDRAW, SUSPEND, TypedAhead, TypedLine
from pyagent.ui.instant_when import flag_value, has_own_keys, picks_session, theme_setting, will_be_a_screen
from pyagent.ui.last_words import silence_others, write_last

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence
    from types import FrameType, TracebackType
    from typing import Any

ENTER_SEQUENCE = "\x1b[?1049h\x1b[?25l\x1b[?2004h"
"""The alternate screen, no cursor, and brackets around what is pasted."""

LEAVE_SEQUENCE = (
    "\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?2004l\x1b[?1004l\x1b[?2048l\x1b[?2026l\x1b[<u\x1b[?7h"
    "\x1b[?1049l\x1b[?25h\x1b[0m\r"
)
"""Undoes that, and what Textual's driver switches on between its own start and the hand-over."""

HAND_OVER_LIMIT_S = 1.0
"""How long the hand-over waits for a terminal that takes no output; what was typed until then is not waited for."""

BURST_LIMIT_S = 0.15
"""How long the hand-over waits for the end of a burst of keys. Who types on without a pause types no paste."""

_READ_BYTES = 1 << 16
_EXIT_INTERRUPTED = 130


def open_instant(argv: Sequence[str], environ: Mapping[str, str]) -> InstantPrompt | None:
    """The instant prompt on the terminal, if the full screen is going to start and the terminal can carry it."""
    if sys.platform == "win32" or not will_be_a_screen(argv, environ) or _is_marked(environ):
        return None
    try:
        size = os.get_terminal_size(2)
        title = f"pyagent {__version__}"
        folder = os.getcwd()
        model = flag_value("--model", argv)
        if not (folder + model).isprintable():
            return None
        picture = Picture(
            size.columns, size.lines, Inks(environ, theme_setting(environ)), title=title, model=model, folder=folder
        )
        if not picture.is_big_enough():
            return None
        prompt = InstantPrompt(picture, can_send=not picks_session(argv), has_own_keys=has_own_keys(environ))
    except (OSError, ValueError):
        return None
    try:
        prompt.begin()
    except Exception:
        # A terminal that cannot be set up, or a mistake of ours: neither may keep the program from starting.
        prompt.leave()
        return None
    return prompt


def _is_marked(environ: Mapping[str, str]) -> bool:
    """Whether this terminal may have to be cured of a killed program first (`pyagent.ui.leftovers`): its modes are not
    those to come back to."""
    home = os.path.expanduser(environ.get("PYAGENT_HOME") or "~/.pyagent")
    try:
        return os.path.exists(os.path.join(home, "terminals", os.ttyname(2).strip("/").replace("/", "-")))
    except OSError:
        return False


class InstantPrompt:
    """The first screen of one start. As a context, it leaves the terminal as it was found."""

    def __init__(self, picture: Picture, *, can_send: bool = True, has_own_keys: bool = False) -> None:
        self.modes: list[Any] | None = None
        """The terminal's line modes before anything was changed."""
        self.failure: BaseException | None = None
        """What made the echo end early, for the log; keys were kept all the same."""
        self._picture = picture
        self._line = TypedLine(
            lambda draft, queued: self._picture.has_room(draft, queued),
            lambda line: self._picture.wraps(line),
            can_send=can_send,
            has_own_keys=has_own_keys,
        )
        self._out = os.dup(2)
        self._drawn: tuple[int, tuple[str, ...]] = (1, ())
        self._wake_fd = self._woken_fd = -1
        self._thread: threading.Thread | None = None
        self._handed_over: threading.Event | None = None
        self._ahead: TypedAhead | None = None
        self._handlers: list[tuple[int, Any, Any]] = []
        self._is_over = False
        self._is_left = False

    def __enter__(self) -> InstantPrompt:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    # The beginning

    def begin(self) -> None:
        """Take the terminal, draw, and listen."""
        import termios

        self.modes = termios.tcgetattr(0)
        self._wake_fd_pair()
        self._watch_signals()
        waiting = self._enter()
        self._write(self._picture.whole("", ()))
        from threading import Event, Thread
        from time import monotonic

        self._handed_over = Event()
        if waiting:
            wish = self._line.feed_before_raw(os.read(0, waiting), monotonic())
            self._draw()
            self._act(wish)
        self._thread = Thread(target=self._listen, name="instant prompt", daemon=True)
        self._thread.start()

    def _wake_fd_pair(self) -> None:
        self._woken_fd, self._wake_fd = os.pipe()
        os.set_blocking(self._wake_fd, False)

    def _enter(self) -> int:
        """Switch to single keys and the alternate screen; gives how many bytes were typed before."""
        import fcntl
        import termios

        assert self.modes is not None
        modes = list(self.modes)
        modes[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        modes[0] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
        modes[6] = list(modes[6])
        modes[6][termios.VMIN] = 1
        termios.tcsetattr(0, termios.TCSANOW, modes)
        waiting = fcntl.ioctl(0, termios.FIONREAD, b"\0\0\0\0")
        self._write(ENTER_SEQUENCE)
        return int.from_bytes(waiting, sys.byteorder)

    def _watch_signals(self) -> None:
        import signal

        def end(number: int, _frame: FrameType | None) -> None:
            self._end(128 + number)

        handlers: dict[int, Callable[[int, FrameType | None], None]] = {
            signal.SIGTERM: end,
            signal.SIGHUP: end,
            signal.SIGINT: end,
            signal.SIGQUIT: end,
            signal.SIGWINCH: lambda *_: self._wake(b"w"),
            signal.SIGTSTP: lambda *_: self._wake(b"z"),
        }
        for number, handler in handlers.items():
            before = signal.getsignal(number)
            if before != signal.SIG_IGN:
                signal.signal(number, handler)
                self._handlers.append((number, handler, before))

    def _unwatch_signals(self) -> None:
        """Put back what stood before, where nobody has put anything else since."""
        import signal

        for number, ours, before in self._handlers:
            if signal.getsignal(number) is ours:
                signal.signal(number, before)

    # Listening: all of this runs on the thread

    def _listen(self) -> None:
        try:
            self._echo_until_told()
        except Exception as error:
            self.failure = error

    def _echo_until_told(self) -> None:
        from select import select
        from time import monotonic

        told_s = float("inf")
        while not self._is_over:
            wait_s = None if told_s == float("inf") and self._line.is_settled else BURST_SETTLE_S
            ready = select([0, self._woken_fd], [], [], wait_s)[0]
            if self._woken_fd in ready:
                for order in os.read(self._woken_fd, _READ_BYTES):
                    if order == ord("q"):
                        told_s = monotonic()
                    elif order == ord("z"):
                        self._act(SUSPEND)
                    else:
                        self._resize()
            if 0 in ready and not self._is_over:
                data = os.read(0, _READ_BYTES)
                if not data:
                    return
                wish = self._line.feed(data, monotonic())
                self._draw()
                self._act(wish)
            if self._line.settle(monotonic()):
                self._draw()
            now_s = monotonic()
            is_quiet = self._line.is_settled and now_s - self._line.last_key_s > BURST_SETTLE_S
            if told_s < now_s and (is_quiet or now_s - told_s > BURST_LIMIT_S):
                return  # A burst of keys is a paste, and not cut in two.

    def _act(self, wish: str) -> None:
        if wish == INTERRUPT:
            self._end(_EXIT_INTERRUPTED)
        elif wish == LEAVE:
            self._end(0)
        elif wish == SUSPEND:
            self._suspend()
        elif wish == REDRAW:
            self._write(self._picture.whole(self._line.draft, self._line.queued))

    def _draw(self) -> None:
        shape = (len(self._picture.rows(self._line.draft)), self._line.queued)
        if shape == self._drawn:
            self._write(self._picture.text_rows(self._line.draft))
        else:
            self._drawn = shape
            self._write(self._picture.whole(self._line.draft, self._line.queued))

    def _resize(self) -> None:
        size = os.get_terminal_size(self._out)
        self._picture = self._picture.resized(size.columns, size.lines)
        self._write(self._picture.whole(self._line.draft, self._line.queued))

    def _suspend(self) -> None:
        import signal
        from threading import get_ident

        self._restore()
        # To this very thread: it must not go on while another one takes the signal.
        signal.pthread_kill(get_ident(), signal.SIGSTOP)
        self._enter()
        self._resize()

    # The end

    def driver_starts(self) -> None:
        """Textual's driver is about to set up the terminal: from now on it sees to Ctrl+C, Ctrl+D and Ctrl+Z."""
        self._line.acts = False

    def hand_over(self) -> TypedAhead:
        """Stop listening; gives what was typed. The screen stays as it is, for Textual's first frame to replace."""
        if self._ahead is None:
            from time import monotonic

            self._wake(b"q")
            if self._thread is not None:
                self._thread.join(HAND_OVER_LIMIT_S)
                self._is_over = True
            self._ahead = self._line.take_over(monotonic())
            if self._handed_over is not None:
                self._handed_over.set()
        return self._ahead

    def wait_for_hand_over(self, limit_s: float) -> TypedAhead | None:
        """What was typed, once it has been handed over; None if that did not happen within the limit."""
        if self._handed_over is not None:
            self._handed_over.wait(limit_s)
        return self._ahead

    def leave(self) -> None:
        """Give the terminal back, unless Textual has taken it and does so itself."""
        if self._is_left:
            return
        self._is_left = True
        self._unwatch_signals()
        if self._ahead is None:
            self.hand_over()
            self._restore()
        elif self.modes is not None:
            self._set_modes(self._out)
        os.close(self._out)

    def _end(self, exit_code: int) -> None:
        """Leave at once. Nothing has been started that would have to be ended in good order."""
        terminal = os.dup(self._out)
        silence_others(terminal)
        write_last(terminal, LEAVE_SEQUENCE.encode("ascii"))
        self._set_modes(terminal)
        os._exit(exit_code)

    def _restore(self) -> None:
        """A terminal that is gone or stalled is no error and no reason to wait."""
        write_last(self._out, LEAVE_SEQUENCE.encode("ascii"))
        self._set_modes(self._out)

    def _set_modes(self, terminal: int) -> None:
        import termios

        if self.modes is not None:
            try:
                termios.tcsetattr(terminal, termios.TCSANOW, self.modes)
            except (termios.error, OSError):
                return

    def _wake(self, order: bytes) -> None:
        try:
            os.write(self._wake_fd, order)
        except OSError:
            return

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._out, data) :]
