"""A session opened for reading: another process writes it, or somebody only wants to look. Nothing of it is changed."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from pyagent.agent.conversation import CommandHandler, Conversation, ConversationParts
from pyagent.agent.host import Host, ResumedSession
from pyagent.agent.turn import TurnParts
from pyagent.errors import READING, READING_HINT, ReadOnlyError
from pyagent.events import EventSink, Notice, Question, QuestionOption
from pyagent.tools.tool import Asker, nobody

READ_ONLY, COPY, CANCEL = "Read it", "Go on in a copy", "Cancel"

READING_COMMANDS = frozenset(
    {"branch", "clear", "compactions", "context", "cost", "export", "older", "resume", "status", "view"}
)
"""What changes nothing of the session, or leaves it."""


class Reading:
    """Makes a conversation one that is only read. If another process writes the session, the person is asked first
    whether that is what they want."""

    def __init__(self, session_id: str, *, is_locked: bool, host: Host, emit: EventSink) -> None:
        self._session_id = session_id
        self._is_locked = is_locked
        self._host = host
        self._emit = emit
        self._ask: Asker = nobody

    def parts(self, parts: ConversationParts) -> ConversationParts:
        """The same conversation, which refuses what would be written."""

        def turn(conversation: Conversation) -> TurnParts:
            made = parts.turn(conversation)
            self._ask = conversation.ask_questions
            return made

        async def opened() -> None:
            await self._say_or_ask()
            await parts.opened()

        handlers = {
            name: handler if name in READING_COMMANDS else _refusing for name, handler in parts.commands.items()
        }
        commands: dict[str, CommandHandler] = {**handlers}
        return replace(parts, turn=turn, opened=opened, commands=commands, refusal=ReadOnlyError())

    async def _say_or_ask(self) -> None:
        if self._is_locked:
            given = await self._ask("", (_question(),))
            match given.answers:
                case ((choice,),) if choice == COPY:
                    self._host.switch_to(ResumedSession(self._session_id, is_forked=True))
                    return
                case ((choice,),) if choice == CANCEL:
                    self._host.go_back()
                    return
                case _:
                    pass
        self._emit(Notice(READING, "info", READING_HINT))


def _refusing(argument: str) -> Coroutine[Any, Any, None] | None:
    raise ReadOnlyError()


def _question() -> Question:
    return Question(
        "Open elsewhere",
        "This session is open in another pyagent, which alone may write it.",
        (
            QuestionOption(READ_ONLY, "as it stands now; nothing is changed"),
            QuestionOption(COPY, "under a new id; the other one goes on as it is"),
            QuestionOption(CANCEL, "go back to where you came from"),
        ),
    )
