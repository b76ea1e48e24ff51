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
    "[\u00ad\u0300-\u036f\u0483-\u0489\u0590-\u1cff\u1dc0-\u1dff\u200b-\u200f\u2060-\u206f\u20d0-\u20ff"
    "\u231a\u231b\u23e9-\u23ec\u23f0\u23f3\u25fd\u25fe\u2614\u2615\u2648-\u2653\u267f\u2693\u26a1\u26aa\u26ab\u26bd"
    "\u26be\u26c4\u26c5\u26ce\u26d4\u26ea\u26f2\u26f3\u26f5\u26fa\u26fd\u2705\u270a\u270b\u2728\u274c\u274e"
    "\u2753-\u2755\u2757\u2795-\u2797\u27b0\u27bf\u2b1b\u2b1c\u2b50\u2b55\u302a-\u302f\u3099\u309a\ua66f-\ua672"
    "\ua8e0-\ua8f1\uabe0-\uabff\ud7b0-\ud7ff\ufb1e\ufe00-\ufe0f\ufe20-\ufe2f\U00010000-\U0001ffff\U000e0000-\U000e0fff]"
)
"""What may be counted differently, or may join others to what is. Latin, Greek, Cyrillic, CJK, box drawing and
the signs of our own rows are not among it, so an ordinary frame is only looked through once."""

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
