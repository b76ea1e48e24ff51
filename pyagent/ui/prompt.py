"""Where the user writes: a growing text box whose Enter sends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import TextArea
from textual.widgets.text_area import Location

from pyagent.ui.completion import (
    Candidate,
    CompletionContext,
    CompletionKind,
    CompletionMenu,
    Source,
    completion_context,
)
from pyagent.ui.prompt_text import BURST_SETTLE_S, Burst, History, ListHistory, Pastes, normal_newlines


def _no_candidates(query: str) -> Sequence[Candidate]:
    return ()


class Prompt(TextArea):
    """The prompt. The app decides what Ctrl+C, Ctrl+D on an empty prompt, and Esc mean.

    Every edit is told with the inherited `Changed`. A click in the menu is told by `CompletionMenu.Picked`; answer it
    with `accept_completion`.

    `intake` may turn a pasted text into another (a dropped image's path into its label), else return None.
    """

    DEFAULT_CSS = """
    Prompt {
        height: auto;
        min-height: 3;
        max-height: 12;
        min-width: 8;  /* the placeholder cannot be wrapped into no cells at all */
        border: round $border-blurred;
        padding: 0 1;
        background: $background;
        scrollbar-size-vertical: 1;
        &:focus { border: round $border; background-tint: $foreground 0%; }
        & .text-area--placeholder { color: $foreground 45%; }
        & .text-area--cursor-line { background: transparent; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+enter,alt+enter,ctrl+j", "newline", "New line", show=False, id="chat:newline"),
        Binding("ctrl+underscore,ctrl+shift+minus", "undo", "Undo", show=False, id="chat:undo"),
        Binding("ctrl+s", "stash", "Stash or bring back", show=False, id="chat:stash"),
        Binding("ctrl+g", "external_editor", "Edit in $EDITOR", show=False, id="chat:externalEditor"),
        Binding("ctrl+y", "yank", "Insert what was cut", show=False),
        Binding("alt+b", "cursor_word_left", "Word left", show=False),
        Binding("alt+f", "cursor_word_right", "Word right", show=False),
        Binding("alt+d", "delete_word_right", "Delete word right", show=False),
    ]

    class Submitted(Message):
        """The user sent this text; chips are expanded in `text`, kept in `shown`. Blanks at its end are cut."""

        def __init__(self, text: str, shown: str) -> None:
            super().__init__()
            self.text = text
            self.shown = shown

    class EditorRequested(Message):
        """The user wants to go on in an external editor; answer with `Prompt.set_text`."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class HelpRequested(Message):
        """`?` in an empty prompt."""

    def __init__(
        self,
        *,
        menu: CompletionMenu | None = None,
        commands: Source = _no_candidates,
        files: Source = _no_candidates,
        history: History | None = None,
        intake: Callable[[str], str | None] | None = None,
        placeholder: str = "",
        id: str | None = None,
    ) -> None:
        super().__init__(
            id=id,
            soft_wrap=True,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder=Content(placeholder),
        )
        self._menu = menu
        self._sources = {CompletionKind.COMMAND: commands, CompletionKind.FILE: files}
        self._past: History = history if history is not None else ListHistory()
        self._intake = intake
        self._pastes = Pastes()
        self._burst = Burst()
        self._held_enter: Timer | None = None
        self._stashed = ""
        self._killed = ""
        self._is_after_ctrl_x = False
        self._is_menu_dismissed = False

    # Text

    @property
    def expanded_text(self) -> str:
        """The text with its chips expanded."""
        return self._pastes.expand(self.text)

    @property
    def stashed(self) -> str:
        """The text put aside with Ctrl+S."""
        return self._stashed

    def set_text(self, text: str) -> None:
        """Replace the text, undoably, and stand at its end."""
        self.replace(text, (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    def action_submit(self) -> None:
        """Send the text."""
        self._release_enter()
        shown = self.text
        text = self._pastes.expand(shown).rstrip()
        if not text:
            return
        self._close_menu()
        self._past.add(text)
        self.load_text("")
        self._pastes = Pastes()
        self.post_message(self.Submitted(text, shown))

    def action_newline(self) -> None:
        """Insert a line break."""
        self._replace_via_keyboard("\n", *self.selection)

    # Keys

    async def _on_key(self, event: events.Key) -> None:
        self._burst.key(event.time)
        if self._held_enter is not None:
            self._resolve_held_enter()
        handler = self._key_handler(event)
        if handler is not None:
            event.stop()
            event.prevent_default()
            self._restart_blink()
            handler()

    def _key_handler(self, event: events.Key) -> Callable[[], None] | None:
        """What a key does here, before the text area and the bindings see it."""
        key = event.key
        after_ctrl_x, self._is_after_ctrl_x = self._is_after_ctrl_x, False
        if after_ctrl_x and key == "ctrl+e":
            return self.action_external_editor
        if key == "ctrl+x" and self.selection.is_empty:
            return self._begin_ctrl_x
        is_burst_enter = key == "enter" and self._burst.is_burst
        if self._menu is not None and self._menu.is_open and not is_burst_enter:
            menu_handler = self._menu_handler(key)
            if menu_handler is not None:
                return menu_handler
        match key:
            case "enter":
                return self._enter
            case "up" if self.wrapped_document.location_to_offset(self.cursor_location).y == 0:
                return self._history_previous
            case "down" if self._is_on_last_row():
                return self._history_next
            case "question_mark" if not self.text:
                return self._ask_for_help
            case _:
                return None

    def _begin_ctrl_x(self) -> None:
        self._is_after_ctrl_x = True

    def _ask_for_help(self) -> None:
        self.post_message(self.HelpRequested())

    def _is_on_last_row(self) -> bool:
        offset = self.wrapped_document.location_to_offset(self.cursor_location)
        return offset.y >= self.wrapped_document.height - 1

    def _enter(self) -> None:
        """Send, or break the line after a backslash or inside a burst of pasted keys."""
        row, column = self.cursor_location
        if column and self.document.get_line(row)[column - 1] == "\\" and self.selection.is_empty:
            self._replace_via_keyboard("\n", (row, column - 1), (row, column))
        elif self._burst.is_multiline:
            self.action_newline()
        elif self._burst.is_burst:
            self._held_enter = self.set_timer(BURST_SETTLE_S, self._settle_enter)
        else:
            self.action_submit()

    def _settle_enter(self) -> None:
        """No key followed the Enter at the end of a burst: it was meant as one."""
        self._release_enter()
        if self._menu is not None and self._menu.is_open:
            self._accept_or_send()
        else:
            self.action_submit()

    def _resolve_held_enter(self) -> None:
        """A key after an Enter in a burst: text of a paste if it came at once, else typing after a send."""
        self._release_enter()
        if self._burst.is_burst:
            self._burst.newline()
            self.action_newline()
        else:
            self._settle_enter()

    def _release_enter(self) -> None:
        if self._held_enter is not None:
            self._held_enter.stop()
            self._held_enter = None

    def _history_previous(self) -> None:
        entry = self._past.previous(self.text)
        if entry is not None:
            self._show_history(entry)

    def _history_next(self) -> None:
        entry = self._past.next()
        if entry is not None:
            self._show_history(entry)

    def _show_history(self, entry: str) -> None:
        self.set_text(entry)
        self._is_menu_dismissed = True
        self._close_menu()

    # Pasting

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.paste(event.text)

    def paste(self, text: str) -> None:
        """Insert pasted text; big ones as a chip."""
        text = normal_newlines(text)
        taken = self._intake(text) if self._intake is not None else None
        self._replace_via_keyboard(self._pastes.chip(text) if taken is None else taken, *self.selection)

    def action_delete_left(self) -> None:
        """Delete a character, or the whole chip that ends here."""
        row, column = self.cursor_location
        start = self._pastes.chip_before(self.document.get_line(row), column) if self.selection.is_empty else None
        if start is None:
            super().action_delete_left()
        else:
            self._delete_via_keyboard((row, start), (row, column))

    # Cutting and bringing back

    def _kill(self, start: Location, end: Location) -> None:
        killed = self.get_text_range(min(start, end), max(start, end))
        if killed:
            self._killed = killed
            self._delete_via_keyboard(start, end)

    def action_delete_to_start_of_line(self) -> None:
        self._kill(self.get_cursor_line_start_location(), self.cursor_location)

    async def action_delete_to_end_of_line_or_delete_line(self) -> None:
        end = self.get_cursor_line_end_location()
        if end == self.cursor_location and end[0] + 1 < self.document.line_count:
            end = (end[0] + 1, 0)
        self._kill(self.cursor_location, end)

    def action_delete_word_left(self) -> None:
        if self.selection.is_empty:
            self._kill(self.get_cursor_word_left_location(), self.cursor_location)
        else:
            super().action_delete_word_left()

    def action_yank(self) -> None:
        """Insert what was last cut with Ctrl+U, Ctrl+K or Ctrl+W."""
        if self._killed:
            self._replace_via_keyboard(self._killed, *self.selection)

    def action_stash(self) -> None:
        """Put the text aside; in an empty prompt, bring it back."""
        if self.text:
            self._stashed = self.expanded_text
            self.set_text("")
        elif self._stashed:
            self.set_text(self._stashed)
            self._stashed = ""

    def action_external_editor(self) -> None:
        """Ask the app for the external editor."""
        self.post_message(self.EditorRequested(self.expanded_text))

    def action_copy(self) -> None:
        """Copy a selection; without one the key is the app's."""
        if self.selection.is_empty:
            raise SkipAction
        super().action_copy()

    def action_delete_right(self) -> None:
        """Delete a character; in an empty prompt the key is the app's (Ctrl+D leaves)."""
        if not self.text:
            raise SkipAction
        super().action_delete_right()

    # Completion

    def on_text_area_changed(self) -> None:
        self._is_menu_dismissed = self._is_menu_dismissed and bool(self.text)
        self._update_menu()

    def on_text_area_selection_changed(self) -> None:
        if self._menu is not None and self._menu.is_open:
            self._update_menu()

    def _completion_context(self) -> CompletionContext | None:
        row, column = self.cursor_location
        return completion_context(self.document.get_line(row), column, is_first_line=row == 0)

    def _update_menu(self) -> None:
        if self._menu is None:
            return
        context = self._completion_context() if self.selection.is_empty else None
        if context is None:
            self._is_menu_dismissed = False
            self._close_menu()
        elif not self._is_menu_dismissed:
            self._menu.show(context.query, self._sources[context.kind](context.query))

    def _close_menu(self) -> None:
        if self._menu is not None and self._menu.is_open:
            self._menu.close()

    def _menu_handler(self, key: str) -> Callable[[], None] | None:
        match key:
            case "tab":
                return self.accept_completion
            case "enter":
                return self._accept_or_send
            case "escape":
                return self._dismiss_menu
            case "up" | "ctrl+p":
                return lambda: self._move_in_menu(-1)
            case "down" | "ctrl+n":
                return lambda: self._move_in_menu(1)
            case _:
                return None

    def _move_in_menu(self, step: int) -> None:
        if self._menu is not None:
            self._menu.move(step)

    def _dismiss_menu(self) -> None:
        self._is_menu_dismissed = True
        self._close_menu()

    def accept_completion(self) -> None:
        """Put the chosen candidate where its beginning stands."""
        context = self._completion_context()
        chosen = self._menu.chosen if self._menu is not None else None
        if context is None or chosen is None:
            return
        row = self.cursor_location[0]
        sign = "/" if context.kind is CompletionKind.COMMAND else "@"
        name = chosen.inserted.removeprefix(sign)
        quoted = f'"{name}"' if context.kind is CompletionKind.FILE and any(char.isspace() for char in name) else name
        is_directory = context.kind is CompletionKind.FILE and name.endswith("/")
        text = f"{sign}{quoted}" + ("" if is_directory else " ")
        self._replace_via_keyboard(text, (row, context.start), (row, context.end))
        self.move_cursor((row, context.start + len(text)))
        if not is_directory:
            self._close_menu()

    def _accept_or_send(self) -> None:
        """Enter takes the chosen candidate; a command that is chosen is sent at once."""
        context = self._completion_context()
        self.accept_completion()
        if context is not None and context.kind is CompletionKind.COMMAND:
            self.action_submit()
