"""The JSON lines of a headless run, in the shapes other agents' consumers already read, and the final result.

Fields are added to those shapes, never renamed. Every line has a `uuid` and the `session_id`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from pyagent import __version__
from pyagent.events import (
    CompactionEnded,
    CompactionFinished,
    CompactionStarted,
    Event,
    GaugeMoved,
    Notice,
    RecordCommitted,
    RequestStarted,
    RetryScheduled,
    SessionOpened,
    SettingMoved,
    StreamDiscarded,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    WireEvent,
)
from pyagent.log import AssistantEntry, Boundary, CallCost, ClearResults, NoticeShown, Record, ToolRan, UserEntry
from pyagent.messages import JsonObject, ToolResultBlock, ToolUseBlock, Usage, block_to_wire
from pyagent.ui.headless_commands import HEADLESS_COMMANDS
from pyagent.ui.run_totals import RunTotals, usage_fields

PROGRESS_EVERY_S = 1.0
"""Of one tool: a build that prints a thousand lines a second is one line a second here."""

STRUCTURED_OUTPUT = "structured_output"
"""Key under which a tool's result holds the answer in the form that was asked for."""

_TERMINAL_REASON_OF_STOP = {
    "max_turns": "max_turns",
    "budget": "max_budget_usd",
    "interrupted": "aborted_streaming",
    "max_structured_output_retries": "max_structured_output_retries",
    "loop": "loop",
}
_TERMINAL_REASON_OF_ERROR = {
    "PromptTooLongError": "prompt_too_long",
    "ContextFullError": "blocking_limit",
    "CredentialsError": "api_error",
    "ModelUnavailableError": "api_error",
    "RequestRefusedError": "api_error",
    "BrokenStreamError": "api_error",
}
_SUBTYPE_OF_STOP = {
    "max_turns": "error_max_turns",
    "budget": "error_max_budget_usd",
    "interrupted": "error_during_execution",
    "loop": "error_during_execution",
    "max_structured_output_retries": "error_max_structured_output_retries",
}
_WORDS_OF_STOP = {
    "max_turns": "The limit of --max-turns is reached.",
    "budget": "The budget of --max-budget-usd is spent.",
    "interrupted": "Interrupted.",
    "loop": "The model made the same call over and over.",
    "max_structured_output_retries": "The model gave no answer that fits the schema.",
}
_API_ERROR_OF_KIND = {
    "CredentialsError": "authentication_failed",
    "ModelUnavailableError": "server_error",
    "BrokenStreamError": "server_error",
    "RequestRefusedError": "invalid_request",
    "PromptTooLongError": "invalid_request",
}


class StreamWriter:
    """Turns events into lines for `emit` and keeps the sums that the result needs."""

    def __init__(
        self,
        *,
        emit: Callable[[str], None],
        has_partial_messages: bool,
        replays_user_messages: bool,
        environ: Mapping[str, str],
        clock: Callable[[], float],
        new_uuid: Callable[[], str],
    ) -> None:
        """`clock` gives seconds."""
        self._emit = emit
        self._has_partial_messages = has_partial_messages
        self._replays_user_messages = replays_user_messages
        self._environ = environ
        self._clock = clock
        self._new_uuid = new_uuid
        self._session_id = ""
        self._totals = RunTotals(clock)
        self._window_tokens = 0
        self._first_token_ms: int | None = None
        self._last_status: int | None = None
        self._inputs: dict[str, ToolUseBlock] = {}
        self._running: dict[str, tuple[str, float, float]] = {}
        """Of each running call: its tool, and when it began and when progress was last told, seconds."""
        self._displays: dict[str, JsonObject] = {}
        self._held: list[tuple[JsonObject, str]] = []
        self._open_count = 0
        """Prompts and commands whose result has not been written."""
        self._prompt_uuids: deque[str] = deque()
        self._summary_chars = 0
        self._structured: JsonObject = {}
        self.result: JsonObject = {}
        """The last turn's result object."""

    def prompt_sent(self, uuid: str = "") -> None:
        """A prompt goes out now: durations count from here. `uuid` is what its sender calls it."""
        if not self._open_count:
            self._totals.begin_turn()
        self._open_count += 1
        self._prompt_uuids.append(uuid)

    def take(self, event: Event) -> None:
        """Write what the event is worth."""
        match event:
            case SessionOpened():
                self._init(event)
            case RecordCommitted(record=record, is_replay=False):
                self._record(record)
            case WireEvent(event=raw):
                self._partial(raw)
            case RequestStarted():
                self._totals.begin_request()
                self._first_token_ms = None
            case StreamDiscarded(reason=reason):
                self._totals.end_request()
                self._line("system", subtype="informational", content=f"answer discarded: {reason}", level="warning")
            case RetryScheduled():
                self._retry(event)
            case ToolStarted(tool_use_id=use_id, name=name):
                now_s = self._clock()
                self._running[use_id] = (name, now_s, now_s)
            case ToolProgress(tool_use_id=use_id):
                self._progress(use_id)
            case ToolFinished(tool_use_id=use_id, display=display):
                self._running.pop(use_id, None)
                self._displays[use_id] = display
            case CompactionStarted():
                self._line("system", subtype="status", status="compacting")
            case CompactionFinished() | CompactionEnded():
                self._line("system", subtype="status", status=None)
            case SettingMoved(name="mode", value=mode):
                self._line("system", subtype="status", status=None, permissionMode=mode)
            case GaugeMoved(gauge=gauge):
                self._window_tokens = gauge.window_tokens
            case Notice(text=text, level=level):
                self._line("system", subtype="informational", content=text, level=level)
            case TurnStarted():
                self._running.clear()
                self._displays.clear()
            case TurnFinished():
                self._finish(event)
            case TurnFailed():
                self._fail(event)
            case _:
                pass

    def control_request(self, request_id: str, **request: Any) -> None:
        """Ask whoever holds the other end of standard input."""
        self._line("control_request", request_id=request_id, request=request)

    def cancel_request(self, request_id: str) -> None:
        """What was asked needs no answer any more."""
        self._line("control_cancel_request", request_id=request_id)

    def control_response(self, request_id: Any, *, error: str = "", response: JsonObject | None = None) -> None:
        """Answer a control request of standard input."""
        answer: JsonObject = {"subtype": "error" if error else "success", "request_id": request_id}
        if error:
            answer["error"] = error
        elif response is not None:
            answer["response"] = response
        self._line("control_response", response=answer)

    def use_of(self, use_id: str) -> ToolUseBlock | None:
        """The call of that id, once its message was written."""
        return self._inputs.get(use_id)

    def denied(self, use_id: str) -> None:
        """A person, or nobody being there, refused the call."""
        denial = self._totals.deny(use_id, self._inputs.get(use_id))
        if denial is not None:
            self._line("system", subtype="permission_denied", **denial)

    def tick(self) -> None:
        """Say which tools still run: a consumer that hears nothing for long takes the run for dead."""
        for use_id in list(self._running):
            self._progress(use_id)

    def command_finished(self, text: str, *, is_error: bool) -> None:
        """The result of a slash command."""
        fields: JsonObject = {"errors": [text]} if is_error else {"result": text}
        self._result("error_during_execution" if is_error else "success", fields, None, 0, None)

    def _line(self, kind: str, uuid: str = "", **fields: Any) -> None:
        line: JsonObject = {"type": kind, **fields}
        if self._session_id:
            self._write(line, uuid)
        else:
            self._held.append((line, uuid))

    def _write(self, line: JsonObject, uuid: str = "") -> None:
        line |= {"session_id": self._session_id, "uuid": uuid or self._new_uuid()}
        self._emit(json.dumps(line, ensure_ascii=False))

    def _release(self) -> None:
        """Write what was held until it could be said whose it is."""
        held, self._held = self._held, []
        for line, uuid in held:
            self._write(line, uuid)

    def _init(self, event: SessionOpened) -> None:
        self._session_id = event.session_id
        has_key = any(self._environ.get(name) for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"))
        self._line(
            "system",
            subtype="init",
            cwd=event.cwd,
            tools=list(event.tool_names),
            mcp_servers=[],
            model=event.model,
            permissionMode=event.mode,
            slash_commands=list(HEADLESS_COMMANDS),
            agents=[],
            skills=[],
            plugins=[],
            apiKeySource="environment" if has_key and not event.is_offline else "none",
            output_style="default",
            claude_code_version=__version__,
            capabilities=["interrupt", "set_permission_mode", "set_model", "can_use_tool", "get_context_usage"],
            memory_files=list(event.context_files),
            transcript_path=event.transcript_path,
            is_offline=event.is_offline,
        )
        self._release()

    def _record(self, record: Record) -> None:
        match record.payload:
            case AssistantEntry() as entry:
                self._totals.end_request()
                self._totals.rounds += 1
                self._totals.count(entry.model, entry.usage, entry.cost_usd)
                self._inputs |= {block.id: block for block in entry.blocks if isinstance(block, ToolUseBlock)}
                self._line("assistant", record.uuid, message=_assistant_message(entry), parent_tool_use_id=None)
            case CallCost(model=model, usage=usage, cost_usd=cost_usd):
                self._totals.end_request()
                self._totals.count(model, usage, cost_usd)
            case UserEntry() as entry:
                self._user(record.uuid, entry)
            case ToolRan(tool_use_id=use_id, display=display):
                if display.get("denied"):
                    self.denied(use_id)
                if STRUCTURED_OUTPUT in display:
                    self._structured = {STRUCTURED_OUTPUT: display[STRUCTURED_OUTPUT]}
            case Boundary() as boundary:
                self._boundary(boundary)
            case ClearResults(placeholders=placeholders, freed_tokens=freed_tokens, reason=reason):
                metadata = {
                    "trigger": "auto",
                    "tokensSaved": freed_tokens,
                    "compactedToolIds": list(placeholders),
                    "reason": reason,
                }
                self._line("system", subtype="microcompact_boundary", microcompact_metadata=metadata)
            case NoticeShown(text=text, level=level):
                self._line("system", subtype="informational", content=text, level=level)
            case _:
                pass

    def _user(self, uuid: str, entry: UserEntry) -> None:
        message = {"role": "user", "content": [block_to_wire(block) for block in entry.content]}
        match entry.origin:
            case "tool_results":
                shown = [self._displays.pop(b.tool_use_id, {}) for b in entry.content if isinstance(b, ToolResultBlock)]
                result = {"tool_use_result": shown[0]} if any(shown) else {}
                self._line("user", uuid, message=message, parent_tool_use_id=None, **result)
            case "prompt":
                given = self._prompt_uuids.popleft() if self._prompt_uuids else ""
                if self._replays_user_messages:
                    self._line("user", given or uuid, message=message, parent_tool_use_id=None, isReplay=True)
            case "summary":
                self._summary_chars = len(entry.text)
                self._line("user", uuid, message=message, parent_tool_use_id=None, isSynthetic=True)
            case "continuation":
                self._line("user", uuid, message=message, parent_tool_use_id=None, isSynthetic=True)
            case _:
                pass

    def _boundary(self, boundary: Boundary) -> None:
        metadata = {
            "trigger": boundary.trigger,
            "pre_tokens": boundary.pre_tokens,
            "post_tokens": boundary.post_tokens,
            "messages_summarized": boundary.messages_summarized,
            "layer": boundary.layer,
            "summary_chars": self._summary_chars,
        }
        self._line("system", subtype="compact_boundary", compact_metadata=metadata)

    def _partial(self, raw: JsonObject) -> None:
        if self._first_token_ms is None:
            self._first_token_ms = self._totals.since_request_ms()
        if self._has_partial_messages:
            is_first = raw.get("type") == "message_start" and self._first_token_ms is not None
            timing: JsonObject = {"ttft_ms": self._first_token_ms} if is_first else {}
            self._line("stream_event", event=raw, parent_tool_use_id=None, **timing)

    def _progress(self, use_id: str) -> None:
        name, began_s, told_s = self._running.get(use_id, ("", 0.0, 0.0))
        now_s = self._clock()
        if not name or now_s - told_s < PROGRESS_EVERY_S:
            return
        self._running[use_id] = (name, began_s, now_s)
        self._line(
            "tool_progress",
            tool_use_id=use_id,
            tool_name=name,
            parent_tool_use_id=None,
            elapsed_time_seconds=round(now_s - began_s, 1),
        )

    def _retry(self, event: RetryScheduled) -> None:
        self._last_status = event.status
        self._line(
            "system",
            subtype="api_retry",
            attempt=event.attempt,
            max_retries=event.max_attempts,
            retry_delay_ms=round(event.delay_s * 1_000),
            error_status=event.status,
            error=event.reason,
        )

    def _finish(self, event: TurnFinished) -> None:
        self._totals.end_request()
        subtype = _SUBTYPE_OF_STOP.get(event.stop_reason, "success")
        reason = _TERMINAL_REASON_OF_STOP.get(event.stop_reason, "completed")
        if event.stop_reason == "interrupted" and self._running:
            reason = "aborted_tools"
        fields: JsonObject = {"errors": [_WORDS_OF_STOP.get(event.stop_reason, event.stop_reason)]}
        if subtype == "success":
            fields = {"result": event.text, **self._structured}
        rounds = event.api_rounds or self._totals.rounds
        self._result(subtype, fields, reason, rounds, event.stop_reason)

    def _fail(self, event: TurnFailed) -> None:
        self._totals.end_request()
        reason = _TERMINAL_REASON_OF_ERROR.get(event.kind, "model_error")
        text = f"{event.message} {event.hint}".rstrip()
        error = _API_ERROR_OF_KIND.get(event.kind)
        if error is not None:
            error = "rate_limit" if self._last_status == 429 and error == "server_error" else error
            self._line("assistant", message=_error_message(text), parent_tool_use_id=None, error=error)
        self._result("error_during_execution", {"errors": [text]}, reason, self._totals.rounds, None)

    def _result(
        self, subtype: str, fields: JsonObject, reason: str | None, num_turns: int, stop_reason: str | None
    ) -> None:
        self._last_status = None
        self._running.clear()
        self._release()
        self.result = {
            "type": "result",
            "subtype": subtype,
            "is_error": subtype != "success",
            **fields,
            **self._totals.fields(window_tokens=self._window_tokens),
            "num_turns": num_turns,
            "stop_reason": stop_reason,
            **({"terminal_reason": reason} if reason is not None else {}),
            "session_id": self._session_id,
            "uuid": self._new_uuid(),
        }
        self._emit(json.dumps(self.result, ensure_ascii=False))
        self._open_count = max(self._open_count - 1, 0)
        while len(self._prompt_uuids) > self._open_count:
            self._prompt_uuids.popleft()
        self._structured = {}
        self._totals.begin_turn()


def _assistant_message(entry: AssistantEntry) -> JsonObject:
    return {
        "id": entry.message_id,
        "type": "message",
        "role": "assistant",
        "model": entry.model,
        "content": list(entry.content),
        "stop_reason": entry.stop_reason,
        "stop_sequence": None,
        "usage": entry.usage.raw or usage_fields(entry.usage),
    }


def _error_message(text: str) -> JsonObject:
    """The message that stands for a call that failed; no model wrote it."""
    return {
        "id": "",
        "type": "message",
        "role": "assistant",
        "model": "<synthetic>",
        "content": [{"type": "text", "text": text}],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage_fields(Usage()),
    }
