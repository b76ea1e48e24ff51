"""The list of sessions: renaming, deleting and bringing back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from textual.containers import Vertical
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Input

from pyagent.errors import SessionError
from pyagent.ui.dialogs.picker import PickerItem, PickerList
from pyagent.ui.dialogs.session_picker import VIEWED, SessionPicker
from tests.ui.screens import Stage


class FakeSessions:
    """Sessions in memory; the one named `open` is locked."""

    def __init__(self) -> None:
        self.names = {"a": "Alpha [x]", "b": "Beta", "open": "Open"}
        self.trash: list[tuple[str, str]] = []

    def items(self) -> list[PickerItem]:
        return [PickerItem(session_id, name) for session_id, name in self.names.items()]

    def preview(self, session_id: str) -> str:
        return f"# {self.names[session_id]}"

    def name(self, session_id: str) -> str:
        return self.names[session_id]

    def rename(self, session_id: str, title: str) -> None:
        self.names[session_id] = title

    def delete(self, session_id: str) -> None:
        if session_id == "open":
            raise SessionError("open [elsewhere]")
        self.trash.append((session_id, self.names.pop(session_id)))

    def restore(self) -> str:
        if not self.trash:
            raise SessionError("nothing there")
        session_id, name = self.trash.pop()
        self.names[session_id] = name
        return session_id


@dataclass
class Picking:
    sessions: FakeSessions
    screen: SessionPicker
    pilot: Pilot[None]
    results: list[str | None]

    @property
    def labels(self) -> tuple[str, ...]:
        return self.screen.query_one(PickerList).labels

    @property
    def said(self) -> str:
        """The hint line as it is read; the widget gives it with its markup."""
        return Content.from_markup(self.screen.query_one(Vertical).border_subtitle or "").plain

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.screen.workers.wait_for_complete()
        await self.pilot.pause()


@asynccontextmanager
async def picking() -> AsyncIterator[Picking]:
    sessions, results = FakeSessions(), list[str | None]()
    async with Stage().run_test(size=(100, 24)) as pilot:
        screen = SessionPicker(sessions)
        pilot.app.push_screen(screen, results.append)
        await pilot.pause()
        yield Picking(sessions, screen, pilot, results)


async def test_a_session_is_renamed_in_the_input_line_and_the_search_comes_back() -> None:
    async with picking() as p:
        await p.press(*"beta", "ctrl+r")
        field = p.screen.query_one(Input)
        assert field.value == "Beta"
        await p.press(*"s and more", "enter")
        assert p.sessions.names["b"] == "Betas and more"
        assert field.value == "beta"
        assert p.labels == ("Betas and more",)
        assert p.results == []
        await p.press("enter")
    assert p.results == ["b"]


async def test_leaving_the_new_name_changes_nothing_and_keeps_the_list_open() -> None:
    async with picking() as p:
        await p.press("ctrl+r", *"zzz", "down", "ctrl+d", "escape")
        assert p.sessions.names["a"] == "Alpha [x]"
        assert p.results == []
        assert len(p.labels) == 3
        await p.press("escape")
    assert p.results == [None]


async def test_a_deleted_session_leaves_the_list_and_comes_back_chosen() -> None:
    async with picking() as p:
        assert "^D delete" in p.said
        await p.press("ctrl+d")
        assert "Alpha" not in str(p.labels)
        assert p.said.startswith("Deleted: Alpha [x]")
        await p.press("ctrl+u", "enter")
    assert p.results == ["a"]


async def test_a_session_can_be_taken_only_to_be_read() -> None:
    async with picking() as p:
        await p.pilot.press("down", "ctrl+o")
        await p.pilot.pause()
        assert p.results == [f"{VIEWED}b"]


async def test_what_cannot_be_done_is_said_word_for_word() -> None:
    async with picking() as p:
        await p.press("ctrl+u")
        assert p.said == "nothing there"
        await p.press("down", "down", "ctrl+d")
        assert p.said == "open [elsewhere]"
        assert len(p.labels) == 3


async def test_all_sessions_can_be_deleted_and_the_empty_list_still_serves() -> None:
    async with picking() as p:
        del p.sessions.names["open"]
        await p.press("ctrl+d", "ctrl+d", "ctrl+d", "ctrl+r", "enter")
        assert not p.labels
        await p.press("ctrl+u")
        assert p.labels == ("Beta",)
