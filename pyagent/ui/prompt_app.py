"""The part of the full screen that serves the input line: editor, images, history, help, and keys that act for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.actions import SkipAction
from textual.app import App
from textual.message import Message
from textual.timer import Timer

from pyagent.ui.busy import BusyLine
from pyagent.ui.editor import edited_in_place, edited_text
from pyagent.ui.prompt import Prompt
from pyagent.ui.prompt_desk import PromptDesk
from pyagent.ui.task_panel import TaskPanel

if TYPE_CHECKING:
    from pyagent.ui.cli import Invocation
    from pyagent.ui.history import Recall
    from pyagent.ui.images import FoundImage
    from pyagent.ui.session_view import SessionView

AGAIN_S = 2.0
"""Time in which a second Ctrl+C leaves, and for which a short remark stays."""

EXPLAINED_S = 4.0
"""Time for a remark that says what to do next."""


class FilesListed(Message):
    """The names behind an `@` are known, or known anew."""


class PromptApp(App[int]):
    """See the module's docstring; `PyagentApp` is the whole."""

    is_leaving: bool
    view: SessionView | None
    _desk: PromptDesk
    _invocation: Invocation
    _prompt: Prompt
    _recall: Recall
    _busy: BusyLine
    _hint_timer: Timer | None = None

    @property
    def _session(self) -> SessionView:
        """The session. Keys and clicks come only when there is one."""
        assert self.view is not None, "input came before the session"
        return self.view

    def show_hint(self, text: str, lasting_s: float | None = AGAIN_S) -> None:
        """Show a short remark above the input line; None keeps it there."""
        if self._hint_timer is not None:
            self._hint_timer.stop()
            self._hint_timer = None
        self._busy.hint(text)
        if lasting_s is not None:
            self._hint_timer = self.set_timer(lasting_s, lambda: self._busy.hint(""))

    def tell(self, problem: str) -> None:
        """Show a warning in the transcript."""
        # Imported here: what it brings in would delay the first paint.
        from pyagent.events import Notice

        self._session.take([Notice(problem, "warning")])

    def tell_key_problems(self) -> None:
        self._desk.tell_problems()

    def on_files_listed(self) -> None:
        self._prompt.files_listed()

    def on_text_area_changed(self) -> None:
        self._desk.text_changed()

    def on_prompt_image_requested(self) -> None:
        def done(image: FoundImage | None, problem: str) -> None:
            if image is not None:
                self._prompt.add_images([image])
            elif self.clipboard:
                self._prompt.paste(self.clipboard)
            else:
                self.show_hint(problem, lasting_s=EXPLAINED_S)

        self._desk.paste_image(done)

    def on_prompt_stashed(self) -> None:
        self.show_hint("Put aside: Ctrl+S brings it back." if self._prompt.stashed else "")

    def on_prompt_help_requested(self) -> None:
        self.action_help()

    def on_prompt_vim_mode_moved(self, event: Prompt.VimModeMoved) -> None:
        self._session.tell_vim_mode(event.mode)

    def on_prompt_editor_requested(self, event: Prompt.EditorRequested) -> None:
        with self.suspend():
            text, problem = edited_text(event.text, self._invocation.options.environ)
        self.refresh(layout=True)
        if problem:
            self.show_hint(problem, lasting_s=EXPLAINED_S)
        else:
            self._prompt.set_text(text)

    def edit_file(self, path: Path) -> str:
        """Open a file in the person's editor; why that was not possible, empty if it was."""
        with self.suspend():
            problem = edited_in_place(path, self._invocation.options.environ)
        self.refresh(layout=True)
        return problem

    def action_toggle_thinking(self) -> None:
        if len(self.screen_stack) > 1:
            raise SkipAction
        self._session.command("thinking", "")

    def action_toggle_tasks(self) -> None:
        panel = self.query_one(TaskPanel)
        if not panel.toggle():
            self.show_hint("There is no task list yet.")

    def action_let_run_on(self) -> None:
        """Leave the running command to the background; else the key is the prompt's."""
        if len(self.screen_stack) > 1:
            raise SkipAction
        if not self._session.let_run_on():
            self._prompt.action_cursor_left()

    def action_search_history(self) -> None:
        """Pick an earlier prompt."""
        from pyagent.ui.dialogs.picker import PickerItem, PickerScreen

        entries = list(dict.fromkeys(reversed(self._recall.entries)))
        if not entries:
            self.show_hint("There are no earlier prompts in this folder.")
            return

        def chosen(number: str | None) -> None:
            if number is not None:
                self._prompt.set_text(entries[int(number)])

        items = [PickerItem(str(index), " ".join(entry.split())[:400]) for index, entry in enumerate(entries)]
        self.push_screen(PickerScreen("Earlier prompts", items), chosen)

    def action_help(self) -> None:
        from pyagent.ui.dialogs.help import HelpScreen

        self.push_screen(HelpScreen(self._desk.help_sections()))
