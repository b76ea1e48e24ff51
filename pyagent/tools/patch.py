"""The difference of two texts as hunks, the shape the screen draws and the transcript keeps."""

from __future__ import annotations

import difflib

from pyagent.messages import JsonObject

CONTEXT_LINES = 3
EXACT_DIFF_LINES = 3_000
"""Above so many changed lines on a side, the middle is one replaced block: an exact diff takes time quadratic in it."""


def structured_patch(old: str, new: str) -> list[JsonObject]:
    """Hunks with `oldStart`, `oldLines`, `newStart`, `newLines` (from 1) and `lines` that begin with space, - or +."""
    old_lines, new_lines = _lines(old), _lines(new)
    hunks: list[JsonObject] = []
    for group in _groups(_opcodes(old_lines, new_lines)):
        lines: list[str] = []
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [" " + line for line in old_lines[a:b]]
            else:
                lines += ["-" + line for line in old_lines[a:b]]
                lines += ["+" + line for line in new_lines[c:d]]
        first, last = group[0], group[-1]
        hunks.append(
            {
                "oldStart": first[1] + 1 if last[2] > first[1] else first[1],
                "oldLines": last[2] - first[1],
                "newStart": first[3] + 1 if last[4] > first[3] else first[3],
                "newLines": last[4] - first[3],
                "lines": lines,
            }
        )
    return hunks


def patch_summary(hunks: list[JsonObject]) -> str:
    """Such as `+3 -1`."""
    lines = [line for hunk in hunks for line in hunk["lines"]]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return f"+{added} -{removed}"


_Opcode = tuple[str, int, int, int, int]


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _opcodes(old: list[str], new: list[str]) -> list[_Opcode]:
    shortest = min(len(old), len(new))
    start = next((i for i in range(shortest) if old[i] != new[i]), shortest)
    end = next((i for i in range(shortest - start) if old[-1 - i] != new[-1 - i]), shortest - start)
    old_end, new_end = len(old) - end, len(new) - end
    middle: list[_Opcode]
    if max(old_end, new_end) - start > EXACT_DIFF_LINES:
        middle = [("replace", start, old_end, start, new_end)]
    else:
        matcher = difflib.SequenceMatcher(None, old[start:old_end], new[start:new_end], autojunk=False)
        middle = [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in matcher.get_opcodes()]
    return [("equal", 0, start, 0, start), *middle, ("equal", old_end, len(old), new_end, len(new))]


def _groups(opcodes: list[_Opcode]) -> list[list[_Opcode]]:
    """Changes with some equal lines around them; close ones share a group."""
    groups: list[list[_Opcode]] = []
    current: list[_Opcode] = []
    codes = [code for code in opcodes if code[2] > code[1] or code[4] > code[3]]
    for position, (tag, a, b, c, d) in enumerate(codes):
        if tag != "equal":
            current.append((tag, a, b, c, d))
            continue
        is_first, is_last = position == 0, position == len(codes) - 1
        if not is_first and not is_last and b - a <= 2 * CONTEXT_LINES:
            current.append((tag, a, b, c, d))
            continue
        if current:
            length = min(CONTEXT_LINES, b - a)
            current.append((tag, a, a + length, c, c + length))
            groups.append(current)
            current = []
        if not is_last:
            length = min(CONTEXT_LINES, b - a)
            current = [(tag, b - length, b, d - length, d)]
    if current and any(code[0] != "equal" for code in current):
        groups.append(current)
    return [[code for code in group if code[2] > code[1] or code[4] > code[3]] for group in groups]
