"""Pages as lines: what they say, at any width, and without colour."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from pyagent.pages import ContextPart, Page
from pyagent.ui.blocks import DiffKind
from pyagent.ui.pages.context import GRID_CELLS, grid_cells
from pyagent.ui.pages.layout import page_lines, page_text
from pyagent.ui.theme import DARK, THEMES, palette
from pyagent.ui.unified import unified_lines
from tests.ui import sample_pages as sample

PAGES: dict[str, Page] = {
    "context": sample.CONTEXT,
    "cost": sample.COST,
    "compactions": sample.COMPACTIONS,
    "diff": sample.DIFF,
    "settings": sample.SETTINGS,
    "permissions": sample.PERMISSIONS,
    "tasks": sample.TASKS,
    "memory": sample.MEMORY,
    "answer": sample.ANSWER,
}


@pytest.mark.parametrize("width_cells", [44, 56, 74, 114, 200])
@pytest.mark.parametrize("name", PAGES)
def test_no_line_of_a_page_is_wider_than_the_screen(name: str, width_cells: int) -> None:
    for line in page_lines(PAGES[name], width_cells):
        assert cell_len(line.text) <= width_cells, line.text


@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
def test_every_style_a_page_uses_is_there_in_every_theme(theme: str) -> None:
    colours = palette(theme)
    for page in PAGES.values():
        for line in page_lines(page, 100):
            for span in line.spans:
                if span.role:
                    colours.style(span.role)


def test_the_grid_shows_each_kind_by_its_own_letter_and_the_free_and_kept_part() -> None:
    cells = grid_cells(sample.CONTEXT)
    signs = "".join(cell.sign for cell in cells)
    assert len(cells) == GRID_CELLS
    assert signs.count("R") == 45, "half a percent of the window a cell"
    assert signs.count("b") == 33
    assert signs.rstrip("b").rstrip("·").endswith("K")


def test_a_kind_that_takes_next_to_nothing_still_has_a_cell() -> None:
    page = replace(sample.CONTEXT, parts=(*sample.CONTEXT.parts, ContextPart("summary", "summary", 1)))
    assert [cell.sign for cell in grid_cells(page)].count("Y") == 1


def test_a_window_that_is_overfull_fills_the_grid_and_no_more() -> None:
    page = replace(sample.CONTEXT, parts=(ContextPart("answers", "answers", 900_000),))
    assert {cell.sign for cell in grid_cells(page)} == {"A"}
    assert len(grid_cells(page)) == GRID_CELLS


def test_the_context_page_shows_how_the_lines_are_drawn_and_where_each_gate_comes_from() -> None:
    text = page_text(sample.CONTEXT)
    assert "~84,200 of 200,000 tokens (42.1%)" in text
    assert "reserved for the summary's output" in text
    assert "trigger 167,000 (83.5%)" in text
    assert "context_collapse  on   PYAGENT_CONTEXT_COLLAPSE" in text
    assert "warm for another 3 min 12 s" in text
    assert "12× old results cleared  8.4k freed · idle for 70 min" in text


def test_the_cost_chart_tells_cached_from_fresh_by_its_signs() -> None:
    rows = page_text(sample.COST).splitlines()
    first, second, third = (next(row for row in rows if row.startswith(f"   {n} ")) for n in (1, 2, 3))
    assert second.count("▒") > second.count("█") > 0
    assert "▒" not in third
    assert len(first.split("220k")[0].rstrip()) < len(second.split("640k")[0].rstrip())
    assert "price unknown" in "\n".join(rows)


def test_a_unified_diff_becomes_numbered_lines_with_the_changed_words_marked() -> None:
    lines = unified_lines(sample.SHAPES_DIFF)
    removed = next(line for line in lines if line.kind is DiffKind.REMOVED)
    added = next(line for line in lines if line.kind is DiffKind.ADDED)
    assert (removed.old_number, added.new_number) == (2, 2)
    assert "math" in "".join(added.text[start:end] for start, end in added.marks)
    assert unified_lines("Binary files differ") == ()


def test_pages_are_the_same_text_in_every_theme() -> None:
    assert DARK in {theme.name for theme in THEMES}
    assert "deny  Read(~/.ssh/**)" in page_text(sample.PERMISSIONS)
    assert "not there yet" in page_text(sample.MEMORY)
    assert "bash_4  running  npm run dev" in page_text(sample.TASKS)
