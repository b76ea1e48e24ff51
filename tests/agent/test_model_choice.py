"""Which model answers and how: fallbacks, effort, long waits, and what the bill says of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pyagent.commands import AnswerQuestion, Interrupt, SubmitPrompt
from pyagent.events import Notice, QuestionAsked, RetryScheduled, SettingMoved, TurnFailed, TurnFinished
from pyagent.log import AssistantEntry
from tests.agent.support import LiveAgent, launch_options, records_on_disk, running_agent, state_on_disk
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Script, overloaded, rate_limited, reply, thinking, tool_use


def models_asked(server: FakeMessagesServer) -> list[str]:
    return [str(request.body["model"]) for request in server.message_requests]


def kinds_sent(body: dict[str, Any]) -> list[str]:
    return [block["type"] for message in body["messages"] for block in message["content"]]


def answers(options: Any) -> list[AssistantEntry]:
    payloads = [record.payload for record in records_on_disk(options)]
    return [payload for payload in payloads if isinstance(payload, AssistantEntry)]


async def test_an_overloaded_model_hands_the_turn_over_and_is_asked_again_at_the_next_prompt(tmp_path: Path) -> None:
    call = reply(thinking("look"), tool_use("Bash", {"command": "echo hello"}))
    script = Script([call, *[overloaded()] * 3, reply(thinking("mine"), "From the other."), "From the first."])
    async with FakeMessagesServer(script, binding="all") as server:
        options = launch_options(tmp_path, server.url, fallback_models=("claude-opus-5-5",))
        async with running_agent(options) as agent:
            ended = await agent.prompt("say hello")
            again = await agent.prompt("and again")
        server.assert_finished()
    assert isinstance(ended, TurnFinished)
    assert ended.text == "From the other."
    assert isinstance(again, TurnFinished)
    assert again.text == "From the first."
    main, other = "claude-sonnet-5-5", "claude-opus-5-5"
    assert models_asked(server) == [main, main, main, main, other, main]
    assert "thinking" in kinds_sent(server.message_requests[1].body)
    assert "thinking" not in kinds_sent(server.message_requests[4].body)
    # The first model's own thinking is behind an unchanged prefix, so it goes out again; the other's does not.
    assert kinds_sent(server.message_requests[5].body).count("thinking") == 1
    assert [entry.model for entry in answers(options)] == [main, other, main]
    assert len({entry.profile_id for entry in answers(options)}) == 2
    assert any("overloaded: claude-opus-5-5 answers until your next prompt" in line for line in agent.notices)


async def test_a_session_whose_last_answer_was_a_fallbacks_resumes_with_its_own_profile(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["one", *[overloaded()] * 3, "two", "three"])) as server:
        options = launch_options(tmp_path, server.url, fallback_models=("claude-opus-5-5",))
        async with running_agent(options) as agent:
            await agent.prompt("first")
            await agent.prompt("second")
        async with running_agent(replace(options, is_continued=True)) as agent:
            await agent.prompt("third")
    profiles = [entry.profile_id for entry in answers(options)]
    assert profiles[0] == profiles[2] != profiles[1]
    first, last = server.message_requests[0].body, server.message_requests[-1].body
    assert (first["system"][0]["text"], first["tools"]) == (last["system"][0]["text"], last["tools"])


async def test_a_fallback_that_thinks_by_budget_can_take_over_within_a_tool_loop(tmp_path: Path) -> None:
    call = reply(tool_use("Bash", {"command": "echo hello"}))
    async with FakeMessagesServer(Script([call, *[overloaded()] * 3, "done"])) as server:
        options = launch_options(tmp_path, server.url, fallback_models=("claude-haiku-4-5",))
        async with running_agent(options) as agent:
            ended = await agent.prompt("say hello")
        server.assert_finished()
    assert isinstance(ended, TurnFinished)
    assert models_asked(server)[-1] == "claude-haiku-4-5"


async def test_a_fallback_nobody_knows_is_named_and_left_out(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["hello"])) as server:
        options = launch_options(tmp_path, server.url, fallback_models=("offline",))
        async with running_agent(options) as agent:
            await agent.prompt("hi")
    assert any("offline model cannot stand in" in line for line in agent.notices)


async def until_question(agent: LiveAgent) -> QuestionAsked:
    agent.send(SubmitPrompt("go"))
    return await agent.next_of(QuestionAsked, since=0)


async def test_a_person_may_agree_to_a_long_wait(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script([rate_limited(retry_after_s=3_600), "there"])) as server,
        running_agent(launch_options(tmp_path, server.url, is_headless=False)) as agent,
    ):
        asked = await until_question(agent)
        agent.send(AnswerQuestion(asked.request_id, (("Wait",),)))
        ended = await agent.next_of(TurnFinished, TurnFailed, since=0)
    assert isinstance(ended, TurnFinished)
    assert ended.text == "there"
    assert "60 min" in asked.questions[0].text
    assert agent.slept.delays_s == [3_600]
    assert [event.delay_s for event in agent.all_of(RetryScheduled)] == [3_600]


async def test_a_long_wait_turned_down_ends_the_turn_in_words(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script([rate_limited(retry_after_s=3_600)])) as server,
        running_agent(launch_options(tmp_path, server.url, is_headless=False)) as agent,
    ):
        asked = await until_question(agent)
        agent.send(AnswerQuestion(asked.request_id, (("Stop",),)))
        ended = await agent.next_of(TurnFinished, TurnFailed, since=0)
    assert isinstance(ended, TurnFailed)
    assert "60 min" in ended.message
    assert agent.slept.delays_s == []


async def test_an_interrupt_withdraws_the_question_about_a_long_wait(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script([rate_limited(retry_after_s=3_600), "there"])) as server,
        running_agent(launch_options(tmp_path, server.url, is_headless=False)) as agent,
    ):
        await until_question(agent)
        agent.send(Interrupt())
        await agent.next_of(TurnFinished, since=0)
        assert isinstance(await agent.prompt("again"), TurnFinished)


async def test_nobody_is_asked_about_a_long_wait_in_a_headless_run(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script([rate_limited(retry_after_s=3_600)])) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        ended = await agent.prompt("go")
    assert isinstance(ended, TurnFailed)
    assert not agent.all_of(QuestionAsked)


async def test_an_effort_counts_from_the_next_prompt_and_after_a_resume(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["one", "two", "three"])) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("first")
            moved = await agent.command("effort", "high", SettingMoved)
            await agent.prompt("second")
        async with running_agent(replace(options, is_continued=True)) as agent:
            await agent.prompt("third")
        server.assert_finished()
    efforts = [request.body.get("output_config") for request in server.message_requests]
    assert moved == SettingMoved("effort", "high")
    assert efforts == [None, {"effort": "high"}, {"effort": "high"}]
    assert state_on_disk(options).settings["effort"] == "high"
    assert not any("cache was lost" in line for line in agent.notices)


async def test_an_effort_of_the_command_line_counts_and_is_kept(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["one", "two"])) as server:
        options = launch_options(tmp_path, server.url, effort="low")
        async with running_agent(options) as agent:
            await agent.prompt("first")
        async with running_agent(replace(options, effort="", is_continued=True)) as agent:
            await agent.prompt("second")
    assert [request.body["output_config"] for request in server.message_requests] == [{"effort": "low"}] * 2


async def test_thinking_switched_on_in_the_midst_of_a_tool_loop_waits_for_the_next_prompt(tmp_path: Path) -> None:
    call = reply(tool_use("Bash", {"command": "echo hello"}))
    async with FakeMessagesServer(Script([call, "done", reply(thinking("now"), "more")])) as server:
        options = launch_options(tmp_path, server.url, model="claude-haiku-4-5", effort="off")
        async with running_agent(options) as agent:
            agent.send(SubmitPrompt("say hello"))
            await agent.until(lambda: bool(server.message_requests))
            await agent.command("effort", "high", SettingMoved)
            await agent.next_of(TurnFinished, TurnFailed, since=0)
            await agent.prompt("go on")
        server.assert_finished()
    assert [request.body.get("thinking", {}).get("type") for request in server.message_requests] == [
        None,
        None,
        "enabled",
    ]


async def test_an_unknown_effort_is_refused_with_the_choices(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script([])) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        notice = await agent.command("effort", "enormous", Notice)
    assert notice.level == "error"
    assert "xhigh" in notice.hint


async def test_a_small_output_limit_shrinks_the_thinking_budget(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["hello"])) as server:
        options = launch_options(
            tmp_path,
            server.url,
            model="claude-haiku-4-5",
            effort="high",
            environ={"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4000"},
        )
        async with running_agent(options) as agent:
            assert isinstance(await agent.prompt("hi"), TurnFinished)
        server.assert_finished()
    assert server.message_requests[0].body["thinking"]["budget_tokens"] == 2_000


async def test_a_budget_ends_the_turn_before_the_next_request_and_spares_what_was_spent_before(tmp_path: Path) -> None:
    call = reply(tool_use("Bash", {"command": "echo hello"}))
    async with FakeMessagesServer(Script(["one", call])) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("first")
        spent = state_on_disk(options).cost_usd
        async with running_agent(replace(options, is_continued=True, max_budget_usd=spent / 1_000)) as agent:
            ended = await agent.prompt("second")
        server.assert_finished()
    assert isinstance(ended, TurnFinished)
    assert ended.stop_reason == "budget"


async def test_a_budget_for_a_model_without_a_price_is_said_to_be_useless(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script([])) as server,
        running_agent(launch_options(tmp_path, server.url, model="local", max_budget_usd=1.0)) as agent,
    ):
        await agent.until(lambda: any("price of local is not known" in line for line in agent.notices))
