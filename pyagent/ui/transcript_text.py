"""The transcript outside the screen: as source text for an editor, as coloured rows for the terminal's scrollback."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.color import ColorSystem

from pyagent.ui.block_view import block_lines, needs_gap
from pyagent.ui.blocks import Block, BlockKind, DiffKind
from pyagent.ui.lines import Line, inert
from pyagent.ui.theme import Palette

MAX_PRINTED_ROWS = 10_000
"""What terminals keep in their scrollback, if that; rendering more would hold the screen for seconds."""

_SIGNS = {DiffKind.ADDED: "+", DiffKind.REMOVED: "-", DiffKind.CONTEXT: " "}


def source_text(blocks: Iterable[Block]) -> str:
    """Everything in full: answers as the Markdown they are, output and diffs indented below their calls."""
    return "\n\n".join(part for part in map(_source, blocks) if part) + "\n"


def _source(block: Block) -> str:
    text = inert(block.text).strip("\n")
    match block.kind:
        case BlockKind.USER:
            return _indented(text, "> ")
        case BlockKind.ASSISTANT:
            return text
        case BlockKind.THINKING:
            return f"(thinking)\n{_indented(text)}"
        case _:
            words = f"{inert(block.title)}  {text}" if block.title and text else inert(block.title) or text
            head = " · ".join([f"[{words}]" if block.kind is BlockKind.IMAGE else words, *block.facts])
            diff = "\n".join(f"{_SIGNS.get(line.kind, '')}{inert(line.text)}" for line in block.diff)
            below = [_indented(part) for part in (diff, inert(block.detail).strip("\n")) if part]
            return "\n".join([head, *below])


def _indented(text: str, indent: str = "    ") -> str:
    return "\n".join(f"{indent}{row}".rstrip() for row in text.split("\n"))


def newest_rows(blocks: Sequence[Block], width_cells: int, max_rows: int = MAX_PRINTED_ROWS) -> tuple[list[Line], int]:
    """The last rows of the blocks, nothing in them folded or cut, and how many blocks before them were left out."""
    groups: deque[list[Line]] = deque()
    room, left = max_rows, len(blocks)
    while left and room > 0:
        left -= 1
        rows = block_lines(_unfolded(blocks[left]), width_cells, max_rows)
        if left and needs_gap(blocks[left - 1], blocks[left]):
            rows = [Line(), *rows]
        groups.appendleft(rows)
        room -= len(rows)
    return [row for rows in groups for row in rows][-max_rows:], left


def _unfolded(block: Block) -> Block:
    return replace(block, collapsed=False)


def terminal_row(line: Line, palette: Palette, color_system: ColorSystem | None, *, has_colour: bool) -> str:
    """A row with its styles as escape sequences. It has no blanks at its end, so that the terminal may wrap it anew."""
    shown: list[str] = []
    for span in line.spans:
        is_margin = span.text.isspace() and not span.role
        style = palette.style(span.role if is_margin else f"{line.fill} {span.role}".strip())
        shown.append((style if has_colour else style.without_color).render(span.text, color_system=color_system))
    return "".join(shown)
