"""Reads the terminal: what is pasted stays text, whatever it holds, and no byte ends the reading.

Writing goes through `columns`, so that rows stay aligned whatever the terminal takes a character's width to be.

The parser underneath takes an escape character inside a bracketed paste for the start of a key: a pasted log with
colours would press keys, Enter among them. It also looks at every character, a second for a megabyte. So it is shown
where a paste begins and ends, but never what is in it.
"""

from __future__ import annotations

import codecs
import os
import selectors
from collections import deque

from textual import events
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

from pyagent.ui.columns import placed

_START, _END = "\x1b[200~", "\x1b[201~"
_READ_BYTES = 1 << 16
_POLL_S = 0.1
"""How long a wait for input may last: a lone escape character counts as the key once nothing followed it."""


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


class InputDriver(LinuxDriver):
    """The terminal driver, with its own reading of the keyboard and columns that stay where they are put."""

    def write(self, data: str) -> None:
        """Write a frame or a control sequence."""
        super().write(placed(data))

    def run_input_thread(self) -> None:
        """Turn bytes into events until told to stop. A byte that is no UTF-8 becomes a replacement character."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        taken, parser = PasteFilter(), XTermParser(self._debug)
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(_POLL_S):
                    data = os.read(self.fileno, _READ_BYTES)
                    if not data:
                        return
                    # An empty text would tell the parser that the input has ended.
                    if text := taken.feed(decoder.decode(data)):
                        for message in parser.feed(text):
                            is_paste = isinstance(message, events.Paste) and bool(taken.pastes)
                            self.process_message(events.Paste(taken.pastes.popleft()) if is_paste else message)
                for message in parser.tick():
                    self.process_message(message)
