"""Lost prompt caches: what the server is asked, what the person is told, and what stands on the bill."""

from __future__ import annotations

from pathlib import Path

from pyagent.agent.reports import breaks_text, cost_report
from pyagent.agent.wire.cache_break import CacheBreak, CacheWatch
from pyagent.agent.wire.catalogue import ModelInfo, model_info
from pyagent.agent.wire.client import DEFAULT_BASE_URL, AnthropicClient, Credentials
from pyagent.events import Report, TurnFinished
from pyagent.log import CallCost, Record
from pyagent.messages import Usage
from pyagent.state import ConversationState
from tests.agent.support import launch_options, running_agent
from tests.agent.wire.builders import OPUS, START, Conversation, prompt
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.persona import first_party
from tests.fakes.script import Answer, Request, Script, http_error, reply, tool_use

BREAK = CacheBreak(("the system text changed",), 30_000, 2_000, 0.0123)
DIAGNOSTICS_BETA = "cache-diagnosis-2026-04-07"


def first_party_client(server: FakeMessagesServer) -> AnthropicClient:
    """Reaches the fake server where the agent believes to speak to the first party."""
    return AnthropicClient(Credentials("a-key", base_url=server.url))


async def test_the_first_party_is_asked_why_the_cache_was_missed_and_its_word_is_shown(tmp_path: Path) -> None:
    reason = {"cache_miss_reason": {"type": "messages_changed", "cache_missed_input_tokens": 9_000}}

    def lost(request: Request) -> Answer:
        usage = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 30_000}
        return reply("two", usage=usage, extra={"diagnostics": reason})

    warm = reply("one", usage={"cache_read_input_tokens": 0, "cache_creation_input_tokens": 30_000})
    async with FakeMessagesServer(Script([warm, lost])) as server:
        options = launch_options(tmp_path, DEFAULT_BASE_URL)
        async with running_agent(options, first_party_client(server)) as agent:
            await agent.prompt("first")
            await agent.prompt("second")
            cost = await agent.command("cost", "", Report)
            context = await agent.command("context", "", Report)
    first, second = server.message_requests
    assert first.body["diagnostics"] == {"previous_message_id": None}
    assert second.body["diagnostics"] == {"previous_message_id": first.message_id}
    assert DIAGNOSTICS_BETA in first.betas
    assert any("the server saw other messages" in line for line in agent.notices)
    assert cost.data["cache_breaks"][0]["tokens"] == 30_000
    assert "Prompt cache lost unexpectedly" in cost.text
    assert "lost unexpectedly" in context.text


async def test_a_server_that_refuses_the_question_is_not_asked_again(tmp_path: Path) -> None:
    refused = http_error(400, "invalid_request_error", "diagnostics: Extra inputs are not permitted")
    async with FakeMessagesServer(Script([refused, "one", "two"]), persona=first_party()) as server:
        options = launch_options(tmp_path, DEFAULT_BASE_URL)
        async with running_agent(options, first_party_client(server)) as agent:
            assert isinstance(await agent.prompt("first"), TurnFinished)
            assert isinstance(await agent.prompt("second"), TurnFinished)
    asked = ["diagnostics" in request.body for request in server.message_requests]
    assert asked == [True, False, False]
    assert DIAGNOSTICS_BETA not in server.message_requests[1].betas
    assert len([line for line in agent.notices if "cache diagnostics" in line]) == 1


async def test_other_servers_are_never_asked(tmp_path: Path) -> None:
    call = reply(tool_use("Bash", {"command": "echo hello"}))
    async with (
        FakeMessagesServer(Script([call, "done"])) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        await agent.prompt("go")
    assert not any("diagnostics" in request.body for request in server.message_requests)


def test_a_pending_or_unknown_diagnosis_adds_no_cause() -> None:
    talk = Conversation()
    talk.add(prompt("go"))
    rendered = talk.renderer.render(talk.state.view, OPUS)
    for told in (None, {"cache_miss_reason": None}, {"cache_miss_reason": {"type": "unavailable"}}):
        watch = CacheWatch().requested(OPUS, rendered, now_s=0.0, is_announced=False)
        watch, _ = watch.answered(Usage(cache_creation_input_tokens=30_000), talk_info())
        watch = watch.requested(OPUS, rendered, now_s=1.0, is_announced=False)
        _, found = watch.answered(Usage(cache_creation_input_tokens=30_000), talk_info(), told)
        assert found is not None
        assert found.causes == ("the server no longer held it",)


def test_the_bill_names_what_calls_were_for_and_what_lost_caches_cost() -> None:
    state = ConversationState()
    state.apply(Record(0, "a", START, CallCost("compact", "claude-opus-5-5", Usage(input_tokens=10), 0.5)))
    report = cost_report(state, 10.0, [BREAK])
    assert report.data["sources"] == {"compact": {"calls": 1, "cost_usd": 0.5}}
    assert "for the summaries: $0.5000 in 1 call" in report.text
    assert "28,000 tokens sent anew, $0.0123 more: the system text changed" in report.text
    assert breaks_text([]) == ""


def talk_info() -> ModelInfo:
    return model_info(OPUS.model)
