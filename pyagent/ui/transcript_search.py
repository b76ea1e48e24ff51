"""Walking the matches of a search through a transcript, folded blocks included. No screen."""

from __future__ import annotations

from collections.abc import Iterator

from pyagent.ui.transcript_model import TranscriptModel


class TranscriptSearch:
    """A query, the blocks that contain it, and the match the reader stands at.

    Blocks are found by their source, matches by their lines: only blocks that are visited get rendered.
    """

    def __init__(self, model: TranscriptModel) -> None:
        self._model = model
        self._query = ""
        self._blocks: list[int] = []
        self._at: tuple[int, int] | None = None

    @property
    def block_count(self) -> int:
        """How many blocks contain the query."""
        return len(self._blocks)

    def start(self, query: str, last_visible: int) -> None:
        """Search, and stand at the last match at or above a block, else at the last of all."""
        self._query, self._at = query, None
        self.refresh()
        if self._blocks:
            above = [index for index in self._blocks if index <= last_visible] or self._blocks[-1:]
            self._enter(above[-1], -1)

    def refresh(self) -> None:
        """Look for the blocks again, after some were taken out."""
        self._blocks = self._model.find_blocks(self._query) if self._query else []
        if self._at is not None and self._at[0] not in self._blocks:
            self._at = None

    def clear(self) -> None:
        """Search for nothing."""
        self._query, self._blocks, self._at = "", [], None

    def step(self, direction: int) -> None:
        """Go to the next or previous match, around the ends."""
        if not self._blocks:
            return
        if self._at is None:
            self._enter(self._blocks[-1], -1)
            return
        index, number = self._at
        if 0 <= number + direction < len(self._model.matches(index, self._query)):
            self._at = (index, number + direction)
            return
        at = self._blocks.index(index) + direction
        self._enter(self._blocks[at % len(self._blocks)], 0 if direction > 0 else -1)

    def place(self) -> tuple[int, int | None] | None:
        """The block and line of the present match; no line where the match is out of what the block shows."""
        if self._at is None:
            return None
        index, number = self._at
        matches = self._model.matches(index, self._query)
        return index, matches[number][0][0] if number < len(matches) else None

    def pieces(self, index: int, line: int) -> Iterator[tuple[int, int, bool]]:
        """The (first character, end character, is the present one) pieces of matches on a line."""
        if not self._query:
            return
        for count, match in enumerate(self._model.matches(index, self._query)):
            for number, start, end in match:
                if number == line:
                    yield start, end, self._at == (index, count)

    def _enter(self, index: int, number: int) -> None:
        """Stand at a match of a block, unfolding it if the match is folded away."""
        matches = self._model.matches(index, self._query)
        block = self._model[index]
        if not matches and block.is_foldable and block.is_collapsed:
            self._model.update(block.id, collapsed=False)
            matches = self._model.matches(index, self._query)
        self._at = (index, number % len(matches) if matches else 0)
