"""The bottom of the screen: the bar at any width, and the rows of the user's own program."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from pyagent.ui.gauge import CacheModel, GaugeModel, StatusModel
from pyagent.ui.sgr import styled_pieces
from pyagent.ui.status_rows import StatusRows
from pyagent.ui.statusbar import status_line
from tests.ui.screens import Stage, rows

FULL = StatusModel(
    model="claude-test-5",
    mode="acceptEdits",
    cwd="~/code/engine",
    branch="main",
    cost_usd=1.25,
    cache=CacheModel(192.0, 0.93),
    gauge=GaugeModel(140_000, 200_000, 137_000, 147_000, 167_000, None, is_estimated=True, percent_left=16),
    effort="high",
    background_count=2,
    queued_count=1,
)


def words(width_cells: int, status: StatusModel = FULL) -> str:
    return status_line(status, width_cells).text


def test_a_wide_bar_says_everything() -> None:
    text = words(200)
    for part in (
        "claude-test-5",
        "effort high",
        "acceptEdits",
        "1 queued",
        "2 tasks",
        "~/code/engine (main)",
        "$1.25",
        "cache warm 3m 93%",
        "~140k/200k warn",
        "16% to compact",
    ):
        assert part in text


@pytest.mark.parametrize("width_cells", range(20, 200, 7))
def test_the_bar_never_passes_the_edge_and_always_says_mode_and_fill(width_cells: int) -> None:
    text = words(width_cells)
    assert cell_len(text) <= max(width_cells, 34)
    if width_cells >= 40:
        assert "~140k/200k warn" in text
        assert "acceptEdits" in text


def test_effort_and_folder_go_before_branch_cost_and_what_is_left() -> None:
    at_120, at_100, at_80 = words(120), words(100), words(80)
    assert "effort" not in at_120
    assert "~/code/engine" not in at_120
    assert "(main)" in at_120
    assert "$1.25" in at_100
    assert "16% to compact" in at_80


def test_a_cold_cache_is_said_in_words() -> None:
    assert "cache cold" in words(200, replace(FULL, cache=CacheModel(None, 0.93)))
    assert "cache warm 42s" in words(200, replace(FULL, cache=CacheModel(42.0, None)))


def test_of_a_program_s_output_only_colours_and_weights_go_through() -> None:
    row = "\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b[2Jplain\x1b[5;5H\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\x07"
    pieces = styled_pieces(row)
    assert "".join(text for text, _ in pieces) == "red plainlink␇"
    assert pieces[0][0] == "red"
    assert pieces[0][1].bold
    assert pieces[0][1].color is not None
    assert all(not style.link for _, style in pieces)


async def test_rows_take_space_only_while_there_are_some() -> None:
    shown = StatusRows()
    async with Stage(shown).run_test(size=(40, 10)) as pilot:
        assert not shown.display
        shown.show(("one", "\x1b[32mtwo\x1b[0m"))
        await pilot.pause()
        assert rows(shown) == [" one", " two"]
        shown.show(())
        await pilot.pause()
        assert not shown.display
