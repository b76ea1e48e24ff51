"""Keys and completion of plain mode's input line. Imported with prompt-toolkit, when a person sits at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import emacs_insert_mode, has_selection, vi_insert_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.bindings.named_commands import get_by_name
from prompt_toolkit.key_binding.vi_state import InputMode

from pyagent.ui import commands
from pyagent.ui.files import FileIndex
from pyagent.ui.graphemes import next_boundary, previous_boundary
from pyagent.ui.plain_input import NextModeKey, word_before_cursor

MAX_FILE_MATCHES = 50
"""Offered for one `@`; more is answered by one more letter."""

_DELETING = (
    (("c-w",), "unix-word-rubout"),
    (("escape", "backspace"), "backward-kill-word"),
    (("escape", "d"), "kill-word"),
    (("c-u",), "unix-line-discard"),
    (("c-k",), "kill-line"),
)
"""Keys that take away more than a character, and what they do."""


class Names(Completer):
    """Commands at the start of the line, files behind an `@`."""

    def __init__(self, cwd: Path) -> None:
        self._files = FileIndex(cwd)
        self._files.refresh()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        sign, query = word_before_cursor(document.text_before_cursor)
        if sign == "/":
            for command in commands.COMMANDS:
                if command.name.startswith(query):
                    yield Completion(command.name, -len(query), display_meta=command.help)
        elif sign == "@":
            found = [path for path in self._files.paths() if query.lower() in path.lower()]
            for path in found[:MAX_FILE_MATCHES]:
                yield Completion(path, -len(query))


def prompt_keys(*, tells_deleted: bool) -> KeyBindings:
    """The keys beside those of the library; `tells_deleted` says what was deleted, for who cannot see it go."""
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
            if tells_deleted:
                _say("line emptied")
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    @keys.add("s-tab")
    def _(event: KeyPressEvent) -> None:
        event.app.exit(exception=NextModeKey(event.current_buffer.text))

    _take_signs_whole(keys)
    if tells_deleted:
        for pressed, name in _DELETING:
            keys.add(*pressed)(_telling(get_by_name(name).handler))
    return keys


def _take_signs_whole(keys: KeyBindings) -> None:
    """Move and delete by what is seen as one character; the library's own keys go by code points."""
    types = emacs_insert_mode | vi_insert_mode

    def before(buffer: Buffer) -> int:
        return buffer.cursor_position - previous_boundary(buffer.text, buffer.cursor_position)

    def behind(buffer: Buffer) -> int:
        return next_boundary(buffer.text, buffer.cursor_position) - buffer.cursor_position

    @keys.add("left", filter=types)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.cursor_left(before(event.current_buffer))

    @keys.add("right", filter=types)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.cursor_right(behind(event.current_buffer))

    @keys.add("backspace", filter=types & ~has_selection)
    def _(event: KeyPressEvent) -> None:
        if before(event.current_buffer):
            event.current_buffer.delete_before_cursor(before(event.current_buffer))
        else:
            event.app.output.bell()

    @keys.add("delete", filter=types & ~has_selection)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.delete(behind(event.current_buffer))


def add_insert_remaps(keys: KeyBindings, remaps: Mapping[str, str]) -> None:
    """Leave vim's insert mode by these sequences of characters."""
    for sequence in remaps:

        @keys.add(*sequence, filter=vi_insert_mode)
        def _(event: KeyPressEvent) -> None:
            event.app.vi_state.input_mode = InputMode.NAVIGATION


def _telling(handler: Callable[[KeyPressEvent], object]) -> Callable[[KeyPressEvent], None]:
    def handle(event: KeyPressEvent) -> None:
        before = event.current_buffer.text
        handler(event)
        gone = removed(before, event.current_buffer.text, event.current_buffer.cursor_position)
        if gone:
            _say(f"deleted: {gone}")

    return handle


def removed(before: str, after: str, at: int) -> str:
    """What one deletion took out of a text; `at` is where the cursor stands behind it."""
    return before[at : at + len(before) - len(after)].strip()


def _say(words: str) -> None:
    run_in_terminal(lambda: print(words))
