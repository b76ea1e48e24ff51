"""The same short tool session against every kind of server: it completes, and each gap is told once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyagent.agent.wire.catalogue import DEFAULT_MODEL
from pyagent.events import CompactionFinished, TurnFinished
from tests.agent.support import launch_options, running_agent
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.persona import Persona, first_party, html_413, json_413, llama_cpp, ollama, strict_gateway, vllm
from tests.fakes.script import ToolRounds

LOCAL_MODEL = "qwen3-coder"


@dataclass(frozen=True, slots=True)
class Case:
    make: Callable[[], Persona]
    model: str = DEFAULT_MODEL
    features: tuple[str, ...] = ()
    """What the notices say the server does not take."""
    refused_count: int = 0
    """Requests that were refused before the gaps were known."""


CASES = {
    "first_party": Case(first_party),
    "ollama": Case(ollama, LOCAL_MODEL),
    "ollama_without_stop_reason": Case(lambda: ollama(sends_stop_reason=False), LOCAL_MODEL),
    "vllm": Case(vllm, LOCAL_MODEL),
    "llama_cpp": Case(llama_cpp, LOCAL_MODEL),
    "strict_gateway": Case(strict_gateway, features=("control of bound thinking",), refused_count=1),
    "strict_gateway_of_old": Case(
        lambda: strict_gateway(refused_fields=frozenset({"thinking", "cache_control", "tool_choice"})),
        features=("this thinking setting",),
        refused_count=1,
    ),
    "html_413": Case(lambda: html_413(limit_bytes=60_000)),
    "json_413": Case(lambda: json_413(limit_bytes=60_000)),
}


@pytest.mark.parametrize("name", CASES)
async def test_the_same_session_completes_against_every_server(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    calls = [("Bash", {"command": "seq 1 {round}0"}), ("Read", {"file_path": "notes.txt"})]
    rounds = ToolRounds(calls, rounds=8, think=True, parallel=2, note="Working.")
    async with FakeMessagesServer(rounds, persona=case.make()) as server:
        options = launch_options(tmp_path, server.url, model=case.model)
        (options.cwd / "notes.txt").write_text("remember the milk\n")
        async with running_agent(options) as agent:
            for prompt in ("one", "two"):
                ended = await agent.prompt(prompt)
                assert isinstance(ended, TurnFinished), ended
                assert ended.text == "Done."
        told = [line for line in agent.notices if "does not take" in line]
        assert told == [f"This server does not take {feature}; going on without." for feature in case.features]
        refused = [request for request in server.message_requests if request.is_refusal]
        assert len(refused) == case.refused_count, [request.errors for request in refused]
        seen = len(server.message_requests)
        async with running_agent(options) as again:
            await again.prompt("three")
        assert [line for line in again.notices if "does not take" in line] == []
        assert not any(request.is_refusal for request in server.message_requests[seen:])
    assert rounds.finished_turn_count == 3


@pytest.mark.parametrize("make", [html_413, json_413], ids=["html_413", "json_413"])
async def test_a_body_over_the_limit_is_compacted_and_the_turn_goes_on(
    tmp_path: Path, make: Callable[..., Persona]
) -> None:
    rounds = ToolRounds(
        [("Bash", {"command": "seq {round} 4000"})],
        rounds=10,
        is_summary=lambda request: "<summary>" in request.last_text,
        summary_text="<summary>" + "\n".join(f"{n}. Section" for n in range(1, 10)) + "</summary>",
    )
    async with (
        FakeMessagesServer(rounds, persona=make(limit_bytes=100_000)) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        ended = await agent.prompt("count")
    assert isinstance(ended, TurnFinished), ended
    assert ended.text == "Done."
    assert {request.status for request in server.message_requests} == {200, 413}
    assert {finished.layer for finished in agent.all_of(CompactionFinished)} <= {"reactive", "extractive"}
