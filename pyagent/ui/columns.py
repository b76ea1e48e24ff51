"""Keeps columns true on terminals that count the cells of a character otherwise than we do.

A family emoji is 2 cells to one terminal, 6 to another; skin tones, flags, variation selectors, zero-width characters
and signs newer than the terminal differ as well, and all that stands right of one would be shifted. So each such
character gets its cells blanked before it and the cursor put by number behind it. What is drawn may look different;
where the next column begins may not.
"""

from __future__ import annotations

import re

from rich.cells import cell_len, split_graphemes

_SUSPECT = re.compile(
    "[^\x00-\xac\xae-\u02ff\u0370-\u0482\u048a-\u058f\u1e00-\u1fff\u2010-\u2027\u2030-\u205f\u20a0-\u20cf"
    "\u2100-\u2319\u231c-\u23e8\u2400-\u25fc\u25ff-\u2613\u2700-\u2704\u2706-\u2709\u270c-\u2727\u2729-\u274b"
    "\u274f-\u2752\u2758-\u2794\u2798-\u27af\u27c0-\u2b1a\u2e80-\u3029\u3030-\u3098\u309b-\ua4cf\uac00-\ud7a3"
    "\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]"
)
"""What may be counted differently, or may join others to what is: all but Latin, Greek, Cyrillic, CJK, box drawing,
arrows and the like, and the signs of our own rows; so an ordinary frame is only looked through once."""

_PART = re.compile(
    r"\x1b\[(?P<params>[0-9;:<=>?]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|(?P<text>[^\x1b\n\r]+)"
    r"|\x1b.?|[\n\r]",
    re.DOTALL,
)
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
"""At the right edge a character the terminal counts wider must not push its rest onto the next row."""


def placed(frame: str) -> str:
    """Output for a terminal with the cursor set behind each character whose width is in doubt.

    Columns are known only behind an absolute move (`CSI row;column H`), which Textual writes before each row.
    """
    if _SUSPECT.search(frame) is None:
        return frame
    parts: list[str] = [_NO_WRAP]
    column: int | None = None
    for match in _PART.finditer(frame):
        text = match["text"]
        if text is None:
            parts.append(match.group())
            if match["final"] == "H":
                column = int(match["params"].partition(";")[2] or 1) if match["params"] else 1
            elif match.group() in ("\n", "\r"):
                column = None
        elif column is None:
            parts.append(text)
        elif _SUSPECT.search(text) is None:
            parts.append(text)
            column += cell_len(text)
        else:
            column = _place(parts, text, column)
    parts.append(_WRAP)
    return "".join(parts)


def _place(parts: list[str], text: str, column: int) -> int:
    """Write a run of text from a column on; gives the column behind it. Columns count from 1."""
    for start, end, cells in split_graphemes(text)[0]:
        sign = text[start:end]
        if _SUSPECT.search(sign) is None:
            parts.append(sign)
        else:
            blank = f"{' ' * cells}\x1b[{column}G" if cells else ""
            parts.append(f"{blank}{sign}\x1b[{column + cells}G")
        column += cells
    return column
