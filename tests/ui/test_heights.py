from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyagent.ui.heights import Heights

ROWS = st.lists(st.integers(0, 30), min_size=1, max_size=60)


@given(ROWS, st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 40)), max_size=20), ROWS)
def test_sums_hold_after_any_appends_and_changes(
    start: list[int], changes: list[tuple[int, int]], appended: list[int]
) -> None:
    heights, plain = Heights(start), list(start)
    for rows in appended:
        heights.append(rows)
        plain.append(rows)
    for index, rows in changes:
        heights.change(index % len(plain), rows)
        plain[index % len(plain)] = rows
    assert heights.total == sum(plain)
    assert [heights.top(index) for index in range(len(plain) + 1)] == [sum(plain[:n]) for n in range(len(plain) + 1)]


@given(ROWS)
def test_every_row_is_found_in_its_block(rows: list[int]) -> None:
    heights = Heights(rows)
    expected = [(index, line) for index, count in enumerate(rows) for line in range(count)]
    assert [heights.at(row) for row in range(sum(rows))] == expected


def test_rows_outside_are_clamped() -> None:
    heights = Heights([2, 3, 0])
    assert heights.at(-5) == (0, 0)
    assert heights.at(99) == (1, 2)
    with pytest.raises(IndexError):
        Heights().at(0)
