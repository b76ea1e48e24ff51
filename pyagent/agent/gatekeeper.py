"""Stands between the tools and what they may do: the rules of the session, and the questions they leave open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pyagent.agent.permissions import Decision, PermissionEngine
from pyagent.agent.tool_runner import PermissionAnswer
from pyagent.events import PermissionQuestion
from pyagent.messages import JsonObject
from pyagent.settings import PermissionMode
from pyagent.tools.tool import AnyTool, ToolContext

Ask = Callable[[str, PermissionQuestion], Awaitable[PermissionAnswer]]


class SessionGatekeeper:
    """The `Gatekeeper` of a real conversation. `ask` is set once the conversation exists."""

    def __init__(self, engine: PermissionEngine) -> None:
        self.engine = engine
        self.ask_person: Ask | None = None

    def decide(
        self, tool: AnyTool, tool_input: JsonObject, question: PermissionQuestion | None, context: ToolContext
    ) -> Decision:
        return self.engine.decide(tool.name, tool_input, question, tool.is_read_only, context.cwd, context.allowed_dirs)

    async def ask(self, tool_use_id: str, question: PermissionQuestion) -> PermissionAnswer:
        assert self.ask_person is not None
        return await self.ask_person(tool_use_id, question)

    def allow_for_session(self, rule: str) -> None:
        self.engine = self.engine.with_session_rule(rule)

    def set_mode(self, mode: PermissionMode) -> None:
        self.engine = self.engine.with_mode(mode)
