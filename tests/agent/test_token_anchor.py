"""The gauge rests on the server's count where no response says how much the context holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pyagent.compaction.count import ContextCounter
from pyagent.events import CompactionFinished, GaugeMoved, SettingMoved, TurnFinished
from pyagent.log import Snip
from tests.agent.support import LiveAgent, launch_options, running_agent
from tests.agent.wire.builders import Conversation, prompt
from tests.fakes import persona
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Script, ToolRounds

OTHER_TOKENIZER = "claude-sonnet-4-6"
COUNT_PATH = "/v1/messages/count_tokens"
SUMMARY = "<summary>" + "\n".join(f"{n}. Section" for n in range(1, 10)) + "</summary>"


def counted(server: FakeMessagesServer) -> int:
    return len([request for request in server.requests if request.path == COUNT_PATH])


def is_measured(agent: LiveAgent) -> bool:
    return not agent.all_of(GaugeMoved)[-1].gauge.is_estimate


async def test_a_switch_to_another_tokenizer_has_the_context_counted(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script(["one"])) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        await agent.prompt("first")
        assert counted(server) == 0
        since = len(agent.events)
        await agent.command("model", OTHER_TOKENIZER, SettingMoved)
        await agent.until(lambda: counted(server) == 1 and is_measured(agent))
    assert any(event.gauge.is_estimate for event in agent.events[since:] if isinstance(event, GaugeMoved))


async def test_a_session_resumed_with_another_tokenizer_is_counted_at_once(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["one"])) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("first")
        async with running_agent(replace(options, is_continued=True, model=OTHER_TOKENIZER)) as agent:
            await agent.until(lambda: counted(server) == 1 and is_measured(agent))


async def test_what_a_compaction_left_is_counted(tmp_path: Path) -> None:
    rounds = ToolRounds(
        [("Bash", {"command": "seq 1 2000"})],
        rounds=6,
        is_summary=lambda request: "<summary>" in request.last_text,
        summary_text=f"<analysis>.</analysis>{SUMMARY}",
    )
    async with (
        FakeMessagesServer(rounds, window_tokens=60_000) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        await agent.prompt("count")
        await agent.command("compact", "", CompactionFinished)
        await agent.until(lambda: counted(server) == 1 and is_measured(agent))


async def test_a_server_that_counts_nothing_is_asked_once_and_holds_nothing_up(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["one", "two"]), persona=persona.ollama()) as server:
        options = launch_options(tmp_path, server.url, model="local-a")
        async with running_agent(options) as agent:
            assert isinstance(await agent.prompt("first"), TurnFinished)
            await agent.command("model", OTHER_TOKENIZER, SettingMoved)
            await agent.until(lambda: any("does not count tokens" in line for line in agent.notices))
            await agent.command("model", "local-a", SettingMoved)
            await agent.command("model", OTHER_TOKENIZER, SettingMoved)
            assert isinstance(await agent.prompt("second"), TurnFinished)
    assert counted(server) == 1


class Words:
    """A tokenizer of one token a word."""

    is_ready = True

    def count(self, text: str) -> int:
        return len(text.split())


def test_a_count_of_the_server_holds_while_the_view_only_grows() -> None:
    counter = ContextCounter(Words())
    talk = Conversation()
    talk.add(prompt("one two three"))
    counter.measured(talk.state.view, "claude_from_4_7", 9_000)
    assert counter.count(talk.state.view, 100, "claude_from_4_7").tokens == 9_000
    talk.add(prompt("four five"))
    grown = counter.count(talk.state.view, 100, "claude_from_4_7")
    assert not grown.is_estimate
    assert 9_000 < grown.tokens < 9_100
    assert counter.count(talk.state.view, 100, "claude_to_4_6").is_estimate
    talk.add(Snip((talk.state.view.items[0].uuid,)))
    assert counter.count(talk.state.view, 100, "claude_from_4_7").is_estimate
