"""The list of sessions, in which they can also be renamed, deleted and brought back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from pyagent.errors import PyagentError
from pyagent.ui.dialogs.picker import PickerItem, PickerList, PickerScreen
from pyagent.ui.lines import inert

VIEWED = "view:"
"""Before the id of a session that is only to be looked at."""

RENAME_HINT = "enter rename · esc leave the name"


class Sessions(Protocol):
    """What the picker lists and changes. The changes wait for the disk and raise PyagentError."""

    def items(self) -> Sequence[PickerItem]: ...

    def preview(self, session_id: str) -> str: ...

    def name(self, session_id: str) -> str: ...

    def rename(self, session_id: str, title: str) -> None: ...

    def delete(self, session_id: str) -> None: ...

    def restore(self) -> str:
        """The id of the session that is back."""
        ...


class SessionPicker(PickerScreen):
    """The result is the id of the chosen session (behind `VIEWED` to look at it), or None.

    Letters search, so the changes have control keys.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+o", "view", show=False, priority=True),
        Binding("ctrl+r", "rename", show=False, priority=True),
        Binding("ctrl+d", "delete", show=False, priority=True),
        Binding("ctrl+u", "restore", show=False, priority=True),
    ]
    HINT = "type to search · enter take · ^O read · ^R rename · ^D delete · ^U undo · esc leave"

    def __init__(self, sessions: Sessions) -> None:
        super().__init__("Resume a session", sessions.items(), preview=sessions.preview)
        self._sessions = sessions
        self._renamed_id = ""
        self._query = ""
        self._changing = asyncio.Lock()

    def on_input_changed(self, event: Input.Changed) -> None:
        if not self._renamed_id:
            self._query = event.value
            super().on_input_changed(event)

    def action_move(self, step: int) -> None:
        if not self._renamed_id:
            super().action_move(step)

    def on_picker_list_clicked(self) -> None:
        if not self._renamed_id:
            super().on_picker_list_clicked()

    def action_take(self) -> None:
        session_id, title = self._renamed_id, self.query_one(Input).value
        if not session_id:
            super().action_take()
            return
        self._end_rename()
        if title.strip():
            self._change(lambda: self._sessions.rename(session_id, title), session_id)

    def action_cancel(self) -> None:
        if self._renamed_id:
            self._end_rename()
        else:
            super().action_cancel()

    def action_view(self) -> None:
        """Only look at the chosen one."""
        chosen = self.query_one(PickerList).chosen
        if chosen is not None and not self._renamed_id:
            self.dismiss(VIEWED + chosen.id)

    def action_rename(self) -> None:
        """The input line takes the new name."""
        chosen = self.query_one(PickerList).chosen
        if chosen is None or self._renamed_id:
            return
        self._renamed_id = chosen.id
        field = self.query_one(Input)
        field.placeholder = "New name"
        field.value = self._sessions.name(chosen.id)
        field.cursor_position = len(field.value)
        self._say(RENAME_HINT)

    def _end_rename(self) -> None:
        self._renamed_id = ""
        field = self.query_one(Input)
        field.placeholder = "Search"
        field.value = self._query
        self._say(self.HINT)

    def action_delete(self) -> None:
        """Into the trash with the chosen one."""
        chosen = self.query_one(PickerList).chosen
        if chosen is not None and not self._renamed_id:
            self._change(lambda: self._sessions.delete(chosen.id), "", f"Deleted: {chosen.label} · ^U brings it back")

    def action_restore(self) -> None:
        """Out of the trash with what was put there last."""
        if not self._renamed_id:
            self._change(self._sessions.restore)

    def _change(self, change: Callable[[], str | None], chosen_id: str = "", done: str = "") -> None:
        async def work() -> None:
            async with self._changing:
                try:
                    changed_id = await asyncio.to_thread(change)
                except PyagentError as error:
                    self._say(error.message)
                    return
                rows = self.query_one(PickerList)
                rows.replace(self._sessions.items(), self._query)
                rows.choose(changed_id or chosen_id)
                self._say(done or self.HINT)

        self.run_worker(work(), group="change")

    def _say(self, text: str) -> None:
        literal = Text(inert(text))
        self.query_one(Vertical).border_subtitle = literal
