"""The state of a session at a glance, folded from events: what the status bar, the busy line and the queue show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from pyagent.events import (
    CompactionEnded,
    CompactionFinished,
    CompactionProgress,
    CompactionStarted,
    CostMoved,
    Event,
    GaugeFacts,
    GaugeMoved,
    PermissionNeeded,
    PermissionSettled,
    QuestionAsked,
    QuestionSettled,
    QueueChanged,
    RecordCommitted,
    RequestStarted,
    RetryScheduled,
    SessionOpened,
    SettingMoved,
    StreamDiscarded,
    StreamSilent,
    TasksMoved,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolInputDelta,
    ToolProgress,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
)
from pyagent.log import SettingChanged, ToolRan
from pyagent.messages import JsonObject
from pyagent.ui.gauge import CacheModel, GaugeModel, StatusModel

CHARS_PER_TOKEN = 3.6
"""Rough mean for English and code. Only for the counter of the busy line, which is marked as an estimate."""


class Phase(StrEnum):
    """What is under way; the value is the word shown."""

    IDLE = ""
    REQUESTING = "Waiting for the model"
    THINKING = "Thinking"
    WRITING = "Answering"
    CALLING = "Preparing"
    RUNNING = "Running"
    ASKING = "Waiting for you"
    RETRYING = "Retrying"
    COMPACTING = "Compacting"


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """What is known of the session now. Empty strings and None mean: not known yet."""

    session_id: str = ""
    transcript_path: str = ""
    model: str = ""
    mode: str = ""
    cwd: str = ""
    branch: str = ""
    effort: str = ""
    background_count: int = 0
    """Commands that run in the background."""
    title: str = ""
    is_open: bool = False
    is_offline: bool = False
    is_read_only: bool = False
    """Whether the session is only looked at."""
    is_turn_running: bool = False
    is_compacting: bool = False
    phase: Phase = Phase.IDLE
    detail: str = ""
    """What the phase is about: a tool's name, the reason of a retry."""
    streamed_chars: int = 0
    """Characters the model wrote in this turn."""
    summary_tokens: int = 0
    """Tokens of the summary so far, while compacting."""
    retry: RetryScheduled | None = None
    silence: StreamSilent | None = None
    """Set while the server has said nothing for a while."""
    running_tools: tuple[tuple[str, str], ...] = ()
    """(tool_use id, name) of tools at work."""
    gauge: GaugeFacts | None = None
    cost: CostMoved | None = None
    queued: tuple[tuple[str, str], ...] = ()
    tasks: tuple[JsonObject, ...] = ()
    """The agent's task list."""

    @property
    def is_busy(self) -> bool:
        """Whether there is anything Esc would stop."""
        return self.is_turn_running or self.is_compacting or bool(self.running_tools)

    @property
    def streamed_tokens(self) -> int:
        """Estimate of the tokens the model wrote in this turn."""
        return round(self.streamed_chars / CHARS_PER_TOKEN)

    def activity(self, retry_left_s: float | None = None, silent_s: float | None = None) -> str:
        """The busy line's words: `Running Bash`, `Retrying in 4 s (overloaded, attempt 2 of 10)`.

        The front end counts on by its own clock: `retry_left_s` until the next attempt, `silent_s` since the server
        last said something.
        """
        if self.phase is Phase.RETRYING and self.retry is not None:
            left_s = self.retry.delay_s if retry_left_s is None else max(0.0, retry_left_s)
            return (
                f"Retrying in {_wait_text(left_s)} · {self.retry.reason} · "
                f"attempt {self.retry.attempt} of {self.retry.max_attempts}"
            )
        words = self._phase_words()
        if self.silence is None:
            return words
        silent_s = self.silence.silent_s if silent_s is None else max(silent_s, self.silence.silent_s)
        return f"{words} · silent for {_wait_text(silent_s)}, given up at {_wait_text(self.silence.limit_s)}"

    def _phase_words(self) -> str:
        if self.phase is Phase.COMPACTING and self.summary_tokens:
            return f"Compacting · summary {self.summary_tokens:,} tokens".replace(",", " ")
        if self.phase is Phase.IDLE and self.is_busy:
            return "Working"
        return f"{self.phase} {self.detail}".rstrip()

    def bar(self, cache_left_s: float | None = None) -> StatusModel:
        """The figures of the status bar. `cache_left_s`: what the front end's clock says is left of the cache."""
        return StatusModel(
            model=self.model,
            mode=self.mode,
            cwd=self.cwd,
            branch=self.branch,
            cost_usd=self.cost.total_usd if self.cost else None,
            cache=_cache(self.cost, cache_left_s) if self.cost else None,
            gauge=gauge_model(self.gauge) if self.gauge else None,
            queued_count=len(self.queued),
            effort=self.effort,
            background_count=self.background_count,
            is_read_only=self.is_read_only,
        )


def _wait_text(wait_s: float) -> str:
    return f"{wait_s:.0f} s" if wait_s < 120 else f"{wait_s // 60:.0f} min {wait_s % 60:.0f} s"


def gauge_model(facts: GaugeFacts) -> GaugeModel:
    """The gauge for these facts. With automatic compaction on nothing blocks; with it off nothing triggers."""
    is_auto = facts.is_auto_compact_on
    return GaugeModel(
        used_tokens=facts.used_tokens,
        window_tokens=facts.window_tokens,
        warning_tokens=facts.warning_tokens,
        error_tokens=facts.error_tokens,
        trigger_tokens=facts.trigger_tokens if is_auto else None,
        blocking_tokens=None if is_auto else facts.blocking_tokens,
        is_estimated=facts.is_estimate,
        percent_left=facts.percent_left,
    )


def _cache(cost: CostMoved, left_s: float | None) -> CacheModel:
    warm_s = cost.cache_expires_in_s
    if warm_s is not None and left_s is not None:
        warm_s = min(warm_s, left_s)
    return CacheModel(warm_s=warm_s, hit_share=cost.cache_read_share)


def reduce_status(status: SessionStatus, event: Event) -> SessionStatus:
    """The status after an event."""
    match event:
        case SessionOpened():
            return SessionStatus(
                session_id=event.session_id,
                transcript_path=event.transcript_path,
                model=event.model,
                mode=event.mode,
                cwd=event.cwd,
                branch=event.git_branch,
                effort=event.effort,
                is_open=True,
                is_offline=event.is_offline,
                is_read_only=event.is_read_only,
            )
        case RecordCommitted(record=record):
            if isinstance(record.payload, SettingChanged):
                return _with_setting(status, record.payload.name, record.payload.value)
            if isinstance(record.payload, ToolRan) and isinstance(record.payload.display.get("tasks"), list):
                return replace(status, tasks=tuple(t for t in record.payload.display["tasks"] if isinstance(t, dict)))
            return status
        case SettingMoved(name=name, value=value):
            return _with_setting(status, name, value)
        case GaugeMoved(gauge=gauge):
            return replace(status, gauge=gauge)
        case CostMoved():
            return replace(status, cost=event)
        case TasksMoved(running_count=count):
            return replace(status, background_count=count)
        case QueueChanged(prompts=prompts):
            return replace(status, queued=prompts)
        case TurnStarted():
            return replace(_idle(status), is_turn_running=True, phase=Phase.REQUESTING, streamed_chars=0)
        case TurnFinished() | TurnFailed():
            return replace(_idle(status), is_turn_running=False, is_compacting=False)
        case CompactionStarted():
            return replace(status, is_compacting=True, phase=Phase.COMPACTING, detail="", summary_tokens=0)
        case CompactionProgress(summary_tokens=summary_tokens):
            return replace(status, is_compacting=True, phase=Phase.COMPACTING, summary_tokens=summary_tokens)
        case CompactionFinished() | CompactionEnded():
            rest = Phase.REQUESTING if status.is_turn_running else Phase.IDLE
            return replace(status, is_compacting=False, phase=rest, detail="", summary_tokens=0)
        case _:
            return _within_turn(status, event)


def _within_turn(status: SessionStatus, event: Event) -> SessionStatus:
    match event:
        case RequestStarted():
            if status.is_compacting:
                return replace(status, retry=None, phase=Phase.COMPACTING)
            return replace(status, retry=None, phase=Phase.REQUESTING, detail="")
        case RetryScheduled():
            return replace(status, retry=event, phase=Phase.RETRYING)
        case StreamSilent(silent_s=silent_s):
            return replace(status, silence=event if silent_s else None)
        case StreamDiscarded():
            return replace(status, phase=Phase.REQUESTING, detail="")
        case ThinkingDelta(text=text):
            return _writing(status, Phase.THINKING, len(text))
        case TextDelta(text=text):
            return _writing(status, Phase.WRITING, len(text))
        case ToolInputDelta(name=name):
            return replace(status, phase=Phase.CALLING, detail=name)
        case ToolStarted(tool_use_id=use_id, name=name):
            return _with_tools(status, (*status.running_tools, (use_id, name)))
        case ToolProgress():
            return status
        case ToolFinished(tool_use_id=use_id):
            return _with_tools(status, tuple(tool for tool in status.running_tools if tool[0] != use_id))
        case PermissionNeeded(question=question):
            return replace(status, phase=Phase.ASKING, detail=f"about {question.tool_name}")
        case QuestionAsked():
            return replace(status, phase=Phase.ASKING, detail="to answer its questions")
        case PermissionSettled() | QuestionSettled():
            return _with_tools(status, status.running_tools)
        case _:
            return status


def _idle(status: SessionStatus) -> SessionStatus:
    return replace(status, phase=Phase.IDLE, detail="", retry=None, silence=None, running_tools=(), summary_tokens=0)


def _writing(status: SessionStatus, phase: Phase, chars: int) -> SessionStatus:
    return replace(status, phase=phase, detail="", streamed_chars=status.streamed_chars + chars)


def _with_tools(status: SessionStatus, tools: tuple[tuple[str, str], ...]) -> SessionStatus:
    if not tools:
        rest = Phase.REQUESTING if status.is_turn_running else Phase.IDLE
        return replace(status, running_tools=(), phase=rest, detail="")
    names = list(dict.fromkeys(name for _, name in tools))
    detail = names[0] if len(tools) == 1 else f"{len(tools)} tools ({', '.join(names)})"
    return replace(status, running_tools=tools, phase=Phase.RUNNING, detail=detail)


def _with_setting(status: SessionStatus, name: str, value: str) -> SessionStatus:
    match name:
        case "model":
            return replace(status, model=value)
        case "mode":
            return replace(status, mode=value)
        case "title":
            return replace(status, title=value)
        case "effort":
            return replace(status, effort=value)
        case "cwd":
            return replace(status, cwd=value)
        case _:
            return status
