"""The real agent on the test's own loop, against a fake server: send commands, wait for what comes of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from pyagent.agent.assembly import Assembly
from pyagent.agent.host import Host
from pyagent.agent.journal import Clock, now
from pyagent.agent.model_access import ModelServer
from pyagent.agent.session_store import SessionDisk, list_sessions, project_dir, read_session
from pyagent.commands import Command, RunCommand, Shutdown, SubmitPrompt
from pyagent.events import Event, Notice, TurnFailed, TurnFinished
from pyagent.launch import LaunchOptions
from pyagent.log import NoticeShown, Record
from pyagent.state import ConversationState

WAIT_LIMIT_S = 60.0
"""How long an awaited event may take before the test counts as stuck."""

EventT = TypeVar("EventT")


def launch_options(folder: Path, server_url: str, **changes: Any) -> LaunchOptions:
    """Options of a headless run that may do anything, with a home and a working directory inside `folder`."""
    cwd = folder / "work"
    cwd.mkdir(parents=True, exist_ok=True)
    environ = {
        "HOME": str(folder / "home"),
        "PATH": os.environ.get("PATH", ""),
        "ANTHROPIC_API_KEY": "a-key",
        "ANTHROPIC_BASE_URL": server_url,
        **changes.pop("environ", {}),
    }
    options = LaunchOptions(
        cwd=cwd,
        home=folder / "home" / ".pyagent",
        environ=environ,
        model="claude-sonnet-5-5",
        permission_mode="bypassPermissions",
        is_headless=True,
    )
    return replace(options, **changes)


class SteadyClock:
    """Time that only passes when it is told to; for the agent as a date, for a server's cache in seconds."""

    def __init__(self, start: datetime = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)) -> None:
        self._start = self.at = start

    def __call__(self) -> datetime:
        return self.at

    def seconds(self) -> float:
        return (self.at - self._start).total_seconds()

    def pass_time(self, **span: float) -> None:
        self.at += timedelta(**span)


class PassedTime:
    """A sleep that takes no time and remembers what it was asked for, in seconds."""

    def __init__(self) -> None:
        self.delays_s: list[float] = []

    async def __call__(self, delay_s: float) -> None:
        self.delays_s.append(delay_s)


class LiveAgent:
    """A running agent. Everything it told is in `events`."""

    def __init__(
        self,
        options: LaunchOptions,
        server: ModelServer | None = None,
        disk: SessionDisk | None = None,
        clock: Clock = now,
    ) -> None:
        self.options = options
        self.events: list[Event] = []
        self.slept = PassedTime()
        self._changed = asyncio.Event()
        self.assembly = Assembly(options, self._take, sleep=self.slept, server=server, disk=disk, clock=clock)
        self.host = Host(self.assembly.open, emit=self._take, can_ask=not options.is_headless)
        self.assembly.attach(self.host)

    def _take(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    async def run(self) -> None:
        try:
            await self.host.run(self.assembly.first_opening)
        finally:
            await self.assembly.close()

    def send(self, command: Command) -> None:
        self.host.send(command)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds after some event."""
        async with asyncio.timeout(WAIT_LIMIT_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def next_of(self, *kinds: type[EventT], since: int) -> EventT:
        """The first event of one of these kinds at or after position `since`."""
        await self.until(lambda: any(isinstance(event, kinds) for event in self.events[since:]))
        return next(event for event in self.events[since:] if isinstance(event, kinds))

    async def prompt(self, text: str) -> TurnFinished | TurnFailed:
        """Send a prompt and wait for the end of its turn."""
        since = len(self.events)
        self.send(SubmitPrompt(text))
        ended: TurnFinished | TurnFailed = await self.next_of(TurnFinished, TurnFailed, since=since)
        return ended

    async def command(self, name: str, argument: str, kind: type[EventT]) -> EventT:
        """Send a slash command and wait for the event that tells of its end."""
        since = len(self.events)
        self.send(RunCommand(name, argument))
        return await self.next_of(kind, since=since)

    def all_of(self, kind: type[EventT]) -> list[EventT]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def notices(self) -> list[str]:
        """What was said to the person in passing, whether it is kept in the log or not."""
        lines: list[str] = []
        for event in self.events:
            match event:
                case Notice(text=text):
                    lines.append(text)
                case _ if isinstance(payload := getattr(getattr(event, "record", None), "payload", None), NoticeShown):
                    lines.append(payload.text)
                case _:
                    pass
        return lines


@asynccontextmanager
async def running_agent(
    options: LaunchOptions,
    server: ModelServer | None = None,
    disk: SessionDisk | None = None,
    *,
    clock: Clock = now,
) -> AsyncIterator[LiveAgent]:
    """An agent from its start to its orderly end."""
    agent = LiveAgent(options, server, disk, clock)
    task = asyncio.create_task(agent.run())
    try:
        yield agent
    finally:
        agent.send(Shutdown())
        await task


def records_on_disk(options: LaunchOptions) -> list[Record]:
    """The records of the folder's newest session, as a resume would read them."""
    newest = list_sessions(project_dir(options.home, options.cwd))[0]
    return list(read_session(newest.path).records)


def state_on_disk(options: LaunchOptions) -> ConversationState:
    """The newest session's state, folded from its file."""
    return ConversationState(records_on_disk(options))


def with_environ(options: LaunchOptions, environ: Mapping[str, str]) -> LaunchOptions:
    """The options with more environment variables."""
    return replace(options, environ={**options.environ, **environ})
