"""What keys do on the screens of `/config`, `/permissions`, `/diff` and their like: they send what could be typed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from pyagent.events import Report
from pyagent.pages import Page, TasksPage
from pyagent.ui.dialogs.browser import BrowserScreen
from pyagent.ui.dialogs.page_screens import DiffScreen, PageScreen, TasksScreen, screen_for
from pyagent.ui.dialogs.picker import PickerList
from pyagent.ui.dialogs.rows import Rows
from tests.ui import sample_pages as sample
from tests.ui.screens import Stage, shown


class Shown:
    """A page's screen on a stage, with what its keys sent and edited."""

    def __init__(self, page: Page) -> None:
        self.sent: list[tuple[str, str]] = []
        self.edited: list[str] = []
        self.screen = screen_for(
            Report("A report", page=page), lambda name, argument: self.sent.append((name, argument)), self._edit
        )

    def _edit(self, path: str) -> str:
        self.edited.append(path)
        return ""

    async def open(self, pilot: Pilot[None]) -> None:
        await pilot.app.push_screen(self.screen)
        await pilot.pause()

    @property
    def detail(self) -> str:
        return shown(self.screen.query_one("#detail", Rows))


async def choose(pilot: Pilot[None], item_id: str) -> None:
    pilot.app.screen.query_one(PickerList).choose(item_id)
    await pilot.pause()


@pytest.mark.parametrize(
    ("key", "press", "sent"),
    [
        ("webSearch", ("enter",), "user webSearch=true"),
        ("autoCompactEnabled", ("enter",), "user autoCompactEnabled=false"),
        ("compaction.policy", ("enter",), "user compaction.policy=economy"),
        ("compaction.policy", ("left",), "user compaction.policy=economy"),
        ("webSearch", ("s", "enter"), "project webSearch=true"),
        ("webSearch", ("r",), "user reset webSearch"),
        ("cleanupPeriodDays", ("enter", "backspace", "backspace", *"14", "enter"), "user cleanupPeriodDays=14"),
        ("autoCompactWindow", ("enter", *(["backspace"] * 4), *"90000", "enter"), "user autoCompactWindow=90000"),
    ],
)
async def test_a_setting_is_changed_in_place(key: str, press: tuple[str, ...], sent: str) -> None:
    page = Shown(sample.SETTINGS)
    async with Stage().run_test(size=(120, 40)) as pilot:
        await page.open(pilot)
        await choose(pilot, key)
        await pilot.press(*press)
        await pilot.pause()
    assert page.sent == [("config", sent)]


async def test_a_list_is_not_edited_here_and_escape_leaves_a_value_as_it_is() -> None:
    page = Shown(sample.SETTINGS)
    async with Stage().run_test(size=(120, 40)) as pilot:
        await page.open(pilot)
        await choose(pilot, "permissions.allow")
        await pilot.press("enter")
        await choose(pilot, "cleanupPeriodDays")
        await pilot.press("enter", "9", "escape")
        await pilot.pause()
        assert pilot.app.screen is page.screen
    assert page.sent == []


async def test_a_search_narrows_the_list_and_escape_widens_it_again() -> None:
    page = Shown(sample.SETTINGS)
    async with Stage().run_test(size=(120, 40)) as pilot:
        await page.open(pilot)
        await pilot.press("slash", *"historysnip", "enter")
        await pilot.pause()
        assert pilot.app.screen.query_one(PickerList).labels[0] == "gates.historySnip"
        assert not pilot.app.screen.query_one(Input).display
        await pilot.press("escape")
        await pilot.pause()
        assert pilot.app.screen.query_one(PickerList).labels[0] == "model"
        await pilot.press("escape")
        await pilot.pause()
        assert pilot.app.screen is not page.screen


@pytest.mark.parametrize(
    ("chosen", "press", "sent"),
    [
        ("rule 1", ("d",), "remove allow Bash(npm test:*)"),
        ("rule 3", ("d",), "remove allow Bash(git push)"),
        ("rule 1", ("a", *"Bash(ls) user", "enter"), "allow Bash(ls) user"),
        ("rule 1", ("n", *"WebFetch", "enter"), "deny WebFetch"),
        ("rule 1", ("t", *"Bash(git push)", "enter"), "test Bash(git push)"),
        ("denial 0", ("a", "enter"), "allow Bash(rm -rf build)"),
    ],
)
async def test_rules_are_added_removed_and_tried(chosen: str, press: tuple[str, ...], sent: str) -> None:
    page = Shown(sample.PERMISSIONS)
    async with Stage().run_test(size=(120, 40)) as pilot:
        await page.open(pilot)
        await choose(pilot, chosen)
        await pilot.press(*press)
        await pilot.pause()
    assert page.sent == [("permissions", sent)]


async def test_a_rule_of_another_program_s_file_is_not_removed() -> None:
    page = Shown(sample.PERMISSIONS)
    async with Stage().run_test(size=(120, 40)) as pilot:
        await page.open(pilot)
        await pilot.press("d")
        await pilot.pause()
        assert "does not change" in page.detail
    assert page.sent == []


@pytest.mark.parametrize(
    ("press", "sent"),
    [(("right",), "turn 2"), (("right", "right"), "turn 2"), (("s",), "session"), (("h",), "head")],
)
async def test_arrows_and_letters_go_through_what_can_be_compared(press: tuple[str, ...], sent: str) -> None:
    page = Shown(sample.DIFF)
    async with Stage().run_test(size=(120, 40)) as pilot:
        await page.open(pilot)
        await pilot.press("left", *press)
        await pilot.pause()
    assert page.sent[-1] == ("diff", sent)


async def test_behind_the_newest_turn_come_the_session_and_git() -> None:
    page = Shown(replace(sample.DIFF, chosen="turn 2"))
    async with Stage().run_test(size=(120, 40)) as pilot:
        await page.open(pilot)
        await pilot.press("right")
        assert isinstance(page.screen, DiffScreen)
        page.screen.show(replace(sample.DIFF, chosen="session"))
        await pilot.press("right")
        await pilot.pause()
    assert page.sent == [("diff", "session"), ("diff", "head")]


async def test_the_chosen_file_s_difference_stands_beside_the_list() -> None:
    page = Shown(sample.DIFF)
    async with Stage().run_test(size=(120, 40)) as pilot:
        await page.open(pilot)
        assert "math.pi" in page.detail
        await pilot.press("down")
        await pilot.pause()
        assert "hello" in page.detail


async def test_the_newest_compaction_is_undone_from_its_page() -> None:
    page = Shown(sample.COMPACTIONS)
    async with Stage().run_test(size=(120, 40)) as pilot:
        await page.open(pilot)
        await pilot.press("down")
        await pilot.pause()
        assert "kept 9 of 9" in page.detail
        await pilot.press("u")
        await pilot.pause()
        assert pilot.app.screen is not page.screen
    assert page.sent == [("compact", "undo")]


async def test_a_background_task_is_ended_and_its_page_follows() -> None:
    page = Shown(sample.TASKS)
    async with Stage().run_test(size=(80, 24)) as pilot:
        await page.open(pilot)
        assert "ready on port 3000" in page.detail
        await pilot.press("x")
        assert isinstance(page.screen, TasksScreen)
        page.screen.show(replace(sample.TASKS, rows=sample.TASKS.rows[1:], remark="bash_4 is ended."))
        await pilot.pause()
        assert "1 failed" in page.detail
    assert page.sent == [("tasks", "kill bash_4")]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (TasksPage(()), "There is no background task."),
        (replace(sample.DIFF, files=(), remark="No file differs."), "No file differs."),
    ],
    ids=["tasks", "diff"],
)
async def test_a_page_with_nothing_to_list_says_so_once(page: Page, words: str) -> None:
    shown_page = Shown(page)
    async with Stage().run_test(size=(80, 24)) as pilot:
        await shown_page.open(pilot)
        screen = shown_page.screen
        assert shown(screen.query_one("#remark", Rows)).strip() == words
        assert shown(screen.query_one(PickerList)).strip() == ""


async def test_a_search_that_finds_nothing_on_a_page_says_so() -> None:
    page = Shown(sample.SETTINGS)
    async with Stage().run_test(size=(120, 40)) as pilot:
        await page.open(pilot)
        await pilot.press("slash", *"zzzqqq")
        await pilot.pause()
        assert shown(page.screen.query_one(PickerList)).strip() == "nothing matches"


async def test_a_memory_file_is_opened_in_the_editor_and_looked_at_again() -> None:
    page = Shown(sample.MEMORY)
    async with Stage().run_test(size=(80, 24)) as pilot:
        await page.open(pilot)
        await pilot.press("down", "enter")
        await pilot.pause()
    assert page.edited == ["/repo/engine/AGENTS.md"]
    assert page.sent == [("memory", "")]


async def test_a_page_to_read_takes_the_next_answer_of_its_command_and_no_other() -> None:
    page = Shown(sample.COST)
    async with Stage().run_test(size=(120, 40)) as pilot:
        await page.open(pilot)
        assert isinstance(page.screen, PageScreen)
        assert not page.screen.accepts(sample.CONTEXT)
        page.screen.show(replace(sample.COST, total_usd=9.5))
        await pilot.pause()
        assert "$9.50" in shown(page.screen.query_one(Rows))


async def test_every_browser_fits_the_smallest_screen() -> None:
    for sample_page in (sample.SETTINGS, sample.PERMISSIONS, sample.DIFF, sample.TASKS, sample.MEMORY):
        page = Shown(sample_page)
        async with Stage().run_test(size=(60, 15)) as pilot:
            await page.open(pilot)
            assert isinstance(page.screen, BrowserScreen)
            assert page.screen.query_one(PickerList).size.height >= 3
            assert page.screen.query_one("#detail", Rows).size.height >= 3
