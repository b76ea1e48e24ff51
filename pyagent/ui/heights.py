"""Row counts of many blocks with fast sums: which block stands at a row, and at which row a block begins."""

from __future__ import annotations

from collections.abc import Iterable


class Heights:
    """A Fenwick tree over block heights in rows: append, change and look up in O(log n)."""

    def __init__(self, rows: Iterable[int] = ()) -> None:
        self._rows: list[int] = []
        self._tree: list[int] = [0]
        self._total = 0
        self.reset(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> int:
        return self._rows[index]

    @property
    def total(self) -> int:
        """Rows of all blocks."""
        return self._total

    def reset(self, rows: Iterable[int]) -> None:
        """Start over with these heights, in O(n)."""
        self._rows = list(rows)
        self._total = sum(self._rows)
        size = len(self._rows)
        tree = [0, *self._rows]
        for index in range(1, size + 1):
            parent = index + (index & -index)
            if parent <= size:
                tree[parent] += tree[index]
        self._tree = tree

    def append(self, rows: int) -> None:
        """Add a block at the end."""
        self._rows.append(rows)
        self._total += rows
        index = len(self._rows)
        node = rows
        child = index - 1
        lowest = index - (index & -index)
        while child > lowest:
            node += self._tree[child]
            child -= child & -child
        self._tree.append(node)

    def change(self, index: int, rows: int) -> None:
        """Give a block another height."""
        delta = rows - self._rows[index]
        if not delta:
            return
        self._rows[index] = rows
        self._total += delta
        node = index + 1
        while node < len(self._tree):
            self._tree[node] += delta
            node += node & -node

    def top(self, index: int) -> int:
        """The row at which a block begins."""
        rows = 0
        while index > 0:
            rows += self._tree[index]
            index -= index & -index
        return rows

    def at(self, row: int) -> tuple[int, int]:
        """The block at a row, and the row within it. Rows before the first or past the last are clamped."""
        if not self._rows:
            raise IndexError("no blocks")
        if row < 0:
            return 0, 0
        if row >= self._total:
            index = len(self._rows) - 1
            while index > 0 and not self._rows[index]:
                index -= 1
            return index, max(0, self._rows[index] - 1)
        index, step = 0, 1 << len(self._rows).bit_length()
        while step:
            probe = index + step
            if probe < len(self._tree) and self._tree[probe] <= row:
                index, row = probe, row - self._tree[probe]
            step >>= 1
        return index, row
