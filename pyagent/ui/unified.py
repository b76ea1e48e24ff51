"""Unified diffs, as git writes them, to the lines our own diff view draws."""

from __future__ import annotations

import re

from pyagent.ui.blocks import DiffLine
from pyagent.ui.diff import Hunk, patch_lines

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def unified_lines(text: str) -> tuple[DiffLine, ...]:
    """The numbered lines of one file's unified diff; empty where it holds no hunk (a binary file, a mode)."""
    hunks: list[Hunk] = []
    start: tuple[int, int] | None = None
    lines: list[str] = []

    def end() -> None:
        if start is not None:
            hunks.append(Hunk(start[0], start[1], tuple(lines)))

    for line in text.removesuffix("\n").split("\n"):
        if match := _HUNK.match(line):
            end()
            start, lines = (int(match[1]), int(match[2])), []
        elif start is not None and line[:1] in ("+", "-", " ", "\\"):
            lines.append(line)
    end()
    return patch_lines(hunks)
