from __future__ import annotations

from typing import TypeVar

import pytest
from textual.containers import Vertical
from textual.geometry import Region
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from pyagent.ui.blocks import Block, BlockKind
from pyagent.ui.dialogs.approval import Approval, ApprovalAnswer, ApprovalRequest, ApprovalScreen, OptionRows
from pyagent.ui.dialogs.help import HelpScreen, HelpSection
from pyagent.ui.dialogs.pager import PagerScreen, block_layout, text_layout
from pyagent.ui.dialogs.picker import PickerItem, PickerList, PickerScreen
from pyagent.ui.dialogs.rows import FIELD_KEYS, Rows
from pyagent.ui.dialogs.text import TextScreen
from pyagent.ui.diff import diff_lines
from tests.ui.screens import Stage, rows, shown

T = TypeVar("T")
TOP_ROW = Region(0, 0, 80, 1)

REQUEST = ApprovalRequest(
    "Run [/this]?",
    command="rm -rf build && [ -d x ] && echo " + "long " * 30,
    path="/repo/project",
    rule="Bash(rm:*)",
    warnings=("outside the project",),
)


async def opened(pilot: Pilot[None], screen: Screen[T], results: list[T | None]) -> None:
    pilot.app.push_screen(screen, results.append)
    await pilot.pause()


@pytest.mark.parametrize(
    ("keys", "decision"),
    [
        (("y",), Approval.ONCE),
        (("enter",), Approval.ONCE),
        (("1",), Approval.ONCE),
        (("2",), Approval.SESSION),
        (("down", "enter"), Approval.SESSION),
        (("j", "j", "enter"), Approval.NO),
        (("n",), Approval.NO),
        (("escape",), Approval.NO),
        (("3",), Approval.NO),
    ],
)
async def test_an_approval_is_answered_by_key(keys: tuple[str, ...], decision: Approval) -> None:
    results: list[ApprovalAnswer | None] = []
    async with Stage().run_test(size=(80, 24)) as pilot:
        await opened(pilot, ApprovalScreen(REQUEST), results)
        await pilot.press(*keys)
        await pilot.pause()
    assert results == [ApprovalAnswer(decision)]


@pytest.mark.parametrize("keys", [("tab",), ("4",), ("up", "enter")])
async def test_no_with_words_tells_the_model_what_to_do_instead(keys: tuple[str, ...]) -> None:
    results: list[ApprovalAnswer | None] = []
    async with Stage().run_test(size=(80, 24)) as pilot:
        await opened(pilot, ApprovalScreen(REQUEST), results)
        await pilot.press(*keys)
        await pilot.press(*"n1y", "enter")
        await pilot.pause()
    assert results == [ApprovalAnswer(Approval.INSTEAD, "n1y")]


async def test_escape_in_the_field_goes_back_to_the_answers() -> None:
    results: list[ApprovalAnswer | None] = []
    async with Stage().run_test(size=(80, 24)) as pilot:
        screen = ApprovalScreen(REQUEST)
        await opened(pilot, screen, results)
        box = screen.query_one(Vertical)
        assert "y yes" in str(box.border_subtitle)
        await pilot.press("tab")
        assert box.border_subtitle == FIELD_KEYS, "letters are text now"
        await pilot.press("escape")
        await pilot.pause()
        assert results == []
        assert screen.query_one(OptionRows).has_focus
        assert "y yes" in str(box.border_subtitle)


async def test_an_approval_shows_the_whole_command_its_path_and_the_rule() -> None:
    async with Stage().run_test(size=(80, 24)) as pilot:
        screen = ApprovalScreen(REQUEST)
        await opened(pilot, screen, [])
        body = shown(screen.query_one(Rows))
        assert body.count("long") == 30
        assert "[ -d x ]" in body
        assert "file  /repo/project" in body
        assert body.startswith("! outside the project")
        assert "allow Bash(rm:*) for this session" in shown(screen.query_one(OptionRows))


@pytest.mark.parametrize("title", ["[/this]", "a\\\\[b]", "[@click=app.quit]x[/]"])
async def test_titles_are_literal(title: str) -> None:
    async with Stage().run_test(size=(80, 24)) as pilot:
        for screen in (ApprovalScreen(ApprovalRequest(title)), PagerScreen(title, text_layout("x"))):
            pilot.app.push_screen(screen)
            await pilot.pause()
            assert title in "".join(strip.text for strip in screen.query_one(Vertical).render_lines(TOP_ROW))


async def test_without_a_rule_there_is_no_session_answer() -> None:
    results: list[ApprovalAnswer | None] = []
    async with Stage().run_test(size=(80, 24)) as pilot:
        await opened(pilot, ApprovalScreen(ApprovalRequest("Edit?", diff=diff_lines("a", "b"))), results)
        await pilot.press("2")
        await pilot.pause()
    assert results == [ApprovalAnswer(Approval.NO)]


async def test_a_small_terminal_still_shows_all_answers() -> None:
    async with Stage().run_test(size=(60, 15)) as pilot:
        screen = ApprovalScreen(ApprovalRequest("Edit?", diff=diff_lines("a\n" * 50, "b\n" * 50), rule="Edit"))
        await opened(pilot, screen, [])
        options = screen.query_one(OptionRows)
        assert options.region.bottom <= 15
        assert options.size.height == 4
        assert screen.query_one(Rows).size.height >= 5


ITEMS = [PickerItem(f"s{n}", f"Session {n}", f"{n} hours ago") for n in range(40)]


async def test_a_picker_searches_moves_and_takes() -> None:
    results: list[str | None] = []
    async with Stage().run_test(size=(100, 24)) as pilot:
        screen = PickerScreen("Resume", ITEMS, preview=lambda item_id: f"# About {item_id}")
        await opened(pilot, screen, results)
        await pilot.press(*"session 3")
        assert screen.query_one(PickerList).labels[0] == "Session 3"
        await pilot.press("down")
        await pilot.pause()
        chosen = screen.query_one(PickerList).chosen
        assert chosen is not None
        assert f"About {chosen.id}" in shown(screen.query_one(Rows))
        await pilot.press("enter")
        await pilot.pause()
    assert results == [chosen.id]


async def test_a_picker_can_be_left_and_starts_at_the_present_choice() -> None:
    results: list[str | None] = []
    async with Stage().run_test(size=(60, 15)) as pilot:
        screen = PickerScreen("Model", ITEMS, chosen_id="s30")
        await opened(pilot, screen, results)
        assert any(row.startswith("❯ Session 30") for row in rows(screen.query_one(PickerList)))
        await pilot.press("escape")
        await pilot.pause()
    assert results == [None]


async def test_a_picker_says_when_nothing_matches() -> None:
    results: list[str | None] = []
    async with Stage().run_test(size=(60, 15)) as pilot:
        screen = PickerScreen("Model", ITEMS)
        await opened(pilot, screen, results)
        await pilot.press(*"zzz", "enter")
        assert "nothing matches" in shown(screen.query_one(PickerList))
    assert results == []


async def test_the_pager_shows_everything_and_searches() -> None:
    results: list[None] = []
    async with Stage().run_test(size=(60, 15)) as pilot:
        screen = PagerScreen("out [put]", text_layout("\n".join(f"row {n} [/x]" for n in range(500))))
        await opened(pilot, screen, results)
        body = screen.query_one(Rows)
        assert rows(body)[0] == "row 0 [/x]"
        await pilot.press("slash", *"row 333", "enter")
        assert any("row 333" in row for row in rows(body))
        assert body.match_position == (1, 1)
        await pilot.press("G")
        assert rows(body)[-1] == "row 499 [/x]"
        await pilot.press("q")
        await pilot.pause()
    assert results == [None]


async def test_escape_in_the_pagers_search_goes_back_to_the_text() -> None:
    async with Stage().run_test(size=(60, 15)) as pilot:
        screen = PagerScreen("x", text_layout("a"))
        await opened(pilot, screen, [])
        await pilot.press("slash", "a", "escape")
        assert not screen.query_one(Input).display
        assert screen.query_one(Rows).has_focus


def test_the_pager_has_the_whole_of_a_capped_block() -> None:
    block = Block("t", BlockKind.TOOL, "ls", title="Bash", detail="\n".join(map(str, range(100))))
    assert [line.text for line in block_layout(block)(40)][-1] == "99"


async def test_help_lists_keys_and_reports_are_markdown() -> None:
    async with Stage().run_test(size=(60, 15)) as pilot:
        help_screen = HelpScreen([HelpSection("Chat", (("enter", "Send " * 20), ("a very long key name " * 2, "x")))])
        await opened(pilot, help_screen, [])
        assert rows(help_screen.query_one(Rows))[0] == "Chat"
        await pilot.press("q")
        report = TextScreen("/cost", "# Cost\n\n**$1**")
        await opened(pilot, report, [])
        assert rows(report.query_one(Rows))[:3] == ["Cost", "", "$1"]
