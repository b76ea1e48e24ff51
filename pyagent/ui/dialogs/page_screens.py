"""The screens of commands' answers: which one a page gets, and what its keys do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen

from pyagent.events import Report
from pyagent.pages import (
    CompactionsPage,
    DiffPage,
    MemoryPage,
    Page,
    PermissionsPage,
    SettingsPage,
    TasksPage,
)
from pyagent.ui.dialogs.browser import BrowserScreen, SendCommand
from pyagent.ui.dialogs.pager import PagerScreen
from pyagent.ui.dialogs.picker import PickerItem
from pyagent.ui.dialogs.rows import Rows
from pyagent.ui.dialogs.setting_screens import ConfigScreen, PermissionsScreen
from pyagent.ui.dialogs.text import TextScreen
from pyagent.ui.gauge import short_tokens
from pyagent.ui.lines import Line, plain_line, wrap_text
from pyagent.ui.pages.layout import page_layout
from pyagent.ui.pages.records import compaction_detail, diff_lines_of, file_words, task_detail
from pyagent.wording import plural

MAX_SHOWN_BYTES = 200_000
"""Of a memory file beside the list; the editor has all of it."""

EditFile = Callable[[str], str]
"""Opens a file in the person's editor; why it could not, or nothing."""


class PageScreen(PagerScreen):
    """A page to read. The same command's next answer takes its place."""

    def __init__(self, title: str, page: Page) -> None:
        super().__init__(title, page_layout(page))
        self._page = page

    def accepts(self, page: Page) -> bool:
        return type(page) is type(self._page)

    def show(self, page: Page) -> None:
        self._page = page
        self.query_one(Rows).show(page_layout(page))


class CompactionsScreen(BrowserScreen[CompactionsPage]):
    """The compactions in force, newest first; the newest can be taken back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("u", "undo", show=False)]
    KEYS = "↑↓ choose · u undo the newest · space scrolls · q leave"

    def title_words(self) -> str:
        return f"Compactions ({len(self.page.rows)})"

    def items(self) -> Sequence[PickerItem]:
        return [
            PickerItem(
                str(row.number),
                f"{row.number}. {short_tokens(row.before_tokens)} → {short_tokens(row.after_tokens)}",
                f"{row.at:%H:%M} · {row.headline}",
            )
            for row in reversed(self.page.rows)
        ]

    def detail(self, item_id: str, width_cells: int) -> Sequence[Line]:
        row = next(row for row in self.page.rows if str(row.number) == item_id)
        return compaction_detail(row, width_cells)

    def action_undo(self) -> None:
        """Take the newest back; the answer is a notice in the conversation."""
        if self.page.rows:
            self.dismiss(None)
            self.send_command("compact", "undo")


class DiffScreen(BrowserScreen[DiffPage]):
    """The files of one turn, the session, or against git, and the chosen one's difference."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "scope(1)", show=False),
        Binding("right", "scope(-1)", show=False),
        Binding("s", "go('session')", show=False),
        Binding("h", "go('head')", show=False),
    ]
    KEYS = "←→ turn · ↑↓ file · s session · h git HEAD · space scrolls · q leave"

    def title_words(self) -> str:
        scope = next((scope for scope in self.page.scopes if scope.id == self.page.chosen), None)
        return f"Diff: {scope.detail} · {scope.label}" if scope is not None else "Diff"

    def remark(self) -> str:
        return self.page.remark

    def items(self) -> Sequence[PickerItem]:
        return [PickerItem(file.path, *file_words(file)) for file in self.page.files]

    def detail(self, item_id: str, width_cells: int) -> Sequence[Line]:
        file = next(file for file in self.page.files if file.path == item_id)
        return diff_lines_of(file, width_cells)

    def action_scope(self, step: int) -> None:
        """An older turn to the left, a newer one to the right; behind the newest come session and git."""
        ids = [scope.id for scope in self.page.scopes]
        # Newest first, and what is no turn at the end: in one row from old to new that end comes last.
        turns = [scope_id for scope_id in ids if scope_id.startswith("turn ")]
        row = [*reversed(turns), *(scope_id for scope_id in ids if scope_id not in turns)]
        at = row.index(self.page.chosen) - step
        if 0 <= at < len(row):
            self.action_go(row[at])

    def action_go(self, scope_id: str) -> None:
        self.say("comparing …")
        self.send_command("diff", scope_id)

    def show(self, page: DiffPage) -> None:
        super().show(page)
        self.say(self.KEYS)


class TasksScreen(BrowserScreen[TasksPage]):
    """Background tasks with the end of their output."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "end_task", show=False),
        Binding("r", "refresh_page", show=False),
    ]
    KEYS = "↑↓ choose · x end it · r look again · space scrolls · q leave"

    def title_words(self) -> str:
        running = sum(row.state == "running" for row in self.page.rows)
        return f"Background tasks ({running} running)"

    def remark(self) -> str:
        return self.page.remark or ("" if self.page.rows else "There is no background task.")

    def items(self) -> Sequence[PickerItem]:
        return [PickerItem(row.id, row.command, f"{row.state} · {row.id}") for row in self.page.rows]

    def detail(self, item_id: str, width_cells: int) -> Sequence[Line]:
        return task_detail(next(row for row in self.page.rows if row.id == item_id), width_cells)

    def action_end_task(self) -> None:
        if self.chosen_id:
            self.say("ending it …")
            self.send_command("tasks", f"kill {self.chosen_id}")

    def action_refresh_page(self) -> None:
        self.send_command("tasks", "")

    def show(self, page: TasksPage) -> None:
        super().show(page)
        self.say(self.KEYS)


class MemoryScreen(BrowserScreen[MemoryPage]):
    """Memory files with their text; Enter opens one in the editor, and makes it if it is not there."""

    KEYS = "↑↓ choose · enter edit · space scrolls · q leave"

    def __init__(self, page: MemoryPage, send: SendCommand, edit: EditFile) -> None:
        super().__init__(page, send)
        self._edit = edit

    def title_words(self) -> str:
        loaded = [row for row in self.page.rows if row.is_loaded]
        return f"Memory: {plural(len(loaded), 'file')}, {sum(row.tokens for row in loaded):,} tokens"

    def remark(self) -> str:
        return self.page.problems[0] if self.page.problems else ""

    def items(self) -> Sequence[PickerItem]:
        return [
            PickerItem(row.path, row.path, f"{row.scope} · " + (f"{row.tokens:,} tokens" if row.is_loaded else "new"))
            for row in self.page.rows
        ]

    def detail(self, item_id: str, width_cells: int) -> Sequence[Line]:
        row = next(row for row in self.page.rows if row.path == item_id)
        if not row.is_loaded:
            return [plain_line("Not there yet; Enter makes it.", "muted")]
        try:
            with Path(row.path).open("rb") as file:
                text = file.read(MAX_SHOWN_BYTES).decode("utf-8", "replace")
        except OSError as error:
            return [plain_line(error.strerror or str(error), "error")]
        return wrap_text(text, width_cells, "text")

    def take(self, item_id: str) -> None:
        problem = self._edit(item_id)
        if problem:
            self.say(problem)
        else:
            self.send_command("memory", "")


def screen_for(report: Report, send: SendCommand, edit: EditFile) -> Screen[None]:
    """The screen of a report."""
    match report.page:
        case None:
            return TextScreen(report.title, report.text, is_markdown=False)
        case CompactionsPage() as page:
            return CompactionsScreen(page, send)
        case DiffPage() as page:
            return DiffScreen(page, send)
        case SettingsPage() as page:
            return ConfigScreen(page, send)
        case PermissionsPage() as page:
            return PermissionsScreen(page, send)
        case TasksPage() as page:
            return TasksScreen(page, send)
        case MemoryPage() as page:
            return MemoryScreen(page, send, edit)
        case page:
            return PageScreen(report.title, page)
