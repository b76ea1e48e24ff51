"""Where the user writes: a growing text box whose Enter sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.timer import Timer
from textual.widgets.text_area import Location

from pyagent.ui.completion import (
    Candidate,
    CompletionContext,
    CompletionKind,
    CompletionMenu,
    Source,
    completion_context,
)
from pyagent.ui.drafts import Draft
from pyagent.ui.images import FoundImage
from pyagent.ui.input_kind import input_kind
from pyagent.ui.keymap import Keymap, bound
from pyagent.ui.lines import inert, inert_row
from pyagent.ui.prompt_text import BURST_SETTLE_S, Burst, History, KillRing, ListHistory, Pastes, normal_newlines
from pyagent.ui.sign_area import SignTextArea

if TYPE_CHECKING:
    from pyagent.ui.vim import Effect
    from pyagent.ui.vim_host import VimHost


EDITABLE_CHARS = 20_000
"""Longest text that is shown to be edited: each key lays it out anew, in some 50 ms for this much."""

NEEDS_QUOTES = ".,;:!?)]}'"
"""Behind an unquoted name these count as the sentence's."""


def _no_candidates(query: str) -> Sequence[Candidate]:
    return ()


class Prompt(SignTextArea):
    """The prompt. The app decides what Ctrl+C, Ctrl+D on an empty prompt, and Esc mean.

    Every edit is told with the inherited `Changed`. A click in the menu is told by `CompletionMenu.Picked`; answer it
    with `accept_completion`.

    `dropped` tells which images a pasted text names, None if it is anything else.
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
        bound("chat:newline", "newline"),
        bound("chat:undo", "undo"),
        bound("chat:stash", "stash"),
        bound("chat:externalEditor", "external_editor"),
        bound("chat:imagePaste", "paste_image"),
        bound("chat:yank", "yank"),
        bound("chat:yankPop", "yank_pop"),
        bound("chat:wordLeft", "cursor_word_left"),
        bound("chat:wordRight", "cursor_word_right"),
        bound("chat:deleteWordRight", "delete_word_right"),
    ]

    class Submitted(Message):
        """The user sent this text; chips are expanded in `text`, kept in `shown`. Blanks at its end are cut.
        `images` are the paths of those whose chips stand in it."""

        def __init__(self, text: str, shown: str, images: tuple[str, ...] = ()) -> None:
            super().__init__()
            self.text = text
            self.shown = shown
            self.images = images

    class EditorRequested(Message):
        """The user wants to go on in an external editor; answer with `Prompt.set_text`."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class HelpRequested(Message):
        """`?` in an empty prompt."""

    class VimModeMoved(Message):
        """Vim's mode is another one; empty: the line is not edited as vim does."""

        def __init__(self, mode: str) -> None:
            super().__init__()
            self.mode = mode

    class Stashed(Message):
        """Text was put aside or brought back: `Prompt.stashed` is what waits now."""

    class ImageRequested(Message):
        """The user wants the clipboard's image; answer with `Prompt.add_images`, or `Prompt.action_paste`."""

    def __init__(
        self,
        *,
        menu: CompletionMenu | None = None,
        commands: Source = _no_candidates,
        files: Source = _no_candidates,
        history: History | None = None,
        dropped: Callable[[str], Sequence[FoundImage] | None] | None = None,
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
        self.keys = Keymap()
        """Which keys do what."""
        self._vim: VimHost | None = None
        """Vim's keys while they are wanted."""
        self._vim_remaps: Mapping[str, str] = {}
        self._dropped = dropped
        self._pastes = Pastes()
        self._burst = Burst()
        self._held_enter: Timer | None = None
        self._stashed = ""
        self._cuts = KillRing()
        self._yanked: tuple[Location, Location] | None = None
        """Where what was inserted from the cuts stands, right after it was."""
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

    @property
    def kept_text(self) -> str:
        """What is typed and what was put aside, with the chips expanded."""
        return self._pastes.expand("\n".join(text for text in (self.text, self._stashed) if text))

    @property
    def draft(self) -> Draft:
        """All that would be lost with the program."""
        pastes, images = self._pastes.used_in(f"{self.text}\n{self._stashed}")
        return Draft(self.text, pastes, images, self._stashed)

    def bring_back(self, draft: Draft, *, is_aside: bool = False) -> None:
        """Show a draft of another run; `is_aside`: something stands here already, so it waits for Ctrl+S."""
        self._pastes.take_over(draft.pastes, draft.images)
        self._stashed = (is_aside and draft.shown) or draft.stashed
        if draft.shown and not is_aside:
            self.set_text(draft.shown)

    def give_back(self, text: str, shown: str) -> None:
        """A prompt returns, above what stands here: as it was typed if its chips still mean something."""
        returned = shown if shown and self._pastes.knows(shown) else text
        self.set_text(f"{returned}\n{self.text}" if self.text.strip() else returned)

    def set_text(self, text: str) -> None:
        """Replace the text, undoably, and stand at its end. Control characters become visible: the text may come from a
        history or session file, and the input line would hand them to the terminal. A huge one becomes a chip."""
        if self._vim is not None:
            self._vim.leave_selection()
        shown = inert(text)
        shown = shown if len(shown) <= EDITABLE_CHARS else self._pastes.chip(shown)
        self.replace(shown, (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    def begin_with(self, text: str, cuts: Sequence[str]) -> None:
        """Stand at the end of this text from the first paint on; `cuts` are what Ctrl+Y brings back."""
        for cut in cuts:
            self._cuts.cut(cut)
        if text:
            self.set_text(text)
            # It has no width before the first layout: wrapped at the one to come, it has its height at once.
            self.wrapped_document.wrap(max(1, self.app.size.width - self.gutter.width - 1), self.indent_width)
            self.virtual_size = Size(0, self.wrapped_document.height)

    def action_submit(self) -> None:
        """Send the text."""
        self._release_enter()
        shown = self.text.rstrip()
        text = self._pastes.expand(shown).rstrip()
        if not text:
            return
        self._close_menu()
        self._past.add(self._pastes.with_paths(text))
        self.load_text("")
        if self._vim is not None:
            self._vim.begin_prompt()
        self._show_mode()
        self.post_message(self.Submitted(text, shown, self._pastes.images_in(shown)))

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
        elif not event.is_printable and await self._run_binding(event.key):
            event.stop()
            event.prevent_default()

    async def _run_binding(self, key: str) -> bool:
        """Do at once what the key is bound to here; whether it was done.

        Left to Textual, the key would travel up to the app first, and a letter behind it would be typed before it.
        """
        bindings = self._bindings.copy()
        bindings.apply_keymap(self.keys.textual())
        for binding in bindings.key_to_bindings.get(key, ()):
            if await self.app.run_action(binding.action, self):
                return True
        return False

    def _key_handler(self, event: events.Key) -> Callable[[], None] | None:
        """What a key does here, before the text area and the bindings see it."""
        key = event.key
        if not self.keys.has("chat:yankPop", key):
            self._yanked = None
        is_burst_enter = key == "enter" and self._burst.is_burst
        if self._menu is not None and self._menu.is_open and not is_burst_enter:
            menu_handler = self._menu_handler(key)
            if menu_handler is not None:
                return menu_handler
        in_vim = self._vim.handler(event) if self._vim is not None else None
        if in_vim is not None:
            return lambda: self._after_vim(in_vim())
        has = self.keys.has
        if has("chat:submit", key) or is_burst_enter:
            return self._enter
        if has("history:previous", key) and self.wrapped_document.location_to_offset(self.cursor_location).y == 0:
            return self._history_previous
        if has("history:next", key) and self._is_on_last_row():
            return self._history_next
        if has("chat:help", key) and not self.text:
            return self._ask_for_help
        if key == "enter":
            return self.action_newline
        is_vim_command = self._vim is not None and not self._vim.is_typing and event.is_printable
        return self._ignore_key if is_vim_command else None

    def _ignore_key(self) -> None:
        """A character that is no command of vim's is not text either."""

    def _after_vim(self, effect: Effect) -> None:
        if effect == "history_previous":
            self._history_previous()
        elif effect == "history_next":
            self._history_next()
        self._show_mode()

    @property
    def is_vim(self) -> bool:
        """Whether the text is edited as vim does."""
        return self._vim is not None

    def switch_vim(self, is_on: bool, remaps: Mapping[str, str] | None = None) -> None:
        """Edit as vim does, or no longer; `remaps` holds for good, None leaves them as they are."""
        self._vim_remaps = self._vim_remaps if remaps is None else remaps
        self._vim = None
        if is_on:
            # Imported here: most people never want it, and it would delay the first paint.
            from pyagent.ui.vim_host import VimHost

            self._vim = VimHost(self, self._vim_remaps)
        self._show_mode()

    def _show_mode(self) -> None:
        """The words on the border: what the line will be, and vim's mode."""
        words = input_kind(self.text[:4_000]).value, self._vim.mode_word if self._vim is not None else ""
        if (self.border_title or "", self.border_subtitle or "") != words:
            if (self.border_subtitle or "") != words[1]:
                self.post_message(self.VimModeMoved(words[1]))
            self.border_title, self.border_subtitle = words

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
            self._break_pasted_line()
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
            self._break_pasted_line()
        else:
            self._settle_enter()

    def _break_pasted_line(self) -> None:
        """A newline of a paste; before any text it is none, but Enter hit many times while the link was slow."""
        if self.text:
            self.action_newline()

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
        """Insert pasted text; big ones as a chip, and so images that it names."""
        images = self._dropped(text) if self._dropped is not None else None
        if images:
            self.add_images(images)
        else:
            self._replace_via_keyboard(self._pastes.chip(normal_newlines(text)), *self.selection)

    def add_images(self, images: Iterable[FoundImage]) -> None:
        """Insert a chip for each image."""
        for image in images:
            self._replace_via_keyboard(f"{self._pastes.image_chip(image)} ", *self.selection)

    def action_paste_image(self) -> None:
        """Ask the app for the clipboard's image."""
        self.post_message(self.ImageRequested())

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
        cut = self.get_text_range(min(start, end), max(start, end))
        if cut:
            self._cuts.cut(cut)
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

    def action_delete_word_right(self) -> None:
        if self.selection.is_empty:
            self._kill(self.cursor_location, self.get_cursor_word_right_location())
        else:
            super().action_delete_word_right()

    def action_yank(self) -> None:
        """Insert what was last cut with Ctrl+U, Ctrl+K, Ctrl+W or Alt+D."""
        self._insert_cut(self._cuts.newest, self.selection.start, self.selection.end)

    def action_yank_pop(self) -> None:
        """Right after that: what was cut before it, in its place."""
        if self._yanked is not None:
            self._insert_cut(self._cuts.before(), *self._yanked)

    def _insert_cut(self, text: str, start: Location, end: Location) -> None:
        if text:
            self._replace_via_keyboard(text, start, end)
            self._yanked = (min(start, end), self.cursor_location)

    def action_stash(self) -> None:
        """Put the text aside; in an empty prompt, bring it back. With text here and there, they change places."""
        if not self.text and not self._stashed:
            return
        stashed, self._stashed = self._stashed, self.text
        self.set_text(stashed)
        self.post_message(self.Stashed())

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
        self._show_mode()
        self._update_menu()

    def on_text_area_selection_changed(self) -> None:
        if self._menu is not None and self._menu.is_open:
            self._update_menu()

    def _completion_context(self) -> CompletionContext | None:
        row, column = self.cursor_location
        return completion_context(self.document.get_line(row), column, is_first_line=row == 0)

    def files_listed(self) -> None:
        """The files are known now, or known anew: a name that is being typed may match. An open menu stays as it is."""
        if self._menu is not None and not self._menu.is_open:
            self._update_menu()

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
        has = self.keys.has
        if has("autocomplete:accept", key):
            return self.accept_completion
        if has("chat:submit", key):
            return self._accept_or_send
        if has("autocomplete:dismiss", key):
            return self._dismiss_menu
        if has("autocomplete:previous", key):
            return lambda: self._move_in_menu(-1)
        return (lambda: self._move_in_menu(1)) if has("autocomplete:next", key) else None

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
        name = inert_row(chosen.inserted.removeprefix(sign))
        needs_quotes = any(char.isspace() for char in name) or name[-1:] in NEEDS_QUOTES
        quoted = f'"{name}"' if context.kind is CompletionKind.FILE and needs_quotes and '"' not in name else name
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
