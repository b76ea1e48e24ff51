"""The transcript without a screen: blocks, their heights, their lines at a width, folding, prompts and search."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyagent.ui.block_view import (
    MARGIN_CELLS,
    MAX_DETAIL_ROWS,
    assistant_end,
    block_lines,
    estimated_rows,
    needs_gap,
    with_margin,
)
from pyagent.ui.blocks import Block, BlockKind, BlockState
from pyagent.ui.heights import Heights
from pyagent.ui.lines import BLANK_LINE, Line
from pyagent.ui.markdown import StreamingMarkdown

CACHED_BLOCK_COUNT = 600
"""Rendered blocks kept: some ten screens of short ones in each direction, a few MB."""
_DEFAULT_WIDTH_CELLS = 80

Match = tuple[tuple[int, int, int], ...]
"""One occurrence of a search: (line, first character, end character) pieces, more than one where it wraps."""


@dataclass(slots=True)
class Rendered:
    """The lines of one block."""

    lines: list[Line]
    stream: StreamingMarkdown | None = None
    matches: tuple[str, list[Match]] | None = None


class TranscriptModel:
    """Blocks in order. Rows count from 0 over all blocks; a block's blank row before it belongs to it."""

    def __init__(self, *, detail_rows: int = MAX_DETAIL_ROWS) -> None:
        """`detail_rows` of an unfolded output or diff are shown at most."""
        self.width_cells = _DEFAULT_WIDTH_CELLS
        self._detail_rows = detail_rows
        self.heights = Heights()
        self._blocks: list[Block] = []
        self._gaps: list[bool] = []
        self._index_by_id: dict[str, int] = {}
        self._rendered: OrderedDict[int, Rendered] = OrderedDict()

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks)

    def __getitem__(self, index: int) -> Block:
        return self._blocks[index]

    def index(self, block_id: str) -> int:
        """Where a block stands. KeyError if there is none of that id."""
        return self._index_by_id[block_id]

    def __contains__(self, block_id: object) -> bool:
        return block_id in self._index_by_id

    def append(self, block: Block) -> int:
        """Add a block at the end and return its index. ValueError if its id is taken."""
        if block.id in self._index_by_id:
            raise ValueError(f"block {block.id!r} is already in the transcript")
        index = len(self._blocks)
        gap = needs_gap(self._blocks[-1] if self._blocks else None, block)
        self._index_by_id[block.id] = index
        self._blocks.append(block)
        self._gaps.append(gap)
        self.heights.append(self._estimate(block) + gap)
        return index

    def load(self, blocks: Iterable[Block]) -> None:
        """Replace everything. Heights are estimated; a block is rendered when it comes into sight."""
        self.clear()
        previous: Block | None = None
        rows: list[int] = []
        for block in blocks:
            if block.id in self._index_by_id:
                raise ValueError(f"block {block.id!r} is twice in the transcript")
            self._index_by_id[block.id] = len(self._blocks)
            self._blocks.append(block)
            gap = needs_gap(previous, block)
            self._gaps.append(gap)
            rows.append(self._estimate(block) + gap)
            previous = block
        self.heights.reset(rows)

    def clear(self) -> None:
        """Forget all blocks."""
        self._blocks, self._gaps = [], []
        self._index_by_id = {}
        self._rendered.clear()
        self.heights.reset(())

    def remove(self, block_id: str) -> None:
        """Take a block out again."""
        index = self._index_by_id[block_id]
        blocks = [*self._blocks[:index], *self._blocks[index + 1 :]]
        if index == len(blocks):
            del self._blocks[index], self._gaps[index], self._index_by_id[block_id]
            self._rendered.pop(index, None)
            self.heights.reset([self.heights[number] for number in range(index)])
        else:
            self.load(blocks)

    def update(self, block_id: str, **changes: Any) -> int:
        """Change fields of a block and return its index."""
        index = self._index_by_id[block_id]
        old = self._blocks[index]
        block = replace(old, **changes)
        self._blocks[index] = block
        rendered = self._rendered.get(index)
        if rendered is not None and rendered.stream is not None and block.text == old.text:
            self._refresh_stream(index, rendered, rendered.stream.finish() if not _is_streaming(block) else 0)
            return index
        was_rendered = self._rendered.pop(index, None) is not None
        if was_rendered:
            self.rendered(index)
        else:
            self.heights.change(index, self._estimate(block) + self._gaps[index])
        return index

    def append_text(self, block_id: str, delta: str) -> int:
        """Add text at the end of a block and return its index."""
        index = self._index_by_id[block_id]
        block = self._blocks[index]
        self._blocks[index] = replace(block, text=block.text + delta)
        rendered = self._rendered.get(index)
        if rendered is not None and rendered.stream is not None:
            self._refresh_stream(index, rendered, rendered.stream.feed(delta))
        elif rendered is not None:
            del self._rendered[index]
            self.rendered(index)
        else:
            self.heights.change(index, self._estimate(self._blocks[index]) + self._gaps[index])
        return index

    def set_width(self, width_cells: int) -> None:
        """Lay everything out anew, lazily."""
        if width_cells == self.width_cells:
            return
        self.width_cells = width_cells
        self._rendered.clear()
        self.heights.reset(self._estimate(block) + gap for block, gap in zip(self._blocks, self._gaps, strict=True))

    def _estimate(self, block: Block) -> int:
        return estimated_rows(block, self.width_cells, self._detail_rows)

    def rendered(self, index: int) -> Rendered:
        """A block's lines, made now if need be; its height is exact from here on."""
        rendered = self._rendered.get(index)
        if rendered is not None:
            self._rendered.move_to_end(index)
            return rendered
        block = self._blocks[index]
        head = [BLANK_LINE] if self._gaps[index] else []
        if block.kind is BlockKind.ASSISTANT and _is_streaming(block):
            stream = StreamingMarkdown(self.width_cells - MARGIN_CELLS - 1)
            stream.feed(block.text)
            rendered = Rendered([*head, *map(with_margin, stream.lines)], stream=stream)
        else:
            rendered = Rendered(head + block_lines(block, self.width_cells, self._detail_rows))
        self._rendered[index] = rendered
        if len(self._rendered) > CACHED_BLOCK_COUNT:
            self._drop_oldest()
        self.heights.change(index, len(rendered.lines))
        return rendered

    def _drop_oldest(self) -> None:
        """Drop the least used block that is not streaming: its parser state would be lost."""
        for index, rendered in self._rendered.items():
            if rendered.stream is None or not _is_streaming(self._blocks[index]):
                del self._rendered[index]
                return

    def _refresh_stream(self, index: int, rendered: Rendered, first_changed: int) -> None:
        stream = rendered.stream
        if stream is None:
            return
        start = first_changed + self._gaps[index]
        del rendered.lines[start:]
        rendered.lines += map(with_margin, stream.lines[first_changed:])
        rendered.lines += assistant_end(self._blocks[index])
        rendered.matches = None
        self.heights.change(index, len(rendered.lines))

    def neighbour(self, index: int, step: int, kinds: frozenset[BlockKind] | None = None) -> int | None:
        """The next block in a direction that is of one of the kinds (or, without kinds, foldable)."""
        index += step
        while 0 <= index < len(self._blocks):
            block = self._blocks[index]
            if (block.kind in kinds) if kinds is not None else block.is_foldable:
                return index
            index += step
        return None

    def find_blocks(self, query: str) -> list[int]:
        """Indexes of the blocks whose source contains the query, case aside."""
        needle = query.casefold()
        return [index for index, block in enumerate(self._blocks) if needle in block.searchable().casefold()]

    def matches(self, index: int, query: str) -> list[Match]:
        """Where the query stands in a block's lines, also across soft wraps."""
        rendered = self.rendered(index)
        if rendered.matches is None or rendered.matches[0] != query:
            rendered.matches = (query, find_in_lines(rendered.lines, query))
        return rendered.matches[1]


def _is_streaming(block: Block) -> bool:
    return block.state is BlockState.STREAMING


def find_in_lines(lines: list[Line], query: str) -> list[Match]:
    """Occurrences in lines, case aside; wrapped rows are searched as the one line they are."""
    found: list[Match] = []
    needle = query.casefold()
    if not needle:
        return found
    start = 0
    while start < len(lines):
        end = start + 1
        while end < len(lines) and lines[end].is_soft_wrap:
            end += 1
        found += _find_in_logical_line(lines, start, end, needle)
        start = end
    return found


def _find_in_logical_line(lines: list[Line], start: int, end: int, needle: str) -> list[Match]:
    text = ""
    offsets: list[tuple[int, int, int]] = []
    for number in range(start, end):
        line = lines[number]
        text += (line.joint or "") if number > start else ""
        offsets.append((number, len(text), line.gutter_chars))
        text += line.content
    # casefold may lengthen the text ("ß"); lower does so for one letter only, and positions must stay true.
    haystack = text.casefold()
    if len(haystack) != len(text):
        haystack = text.lower()
    found: list[Match] = []
    at = haystack.find(needle)
    while at >= 0:
        pieces: list[tuple[int, int, int]] = []
        for number, first, gutter_chars in offsets:
            last = first + len(lines[number].content)
            piece_start, piece_end = max(at, first), min(at + len(needle), last)
            if piece_start < piece_end:
                pieces.append((number, piece_start - first + gutter_chars, piece_end - first + gutter_chars))
        if pieces:
            found.append(tuple(pieces))
        at = haystack.find(needle, at + len(needle))
    return found
