"""Runs one conversation after another: the first as asked for at the start, then what `/clear` and `/resume` want."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pyagent.agent.conversation import Conversation
from pyagent.commands import Command, Shutdown
from pyagent.errors import PyagentError, SessionLockedError
from pyagent.events import ConversationClosed, EventSink, Notice, TurnFailed


@dataclass(frozen=True, slots=True)
class NewSession:
    """An empty conversation."""


@dataclass(frozen=True, slots=True)
class ResumedSession:
    """Go on with a session of this folder: the newest, or the one that `wanted` names."""

    wanted: str = ""
    is_forked: bool = False
    title: str = ""
    """Title of the copy."""
    is_read_only: bool = False
    """Only look at it: no lock is taken and nothing written."""
    is_locked: bool = False
    """Another process writes it, so it can only be read; the person is asked whether they want that."""


Opening: TypeAlias = NewSession | ResumedSession
OpenConversation: TypeAlias = Callable[[Opening], Awaitable[Conversation]]


class Host:
    """Holds the current conversation and passes commands on to it. For one event loop."""

    def __init__(self, open_conversation: OpenConversation, *, emit: EventSink, can_ask: bool = False) -> None:
        """`can_ask`: somebody can be asked what to do about a session that is open elsewhere."""
        self._can_ask = can_ask
        self._came_from: Opening | None = None
        """Where a session that turned out locked was asked for; None at the start of the program."""
        self._open = open_conversation
        self._emit = emit
        self._current: Conversation | None = None
        self._early: list[Command] = []
        self._next: Opening | None = None
        self._session_id = ""
        self._last: Opening = NewSession()
        """What opened the current conversation."""

    def send(self, command: Command) -> None:
        """Pass a command on; before the conversation is open it waits."""
        if self._current is None:
            self._early.append(command)
        else:
            self._current.send(command)

    def switch_to(self, opening: Opening) -> None:
        """Close the current conversation and open another."""
        self._next = opening
        if self._current is not None:
            self._current.send(Shutdown("switch"))

    def go_back(self) -> None:
        """Return to where a locked session was asked for; at the start of the program there is nowhere: it ends."""
        if self._came_from is not None:
            self.switch_to(self._came_from)
        else:
            self.send(Shutdown())

    def _way_back(self) -> Opening:
        """To the conversation that was open last."""
        match self._last:
            case ResumedSession(is_read_only=True):
                return self._last
            case _:
                return ResumedSession(self._session_id)

    async def run(self, opening: Opening) -> Literal["closed", "failed"]:
        """Serve conversations until one is shut down with no other to follow. Errors of the first opening are final;
        later ones lead back to the session the person came from, or to a new one if nothing was said in it."""
        is_first = True
        problem: PyagentError | None = None
        while True:
            try:
                conversation = await self._open(opening)
            except PyagentError as error:
                if isinstance(error, SessionLockedError) and self._can_ask and isinstance(opening, ResumedSession):
                    self._came_from = None if is_first else self._way_back()
                    opening = replace(opening, is_read_only=True, is_locked=True)
                    continue
                if opening == self._came_from:
                    # Nothing was said there, so it has no file.
                    opening = NewSession()
                    continue
                if is_first:
                    self._emit(TurnFailed(error.kind, error.message, error.hint))
                    self._emit(ConversationClosed(""))
                    return "failed"
                problem = problem or error
                back = self._way_back()
                opening = NewSession() if opening == back else back
                continue
            is_first = False
            self._last = opening
            if not (isinstance(opening, ResumedSession) and opening.is_locked):
                self._came_from = None
            self._session_id = conversation.session_id
            self._current = conversation
            if problem is not None:
                self._emit(Notice(problem.message, "error", problem.hint))
                problem = None
            for command in self._early:
                conversation.send(command)
            self._early.clear()
            await conversation.run()
            self._current = None
            if self._next is None:
                self._emit(ConversationClosed(self._session_id))
                return "closed"
            opening, self._next = self._next, None
