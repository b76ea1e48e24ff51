"""One turn: from a prompt that stands in the log to the end of the reply.

    until the model stops calling tools:
        let the context pipeline do what is due           (context.before_request)
        ask the model; an overflow goes to the pipeline   (sampler.sample, context.recover)
        commit the response, then run its tools           (journal, tools.run_all)

Everything slow is awaited, and a cancel at any await leaves a valid log: the response that was under way is kept as
the text that was seen, and every tool call has a result.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from pyagent.agent.answer_form import FreeForm
from pyagent.agent.journal import Journal
from pyagent.agent.loop_guard import LoopGuard
from pyagent.agent.tool_runner import CUT_OFF_TEXT, ToolRunner
from pyagent.agent.wire.stream import Response
from pyagent.errors import PromptTooLongError, PyagentError
from pyagent.events import EventSink, Notice
from pyagent.log import AssistantEntry, UserEntry
from pyagent.messages import TextBlock, ToolUseBlock, parse_block, text_of

MAX_CONTINUATIONS = 3
"""How often in a row an answer cut at the output limit is continued: a model that fills three outputs is looping."""

CONTINUE_TEXT = "Your answer was cut off at the output limit. Go on exactly where it stopped; do not repeat anything."
EMPTY_ANSWER_TEXT = "Your answer was empty. Go on with the task, or say that it is done."


class Sampler(Protocol):
    """Makes the model call for the current view."""

    async def sample(self) -> Response:
        """One API round. Raises `PromptTooLongError` and the other `ModelError` types once retries are spent."""
        ...

    def entry_for(self, response: Response) -> AssistantEntry: ...

    def partial_entry(self) -> AssistantEntry | None:
        """What an interrupted call had said so far, None if nothing was seen. Clears it."""
        ...


class ContextKeeper(Protocol):
    """The context pipeline as the turn sees it."""

    async def before_request(self) -> None:
        """Compact or clear what is due. Raises `PyagentError` if the next request must not be made."""
        ...

    async def recover(self, error: PromptTooLongError, refusals: int) -> bool:
        """Make room after an overflow; False if nothing more can be done."""
        ...

    def commit_response(self, entry: AssistantEntry) -> None:
        """Write a whole response."""
        ...

    def after_response(self, response: Response) -> None: ...

    def tell_gauge(self) -> None:
        """Tell how large the context is now."""
        ...


class TurnLimits(Protocol):
    def stop_reason(self, api_rounds: int) -> str:
        """Why no further round may be made (`max_turns`, `budget`), empty if one may."""
        ...


@dataclass(frozen=True, slots=True)
class TurnParts:
    journal: Journal
    sampler: Sampler
    context: ContextKeeper
    tools: ToolRunner
    limits: TurnLimits
    emit: EventSink
    form: FreeForm = field(default_factory=FreeForm)
    """How the final answer must look."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    stop_reason: str
    api_rounds: int
    text: str


class RefusedByModelError(PyagentError):
    """The model declined to answer."""


async def run_turn(parts: TurnParts) -> TurnResult:
    """Answer the newest prompt of the log.

    Raises:
        PyagentError: the turn failed; the log is valid and the next prompt can be sent.
        asyncio.CancelledError: interrupted; the log is valid.
    """
    api_rounds = continuations = refusals = nudges = 0
    loop = LoopGuard()
    parts.form.begin()
    while True:
        stop = parts.limits.stop_reason(api_rounds)
        if stop:
            return TurnResult(stop, api_rounds, _last_text(parts))
        await parts.context.before_request()
        try:
            response = await _sample(parts)
        except PromptTooLongError as error:
            refusals += 1
            if not await parts.context.recover(error, refusals):
                raise
            continue
        api_rounds += 1
        uses = [block for raw in response.content if isinstance(block := parse_block(raw), ToolUseBlock)]
        match response.stop_reason:
            case "refusal":
                raise _refusal(response)
            case "model_context_window_exceeded":
                refusals += 1
                overflow = PromptTooLongError(
                    "The answer reached the end of the context window.", hint="Use /compact, /rewind or /clear."
                )
                if not await parts.context.recover(overflow, refusals):
                    raise overflow
                continue
            case _ if not _has_substance(response):
                if nudges:
                    parts.emit(
                        Notice("The model answered with nothing, twice.", "warning", "Ask again in other words.")
                    )
                    return TurnResult(response.stop_reason or "end_turn", api_rounds, "")
                nudges += 1
                parts.journal.commit(UserEntry((TextBlock(EMPTY_ANSWER_TEXT),), origin="continuation"))
                continue
            case _:
                pass
        parts.context.commit_response(parts.sampler.entry_for(response))
        parts.context.after_response(response)
        refusals = nudges = 0
        match response.stop_reason:
            case "max_tokens":
                if uses:
                    parts.tools.refuse_all(uses, CUT_OFF_TEXT)
                continuations += 1
                if continuations > MAX_CONTINUATIONS:
                    parts.emit(Notice("The answer was cut at the output limit several times; stopped here.", "warning"))
                    return TurnResult("max_tokens", api_rounds, _last_text(parts))
                if not uses:
                    parts.journal.commit(UserEntry((TextBlock(CONTINUE_TEXT),), origin="continuation"))
            case "pause_turn":
                continuations = 0
            case _ if uses:
                continuations = 0
                loop = await parts.tools.run_all(uses, broken_inputs=response.broken_tool_inputs, loop=loop)
                if loop.should_stop:
                    text = (
                        f"The model made the same call with the same result {loop.count} times in a row: {loop.summary}"
                    )
                    parts.emit(Notice(text, "warning", "Tell it what to do instead, or to go on."))
                    return TurnResult("loop", api_rounds, _last_text(parts))
                stop = parts.form.stop_reason()
                if stop:
                    return TurnResult(stop, api_rounds, parts.form.text or _last_text(parts))
            case _ if missing := parts.form.missing_text():
                stop = parts.form.stop_reason()
                if stop:
                    return TurnResult(stop, api_rounds, _last_text(parts))
                parts.journal.commit(UserEntry((TextBlock(missing),), origin="continuation"))
            case stop_reason:
                if stop_reason not in ("end_turn", "stop_sequence"):
                    parts.emit(Notice(f"The model stopped with a reason pyagent does not know: {stop_reason}."))
                return TurnResult(stop_reason or "end_turn", api_rounds, _last_text(parts))


async def _sample(parts: TurnParts) -> Response:
    """The next response. On an interrupt, the text seen so far is committed before the cancel goes on."""
    try:
        return await parts.sampler.sample()
    except asyncio.CancelledError:
        partial = parts.sampler.partial_entry()
        if partial is not None:
            parts.journal.commit(partial)
        raise


def _has_substance(response: Response) -> bool:
    """Whether the response may be stored: an empty or blank one would make every later request invalid."""
    return any(raw.get("type") != "text" or str(raw.get("text") or "").strip() for raw in response.content)


def _last_text(parts: TurnParts) -> str:
    last = parts.journal.state.view.last_assistant
    return text_of(last.blocks()) if last is not None else ""


def _refusal(response: Response) -> RefusedByModelError:
    details = response.stop_details or {}
    explanation = str(details.get("explanation") or "").strip()
    category = str(details.get("category") or "").strip()
    why = explanation or (f"category: {category}" if category else "no reason was given")
    return RefusedByModelError(
        f"The model declined to answer ({why}).",
        hint="Rephrase the request; /clear starts afresh, and nothing of this answer is kept.",
    )
