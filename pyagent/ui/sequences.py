"""Control sequences of pyagent's own: window title, notifications, clipboard, marks. What they carry is made inert.

Where a terminal multiplexer stands between, some of them have to be handed through it.
"""

from __future__ import annotations

import base64
from typing import Literal, TypeAlias

from pyagent.ui.lines import inert_row, truncate

Multiplexer: TypeAlias = Literal["", "tmux", "screen"]

BELL = "\a"
_END = "\x1b\\"

SAVE_TITLE = "\x1b[22;0t"
RESTORE_TITLE = "\x1b[23;0t"

PROMPT_MARK = f"\x1b]133;A{_END}"
OUTPUT_MARK = f"\x1b]133;C{_END}"
"""Shell integration marks: here a prompt begins, here what answers it. Terminals jump between them."""

_LONGEST_TITLE_CELLS = 80
_LONGEST_NOTIFICATION_CELLS = 200
_SCREEN_PIECE_CHARS = 200
"""GNU screen takes at most 256 bytes at a time to hand through."""


def done_mark(exit_code: int) -> str:
    """Shell integration mark: the output ends here."""
    return f"\x1b]133;D;{exit_code}{_END}"


def title_sequence(title: str) -> str:
    """Sets the window's title."""
    return f"\x1b]0;{sequence_text(title, _LONGEST_TITLE_CELLS)}{BELL}"


def sequence_text(text: str, width_cells: int) -> str:
    """Text that can neither end the sequence it stands in nor begin another; surrogates and control pictures go too."""
    return truncate(" ".join(inert_row(text).split()), width_cells)


def through(multiplexer: Multiplexer, sequence: str) -> str:
    """The sequence as the terminal around a multiplexer will get it."""
    if multiplexer == "tmux":
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + _END
    if multiplexer == "screen":
        body = sequence.replace(_END, BELL)
        starts = range(0, len(body), _SCREEN_PIECE_CHARS)
        return "".join(f"\x1bP{body[at : at + _SCREEN_PIECE_CHARS]}{_END}" for at in starts)
    return sequence


def clipboard_sequence(text: str) -> str:
    """Puts the text on the clipboard of the terminal's machine (OSC 52)."""
    return f"\x1b]52;c;{base64.b64encode(text.encode('utf-8', 'replace')).decode('ascii')}{BELL}"


def notification_sequence(channel: str, title: str, text: str) -> str:
    """Shows a notification, by the way a terminal takes it: osc9, osc99, osc777 or bell.

    Raises:
        ValueError: there is no such channel.
    """
    title = sequence_text(title, _LONGEST_NOTIFICATION_CELLS)
    text = sequence_text(text, _LONGEST_NOTIFICATION_CELLS)
    match channel:
        case "bell":
            return BELL
        case "osc9":
            # A number and a semicolon at the start would be another command (progress, in some terminals).
            return f"\x1b]9;{title}: {text}{BELL}"
        case "osc777":
            return f"\x1b]777;notify;{title.replace(';', ',')};{text.replace(';', ',')}{BELL}"
        case "osc99":
            return f"\x1b]99;i=pyagent:d=0;{title}{_END}\x1b]99;i=pyagent:d=1:p=body;{text}{_END}"
        case _:
            raise ValueError(f"there is no notification channel {channel!r}")
