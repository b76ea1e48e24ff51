"""The server's own summary over the wire: signed, sent back word for word, and never in the way of another model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyagent.events import CompactionFinished, Notice, SettingMoved, TurnFinished
from pyagent.launch import LaunchOptions
from pyagent.log import Boundary, CallCost
from tests.agent.background import Worker
from tests.agent.support import launch_options, records_on_disk, running_agent, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.persona import Persona, first_party, strict_gateway
from tests.fakes.recorded import Recorded
from tests.fakes.script import (
    Answer,
    Request,
    compaction,
    http_error,
    reply,
    thinking,
    tool_use,
)

WINDOW_TOKENS = 60_000
SUMMARY = "The user had things counted, and they were."
BETA = "compact-2026-09-04"


class Signing:
    """Answers requests for a signed summary with `answers`, then with a good one, and everything else as `work`."""

    def __init__(self, *answers: Answer, rounds: int = 6) -> None:
        self._answers = list(answers)
        self._round = 0
        self._rounds = rounds
        self.worker = Worker(self._work)

    def __call__(self, request: Request) -> Answer:
        if "compaction" in request.body:
            return self._answers.pop(0) if self._answers else reply(compaction(SUMMARY))
        return self.worker(request)

    def _work(self, request: Request) -> Answer:
        self._round += 1
        if self._round % self._rounds:
            call = tool_use("Bash", {"command": f"seq 1 1500 # {self._round}"})
            return reply(thinking(f"On to round {self._round}."), call)
        return reply(thinking("That is all."), "Done.")


def server_strategy(folder: Path, url: str, **changes: Any) -> LaunchOptions:
    options = with_environ(launch_options(folder, url, **changes), {"PYAGENT_SESSION_MEMORY": "0"})
    options.home.mkdir(parents=True, exist_ok=True)
    (options.home / "settings.json").write_text(json.dumps({"compaction": {"strategy": "server"}}))
    return options


def serving(model: Signing, persona: Persona | None = None) -> FakeMessagesServer:
    return FakeMessagesServer(model, window_tokens=WINDOW_TOKENS, binding="all", persona=persona or first_party())


def first_block(request: Recorded) -> dict[str, Any]:
    block: dict[str, Any] = request.body["messages"][0]["content"][0]
    return block


def asked(server: FakeMessagesServer) -> list[Recorded]:
    return [request for request in server.message_requests if "compaction" in request.body]


async def test_the_signed_summary_stands_first_and_what_is_kept_behind_it_is_accepted_with_its_thinking(
    tmp_path: Path,
) -> None:
    async with serving(Signing()) as server:
        options = server_strategy(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("count")
            finished = await agent.command("compact", "", CompactionFinished)
            ended = await agent.prompt("go on")
        # With the prefix check on, a wrong cut would be refused.
        server.assert_finished()
        request = asked(server)[0]
    after = server.message_requests[server.message_requests.index(request) + 1]
    assert isinstance(ended, TurnFinished)
    assert finished.after_tokens < finished.before_tokens
    assert BETA in request.betas
    assert all(BETA in later.betas for later in server.message_requests[server.message_requests.index(request) :])
    block = first_block(after)
    assert (block["type"], block["content"]) == ("compaction", SUMMARY)
    assert block["signature"]
    kept = [part for message in after.body["messages"] for part in message["content"] if part["type"] == "thinking"]
    assert kept
    assert "count" in json.dumps(after.body["messages"][1:])
    records = [record.payload for record in records_on_disk(options)]
    assert [payload.layer for payload in records if isinstance(payload, Boundary)] == ["server"]
    [bill] = [payload for payload in records if isinstance(payload, CallCost)]
    assert bill.cost_usd


async def test_an_undo_brings_the_conversation_back_and_the_block_leaves(tmp_path: Path) -> None:
    async with serving(Signing()) as server:
        async with running_agent(server_strategy(tmp_path, server.url)) as agent:
            await agent.prompt("count")
            before = server.message_requests[-1].body["messages"]
            await agent.command("compact", "", CompactionFinished)
            await agent.command("compact", "undo", Notice)
            await agent.prompt("go on")
        server.assert_finished()
        messages = server.message_requests[asked_at(server) + 1].body["messages"]
    assert first_block(server.message_requests[asked_at(server) + 1])["type"] == "text"
    assert len(messages) > len(before)


async def test_a_resumed_session_sends_the_block_word_for_word(tmp_path: Path) -> None:
    async with serving(Signing()) as server:
        options = server_strategy(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("count")
            await agent.command("compact", "", CompactionFinished)
            await agent.prompt("go on")
        sent, count = first_block(server.message_requests[-1]), len(server.message_requests)
        async with running_agent(replace(options, is_continued=True)) as agent:
            await agent.prompt("and on")
        server.assert_finished()
    assert sent["type"] == "compaction"
    assert first_block(server.message_requests[count]) == sent


async def test_a_second_summary_is_signed_on_top_of_the_first(tmp_path: Path) -> None:
    async with serving(Signing()) as server:
        async with running_agent(server_strategy(tmp_path, server.url)) as agent:
            for text in ("count", "go on"):
                await agent.prompt(text)
                await agent.command("compact", "", CompactionFinished)
            await agent.prompt("and on")
        server.assert_finished()
        first, second = asked(server)[0], asked(server)[-1]
    assert first_block(first)["type"] == "text"
    assert first_block(second)["type"] == "compaction"
    assert first_block(server.message_requests[-1])["signature"] != first_block(second)["signature"]


async def test_a_model_the_summary_was_not_signed_for_reads_its_text(tmp_path: Path) -> None:
    async with serving(Signing()) as server:
        async with running_agent(server_strategy(tmp_path, server.url)) as agent:
            await agent.prompt("count")
            await agent.command("compact", "", CompactionFinished)
            await agent.command("model", "claude-haiku-4-5", SettingMoved)
            await agent.prompt("go on")
        server.assert_finished()
    last = server.message_requests[-1]
    assert "haiku" in last.body["model"]
    assert first_block(last)["type"] == "text"
    assert SUMMARY in first_block(last)["text"]


async def test_where_the_server_makes_no_summary_the_model_is_asked_for_one(tmp_path: Path) -> None:
    signing = Signing(reply(compaction(None)))
    async with serving(signing) as server:
        options = server_strategy(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("count")
            await agent.command("compact", "", CompactionFinished)
            await agent.prompt("go on")
        server.assert_finished()
    assert signing.worker.counts["summary"] == 1
    assert first_block(server.message_requests[-1])["type"] == "text"
    [boundary] = [r.payload for r in records_on_disk(options) if isinstance(r.payload, Boundary)]
    assert boundary.receipt["calls"] == 2


async def test_a_gateway_that_refuses_the_field_is_asked_once_and_the_model_summarises(tmp_path: Path) -> None:
    signing = Signing()
    gateway = strict_gateway(refused_fields=frozenset({"compaction"}))
    async with serving(signing, gateway) as server:
        async with running_agent(server_strategy(tmp_path, server.url)) as agent:
            await agent.prompt("count")
            await agent.command("compact", "", CompactionFinished)
            await agent.prompt("go on")
            await agent.command("compact", "", CompactionFinished)
        assert signing.worker.counts["summary"] == 2
        assert len(asked(server)) <= 2
    assert sum("server-side compaction" in text for text in agent.notices) == 1


async def test_a_summary_the_server_takes_back_no_more_is_sent_as_text(tmp_path: Path) -> None:
    refusal = http_error(400, "invalid_request_error", "messages.0.content.0: invalid `compaction` block signature")

    class Forgetful(Signing):
        has_refused = False

        def __call__(self, request: Request) -> Answer:
            blocks = request.body["messages"][0]["content"]
            if not self.has_refused and blocks[0]["type"] == "compaction":
                self.has_refused = True
                return refusal
            return super().__call__(request)

    async with serving(Forgetful()) as server:
        options = server_strategy(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("count")
            await agent.command("compact", "", CompactionFinished)
            ended = await agent.prompt("go on")
    assert isinstance(ended, TurnFinished)
    assert SUMMARY in first_block(server.message_requests[-1])["text"]


async def test_by_default_the_server_is_not_asked(tmp_path: Path) -> None:
    async with serving(Signing()) as server:
        options = with_environ(launch_options(tmp_path, server.url), {"PYAGENT_SESSION_MEMORY": "0"})
        async with running_agent(options) as agent:
            await agent.prompt("count")
            await agent.command("compact", "", CompactionFinished)
        server.assert_finished()
        assert not asked(server)


def asked_at(server: FakeMessagesServer) -> int:
    return server.message_requests.index(asked(server)[-1])
