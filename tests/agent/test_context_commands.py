"""Pins, compacting a part, cancelling, and typing meanwhile: over the wire."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pyagent.commands import Interrupt, RunCommand, SubmitPrompt
from pyagent.events import CompactionEnded, CompactionFinished, CompactionStarted, Notice, Report, TurnFinished
from pyagent.log import CompactionFailed
from tests.agent.background import FORGETFUL_SUMMARY, Worker, kind_of_request
from tests.agent.support import launch_options, records_on_disk, running_agent, state_on_disk, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.recorded import Recorded, divergence
from tests.fakes.script import BEFORE_HEADERS, Answer, ToolRounds, http_error, reply, stall

WINDOW_TOKENS = 60_000
NO_NOTES = {"PYAGENT_SESSION_MEMORY": "0"}


def talking(rounds: int = 2) -> ToolRounds:
    command = "yes 'the quick brown fox jumps over the lazy dog' | head -n 100 # {round}"
    return ToolRounds([("Bash", {"command": command})], rounds=rounds)


def texts(recorded: Recorded) -> list[str]:
    """The texts of a request's messages, in order."""
    return [
        block["text"]
        for message in recorded.body["messages"]
        for block in message["content"]
        if block["type"] == "text"
    ]


async def test_pins_stand_word_for_word_behind_a_compaction_until_they_are_taken_back(tmp_path: Path) -> None:
    async with FakeMessagesServer(Worker(talking()), window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), NO_NOTES)
        (options.cwd / "rules.txt").write_text("old rules")
        async with running_agent(options) as agent:
            await agent.prompt("begin")
            await agent.command("pin", "Never touch  vendor/; it is copied.", Notice)
            await agent.command("pin", "@rules.txt", Notice)
            listed = await agent.command("pin", "", Report)
            (options.cwd / "rules.txt").write_text("rules as of now: 4 spaces")
            await agent.command("compact", "", CompactionFinished)
            await agent.prompt("go on")
            after_pins = server.message_requests[-1]
            await agent.command("unpin", "1", Notice)
            await agent.command("compact", "", CompactionFinished)
            await agent.prompt("and on")
            after_unpin = server.message_requests[-1]
    assert listed.text.splitlines()[0] == "1. Never touch  vendor/; it is copied."
    assert "Never touch  vendor/; it is copied." in "\n".join(texts(after_pins))
    assert "rules as of now: 4 spaces" in "\n".join(texts(after_pins))
    assert "Never touch" not in "\n".join(texts(after_unpin))
    assert "rules as of now: 4 spaces" in "\n".join(texts(after_unpin))


async def test_messages_and_lines_are_pinned_as_they_were_said(tmp_path: Path) -> None:
    async with FakeMessagesServer(Worker(talking()), window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), NO_NOTES)
        (options.cwd / "rules.txt").write_text("one\ntwo  words\nthree\nfour")
        async with running_agent(options) as agent:
            await agent.prompt("the first thing I said")
            ended = await agent.prompt("and a second")
            assert isinstance(ended, TurnFinished)
            for argument in ("prompt 1", "last", "answer 1", "@rules.txt#L2-3"):
                await agent.command("pin", argument, Notice)
            listed = await agent.command("pin", "", Report)
            missing = [await agent.command("pin", argument, Notice) for argument in ("prompt 9", "@rules.txt:7", "@no")]
            (options.cwd / "rules.txt").write_text("all changed")
            await agent.command("compact", "shortly", CompactionFinished)
            await agent.prompt("go on")
    said = "\n".join(texts(server.message_requests[-1]))
    assert "A message the user pinned (your prompt 1):\nthe first thing I said" in said
    assert f"A message the user pinned (the last answer):\n{ended.text}" in said
    assert f"A line the user pinned ({options.cwd}/rules.txt:2-3):\ntwo  words\nthree" in said
    sources = [line.partition(":")[0] for line in listed.text.splitlines()]
    assert sources[:2] == ["1. your prompt 1", "2. the last answer"]
    assert [notice.text.split()[:3] for notice in missing] == [
        ["There", "is", "no"],
        ["There", "is", "nothing"],
        ["There", "is", "no"],
    ]
    assert sum(record.payload.kind == "pin" for record in records_on_disk(options)) == 4


async def test_a_pin_that_was_never_said_is_told_to_the_model_at_once(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Worker(talking(0))) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        await agent.prompt("only in this prompt")
        await agent.command("pin", "Speak plainly.", Notice)
        await agent.command("pin", "only in this prompt", Notice)
        await agent.prompt("next")
    said = texts(server.message_requests[-1])
    assert sum("Speak plainly." in text for text in said) == 1
    assert sum("only in this prompt" in text for text in said) == 1


async def test_compacting_from_a_prompt_keeps_what_stands_before_byte_for_byte(tmp_path: Path) -> None:
    worker = Worker(talking(3))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), NO_NOTES)
        async with running_agent(options) as agent:
            await agent.prompt("the first task")
            before = server.message_requests[-1]
            await agent.prompt("the second task")
            await agent.prompt("the third task")
            preview = await agent.command("compact", "preview from 2", Report)
            await agent.command("compact", "from 2", CompactionFinished)
            summary = next(r for r in reversed(server.message_requests) if kind_of_request(r) == "summary")
            await agent.prompt("go on")
            after = server.message_requests[-4]
        server.assert_finished()
    found = divergence(before.body, after.body)
    assert found is None
    assert "the second task" in texts(summary)[-1]
    joined = "\n".join(texts(after))
    assert "Some work." in joined
    assert joined.index("the first task") < joined.index("Some work.")
    assert after.input_tokens < server.message_requests[-5].input_tokens
    assert "kept word for word" in preview.text


@pytest.mark.parametrize("argument", ["upto 1", "upto 9", "from 9", "from 0"])
async def test_a_part_that_is_not_there_is_refused_in_words(tmp_path: Path, argument: str) -> None:
    async with (
        FakeMessagesServer(Worker(talking(0))) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        await agent.prompt("one")
        told = await agent.command("compact", argument, Notice)
    assert told.level == "error"
    assert "There is no prompt" in told.text


async def test_a_cancelled_compaction_is_in_the_log_and_changes_nothing(tmp_path: Path) -> None:
    worker = Worker(talking(), summary=stall(reply(FORGETFUL_SUMMARY), BEFORE_HEADERS))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), NO_NOTES)
        async with running_agent(options) as agent:
            await agent.prompt("begin")
            items = state_on_disk(options).view.items
            since = len(agent.events)
            agent.send(RunCommand("compact", "in short"))
            await server.wait_until(lambda: server.stalled_count == 1)
            agent.send(Interrupt())
            ended = await agent.next_of(CompactionEnded, since=since)
            assert state_on_disk(options).view.items == items
            assert isinstance(await agent.prompt("go on"), TurnFinished)
    assert ended.outcome == "cancelled"
    failures = [r.payload for r in records_on_disk(options) if isinstance(r.payload, CompactionFailed)]
    assert [(f.trigger, f.is_cancel) for f in failures] == [("manual", True)]
    assert not state_on_disk(options).tracking.get("failures")


async def test_an_interrupt_without_a_compaction_is_no_cancelled_one(tmp_path: Path) -> None:
    async with FakeMessagesServer(Worker(lambda request: stall(reply("slow"), BEFORE_HEADERS))) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            agent.send(SubmitPrompt("begin"))
            await server.wait_until(lambda: server.stalled_count == 1)
            agent.send(Interrupt())
            await agent.next_of(TurnFinished, since=0)
    assert not agent.all_of(CompactionEnded)
    assert not any(isinstance(r.payload, CompactionFailed) for r in records_on_disk(options))


@pytest.mark.parametrize(
    ("answer", "how"),
    [
        (lambda: reply(FORGETFUL_SUMMARY), "success"),
        (lambda: http_error(400, "invalid_request_error", "no summaries here"), "extract"),
        (lambda: reply(FORGETFUL_SUMMARY), "cancel"),
    ],
    ids=["success", "failure", "cancel"],
)
async def test_prompts_typed_during_a_compaction_are_delivered_in_order(
    tmp_path: Path, answer: Callable[[], Answer], how: str
) -> None:
    worker = Worker(talking(1), summary=stall(answer(), BEFORE_HEADERS))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), NO_NOTES)
        async with running_agent(options) as agent:
            for number in range(3):
                await agent.prompt(f"task {number}")
            turns = len(agent.all_of(TurnFinished))
            since = len(agent.events)
            agent.send(RunCommand("compact", "in short"))
            await agent.next_of(CompactionStarted, since=since)
            await server.wait_until(lambda: worker.counts["summary"] == 1)
            for text in ("typed first", "typed second", "typed third"):
                agent.send(SubmitPrompt(text))
            if how == "cancel":
                agent.send(Interrupt())
            else:
                server.release()
            await agent.until(lambda: len(agent.all_of(TurnFinished)) == turns + 3)
    joined = "\n".join(texts(server.message_requests[-1]))
    assert joined.index("typed first") < joined.index("typed second") < joined.index("typed third")
    assert bool(state_on_disk(options).boundaries) is (how != "cancel")
    assert not state_on_disk(options).queued_prompts
