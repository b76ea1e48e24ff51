"""Runs the tool calls of one response: asks, executes, and sees to it that every call gets exactly one result."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol

from pydantic import ValidationError

from pyagent.agent.journal import Journal
from pyagent.agent.loop_guard import LoopGuard, reminder_text
from pyagent.agent.permissions import Allow, Ask, Decision, Deny
from pyagent.commands import NOBODY_DECIDES
from pyagent.events import EventSink, PermissionQuestion, ToolFinished, ToolProgress, ToolStarted
from pyagent.log import SettingChanged, ToolRan, UserEntry
from pyagent.messages import JsonObject, TextBlock, ToolResultBlock, ToolUseBlock
from pyagent.tools.budget import within_cap
from pyagent.tools.tool import AnyTool, RefusedError, ToolContext, ToolInput, ToolResult

MAX_CONCURRENT_READS = 10
"""Read-only calls of one response that run side by side: enough to hide latency, few enough for file handles."""

INTERRUPTED_TEXT = "[Interrupted by the user before this call finished]"
CUT_OFF_TEXT = (
    "This call was not run: the answer was cut off at the output limit, so its input may be incomplete. "
    "Make the call again, in smaller pieces if the input is long."
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    is_allowed: bool
    feedback: str = ""


class Gatekeeper(Protocol):
    """Decides about calls and puts open questions to the person."""

    def decide(
        self, tool: AnyTool, tool_input: JsonObject, question: PermissionQuestion | None, context: ToolContext
    ) -> Decision: ...

    async def ask(self, tool_use_id: str, question: PermissionQuestion) -> PermissionAnswer: ...


class BeforeRun(Protocol):
    async def __call__(self, name: str, tool_input: JsonObject, is_read_only: bool) -> None:
        """A call was allowed and runs next. May take a moment; never raises."""
        ...


@dataclass(frozen=True, slots=True)
class _Ran:
    """What came of one call. `summary` is the line on the screen."""

    result: ToolResult
    summary: str
    duration_s: float


class ToolRunner:
    def __init__(
        self,
        tools: Mapping[str, AnyTool],
        *,
        journal: Journal,
        emit: EventSink,
        gatekeeper: Gatekeeper,
        context_for: Callable[[str, Callable[[str], None]], ToolContext],
        before_run: BeforeRun | None = None,
    ) -> None:
        """`before_run` is told of each call that is about to run."""
        self.tools = tools
        self._journal = journal
        self._emit = emit
        self._gatekeeper = gatekeeper
        self._context_for = context_for
        self._before_run = before_run

    async def run_all(
        self, uses: Sequence[ToolUseBlock], *, broken_inputs: Mapping[str, str], loop: LoopGuard
    ) -> LoopGuard:
        """Run the calls and commit one result for each, in the order of the calls; the guard after the last.

        `broken_inputs` holds, by id, input that was no valid JSON; such calls are answered with an error.
        When cancelled, calls without a result get an "interrupted" one before the cancel goes on.
        """
        batches = [list(batch) for _, batch in groupby(enumerate(uses), key=lambda pair: self._batch_key(*pair))]
        waiting = list(uses)
        try:
            for batch in batches:
                loop = await self._run_batch([use for _, use in batch], waiting, broken_inputs, loop)
        except asyncio.CancelledError:
            for use in waiting:
                self._commit(use, _error(use, INTERRUPTED_TEXT, is_interrupted=True))
            raise
        return loop

    def refuse_all(self, uses: Sequence[ToolUseBlock], text: str) -> None:
        """Answer every call with this error, running none."""
        for use in uses:
            self._commit(use, _error(use, text))

    def _batch_key(self, position: int, use: ToolUseBlock) -> int:
        """Neighbouring read-only calls share a key and so a batch; every other call has one of its own."""
        tool = self.tools.get(use.name)
        return -1 if tool is not None and tool.is_read_only else position

    async def _run_batch(
        self,
        batch: list[ToolUseBlock],
        waiting: list[ToolUseBlock],
        broken_inputs: Mapping[str, str],
        loop: LoopGuard,
    ) -> LoopGuard:
        slots = asyncio.Semaphore(MAX_CONCURRENT_READS)

        async def run(use: ToolUseBlock) -> _Ran:
            async with slots:
                return await self._run_one(use, broken_inputs.get(use.id))

        tasks = [asyncio.create_task(run(use)) for use in batch]
        try:
            for use, task in zip(batch, tasks, strict=True):
                ran = await task
                waiting.remove(use)
                result = ran.result
                loop = loop.after(use.name, use.input, result.content, result.is_error, ran.summary)
                if loop.should_tell:
                    told = (*result.content, TextBlock(reminder_text(use.name)))
                    ran = replace(ran, result=replace(result, content=told))
                self._commit(use, ran)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            for use, outcome in zip(batch, outcomes, strict=True):
                if use in waiting:
                    waiting.remove(use)
                    self._commit(
                        use,
                        outcome if isinstance(outcome, _Ran) else _error(use, INTERRUPTED_TEXT, is_interrupted=True),
                    )
            raise
        return loop

    async def _run_one(self, use: ToolUseBlock, broken_input: str | None) -> _Ran:
        tool = self.tools.get(use.name)
        if tool is None:
            names = ", ".join(sorted(self.tools))
            return _error(use, f"There is no tool named {use.name!r}. The tools are: {names}.")
        if broken_input is not None:
            shown = broken_input if len(broken_input) <= 200 else broken_input[:200] + "…"
            return _error(use, f"The input was not valid JSON, so {use.name} was not run: {shown}")
        try:
            tool_input: ToolInput = tool.input_model.model_validate(use.input)
            return await self._run_valid(tool, use, tool_input)
        except ValidationError as error:
            return _error(use, _validation_text(use.name, error))
        except RefusedError as refusal:
            return _error(use, str(refusal))
        except Exception as error:
            # A tool's own mistake must not end the turn: the model is told, the log has the trace.
            _log.exception("tool %s failed", use.name)
            return _error(use, f"{use.name} failed unexpectedly: {type(error).__name__}: {error}")

    async def _run_valid(self, tool: AnyTool, use: ToolUseBlock, tool_input: ToolInput) -> _Ran:
        summary = tool.summary(tool_input)
        context = self._context_for(use.id, lambda text: self._emit(ToolProgress(use.id, text)))
        result, duration_s = await self._permit(tool, use, tool_input, context), 0.0
        if result is None:
            if self._before_run is not None:
                await self._before_run(use.name, use.input, tool.is_read_only)
            self._emit(ToolStarted(use.id, use.name, summary, use.input))
            started_at = self._journal.clock()
            result = await tool.run(tool_input, context)
            if len(result.text) > tool.result_cap_chars:
                result = await asyncio.to_thread(within_cap, result, tool, context)
            duration_s = round((self._journal.clock() - started_at).total_seconds(), 3)
        self._emit(ToolFinished(use.id, use.name, summary, result.is_error, result.text, duration_s, result.display))
        return _Ran(result, summary, duration_s)

    async def _permit(
        self, tool: AnyTool, use: ToolUseBlock, tool_input: ToolInput, context: ToolContext
    ) -> ToolResult | None:
        """None if the call may run, else the result that refuses it."""
        if tool.is_read_only:
            question = tool.permission(tool_input, context)
        else:
            # In a thread: the question of an edit holds the file before and after.
            question = await asyncio.to_thread(tool.permission, tool_input, context)
        match self._gatekeeper.decide(tool, use.input, question, context):
            case Allow():
                return None
            case Deny(reason=reason):
                return ToolResult.error(f"Not allowed: {reason}", display={"denied": True})
            case Ask(question=asked):
                answer = await self._gatekeeper.ask(use.id, asked)
                if answer.is_allowed:
                    return None
                return ToolResult.error(_refusal(answer.feedback), display={"denied": True})

    def _commit(self, use: ToolUseBlock, ran: _Ran) -> None:
        result = ran.result
        block = ToolResultBlock(use.id, result.content, result.is_error)
        self._journal.commit(UserEntry((block,), origin="tool_results"))
        self._journal.commit(ToolRan(use.id, ran.summary, ran.duration_s, result.display))
        for seen in result.files_seen:
            self._journal.commit(seen)
        if result.cwd is not None:
            self._journal.commit(SettingChanged("cwd", str(result.cwd)))


def _error(use: ToolUseBlock, text: str, *, is_interrupted: bool = False) -> _Ran:
    """The outcome of a call that was not run, or failed."""
    return _Ran(ToolResult.error(text, display={"interrupted": True} if is_interrupted else {}), use.name, 0.0)


def _refusal(feedback: str) -> str:
    """What the model is told of a call that was asked about and not allowed."""
    if feedback == NOBODY_DECIDES:
        return f"Not allowed: this call needs a person's permission. {feedback} Do not try it again unchanged."
    told = f" They said: {feedback}" if feedback else ""
    return f"The user did not allow this call.{told} Do not try it again unchanged."


def _validation_text(name: str, error: ValidationError) -> str:
    lines = [
        f"- {'.'.join(str(part) for part in problem['loc']) or 'input'}: {problem['msg']}" for problem in error.errors()
    ]
    return f"Invalid input for {name}, so it was not run:\n" + "\n".join(lines)
