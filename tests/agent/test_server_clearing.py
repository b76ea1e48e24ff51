"""API-native clearing, cached edits and the economy policy: over the wire."""

from __future__ import annotations

import json
from pathlib import Path

from pyagent.events import Report
from pyagent.launch import LaunchOptions
from pyagent.log import ClearResults
from tests.agent.background import Worker
from tests.agent.support import launch_options, running_agent, state_on_disk, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.persona import Persona, strict_gateway, vllm
from tests.fakes.script import ToolRounds

WINDOW_TOKENS = 60_000
NATIVE = {"PYAGENT_API_CONTEXT_MANAGEMENT": "1", "PYAGENT_SESSION_MEMORY": "0", "API_TARGET_INPUT_TOKENS": "9000"}


def reading(rounds: int = 8, lines: int = 190) -> ToolRounds:
    command = f"yes 'the quick brown fox jumps over the lazy dog' | head -n {lines} # {{round}}"
    return ToolRounds([("Bash", {"command": command})], rounds=rounds)


def with_settings(options: LaunchOptions, **settings: object) -> LaunchOptions:
    options.home.mkdir(parents=True, exist_ok=True)
    (options.home / "settings.json").write_text(json.dumps(settings))
    return options


async def test_the_server_clears_old_results_and_what_it_did_is_shown(tmp_path: Path) -> None:
    async with FakeMessagesServer(Worker(reading()), window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), NATIVE)
        async with running_agent(options) as agent:
            await agent.prompt("read on")
            report = await agent.command("context", "", Report)
        server.assert_finished()
    fields = [request.body["context_management"] for request in server.message_requests]
    assert {edit["type"] for edit in fields[0]["edits"]} >= {"clear_tool_uses_20250919"}
    assert "context-management-2025-06-27" in server.message_requests[0].betas
    assert "Left out by the server" in report.text
    # Nothing local cleared or compacted what the server was already leaving out.
    state = state_on_disk(options)
    assert not any(isinstance(record.payload, ClearResults) for record in state.branch)
    assert server.message_requests[-1].input_tokens < WINDOW_TOKENS / 2


async def test_a_server_that_refuses_the_field_is_asked_without_it_and_told_of_once(tmp_path: Path) -> None:
    def persona() -> Persona:
        return strict_gateway(refused_fields=frozenset({"context_management"}))

    async with FakeMessagesServer(Worker(reading(2)), window_tokens=WINDOW_TOKENS, persona=persona()) as server:
        options = with_environ(launch_options(tmp_path, server.url), NATIVE)
        async with running_agent(options) as agent:
            await agent.prompt("read on")
            await agent.prompt("and on")
    with_field = [request for request in server.message_requests if "context_management" in request.body]
    assert len(with_field) <= 1
    assert sum("does not take context management" in text for text in agent.notices) == len(with_field)
    assert server.message_requests[-1].status == 200


async def test_disable_compact_keeps_native_clearing_off(tmp_path: Path) -> None:
    async with FakeMessagesServer(Worker(reading(2)), window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), {**NATIVE, "DISABLE_COMPACT": "1"})
        async with running_agent(options) as agent:
            await agent.prompt("read on")
    assert all("context_management" not in request.body for request in server.message_requests)


async def test_only_a_declared_server_sees_cache_edits_each_new_once_and_then_in_its_place(tmp_path: Path) -> None:
    for is_declared in (True, False):
        worker = Worker(reading(80, lines=60))
        async with FakeMessagesServer(worker, window_tokens=200_000, persona=vllm()) as server:
            options = with_environ(
                launch_options(tmp_path / str(is_declared), server.url, model="claude-sonnet-5-5"),
                {"PYAGENT_CACHED_MICROCOMPACT": "1", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"},
            )
            options = with_settings(options, cacheEditServers=[server.url] if is_declared else [])
            async with running_agent(options) as agent:
                await agent.prompt("read on")
        sent = [request.body["cache_edits"] for request in server.message_requests if "cache_edits" in request.body]
        assert bool(sent) is is_declared
        if is_declared:
            assert [edit["new"] for edit in sent[0]] == [True]
            assert [edit["new"] for edit in sent[1]] == [False]
            assert sent[0][0]["drop"] == sent[1][0]["drop"]
            assert len(sent[0][0]["drop"]) > 1
        # The local view is untouched: the edit lives at the server.
        assert not any(isinstance(record.payload, ClearResults) for record in state_on_disk(options).branch)


async def test_under_the_economy_policy_the_conversation_is_kept_at_the_cheapest_size(tmp_path: Path) -> None:
    sizes: dict[str, int] = {}
    for policy in ("window", "economy"):
        async with FakeMessagesServer(Worker(reading(6)), window_tokens=200_000) as server:
            options = with_environ(
                launch_options(tmp_path / policy, server.url),
                {"PYAGENT_COMPACTION_POLICY": policy, "PYAGENT_SESSION_MEMORY": "0"},
            )
            async with running_agent(options) as agent:
                for _ in range(6):
                    await agent.prompt("read on")
                report = await agent.command("context", "", Report)
            server.assert_finished()
        sizes[policy] = max(request.input_tokens for request in server.message_requests)
        assert "per 10 calls" in report.text
    assert sizes["economy"] < 0.8 * sizes["window"]
