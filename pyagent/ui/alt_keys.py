"""Alt and a character as most terminals send it: an escape character right before the other.

The parser underneath knows a few of these and takes the rest for Escape and a letter: Alt+P would stop a turn. Here
they are rewritten into the unambiguous form that newer terminals use. Only what comes in one read is taken together; a
person who presses Escape and then a letter is never that fast.
"""

from __future__ import annotations

import re

_ALT = re.compile(r"(?<!\x1b)\x1b([^\x00-\x0c\x0e-\x1f\x7f-\x9f\[\]\\OPX^_bf])")
"""Not what begins a longer sequence, nor what ends one (a backslash), nor Alt+B and Alt+F, which are known."""

_ALT_CODE, _SHIFT_ALT_CODE = 3, 4


def with_alt_keys(text: str) -> str:
    """Input, pastes taken out, in which Alt with a character is one sequence: `ESC p` → `ESC [112;3u`."""
    return _ALT.sub(_rewritten, text) if "\x1b" in text else text


def _rewritten(match: re.Match[str]) -> str:
    char = match[1]
    lower = char.lower()
    is_shifted = lower != char and len(lower) == 1
    return f"\x1b[{ord(lower if is_shifted else char)};{_SHIFT_ALT_CODE if is_shifted else _ALT_CODE}u"
