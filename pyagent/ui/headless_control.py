"""The control requests of a headless run: what the program at the other end asks of pyagent, and what it is asked."""

from __future__ import annotations

from collections import deque
from typing import Any

from pyagent.choices import PERMISSION_MODES, permission_mode_named
from pyagent.commands import NOBODY_ANSWERS, NOBODY_DECIDES, AnswerPermission, AnswerQuestion, Interrupt, RunCommand
from pyagent.events import Event, GaugeMoved, PermissionNeeded, PermissionQuestion, QuestionAsked, Report
from pyagent.launch import AgentHandle
from pyagent.messages import JsonObject
from pyagent.ui.commands import by_name
from pyagent.ui.headless_commands import HEADLESS_COMMANDS
from pyagent.ui.stream_json import StreamWriter


class ControlChannel:
    """Answers control requests, and puts the agent's questions to the other end as `can_use_tool`."""

    def __init__(self, handle: AgentHandle, writer: StreamWriter) -> None:
        self._handle = handle
        self._writer = writer
        self._permissions: dict[str, PermissionNeeded] = {}
        self._questions: dict[str, QuestionAsked] = {}
        self._usage_requests: deque[Any] = deque()
        """Ids of requests for the context's usage, oldest first."""
        self._effective_window_tokens = self._trigger_tokens = 0
        self._is_auto_compact_on = False

    @property
    def is_busy(self) -> bool:
        """Whether an answer is still owed."""
        return bool(self._usage_requests)

    def take(self, event: Event) -> None:
        """See what may answer a request."""
        match event:
            case GaugeMoved(gauge=gauge):
                self._effective_window_tokens = gauge.effective_window_tokens
                self._trigger_tokens = gauge.trigger_tokens
                self._is_auto_compact_on = gauge.is_auto_compact_on
            case Report(title="Context", data=data) if self._usage_requests:
                self._writer.control_response(self._usage_requests.popleft(), response=self._usage(data))
            case _:
                pass

    # ── asked by the other end ───────────────────────────────────────────────────────────────────────────────────

    def request(self, line: JsonObject) -> None:
        """Carry out a control request and answer it."""
        request_id, request = line.get("request_id"), _object(line.get("request"))
        response: JsonObject | None = None
        match request.get("subtype"):
            case "initialize":
                response = _abilities()
            case "interrupt":
                self._handle.send(Interrupt())
            case "set_permission_mode":
                mode = permission_mode_named(str(request.get("mode")))
                if mode is None:
                    self._refuse(
                        request_id, f"unknown mode {request.get('mode')!r}; use one of {', '.join(PERMISSION_MODES)}"
                    )
                    return
                self._handle.send(RunCommand("mode", mode))
            case "set_model" if isinstance(request.get("model"), str):
                self._handle.send(RunCommand("model", request["model"]))
            case "get_context_usage":
                self._usage_requests.append(request_id)
                self._handle.send(RunCommand("context"))
                return
            case "mcp_status":
                response = {"mcpServers": []}
            case subtype:
                self._refuse(request_id, f"unknown request {subtype!r}")
                return
        self._writer.control_response(request_id, response=response)

    def _refuse(self, request_id: Any, error: str) -> None:
        self._writer.control_response(request_id, error=error)

    def _usage(self, data: JsonObject) -> JsonObject:
        """The report's figures under both the short names and those of `get_context_usage`."""
        return {
            **data,
            "totalTokens": data["total_tokens"],
            "maxTokens": self._effective_window_tokens,
            "rawMaxTokens": data["raw_max_tokens"],
            "isAutoCompactEnabled": self._is_auto_compact_on,
            "autoCompactThreshold": self._trigger_tokens,
            "memoryFiles": data["memory_files"],
            "mcpTools": data["mcp_tools"],
        }

    # ── asked of the other end ───────────────────────────────────────────────────────────────────────────────────

    def ask_permission(self, needed: PermissionNeeded) -> None:
        """Ask whether a call may run."""
        self._permissions[needed.request_id] = needed
        use, question = self._writer.use_of(needed.tool_use_id), needed.question
        self._writer.control_request(
            needed.request_id,
            subtype="can_use_tool",
            tool_name=question.tool_name,
            input=use.input if use else {},
            tool_use_id=needed.tool_use_id,
            title=question.subject,
            description=question.description,
            decision_reason=question.reason,
            permission_suggestions=_suggestions(question),
        )

    def ask_questions(self, asked: QuestionAsked) -> None:
        """Put the model's own questions; answers come as `updatedInput.answers`, by the question's text."""
        self._questions[asked.request_id] = asked
        use = self._writer.use_of(asked.tool_use_id)
        self._writer.control_request(
            asked.request_id,
            subtype="can_use_tool",
            tool_name="AskUserQuestion",
            input=use.input if use else {},
            tool_use_id=asked.tool_use_id,
        )

    def response(self, line: JsonObject) -> None:
        """Take in the answer to what was asked."""
        envelope = _object(line.get("response"))
        request_id = str(envelope.get("request_id"))
        answer = _object(envelope.get("response")) if envelope.get("subtype") == "success" else {}
        message = str(answer.get("message") or envelope.get("error") or "")
        is_allowed = answer.get("behavior") == "allow"
        if needed := self._permissions.pop(request_id, None):
            self._settle(needed, answer, message, is_allowed=is_allowed)
        elif asked := self._questions.pop(request_id, None):
            answers = _answers(asked, _object(_object(answer.get("updatedInput")).get("answers"))) if is_allowed else ()
            reason = "" if answers else message or NOBODY_ANSWERS
            self._handle.send(AnswerQuestion(request_id, answers, reason))
        if answer.get("interrupt") is True:
            self._handle.send(Interrupt())

    def _settle(self, needed: PermissionNeeded, answer: JsonObject, message: str, *, is_allowed: bool) -> None:
        use = self._writer.use_of(needed.tool_use_id)
        changed = answer.get("updatedInput")
        if is_allowed and isinstance(changed, dict) and changed and use is not None and changed != use.input:
            # What the model asked for is what stands in the log, so another input must come from the model itself.
            is_allowed, message = False, f"Make the call with this input instead: {changed}"
        if is_allowed:
            is_for_session = bool(answer.get("updatedPermissions")) and bool(needed.question.session_rule)
            self._handle.send(AnswerPermission(needed.request_id, "session" if is_for_session else "once"))
        else:
            self._writer.denied(needed.tool_use_id)
            self._handle.send(AnswerPermission(needed.request_id, "no", message))

    def settled(self, request_id: str) -> None:
        """A question is over; if it was not answered, the other end need not think about it any longer."""
        was_open = self._permissions.pop(request_id, None) or self._questions.pop(request_id, None)
        if was_open is not None:
            self._writer.cancel_request(request_id)

    def input_ended(self) -> None:
        """No answer can come any more."""
        for request_id, needed in list(self._permissions.items()):
            self._writer.denied(needed.tool_use_id)
            self._handle.send(AnswerPermission(request_id, "no", NOBODY_DECIDES))
        for request_id in list(self._questions):
            self._handle.send(AnswerQuestion(request_id, reason=NOBODY_ANSWERS))
        self._permissions.clear()
        self._questions.clear()


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _abilities() -> JsonObject:
    """The answer to `initialize`."""
    commands = [command for name in HEADLESS_COMMANDS if (command := by_name(name)) is not None]
    return {
        "commands": [{"name": c.name, "description": c.help, "argumentHint": c.argument} for c in commands],
        "output_style": "default",
        "available_output_styles": ["default"],
        "models": [],
        "account": {},
    }


def _suggestions(question: PermissionQuestion) -> list[JsonObject]:
    """What a yes for the session would add; sent back as `updatedPermissions`, it is added."""
    if not question.session_rule:
        return []
    tool, _, rest = question.session_rule.partition("(")
    rule = {"toolName": tool} | ({"ruleContent": rest.removesuffix(")")} if rest else {})
    return [{"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session"}]


def _answers(asked: QuestionAsked, given: JsonObject) -> tuple[tuple[str, ...], ...]:
    """For each question what was chosen; empty if there is nothing for any."""
    chosen: list[tuple[str, ...]] = []
    for question in asked.questions:
        value = given.get(question.text, given.get(question.header))
        values = value if isinstance(value, list) else [value] if value else []
        chosen.append(tuple(str(item) for item in values))
    return tuple(chosen) if any(chosen) else ()
