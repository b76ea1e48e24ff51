"""Reads the terminal: what is pasted stays text, whatever it holds, and no byte ends the reading.

Writing goes through `columns`, so that rows stay aligned whatever the terminal takes a character's width to be.

The parser underneath takes an escape character inside a bracketed paste for the start of a key: a pasted log with
colours would press keys, Enter among them. It also looks at every character, a second for a megabyte. So it is shown
where a paste begins and ends, but never what is in it. Nor is it shown broken mouse reports, or halves of anything that
a slow link has cut (`pyagent.ui.cut_input`).
"""

from __future__ import annotations

import codecs
import logging
import os
import re
import selectors
import time
from collections import deque
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from textual import events
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from pyagent.ui.columns import placed
from pyagent.ui.cut_input import CutSequences, RawPaste
from pyagent.ui.graphemes import is_joiner
from pyagent.ui.instant_line import TypedAhead
from pyagent.ui.sequences import RESTORE_TITLE, SAVE_TITLE, title_sequence
from pyagent.ui.terminal_kind import has_links, takes_sequences
from pyagent.ui.theming import ReplyFilter, is_light_colour

if TYPE_CHECKING:
    from textual.app import App

    from pyagent.ui.instant import InstantPrompt

_log = logging.getLogger(__name__)

_START, _END = "\x1b[200~", "\x1b[201~"
_READ_BYTES = 1 << 16
_POLL_S = 0.1
"""How long a wait for input may last: a lone escape character counts as the key once nothing followed it.
With nothing begun the wait is for ever: a look ten times a second would be a third of what the idle program costs."""
_LOGGED_CHARS = 60
_LINK = re.compile("\x1b\\]8;[^\x07\x1b]*(?:\x07|\x1b\\\\)")
_ANY_OSC = re.compile("\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)")
_KEY_START = re.compile("(?=\x1b)")

_ALTERNATE_SCREEN = "\x1b[?1049h"


class PasteFilter:
    """Takes what is pasted out of the input, wherever the reads cut the stream."""

    def __init__(self) -> None:
        self.pastes: deque[str] = deque()
        """Pastes that have ended, oldest first."""
        self._is_inside = False
        self._before = ""
        """The newest characters outside a paste: its opening may be cut in two."""
        self._held = ""
        """The end of what was read inside a paste, if the closing may begin there."""
        self._pieces: list[str] = []

    def feed(self, data: str) -> str:
        """The input with every paste emptied. Outside pastes nothing is held back."""
        rest, done = self._held + data, []
        self._held = ""
        while rest:
            if self._is_inside:
                inner, closing, rest = rest.partition(_END)
                if closing:
                    self.pastes.append("".join([*self._pieces, inner]))
                    self._pieces, self._is_inside = [], False
                    done.append(_END)
                else:
                    cut = len(inner) - _overlap(inner, _END)
                    self._pieces.append(inner[:cut])
                    self._held = inner[cut:]
            else:
                seen = self._before + rest
                at = seen.find(_START)
                taken = len(rest) if at < 0 else at + len(_START) - len(self._before)
                done.append(rest[:taken])
                self._is_inside, rest = at >= 0, rest[taken:]
                self._before = "" if self._is_inside else seen[-len(_START) + 1 :]
        return "".join(done)


def _overlap(text: str, marker: str) -> int:
    """How many characters at the end of the text the marker begins with."""
    return next((n for n in range(len(marker) - 1, 0, -1) if text.endswith(marker[:n])), 0)


class _Typed(str):
    """A character that shows only in what it does to its neighbours. Typed, it is text: without it a family falls apart
    into persons, and some Persian words into others."""

    def isprintable(self) -> bool:
        return True


class BackgroundTold(Message):
    """The terminal has said what its background is like: light or not; None if that makes no sense."""

    def __init__(self, is_light: bool | None) -> None:
        super().__init__()
        self.is_light = is_light


class InputDriver(LinuxDriver):
    """The terminal driver, with its own reading of the keyboard, columns that stay where they are put, and a title
    of the window that is given back. It takes over from the app's `instant` prompt, if that has one."""

    _wake_fds: tuple[int, int] | None = None
    """A pipe that ends the wait for input."""
    _title = ""
    _unwanted = None if has_links(os.environ) else _LINK if takes_sequences(os.environ) else _ANY_OSC
    """What this terminal would print or stumble over."""
    _is_in_place = False
    """While it sets up a terminal on which the instant prompt stands."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._instant: InstantPrompt | None = getattr(app, "instant", None)

    def write(self, data: str) -> None:
        """Write a frame or a control sequence."""
        if not (self._is_in_place and data == _ALTERNATE_SCREEN):
            super().write(placed(data if self._unwanted is None else self._unwanted.sub("", data)))

    def set_title(self, title: str) -> None:
        """Show a window title, which must be inert. The one from before comes back when the terminal is given back."""
        if self._writer_thread is not None and title != self._title:
            self.write((SAVE_TITLE if not self._title else "") + title_sequence(title))
            self._title = title

    def start_application_mode(self) -> None:
        """Set the terminal up. The instant prompt has done so already: its screen stays, and so do the modes before."""
        self._wake_fds = os.pipe()
        instant = self._instant
        if instant is not None:
            instant.driver_starts()
            self._is_in_place = True
        super().start_application_mode()  # type: ignore[no-untyped-call]  # It has no annotations there.
        if instant is not None:
            self._is_in_place = False
            self.attrs_before = instant.modes
        if self._title and self._writer_thread is not None:
            self.write(SAVE_TITLE + title_sequence(self._title))

    def disable_input(self) -> None:
        if self._wake_fds is not None:
            os.write(self._wake_fds[1], b"x")
        super().disable_input()

    def stop_application_mode(self) -> None:
        if self._title:
            self.write(RESTORE_TITLE)
        super().stop_application_mode()
        if self._wake_fds is not None:
            for fd in self._wake_fds:
                os.close(fd)
            self._wake_fds = None

    def run_input_thread(self) -> None:
        """Turn bytes into events until told to stop. A byte that is no UTF-8 becomes a replacement character."""
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        pastes, cut, raw, parser = PasteFilter(), CutSequences(), RawPaste(), XTermParser(self._debug)
        replies, is_told = ReplyFilter(), False
        if self._instant is not None:
            ahead, self._instant = self._ahead_of(self._instant), None
            for at_s, came in groupby(ahead.all_input, itemgetter(0)):
                text = "".join(text for _, text in came)
                for piece in cut.feed(pastes.feed(text), time.monotonic()):
                    parser = self._take_pasted(*raw.feed(piece), parser, pastes, at_s)
            decoder.decode(ahead.pending)
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            if self._wake_fds is not None:
                selector.register(self._wake_fds[0], selectors.EVENT_READ)
            while not self.exit_event.is_set():
                is_waiting = cut.is_waiting or raw.is_open or parser._timeout_time is not None
                ready = {key.fd for key, _ in selector.select(_POLL_S if is_waiting else None)}
                if self._wake_fds is not None and self._wake_fds[0] in ready:
                    return
                if self.fileno in ready:
                    data = os.read(self.fileno, _READ_BYTES)
                    if not data:
                        return
                    # An empty text would tell the parser that the input has ended.
                    text = pastes.feed(decoder.decode(data))
                    text = text if is_told else replies.feed(text)
                    if replies.reply is not None and not is_told:
                        is_told = True
                        self.process_message(BackgroundTold(is_light_colour(replies.reply)))
                    pieces = cut.feed(text, time.monotonic())
                    for number, piece in enumerate(pieces, 1):
                        pasted, typed = raw.feed(piece)
                        parser = self._take_pasted(pasted, typed, parser, pastes)
                        if number < len(pieces):
                            self._time_out(parser)
                    if cut.mouse.has_lost_sgr:
                        cut.mouse.has_lost_sgr = False
                        self._enable_mouse_support()
                else:
                    if raw.is_open:
                        parser = self._take_pasted(*raw.end(), parser, pastes)
                    if key := cut.settle(time.monotonic()):
                        parser = self._take(key, parser, pastes)
                        self._time_out(parser)
                for message in parser.tick():
                    self.process_message(message)

    def _take_pasted(
        self, pasted: str, typed: str, parser: XTermParser, pastes: PasteFilter, at_s: float | None = None
    ) -> XTermParser:
        """Give on what was pasted without brackets, if anything was, and have the keys behind it parsed."""
        if pasted:
            self.process_message(events.Paste(pasted))
        return self._take(typed, parser, pastes, at_s) if typed else parser

    def _time_out(self, parser: XTermParser) -> None:
        """Nothing follows what the parser has: it is a key."""
        if parser._timeout_time is not None:
            parser._timeout_time = 0.0
            for message in parser.tick():
                self.process_message(message)

    def _ahead_of(self, instant: InstantPrompt) -> TypedAhead:
        """Wait until the instant prompt reads no more; gives what it has read."""
        ahead = None
        while ahead is None and not self.exit_event.is_set():
            ahead = instant.wait_for_hand_over(_POLL_S)
        return ahead or TypedAhead()

    def _take(self, text: str, parser: XTermParser, pastes: PasteFilter, at_s: float | None = None) -> XTermParser:
        """Have the text parsed, key by key where there are escapes; gives the parser to go on with. `at_s` is when the
        text came (monotonic seconds), if not just now."""
        for piece in _KEY_START.split(text):
            try:
                for message in parser.feed(piece) if piece else ():
                    is_paste = isinstance(message, events.Paste) and bool(pastes.pastes)
                    event = events.Paste(_clean(pastes.pastes.popleft())) if is_paste else message
                    if isinstance(event, events.Key) and is_joiner(event.character):
                        event.character = _Typed(event.character)
                    event.time = event.time if at_s is None else at_s
                    self.process_message(event)
            except (ValueError, OverflowError, TypeError, StopIteration):
                # A key with an impossible number, say. The parser is spent, but the keyboard must go on.
                _log.warning("input that cannot be read: %r", piece[:_LOGGED_CHARS], exc_info=True)
                parser = XTermParser(self._debug)
        return parser


def _clean(text: str) -> str:
    """The text with bytes that were no UTF-8 replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
