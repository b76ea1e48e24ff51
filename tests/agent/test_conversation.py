"""The actor and the turn: whatever comes in whatever order, the log stays valid and every call has one result."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyagent.agent.conversation import Conversation, ConversationParts
from pyagent.agent.journal import Journal
from pyagent.agent.permissions import Allow, Ask, Decision
from pyagent.agent.tool_runner import INTERRUPTED_TEXT, ToolRunner
from pyagent.agent.turn import TurnParts
from pyagent.agent.wire.stream import Response
from pyagent.commands import (
    NOBODY_DECIDES,
    AnswerPermission,
    Interrupt,
    RunCommand,
    Shutdown,
    SubmitPrompt,
    TakeBackQueued,
)
from pyagent.errors import ModelUnavailableError, PromptTooLongError, PyagentError
from pyagent.events import (
    CommandFinished,
    Event,
    Notice,
    PermissionNeeded,
    PermissionQuestion,
    PromptReturned,
    QueueChanged,
    TurnFailed,
    TurnFinished,
)
from pyagent.log import AssistantEntry, Record, UserEntry
from pyagent.messages import JsonObject, ToolResultBlock, ToolUseBlock, Usage
from pyagent.state import ConversationState
from pyagent.tools.tool import ToolContext
from tests.fakes.scripted import FakeTool

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ALLOW_QUESTION = PermissionQuestion("Echo", "command", "rm -rf build", session_rule="Echo")


class MemorySink:
    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, record: Record) -> None:
        self.records.append(record)

    def close(self) -> None:
        """Nothing to close."""


def response(*blocks: JsonObject, stop_reason: str = "", broken: dict[str, str] | None = None) -> Response:
    has_call = any(block["type"] == "tool_use" for block in blocks)
    return Response(
        "msg",
        "model",
        tuple(blocks),
        stop_reason or ("tool_use" if has_call else "end_turn"),
        Usage(10, 5),
        broken_tool_inputs=broken or {},
    )


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def call(use_id: str, words: str = "", name: str = "Echo") -> JsonObject:
    return {"type": "tool_use", "id": use_id, "name": name, "input": {"text": words or use_id}}


Step = Response | Exception | Callable[[], Awaitable[Response]]


class FakeSampler:
    """Gives the script's responses; a callable may wait first. What it had said when cancelled is `partial`."""

    def __init__(self, script: Sequence[Step]) -> None:
        self.script = list(script)
        self.partial = ""

    async def sample(self) -> Response:
        assert self.script, "the script has no further response"
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, Response) else await step()

    def entry_for(self, answer: Response) -> AssistantEntry:
        return AssistantEntry("msg", "model", answer.content, answer.stop_reason, answer.usage, "", "p")

    def partial_entry(self) -> AssistantEntry | None:
        said, self.partial = self.partial, ""
        if not said:
            return None
        return AssistantEntry("partial", "model", (text(said),), "interrupted", Usage(), "", "p")


class FakeContext:
    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.recoveries: list[int] = []
        self.can_recover = True

    async def before_request(self) -> None:
        """Nothing is ever due."""

    async def recover(self, error: PromptTooLongError, refusals: int) -> bool:
        self.recoveries.append(refusals)
        return self.can_recover

    def commit_response(self, entry: AssistantEntry) -> None:
        self.journal.commit(entry)

    def after_response(self, answer: Response) -> None:
        """Nothing to note."""

    def tell_gauge(self) -> None:
        """Nobody looks."""


class FakeGatekeeper:
    def __init__(self) -> None:
        self.conversation: Conversation | None = None
        self.rules: list[str] = []

    def decide(
        self, tool: Any, tool_input: JsonObject, question: PermissionQuestion | None, context: ToolContext
    ) -> Decision:
        return Allow() if question is None or question.session_rule in self.rules else Ask(question)

    async def ask(self, tool_use_id: str, question: PermissionQuestion) -> Any:
        assert self.conversation is not None
        return await self.conversation.ask(tool_use_id, question)

    def allow_for_session(self, rule: str) -> None:
        self.rules.append(rule)


class NoLimits:
    max_rounds = 50

    def stop_reason(self, api_rounds: int) -> str:
        return "max_turns" if api_rounds >= self.max_rounds else ""


@dataclass
class Stage:
    """A conversation with everything around it faked, and what came out of it."""

    conversation: Conversation
    state: ConversationState
    events: list[Event]
    sampler: FakeSampler
    context: FakeContext
    limits: NoLimits
    running: asyncio.Task[None]
    commands: dict[str, Any] = field(default_factory=dict)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let the conversation run until the condition holds; fails if it never does."""
        try:
            async with asyncio.timeout(60):
                while True:
                    if condition():
                        return
                    await asyncio.sleep(0)
        except TimeoutError:
            seen = [type(e).__name__ for e in self.events][-12:]
            raise AssertionError(f"it never came to this; events: {seen}") from None

    async def until_event(self, kind: type[Any], count: int = 1) -> Any:
        await self.until(lambda: len(self.of(kind)) >= count)
        return self.of(kind)[count - 1]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def texts(self) -> list[str]:
        return [item.entry.text for item in self.state.view if item.entry.text]

    def results(self) -> dict[str, str]:
        return {
            block.tool_use_id: block.text
            for item in self.state.view
            for block in item.blocks()
            if isinstance(block, ToolResultBlock)
        }


@asynccontextmanager
async def stage(script: Sequence[Step], *tools: FakeTool) -> AsyncIterator[Stage]:
    events: list[Event] = []
    state = ConversationState()
    ticks, ids = iter(range(10**9)), iter(range(10**9))
    journal = Journal(
        state,
        sink=MemorySink(),
        emit=events.append,
        clock=lambda: START + timedelta(seconds=next(ticks)),
        new_uuid=lambda: f"u{next(ids)}",
    )
    sampler, context, gatekeeper, limits = FakeSampler(script), FakeContext(journal), FakeGatekeeper(), NoLimits()
    by_name = {tool.name: tool for tool in tools or (FakeTool(),)}

    def context_for(use_id: str, report: Callable[[str], None]) -> ToolContext:
        return ToolContext(use_id, Path("/"), (Path("/"),), state, Path("/none"), len, report, None)  # type: ignore[arg-type]  # no shell

    runner = ToolRunner(by_name, journal=journal, emit=events.append, gatekeeper=gatekeeper, context_for=context_for)
    closed: list[bool] = []

    async def nothing() -> None:
        """Nothing is to be prepared or closed."""

    commands: dict[str, Any] = {}
    conversation = Conversation(
        ConversationParts(
            session_id="s",
            journal=journal,
            turn=lambda conversation: TurnParts(journal, sampler, context, runner, limits, events.append),
            emit=events.append,
            prepare_prompt=nothing,
            check_prompt=lambda: None,
            opened=nothing,
            commands=commands,
            permissions=gatekeeper,
            close=nothing,
        )
    )
    gatekeeper.conversation = conversation
    running = asyncio.create_task(conversation.run())
    try:
        yield Stage(conversation, state, events, sampler, context, limits, running, commands)
    finally:
        conversation.send(Shutdown())
        await running
        assert closed == []


async def test_a_turn_goes_on_until_the_model_calls_no_more_tools() -> None:
    async with stage([response(text("looking"), call("a"), call("b")), response(text("done"))]) as s:
        s.conversation.send(SubmitPrompt("go"))
        finished = await s.until_event(TurnFinished)
        assert (finished.stop_reason, finished.api_rounds, finished.text) == ("end_turn", 2, "done")
        assert s.results() == {"a": "a", "b": "b"}


async def test_read_only_calls_run_side_by_side_and_their_results_keep_the_order_of_the_calls() -> None:
    release = asyncio.Event()

    def before(words: str) -> Any:
        return release.wait() if words == "a" else release.set()

    tool = FakeTool(before=before)
    async with stage([response(call("a"), call("b")), response(text("done"))], tool) as s:
        s.conversation.send(SubmitPrompt("go"))
        await s.until_event(TurnFinished)
        assert tool.log == ["start a", "start b", "end b", "end a"]
        order = [b.tool_use_id for i in s.state.view for b in i.blocks() if isinstance(b, ToolResultBlock)]
        assert order == ["a", "b"]


async def test_writers_run_one_at_a_time_in_order() -> None:
    tool = FakeTool(is_read_only=False)
    async with stage([response(call("a"), call("b")), response(text("done"))], tool) as s:
        s.conversation.send(SubmitPrompt("go"))
        await s.until_event(TurnFinished)
        assert tool.log == ["start a", "end a", "start b", "end b"]


@pytest.mark.parametrize(
    ("block", "broken", "told"),
    [
        (call("a", name="Nope"), {}, "There is no tool named 'Nope'"),
        ({"type": "tool_use", "id": "a", "name": "Echo", "input": {"txt": 1}}, {}, "Invalid input for Echo"),
        (call("a"), {"a": '{"text": "cut'}, "not valid JSON"),
    ],
    ids=["unknown tool", "input that fits no field", "broken JSON"],
)
async def test_a_call_that_cannot_be_run_is_answered_with_an_error(
    block: JsonObject, broken: dict[str, str], told: str
) -> None:
    async with stage([response(block, broken=broken), response(text("ok"))]) as s:
        s.conversation.send(SubmitPrompt("go"))
        await s.until_event(TurnFinished)
        assert told in s.results()["a"]


async def test_a_tool_that_raises_is_an_error_result_and_not_the_end_of_the_turn() -> None:
    def fail(words: str) -> None:
        raise RuntimeError("boom")

    async with stage([response(call("a")), response(text("ok"))], FakeTool(before=fail)) as s:
        s.conversation.send(SubmitPrompt("go"))
        await s.until_event(TurnFinished)
        assert "boom" in s.results()["a"]


async def test_calls_of_an_answer_cut_at_the_output_limit_are_never_run() -> None:
    tool = FakeTool()
    async with stage([response(call("a"), stop_reason="max_tokens"), response(text("ok"))], tool) as s:
        s.conversation.send(SubmitPrompt("go"))
        await s.until_event(TurnFinished)
        assert tool.log == []
        assert "cut off at the output limit" in s.results()["a"]


async def test_a_model_whose_calls_are_cut_again_and_again_is_stopped_with_every_call_answered() -> None:
    tool = FakeTool()
    cut = [response(call(f"c{number}"), stop_reason="max_tokens") for number in range(4)]
    async with stage([*cut, response(text("not asked any more"))], tool) as s:
        s.conversation.send(SubmitPrompt("go"))
        finished = await s.until_event(TurnFinished)
        assert finished.stop_reason == "max_tokens"
        assert len(s.sampler.script) == 1
        assert tool.log == []
        assert sorted(s.results()) == ["c0", "c1", "c2", "c3"]


async def test_a_text_cut_at_the_output_limit_is_continued_three_times_at_most() -> None:
    async with stage([response(text(f"part {n}"), stop_reason="max_tokens") for n in range(4)]) as s:
        s.conversation.send(SubmitPrompt("go"))
        finished = await s.until_event(TurnFinished)
        assert finished.stop_reason == "max_tokens"
        assert s.sampler.script == []


async def test_an_empty_answer_is_not_stored_and_is_asked_about_once() -> None:
    async with stage([response(text(" \n")), response()]) as s:
        s.conversation.send(SubmitPrompt("go"))
        await s.until_event(TurnFinished)
        assert not any(isinstance(item.entry, AssistantEntry) for item in s.state.view)


async def test_a_refusal_is_told_with_a_way_out_and_leaves_nothing_in_the_conversation() -> None:
    async with stage([response(text("I"), stop_reason="refusal"), response(text("fine"))]) as s:
        s.conversation.send(SubmitPrompt("go"))
        failed = await s.until_event(TurnFailed)
        assert "declined" in failed.message
        assert failed.hint
        s.conversation.send(SubmitPrompt("something else"))
        await s.until_event(TurnFinished)
        assert s.texts() == ["go", "something else", "fine"]


async def test_an_overflow_goes_to_the_pipeline_and_the_call_is_made_again() -> None:
    async with stage([PromptTooLongError("too long"), PromptTooLongError("too long"), response(text("ok"))]) as s:
        s.conversation.send(SubmitPrompt("go"))
        await s.until_event(TurnFinished)
        assert s.context.recoveries == [1, 2]


async def test_an_overflow_nothing_helps_against_ends_the_turn_and_leaves_a_usable_session() -> None:
    async with stage([PromptTooLongError("too long"), response(text("ok"))]) as s:
        s.context.can_recover = False
        s.conversation.send(SubmitPrompt("go"))
        await s.until_event(TurnFailed)
        s.conversation.send(SubmitPrompt("again"))
        await s.until_event(TurnFinished)
        assert s.texts() == ["go", "again", "ok"]


async def test_a_failed_call_is_told_and_the_next_prompt_is_answered() -> None:
    async with stage([ModelUnavailableError("down", hint="wait"), response(text("up"))]) as s:
        s.conversation.send(SubmitPrompt("one"))
        failed = await s.until_event(TurnFailed)
        assert (failed.kind, failed.message, failed.hint) == ("ModelUnavailableError", "down", "wait")
        s.conversation.send(SubmitPrompt("two"))
        await s.until_event(TurnFinished)


async def test_a_mistake_of_our_own_is_told_in_words_and_the_session_goes_on() -> None:
    async with stage([KeyError("oops"), response(text("fine"))]) as s:
        s.conversation.send(SubmitPrompt("one"))
        failed = await s.until_event(TurnFailed)
        assert "pyagent made a mistake" in failed.message
        s.conversation.send(SubmitPrompt("two"))
        await s.until_event(TurnFinished)


async def test_the_round_limit_ends_a_turn_by_name() -> None:
    async with stage([response(call(f"c{n}")) for n in range(2)]) as s:
        s.limits.max_rounds = 2
        s.conversation.send(SubmitPrompt("go"))
        finished = await s.until_event(TurnFinished)
        assert finished.stop_reason == "max_turns"


async def test_an_interrupt_before_the_first_word_gives_the_prompt_back() -> None:
    async with stage([asyncio.Event().wait, response(text("fine"))]) as s:  # type: ignore[list-item]  # never answers
        s.conversation.send(SubmitPrompt("long text I typed"))
        await s.until(lambda: not s.sampler.script[1:])
        s.conversation.send(Interrupt())
        finished = await s.until_event(TurnFinished)
        assert finished.stop_reason == "interrupted"
        assert [event.text for event in s.of(PromptReturned)] == ["long text I typed"]
        assert len(s.state.view) == 0


async def test_an_interrupt_in_mid_answer_keeps_what_was_said() -> None:
    async with stage([asyncio.Event().wait]) as s:  # type: ignore[list-item]  # never answers
        s.sampler.partial = "half an ans"
        s.conversation.send(SubmitPrompt("go"))
        await s.until(lambda: not s.sampler.script)
        s.conversation.send(Interrupt())
        await s.until_event(TurnFinished)
        assert s.texts() == ["go", "half an ans"]
        assert s.of(PromptReturned) == []


async def test_an_interrupt_while_tools_run_stops_them_all_and_answers_each() -> None:
    tool = FakeTool(before=lambda words: asyncio.Event().wait() if words != "quick" else None)
    calls = (call("a", "quick"), call("b"), call("c"), call("d"), call("e", "quick"))
    async with stage([response(*calls)], tool) as s:
        s.conversation.send(SubmitPrompt("go"))
        await s.until(lambda: tool.log.count("end quick") == 2 and "start d" in tool.log)
        s.conversation.send(Interrupt())
        await s.until_event(TurnFinished)
        stopped = dict.fromkeys("bcd", INTERRUPTED_TEXT)
        assert s.results() == {"a": "quick", **stopped, "e": "quick"}, "what had ended keeps what it found"


async def test_prompts_typed_during_a_turn_are_sent_afterwards_in_order_also_after_an_interrupt() -> None:
    async with stage([asyncio.Event().wait, response(text("1")), response(text("2"))]) as s:  # type: ignore[list-item]
        s.sampler.partial = "…"
        s.conversation.send(SubmitPrompt("first"))
        await s.until(lambda: len(s.sampler.script) == 2)
        s.conversation.send(SubmitPrompt("second"))
        s.conversation.send(SubmitPrompt("third"))
        await s.until(lambda: len(s.state.queued_prompts) == 2)
        s.conversation.send(Interrupt())
        await s.until_event(TurnFinished, 3)
        assert s.texts() == ["first", "…", "second", "1", "third", "2"]
        assert s.of(QueueChanged)[-1].prompts == ()


async def test_a_queued_prompt_can_be_taken_back() -> None:
    async with stage([asyncio.Event().wait]) as s:  # type: ignore[list-item]  # never answers
        s.conversation.send(SubmitPrompt("first"))
        await s.until(lambda: not s.sampler.script)
        s.conversation.send(SubmitPrompt("second"))
        s.conversation.send(TakeBackQueued())
        returned = await s.until_event(PromptReturned)
        assert returned.text == "second"
        assert s.state.queued_prompts == {}


@pytest.mark.parametrize(
    ("answer", "feedback", "result"),
    [
        ("once", "", "a"),
        ("session", "", "a"),
        ("no", "", "The user did not allow this call. Do not"),
        ("no", "use make clean", "They said: use make clean"),
        ("no", NOBODY_DECIDES, "this call needs a person's permission. Nobody is here"),
    ],
)
async def test_a_question_is_asked_and_the_answer_decides(answer: Any, feedback: str, result: str) -> None:
    tool = FakeTool(is_read_only=False, question=ALLOW_QUESTION)
    script = [response(call("a")), response(call("b")), response(text("ok"))]
    async with stage(script if answer == "session" else [script[0], script[2]], tool) as s:
        s.conversation.send(SubmitPrompt("go"))
        asked = await s.until_event(PermissionNeeded)
        assert asked.question.subject == "rm -rf build"
        s.conversation.send(AnswerPermission(asked.request_id, answer, feedback))
        await s.until_event(TurnFinished)
        assert result in s.results()["a"]
        assert len(s.of(PermissionNeeded)) == 1


async def test_an_interrupt_withdraws_the_question() -> None:
    tool = FakeTool(is_read_only=False, question=ALLOW_QUESTION)
    async with stage([response(call("a"))], tool) as s:
        s.conversation.send(SubmitPrompt("go"))
        asked = await s.until_event(PermissionNeeded)
        s.conversation.send(Interrupt())
        await s.until_event(TurnFinished)
        s.conversation.send(AnswerPermission(asked.request_id, "once"))
        assert s.results() == {"a": INTERRUPTED_TEXT}
        assert tool.log == []


async def test_a_command_that_works_waits_for_the_turn_and_runs_alone() -> None:
    ran: list[bool] = []

    async with stage([asyncio.Event().wait]) as s:  # type: ignore[list-item]  # never answers

        async def work() -> None:
            ran.append(s.of(TurnFinished) != [])

        s.commands["compact"] = lambda argument: work()
        s.conversation.send(SubmitPrompt("go"))
        await s.until(lambda: not s.sampler.script)
        s.conversation.send(RunCommand("compact"))
        s.conversation.send(Interrupt())
        await s.until(lambda: ran == [True])


async def test_an_error_of_a_command_is_one_notice() -> None:
    def fail(argument: str) -> None:
        raise PyagentError("cannot", hint="so do this")

    async with stage([]) as s:
        s.commands["model"] = fail
        s.conversation.send(RunCommand("model", "x"))
        s.conversation.send(RunCommand("nonsense"))
        await s.until(lambda: len(s.events) >= 4)
        notices = [event for event in s.events if isinstance(event, Notice)]
        assert [notice.text for notice in notices] == ["cannot", "There is no command /nonsense."]
        assert [event.name for event in s.events if isinstance(event, CommandFinished)] == ["model", "nonsense"]


def is_valid(state: ConversationState) -> bool:
    """Every call is answered exactly once, behind it and before the next response; nothing is answered twice."""
    uses: list[str] = []
    results: list[str] = []
    for item in state.view:
        for block in item.blocks():
            if isinstance(block, ToolUseBlock):
                uses.append(block.id)
            if isinstance(block, ToolResultBlock):
                assert block.tool_use_id in uses
                results.append(block.tool_use_id)
        if isinstance(item.entry, AssistantEntry):
            assert results == uses[: len(results)]
            assert len(uses) - len(results) == sum(isinstance(b, ToolUseBlock) for b in item.blocks())
    return uses == results


ACTIONS = ("prompt", "interrupt", "allow", "deny", "take_back", "command", "step", "step", "step", "step", "step")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(ACTIONS), max_size=60), st.integers(0, 2**32))
async def test_any_interleaving_leaves_a_valid_log_and_loses_no_prompt(actions: list[str], seed: int) -> None:
    # Drawn from a seed: the strategies' own draws may not happen inside code that catches exceptions.
    chance = random.Random(seed)
    numbers = iter(range(10_000))

    async def pause(words: str = "") -> None:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)

    async def answer() -> Response:
        await pause()
        kind = chance.choice(["text", "calls", "ask", "cut", "empty", "error"])
        if kind == "error":
            raise ModelUnavailableError("down")
        if kind == "empty":
            return response()
        if kind == "text":
            return response(text(f"t{next(numbers)}"))
        blocks = [call(f"c{next(numbers)}", name="Ask" if kind == "ask" else "Echo") for _ in range(3)]
        return response(text("x"), *blocks, stop_reason="max_tokens" if kind == "cut" else "tool_use")

    tools = (FakeTool(before=pause), FakeTool("Ask", is_read_only=False, question=ALLOW_QUESTION, before=pause))
    async with stage([answer] * 500, *tools) as s:
        s.commands["compact"] = lambda argument: pause()
        sent: list[str] = []
        for action in actions:
            open_questions = [e.request_id for e in s.of(PermissionNeeded)]
            match action:
                case "prompt":
                    sent.append(f"prompt {next(numbers)}")
                    s.conversation.send(SubmitPrompt(sent[-1]))
                case "interrupt":
                    s.conversation.send(Interrupt())
                case "allow" | "deny" if open_questions:
                    s.conversation.send(AnswerPermission(open_questions[-1], "once" if action == "allow" else "no"))
                case "take_back":
                    s.conversation.send(TakeBackQueued())
                case "command":
                    s.conversation.send(RunCommand("compact"))
                case _:
                    await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)
        s.conversation.send(Shutdown())
        await s.running
        assert is_valid(s.state)
        told = [record.payload.text for record in s.state.records if isinstance(record.payload, UserEntry)]
        returned = [event.text for event in s.of(PromptReturned)]
        waiting = list(s.state.queued_prompts.values())
        handled = [words for words in sent if words in told or words in returned or words in waiting]
        assert handled == sent
