"""Brings vim's state machine to a text area: keys in, edits and selections out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from textual import events
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from pyagent.ui.graphemes import OneCodeEach
from pyagent.ui.vim import Effect, Mode, Step, Vim, begin_insert, press, selected
from pyagent.ui.vim_motions import resting_place


class VimHost:
    """Vim's state for one text area.

    The machine counts code points, so it is given one for each character a person sees.
    """

    def __init__(self, area: TextArea, remaps: Mapping[str, str]) -> None:
        """`remaps`: sequences that end an insertion, such as `jj` → `<Esc>`."""
        self._area = area
        self._vim = Vim(remaps=remaps)
        self._signs = OneCodeEach()
        self._cursor = 0
        """Vim's own cursor while something is selected: the area's stands at the selection's end."""

    @property
    def mode_word(self) -> str:
        """The mode, for the person."""
        return self._vim.mode.value

    @property
    def is_typing(self) -> bool:
        """Whether plain characters are text."""
        return self._vim.mode is Mode.INSERT

    def begin_prompt(self) -> None:
        """A new, empty prompt: it begins with typing."""
        self._vim = begin_insert(self._vim, "", 0).vim

    def handler(self, event: events.Key) -> Callable[[], Effect] | None:
        """What the key does here; None if it is none of vim's. The handler gives back what is left to the host."""
        area = self._area
        text = self._text
        is_visual = selected(self._vim, text, self._cursor) is not None
        cursor = min(self._cursor, len(text)) if is_visual else self._index(area.cursor_location)
        if not is_visual and self._vim.mode is Mode.NORMAL:
            cursor = resting_place(text, cursor)
        key = event.character if event.character is not None and event.character.isprintable() else event.key
        step = press(self._vim, text, cursor, key, at_s=event.time)
        if step.effect == "pass":
            self._vim = step.vim
            return None
        return lambda: self._apply(step, text)

    def _apply(self, step: Step, text: str) -> Effect:
        area = self._area
        self._vim = step.vim
        if step.text != text:
            self._replace(self._signs.decode(text), self._signs.decode(step.text))
        if step.effect in ("undo", "redo"):
            (area.undo if step.effect == "undo" else area.redo)()
            cursor = resting_place(self._text, self._index(area.cursor_location))
        else:
            cursor = step.cursor
        self._cursor = cursor
        shown = self._text
        extent = selected(self._vim, shown, cursor)
        if extent is None:
            area.move_cursor(self._place(shown, cursor))
        else:
            area.selection = Selection(self._place(shown, extent.start), self._place(shown, extent.end))
        return step.effect

    @property
    def _text(self) -> str:
        """The area's text as the machine sees it."""
        return self._signs.encode(self._area.text)

    def _place(self, text: str, index: int) -> tuple[int, int]:
        """Where a place in the machine's text is in the area."""
        return self._location(len(self._signs.decode(text[:index])))

    def _replace(self, old: str, new: str) -> None:
        """Replace only what differs, as one step of undoing."""
        start = 0
        shortest = min(len(old), len(new))
        while start < shortest and old[start] == new[start]:
            start += 1
        kept = 0
        while kept < shortest - start and old[len(old) - 1 - kept] == new[len(new) - 1 - kept]:
            kept += 1
        area = self._area
        area.history.checkpoint()
        area.replace(new[start : len(new) - kept], self._location(start), self._location(len(old) - kept))
        area.history.checkpoint()

    def leave_selection(self) -> None:
        """A click or a history entry has moved the cursor: nothing is selected by vim any more."""
        if self._vim.mode in (Mode.VISUAL, Mode.VISUAL_LINE):
            self._vim = replace(self._vim, mode=Mode.NORMAL, pending=())

    def _index(self, location: tuple[int, int]) -> int:
        """Where a place in the area is in the machine's text."""
        row, column = location
        lines = self._area.document.lines
        return len(self._signs.encode("\n".join([*lines[:row], lines[row][:column]])))

    def _location(self, index: int) -> tuple[int, int]:
        text = self._area.text
        row = text.count("\n", 0, index)
        return row, index - (text.rfind("\n", 0, index) + 1)
