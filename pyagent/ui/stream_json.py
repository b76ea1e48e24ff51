"""The JSON lines of a headless run, in the shapes other agents' consumers already read, and the final result.

Fields are added to those shapes, never renamed. Every line has a `uuid` and the `session_id`.
"""

from __future__ import annotations

import json
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
    PermissionNeeded,
    RecordCommitted,
    RequestStarted,
    RetryScheduled,
    SessionOpened,
    StreamDiscarded,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    WireEvent,
)
from pyagent.log import AssistantEntry, Boundary, CallCost, ClearResults, Record, ToolRan, UserEntry
from pyagent.messages import JsonObject, ToolUseBlock, Usage, block_to_wire
from pyagent.ui.commands import COMMANDS

_TERMINAL_REASON_OF_STOP = {
    "max_turns": "max_turns",
    "budget": "max_budget_usd",
    "interrupted": "aborted_streaming",
    "max_tokens": "completed",
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
        self._turn_started_s = clock()
        self._request_started_s: float | None = None
        self._first_token_ms: int | None = None
        self._api_s = 0.0
        self._usage: dict[str, int] = {}
        self._by_model: dict[str, JsonObject] = {}
        self._window_tokens = 0
        self._cost_usd = 0.0
        self._denials: list[JsonObject] = []
        self._inputs: dict[str, ToolUseBlock] = {}
        self._running: set[str] = set()
        self._summary_chars = 0
        self.result: JsonObject = {}
        """The last turn's result object."""

    def prompt_sent(self) -> None:
        """A prompt goes out now: durations count from here."""
        self._turn_started_s = self._clock()

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
                self._request_started_s, self._first_token_ms = self._clock(), None
            case StreamDiscarded(reason=reason):
                self._end_request()
                self._line("system", subtype="informational", content=f"answer discarded: {reason}", level="warning")
            case RetryScheduled():
                self._retry(event)
            case PermissionNeeded(tool_use_id=use_id):
                self._deny(use_id)
            case ToolStarted(tool_use_id=use_id):
                self._running.add(use_id)
            case ToolFinished(tool_use_id=use_id):
                self._running.discard(use_id)
            case CompactionStarted():
                self._line("system", subtype="status", status="compacting")
            case CompactionFinished() | CompactionEnded():
                self._line("system", subtype="status", status=None)
            case GaugeMoved(gauge=gauge):
                self._window_tokens = gauge.window_tokens
            case Notice(text=text, level=level):
                self._line("system", subtype="informational", content=text, level=level)
            case TurnStarted():
                self._running.clear()
            case TurnFinished():
                self._finish(event)
            case TurnFailed():
                self._fail(event)
            case _:
                pass

    def control_response(self, request_id: Any, *, error: str = "") -> None:
        """Answer a control request of standard input."""
        response: JsonObject = {"subtype": "error" if error else "success", "request_id": request_id}
        if error:
            response["error"] = error
        self._line("control_response", response=response)

    def _line(self, kind: str, **fields: Any) -> None:
        line = {"type": kind, **fields, "session_id": self._session_id, "uuid": self._new_uuid()}
        self._emit(json.dumps(line, ensure_ascii=False))

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
            slash_commands=[command.name for command in COMMANDS if command.handler == "agent"],
            agents=[],
            skills=[],
            plugins=[],
            apiKeySource="environment" if has_key and not event.is_offline else "none",
            output_style="default",
            claude_code_version=__version__,
            capabilities=["interrupt", "set_permission_mode", "set_model"],
            memory_files=list(event.context_files),
            transcript_path=event.transcript_path,
            is_offline=event.is_offline,
        )

    def _record(self, record: Record) -> None:
        match record.payload:
            case AssistantEntry() as entry:
                self._end_request()
                self._count(entry.model, entry.usage, entry.cost_usd)
                self._inputs |= {block.id: block for block in entry.blocks if isinstance(block, ToolUseBlock)}
                self._line("assistant", message=_assistant_message(entry), parent_tool_use_id=None)
            case CallCost(model=model, usage=usage, cost_usd=cost_usd):
                self._end_request()
                self._count(model, usage, cost_usd)
            case UserEntry() as entry:
                self._user(entry)
            case ToolRan(tool_use_id=use_id, display=display) if display.get("denied"):
                self._deny(use_id)
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
            case _:
                pass

    def _user(self, entry: UserEntry) -> None:
        message = {"role": "user", "content": [block_to_wire(block) for block in entry.content]}
        match entry.origin:
            case "tool_results":
                self._line("user", message=message, parent_tool_use_id=None)
            case "prompt" if self._replays_user_messages:
                self._line("user", message=message, parent_tool_use_id=None, isReplay=True)
            case "summary":
                self._summary_chars = len(entry.text)
                self._line("user", message=message, parent_tool_use_id=None, isSynthetic=True)
            case "continuation":
                self._line("user", message=message, parent_tool_use_id=None, isSynthetic=True)
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
        if self._first_token_ms is None and self._request_started_s is not None:
            self._first_token_ms = round((self._clock() - self._request_started_s) * 1_000)
        if self._has_partial_messages:
            is_first = raw.get("type") == "message_start"
            timing = {"ttft_ms": self._first_token_ms} if is_first else {}
            self._line("stream_event", event=raw, parent_tool_use_id=None, **timing)

    def _retry(self, event: RetryScheduled) -> None:
        self._line(
            "system",
            subtype="api_retry",
            attempt=event.attempt,
            max_retries=event.max_attempts,
            retry_delay_ms=round(event.delay_s * 1_000),
            error_status=event.status,
            error=event.reason,
        )

    def _deny(self, use_id: str) -> None:
        if any(denial["tool_use_id"] == use_id for denial in self._denials):
            return
        use = self._inputs.get(use_id)
        denial = {
            "tool_name": use.name if use else "",
            "tool_use_id": use_id,
            "tool_input": use.input if use else {},
        }
        self._denials.append(denial)
        self._line("system", subtype="permission_denied", **denial)

    def _end_request(self) -> None:
        if self._request_started_s is not None:
            self._api_s += self._clock() - self._request_started_s
            self._request_started_s = None

    def _count(self, model: str, usage: Usage, cost_usd: float | None) -> None:
        counts = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_creation_input_tokens": usage.cache_creation_input_tokens,
            "cache_read_input_tokens": usage.cache_read_input_tokens,
        }
        for key, count in counts.items():
            self._usage[key] = self._usage.get(key, 0) + count
        self._cost_usd += cost_usd or 0.0
        total = self._by_model.setdefault(
            model,
            {
                "inputTokens": 0,
                "outputTokens": 0,
                "cacheReadInputTokens": 0,
                "cacheCreationInputTokens": 0,
                "costUSD": 0.0,
                "contextWindow": 0,
            },
        )
        total["inputTokens"] += usage.input_tokens
        total["outputTokens"] += usage.output_tokens
        total["cacheReadInputTokens"] += usage.cache_read_input_tokens
        total["cacheCreationInputTokens"] += usage.cache_creation_input_tokens
        total["costUSD"] += cost_usd or 0.0

    def _finish(self, event: TurnFinished) -> None:
        self._end_request()
        subtype = _SUBTYPE_OF_STOP.get(event.stop_reason, "success")
        reason = _TERMINAL_REASON_OF_STOP.get(event.stop_reason, "completed")
        if event.stop_reason == "interrupted" and self._running:
            reason = "aborted_tools"
        fields: JsonObject = {"result": event.text} if subtype == "success" else {"errors": [event.stop_reason]}
        self._result(subtype, fields, reason, event.api_rounds, event.stop_reason)

    def _fail(self, event: TurnFailed) -> None:
        self._end_request()
        reason = _TERMINAL_REASON_OF_ERROR.get(event.kind, "model_error")
        message = f"{event.message} {event.hint}".rstrip()
        self._result("error_during_execution", {"errors": [message]}, reason, None, None)

    def _result(
        self, subtype: str, fields: JsonObject, reason: str, api_rounds: int | None, stop_reason: str | None
    ) -> None:
        for total in self._by_model.values():
            total["contextWindow"] = self._window_tokens
        self.result = {
            "type": "result",
            "subtype": subtype,
            "is_error": subtype != "success",
            **fields,
            "duration_ms": round((self._clock() - self._turn_started_s) * 1_000),
            "duration_api_ms": round(self._api_s * 1_000),
            "num_turns": api_rounds if api_rounds is not None else 0,
            "stop_reason": stop_reason,
            "total_cost_usd": self._cost_usd,
            "usage": dict(self._usage),
            "modelUsage": {model: dict(total) for model, total in self._by_model.items()},
            "permission_denials": list(self._denials),
            "terminal_reason": reason,
            "session_id": self._session_id,
            "uuid": self._new_uuid(),
        }
        self._emit(json.dumps(self.result, ensure_ascii=False))
        self._api_s = 0.0


def _assistant_message(entry: AssistantEntry) -> JsonObject:
    return {
        "id": entry.message_id,
        "type": "message",
        "role": "assistant",
        "model": entry.model,
        "content": list(entry.content),
        "stop_reason": entry.stop_reason,
        "stop_sequence": None,
        "usage": entry.usage.raw or _usage_fields(entry.usage),
    }


def _usage_fields(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
    }
