"""Stands between the tools and what they may do: the rules of the session, and the questions they leave open."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

from pyagent.agent.journal import Clock
from pyagent.agent.permissions import Decision, Deny, PermissionEngine
from pyagent.agent.tool_runner import PermissionAnswer
from pyagent.choices import PermissionMode
from pyagent.events import PermissionQuestion
from pyagent.messages import JsonObject
from pyagent.pages import DenialRow
from pyagent.settings import Settings
from pyagent.tools.tool import AnyTool, ToolContext

MAX_DENIALS = 20
"""Remembered for `/permissions`; older ones stand in the transcript."""

Ask = Callable[[str, PermissionQuestion], Awaitable[PermissionAnswer]]


class SessionGatekeeper:
    """The `Gatekeeper` of a real conversation. `ask` is set once the conversation exists."""

    def __init__(self, engine: PermissionEngine, *, clock: Clock) -> None:
        self.engine = engine
        self._clock = clock
        self._denials: deque[DenialRow] = deque(maxlen=MAX_DENIALS)
        self.ask_person: Ask | None = None

    def decide(
        self, tool: AnyTool, tool_input: JsonObject, question: PermissionQuestion | None, context: ToolContext
    ) -> Decision:
        decision = self.engine.decide(
            tool.name, tool_input, question, tool.is_read_only, context.cwd, context.allowed_dirs
        )
        if isinstance(decision, Deny):
            subject = question.subject if question is not None else ""
            self._denials.appendleft(DenialRow(self._clock(), tool.name, subject, decision.reason))
        return decision

    async def ask(self, tool_use_id: str, question: PermissionQuestion) -> PermissionAnswer:
        assert self.ask_person is not None
        answer = await self.ask_person(tool_use_id, question)
        if not answer.is_allowed:
            reason = f"you said no: {answer.feedback}" if answer.feedback else "you said no"
            self._denials.appendleft(DenialRow(self._clock(), question.tool_name, question.subject, reason))
        return answer

    @property
    def denials(self) -> tuple[DenialRow, ...]:
        """Calls that were not allowed, newest first."""
        return tuple(self._denials)

    def allow_for_session(self, rule: str) -> None:
        self.engine = self.engine.with_session_rule(rule)

    def withdraw_for_session(self, rule: str) -> None:
        """Take a session's grant back."""
        self.engine = self.engine.without_allow(rule).with_settings(self.engine.settings)

    def use(self, settings: Settings) -> None:
        """Follow other rules from the next call on."""
        self.engine = self.engine.with_settings(settings)

    def set_mode(self, mode: PermissionMode) -> None:
        self.engine = self.engine.with_mode(mode)
