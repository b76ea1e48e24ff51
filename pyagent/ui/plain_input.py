"""Where plain mode's lines come from: a prompt with history and completion on a terminal, else the bare stream."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, TextIO

from pyagent.ui.history import PromptHistory

PIECE_BYTES = 65_536
"""Read at once of what was typed ahead; more than a terminal ever holds back."""

_WORD = re.compile(r"^(/)([\w:.-]*)$|(?:^|\s)(@)(\S*)$")


def word_before_cursor(text: str) -> tuple[str, str]:
    """The sign (`/` or `@`) that asks for completion and what follows it; empty if nothing asks."""
    found = _WORD.search(text)
    if found is None:
        return "", ""
    return (found[1], found[2]) if found[1] else (found[3], found[4])


class NextModeKey(Exception):
    """Shift+Tab: the next permission mode is wanted; `draft` is what stood on the line."""

    def __init__(self, draft: str) -> None:
        super().__init__(draft)
        self.draft = draft


class LineReader(Protocol):
    """A source of input lines."""

    is_interactive: bool
    """Whether a person can answer a question."""

    def read(self, prompt: str, draft: str = "") -> str | None:
        """The next prompt or command, None at the end of input. Raises KeyboardInterrupt on Ctrl+C, NextModeKey."""
        ...

    def answer(self, prompt: str) -> str | None:
        """The next line as an answer to a question: in no history, and completed by nothing."""
        ...

    def typed_ahead(self) -> list[str]:
        """Whole lines a person typed while nobody asked for any. Never waits."""
        ...

    def switch_vim(self, is_vim: bool | None, insert_remaps: Mapping[str, str] | None = None) -> bool:
        """Edit as vim does, or no longer; None for the other of the two. What it is now."""
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

    def answer(self, prompt: str) -> str | None:
        return self.read(prompt)

    def typed_ahead(self) -> list[str]:
        return []

    def switch_vim(self, is_vim: bool | None, insert_remaps: Mapping[str, str] | None = None) -> bool:
        return False


class TerminalReader:
    """Lines of a person: Enter sends, Alt+Enter breaks the line, Ctrl+X Ctrl+E opens the editor.

    Ctrl+J sends too, as an Enter typed before the prompt stands arrives as one.
    """

    is_interactive = True

    def __init__(self, history: PromptHistory, cwd: Path, *, tells_deleted: bool = False) -> None:
        """`tells_deleted`: say what a key that deletes more than a character took away."""
        # Imported here: only plain mode on a terminal needs it, and it takes a third of a second.
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import InMemoryHistory

        from pyagent.ui.plain_keys import Names, prompt_keys

        self._history = history
        self._keys = prompt_keys(tells_deleted=tells_deleted)
        self._session: PromptSession[str] = PromptSession(
            history=InMemoryHistory(list(history.entries)),
            completer=Names(cwd),
            complete_while_typing=False,
            enable_open_in_editor=True,
            key_bindings=self._keys,
        )
        self._question: PromptSession[str] = PromptSession()

    def read(self, prompt: str, draft: str = "") -> str | None:
        try:
            text = self._session.prompt(prompt, default=draft)
        except EOFError:
            return None
        self._history.add(text)
        return text

    def answer(self, prompt: str) -> str | None:
        try:
            return self._question.prompt(prompt)
        except EOFError:
            return None

    def typed_ahead(self) -> list[str]:
        # Between two prompts the terminal hands lines over only when they are whole.
        fd, data = sys.stdin.fileno(), b""
        while select.select([fd], [], [], 0)[0]:
            piece = os.read(fd, PIECE_BYTES)
            if not piece:
                break
            data += piece
        return data.decode("utf-8", "replace").splitlines()

    def switch_vim(self, is_vim: bool | None, insert_remaps: Mapping[str, str] | None = None) -> bool:
        from prompt_toolkit.enums import EditingMode

        from pyagent.ui.plain_keys import add_insert_remaps

        if insert_remaps:
            add_insert_remaps(self._keys, insert_remaps)
        was_vim = self._session.editing_mode is EditingMode.VI
        wants_vim = not was_vim if is_vim is None else is_vim
        self._session.editing_mode = EditingMode.VI if wants_vim else EditingMode.EMACS
        return wants_vim
