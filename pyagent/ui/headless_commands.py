"""Slash commands of a headless run: the same words as on the screens, answered by a result instead of a dialog."""

from __future__ import annotations

from pyagent.errors import UsageError
from pyagent.events import CommandFinished, CompactionEnded, CompactionFinished, Event, Notice, Report, SessionOpened
from pyagent.messages import JsonObject
from pyagent.ui.commands import COMMANDS, Invoked, Prompt, Remember, Shell, Unknown, read_typed
from pyagent.ui.pages.layout import page_text

_NEEDS_A_PERSON = ("resume", "rewind", "branch")
"""Their answers are choices, or another session than the one that was asked for."""

HEADLESS_COMMANDS = tuple(c.name for c in COMMANDS if c.handler == "agent" and c.name not in _NEEDS_A_PERSON)


def command_in(text: str) -> tuple[str, str] | None:
    """Name and argument if the text is a slash command, None if it is a prompt.

    Raises:
        UsageError: there is no such command, or it works only where a person sits.
    """
    match read_typed(text):
        case Prompt() | Shell() | Remember():
            return None
        case Unknown() as unknown:
            raise UsageError(unknown.message)
        case Invoked(command=command) if command.name not in HEADLESS_COMMANDS:
            raise UsageError(f"/{command.name} works only in an interactive session.")
        case Invoked(command=command, argument=argument):
            return command.name, argument


class CommandAnswer:
    """What a command that is under way has said so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_error = False
        self.is_over = False
        self.data: JsonObject = {}
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def take(self, event: Event) -> None:
        """Take in what may belong to the answer."""
        match event:
            case Report(title=title, text=text, data=data):
                self._lines += [title, text or (page_text(event.page) if event.page is not None else "")]
                self.data = data
            case Notice(text=text, level=level, hint=hint):
                self._lines.append(f"{text} {hint}".rstrip())
                self.is_error = self.is_error or level == "error"
            case CompactionFinished(before_tokens=before, after_tokens=after, layer=layer):
                self._lines.append(f"Compacted ({layer}): {before:,} → {after:,} tokens.")
            case CompactionEnded(reason=reason, outcome=outcome):
                self._lines.append(f"Not compacted: {reason}")
                self.is_error = self.is_error or outcome == "failed"
            case SessionOpened(session_id=session_id):
                self._lines.append(f"New session {session_id}.")
                self.is_over = True
            case CommandFinished(name=name) if name == self.name:
                # `/clear` is over when the next session is open: what is sent before would go to the old one.
                self.is_over = self.is_over or name != "clear" or self.is_error
            case _:
                pass
