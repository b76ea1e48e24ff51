"""Runs one conversation after another: the first as asked for at the start, then what `/clear` and `/resume` want."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyagent.agent.conversation import Conversation
from pyagent.errors import PyagentError
from pyagent.events import Command, ConversationClosed, EventSink, Notice, Shutdown, TurnFailed


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


Opening: TypeAlias = NewSession | ResumedSession
OpenConversation: TypeAlias = Callable[[Opening], Awaitable[Conversation]]


class Host:
    """Holds the current conversation and passes commands on to it. For one event loop."""

    def __init__(self, open_conversation: OpenConversation, *, emit: EventSink) -> None:
        self._open = open_conversation
        self._emit = emit
        self._current: Conversation | None = None
        self._early: list[Command] = []
        self._next: Opening | None = None
        self._session_id = ""

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

    async def run(self, opening: Opening) -> Literal["closed", "failed"]:
        """Serve conversations until one is shut down with no other to follow. Errors of the first opening are final;
        later ones lead back to the session the person came from, or to a new one if nothing was said in it."""
        is_first = True
        problem: PyagentError | None = None
        while True:
            try:
                conversation = await self._open(opening)
            except PyagentError as error:
                if is_first:
                    self._emit(TurnFailed(error.kind, error.message, error.hint))
                    self._emit(ConversationClosed(""))
                    return "failed"
                problem = problem or error
                back = ResumedSession(self._session_id)
                opening = NewSession() if opening == back else back
                continue
            is_first = False
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
