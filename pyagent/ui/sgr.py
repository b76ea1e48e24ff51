"""Colours from outside: of all control sequences only those that set colours and weights are let through, as styles."""

from __future__ import annotations

import re
from itertools import pairwise

from rich.style import Style
from rich.text import Text

from pyagent.ui.lines import inert_row

_SGR = re.compile(r"\x1b\[[0-9;:]*m")
_OTHER = re.compile(
    r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC
    r"|[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS and its kind
    r"|\[[0-?]*[ -/]*[@-~]?"  # CSI
    r"|[ -/]*[0-~]?)"
)

MAX_CHARS = 2_000


def styled_pieces(row: str) -> list[tuple[str, Style]]:
    """The row's text with its colours, everything else that could move the cursor or change the terminal taken out."""
    row = row[:MAX_CHARS]
    kept: list[str] = []
    at = 0
    for match in _SGR.finditer(row):
        kept += [inert_row(_OTHER.sub("", row[at : match.start()])), match.group()]
        at = match.end()
    kept.append(inert_row(_OTHER.sub("", row[at:])))
    text = Text.from_ansi("".join(kept))
    edges = sorted({0, len(text.plain), *(edge for span in text.spans for edge in (span.start, span.end))})
    pieces = []
    for start, end in pairwise(edges):
        style = Style.null()
        for span in text.spans:
            if span.start <= start and end <= span.end and isinstance(span.style, Style):
                style += span.style
        pieces.append((text.plain[start:end], style))
    return pieces
