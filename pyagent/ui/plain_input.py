"""Where plain mode's lines come from: a prompt with history and completion on a terminal, else the bare stream."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from pyagent.ui import commands
from pyagent.ui.files import FileIndex
from pyagent.ui.history import PromptHistory

if TYPE_CHECKING:
    from prompt_toolkit.document import Document

MAX_FILE_MATCHES = 50
"""Offered for one `@`; more is answered by one more letter."""


_WORD = re.compile(r"^(/)([\w:.-]*)$|(?:^|\s)(@)(\S*)$")


def word_before_cursor(text: str) -> tuple[str, str]:
    """The sign (`/` or `@`) that asks for completion and what follows it; empty if nothing asks."""
    found = _WORD.search(text)
    if found is None:
        return "", ""
    return (found[1], found[2]) if found[1] else (found[3], found[4])


class LineReader(Protocol):
    """A source of input lines."""

    is_interactive: bool
    """Whether a person can answer a question."""

    def read(self, prompt: str, draft: str = "") -> str | None:
        """The next line, None at the end of input. Raises KeyboardInterrupt on Ctrl+C."""
        ...


class StreamReader:
    """Lines of a pipe or file. A line that ends in a backslash goes on in the next."""

    is_interactive = False

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def read(self, prompt: str, draft: str = "") -> str | None:
        if self._stream is None:
            return None
        lines: list[str] = []
        while True:
            raw = self._stream.buffer.readline()
            if not raw:
                return "\n".join(lines) if lines else None
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            lines.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                return "\n".join(lines)


class TerminalReader:
    """Lines of a person: Enter sends, Alt+Enter breaks the line, Ctrl+X Ctrl+E opens the editor.

    Ctrl+J sends too, as an Enter typed before the prompt stands arrives as one.
    """

    is_interactive = True

    def __init__(self, history: PromptHistory, cwd: Path) -> None:
        # Imported here: only plain mode on a terminal needs it, and it takes a third of a second.
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import Completer, Completion
        from prompt_toolkit.history import InMemoryHistory
        from prompt_toolkit.key_binding import KeyBindings

        files = FileIndex(cwd)
        files.refresh()

        class Names(Completer):
            """Commands at the start of the line, files behind an `@`."""

            def get_completions(self, document: Document, complete_event: Any) -> Iterable[Completion]:
                sign, query = word_before_cursor(document.text_before_cursor)
                if sign == "/":
                    for command in commands.COMMANDS:
                        if command.name.startswith(query):
                            yield Completion(command.name, -len(query), display_meta=command.help)
                elif sign == "@":
                    found = [path for path in files.paths() if query.lower() in path.lower()]
                    for path in found[:MAX_FILE_MATCHES]:
                        yield Completion(path, -len(query))

        keys = KeyBindings()

        @keys.add("escape", "enter")
        def _(event: Any) -> None:
            event.current_buffer.insert_text("\n")

        self._history = history
        self._session: PromptSession[str] = PromptSession(
            history=InMemoryHistory(list(history.entries)),
            completer=Names(),
            complete_while_typing=False,
            enable_open_in_editor=True,
            key_bindings=keys,
        )

    def read(self, prompt: str, draft: str = "") -> str | None:
        try:
            text = self._session.prompt(prompt, default=draft)
        except EOFError:
            return None
        if prompt.endswith("> "):
            self._history.add(text)
        return text
