"""A scripted agent: events come when a command calls for them, and every command is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pyagent.commands import Command, Shutdown
from pyagent.events import ConversationClosed, Event, EventSink, SessionOpened
from pyagent.launch import LaunchOptions

Answer = Callable[[Command], Sequence[Event]]


def opened(**changes: object) -> SessionOpened:
    """The first event of an ordinary session."""
    facts: dict[str, object] = {
        "session_id": "5f0c1a52-7d7e-4d7e-9b55-0d2f6f1e7a11",
        "transcript_path": "/home/ada/.pyagent/projects/-work-engine/5f0c1a52.jsonl",
        "cwd": "/repo/engine",
        "model": "claude-test-5",
        "mode": "default",
        "git_branch": "main",
        "is_offline": False,
        "is_resumed": False,
        "tool_names": ("Read", "Bash", "Edit"),
    }
    return SessionOpened(**(facts | changes))  # type: ignore[arg-type]  # the facts are SessionOpened's own fields


class FakeAgent:
    """Both the starter and the handle. `answers` gives the events that follow a command, none by default."""

    def __init__(self, first: Sequence[Event] = (), answers: Answer | None = None) -> None:
        self.first = tuple(first)
        self.answers = answers or (lambda command: ())
        self.commands: list[Command] = []
        self.options: LaunchOptions | None = None
        self.is_closed = False
        self._sink: EventSink | None = None

    def __call__(self, options: LaunchOptions, sink: EventSink) -> FakeAgent:
        self.options, self._sink = options, sink
        self.emit(*self.first)
        return self

    def emit(self, *events: Event) -> None:
        """Events come now."""
        assert self._sink is not None, "the front end has not started the agent yet"
        for event in events:
            self._sink(event)

    def send(self, command: Command) -> None:
        self.commands.append(command)
        self.emit(*self.answers(command))
        if isinstance(command, Shutdown):
            self.emit(ConversationClosed("s"))

    def close(self, timeout_s: float) -> None:
        self.is_closed = True

    def sent(self, kind: type[Command]) -> list[Command]:
        """The recorded commands of one kind."""
        return [command for command in self.commands if isinstance(command, kind)]


def launch_options(home: Path, **changes: object) -> LaunchOptions:
    facts: dict[str, object] = {"cwd": home, "home": home / "pyagent-home", "environ": {}}
    return LaunchOptions(**(facts | changes))  # type: ignore[arg-type]  # the facts are LaunchOptions' own fields
