"""What the fake streams, and how it fails, seen through the real SDK."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic.types import RawMessageStreamEvent

from tests.fakes.messages_server import FakeMessagesServer, running_in_thread
from tests.fakes.persona import ollama
from tests.fakes.script import (
    Answer,
    Script,
    ToolRounds,
    after_block,
    after_deltas,
    after_events,
    compaction,
    cut_mid_chunk,
    echo,
    eof,
    error_event,
    garbage,
    overloaded,
    ping,
    rate_limited,
    redacted_thinking,
    refusal,
    reply,
    reset,
    stall,
    text,
    thinking,
    tool_use,
    unknown_block,
    unknown_delta,
    unknown_event,
)
from tests.fakes.sdk import client_of

Json = dict[str, Any]

REPOSITORY = Path(__file__).resolve().parents[2]

TOOLS: list[Any] = [{"name": "Bash", "description": "Run.", "input_schema": {"type": "object", "properties": {}}}]
WORK = reply("Look at this.", tool_use("Bash", {"command": "ls"}), delta_chars=4)


async def ask(server: FakeMessagesServer, *, content: Any = "hi", **fields: Any) -> Json:
    """Stream one request to its end; the message as a client keeps it."""
    fields = {"model": "claude-opus-5-5", "max_tokens": 1_000, "tools": TOOLS, **fields}
    messages: list[Any] = content if isinstance(content, list) else [{"role": "user", "content": content}]
    async with client_of(server) as client, client.messages.stream(messages=messages, **fields) as stream:
        # A block of unknown type makes the SDK's serializer warn.
        return (await stream.get_final_message()).to_dict(warnings=False)


async def events_of(
    server: FakeMessagesServer, *, seen: list[str] | None = None, **fields: Any
) -> list[RawMessageStreamEvent]:
    """The raw events of one request; their types are added to `seen` as they arrive."""
    fields = {"model": "claude-opus-5-5", "max_tokens": 1_000, "tools": TOOLS, **fields}
    async with client_of(server) as client:
        stream = await client.messages.create(messages=[{"role": "user", "content": "hi"}], stream=True, **fields)
        events: list[RawMessageStreamEvent] = []
        async for event in stream:
            events.append(event)
            if seen is not None:
                seen.append(event.type)
        return events


async def test_blocks_arrive_whole_whatever_the_size_of_the_deltas() -> None:
    for chars in (0, 1, 3):
        call = tool_use("Bash", {"command": "echo 'é\u2028\x85'"}, id="toolu_x")
        script = Script([reply(text("één \U0001f600\u2028"), call, redacted_thinking(), delta_chars=chars)])
        async with FakeMessagesServer(script) as server:
            message = await ask(server)
            assert message["content"][0]["text"] == "één \U0001f600\u2028"
            assert message["content"][1]["input"] == {"command": "echo 'é\u2028\x85'"}
            assert message["content"][2]["type"] == "redacted_thinking"
            assert message["stop_reason"] == "tool_use"
            assert server.requests[0].is_complete
            server.assert_finished()


@pytest.mark.parametrize(("display", "shown"), [(None, ""), ("omitted", ""), ("summarized", "Let me think.")], ids=str)
async def test_thinking_is_shown_as_asked_and_always_signed(display: str | None, shown: str) -> None:
    async with FakeMessagesServer(Script([reply(thinking("Let me think."), "Yes.")])) as server:
        config = {"type": "adaptive", **({"display": display} if display else {})}
        block = (await ask(server, thinking=config))["content"][0]
        assert block["thinking"] == shown
        assert block["signature"]


async def test_no_thinking_comes_where_thinking_is_off() -> None:
    async with FakeMessagesServer(Script([reply(thinking("t"), "Yes.")])) as server:
        message = await ask(server, model="claude-opus-4-8")
        assert [block["type"] for block in message["content"]] == ["text"]


async def test_the_same_answer_comes_without_streaming() -> None:
    async with FakeMessagesServer(Script([reply("One."), reply("One.")])) as server, client_of(server) as client:
        plain = await client.messages.create(
            model="claude-opus-5-5", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
        )
        assert plain.to_dict()["content"] == (await ask(server))["content"]


async def test_an_error_event_follows_the_events_before_it() -> None:
    async with FakeMessagesServer(Script([error_event(WORK, after_deltas(2))])) as server:
        with pytest.raises(anthropic.APIStatusError) as caught:
            await events_of(server)
        assert (caught.value.status_code, caught.value.type) == (200, "overloaded_error")
        assert not server.requests[0].is_complete


async def test_a_stream_may_end_without_message_stop() -> None:
    for point in (after_deltas(2), after_block(0)):
        async with FakeMessagesServer(Script([eof(WORK, point)])) as server:
            assert (await ask(server))["stop_reason"] is None
    async with FakeMessagesServer(Script([eof(WORK)])) as server:
        assert [event.type for event in await events_of(server)][-1] == "message_delta"


async def test_a_complete_tool_block_arrives_before_the_reset() -> None:
    async with FakeMessagesServer(Script([reset(WORK, after_block(1))])) as server:
        seen: list[str] = []
        with pytest.raises(httpx2.HTTPError):
            await events_of(server, seen=seen)
        assert seen.count("content_block_stop") == 2
        assert "message_delta" not in seen


async def test_a_cut_within_a_chunk_is_a_protocol_error() -> None:
    async with FakeMessagesServer(Script([cut_mid_chunk(WORK, after_events(3))])) as server:
        with pytest.raises(httpx2.RemoteProtocolError):
            await events_of(server)


@pytest.mark.parametrize("in_stream", [False, True])
async def test_a_stall_holds_until_released(in_stream: bool) -> None:
    answer = stall(WORK, after_deltas(1)) if in_stream else stall(WORK)
    async with FakeMessagesServer(Script([answer])) as server:
        asking = asyncio.create_task(ask(server))
        await server.wait_until(lambda: server.stalled_count == 1)
        assert not asking.done()
        server.release()
        assert (await asking)["stop_reason"] == "tool_use"


@pytest.mark.parametrize("in_stream", [False, True])
async def test_a_client_that_gives_up_is_noticed(in_stream: bool) -> None:
    answer = stall(WORK, after_deltas(1)) if in_stream else stall(WORK)
    async with FakeMessagesServer(Script([answer])) as server:
        asking = asyncio.create_task(ask(server))
        await server.wait_until(lambda: server.stalled_count == 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await server.wait_until(lambda: server.requests[0].is_abandoned)


async def test_garbage_reaches_the_client() -> None:
    async with FakeMessagesServer(Script([garbage(WORK, after_events(2))])) as server:
        with pytest.raises(ValueError):
            await events_of(server)


async def test_pings_and_unknown_events_deltas_and_blocks_break_nothing() -> None:
    odd = reply(unknown_delta("Fine so far."), unknown_block("hologram", depth=3), "End.", pings_between_deltas=True)
    odd = unknown_event(ping(odd, after_events(1)), after_events(2))
    async with FakeMessagesServer(Script([odd, "Again."])) as server:
        message = await ask(server)
        assert message["content"][0]["text"] == "Fine so far."
        assert [block["type"] for block in message["content"]] == ["text", "hologram", "text"]
        history = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "hologram", "depth": 3}, message["content"][2]]},
            {"role": "user", "content": "and?"},
        ]
        await ask(server, content=history)
        assert server.refusals == []


async def test_truncated_tool_json_is_streamed_as_it_is() -> None:
    cut = reply(tool_use("Write", raw_json='{"file_path": "a.py", "content": "x'), stop_reason="max_tokens")
    async with FakeMessagesServer(Script([cut])) as server:
        parts = [
            event.delta.partial_json
            for event in await events_of(server)
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta"
        ]
        assert "".join(parts) == '{"file_path": "a.py", "content": "x'


@pytest.mark.parametrize(
    ("answer", "content_count", "stop_reason"),
    [
        (reply(), 0, "end_turn"),
        (refusal(), 0, "refusal"),
        (reply("Wait.", stop_reason="pause_turn"), 1, "pause_turn"),
        (reply("S", stop_reason="stop_sequence", stop_sequence="S"), 1, "stop_sequence"),
    ],
    ids=["empty", "refusal", "pause", "stop sequence"],
)
async def test_every_way_to_stop(answer: Answer, content_count: int, stop_reason: str) -> None:
    async with FakeMessagesServer(Script([answer])) as server:
        message = await ask(server)
        assert (len(message["content"]), message["stop_reason"]) == (content_count, stop_reason)


async def test_usage_may_come_twice_or_differ_or_miss() -> None:
    script = Script([reply("x" * 90, double_usage=True), reply("x", usage={"input_tokens": 7})])
    async with FakeMessagesServer(script) as server:
        deltas = [event for event in await events_of(server) if event.type == "message_delta"]
        assert [delta.usage.output_tokens for delta in deltas] == [15, 30]
        assert (await ask(server))["usage"]["input_tokens"] == 7
    async with FakeMessagesServer(Script([reply("x", sends_usage=False)]), persona=ollama()) as server:
        assert all(event.usage is None for event in await events_of(server) if event.type == "message_delta")


async def test_a_server_may_keep_the_stop_reason_to_itself() -> None:
    async with FakeMessagesServer(Script([WORK]), persona=ollama(sends_stop_reason=False)) as server:
        message = await ask(server)
        assert message["stop_reason"] is None
        assert message["content"][1]["type"] == "tool_use"


async def test_http_errors_carry_their_headers_and_type() -> None:
    async with FakeMessagesServer(Script([overloaded(), rate_limited(retry_after_s=2.5), "ok"])) as server:
        with pytest.raises(anthropic.OverloadedError):
            await ask(server)
        with pytest.raises(anthropic.RateLimitError) as caught:
            await ask(server)
        assert caught.value.response.headers["retry-after"] == "2.5"
        await ask(server)
        server.assert_finished()


async def test_on_demand_compaction_answers_with_a_signed_block_billed_as_an_iteration() -> None:
    async with FakeMessagesServer(Script([reply(compaction("All of it."))])) as server, client_of(server) as client:
        message = await client.beta.messages.create(
            model="claude-opus-5-5",
            max_tokens=1_000,
            messages=[{"role": "user", "content": "x" * 300}],
            compaction={"type": "summarize"},
            betas=["compact-2026-09-04"],
        )
        assert message.stop_reason == "compaction"
        assert message.usage.input_tokens == 0
        assert server.requests[0].usage["iterations"][0]["input_tokens"] == 100


async def test_a_script_that_runs_out_or_is_left_over_fails_the_test() -> None:
    async def overrun() -> None:
        async with FakeMessagesServer(Script([])) as server:
            with pytest.raises(anthropic.BadRequestError):
                await ask(server)

    with pytest.raises(AssertionError, match="ran out"):
        await overrun()
    async with FakeMessagesServer(Script(["one", "two"])) as server:
        await ask(server)
        with pytest.raises(AssertionError, match="1 answers left over"):
            server.assert_finished()


async def test_tool_rounds_go_on_for_their_number_and_answer_summaries_apart() -> None:
    agent = ToolRounds(
        [("Bash", {"command": "echo {round}"})],
        rounds=2,
        parallel=2,
        think=True,
        is_summary=lambda request: "summarise" in request.last_text,
        summary_text="SUMMARY",
    )
    async with FakeMessagesServer(agent, binding="all") as server:
        history: list[Json] = []
        for _ in range(2):
            history.append({"role": "user", "content": "go"})
            calls = 0
            while True:
                message = await ask(server, content=history)
                history.append({"role": "assistant", "content": message["content"]})
                uses = [block for block in message["content"] if block["type"] == "tool_use"]
                if not uses:
                    break
                calls += len(uses)
                results = [{"type": "tool_result", "tool_use_id": use["id"], "content": "ok"} for use in uses]
                history.append({"role": "user", "content": results})
            assert calls == 4
        summary = await ask(server, content=[*history, {"role": "user", "content": "summarise"}])
        assert summary["content"][0]["text"] == "SUMMARY"
        assert (agent.summary_count, agent.finished_turn_count) == (1, 2)
        server.assert_finished()


def test_the_server_runs_in_a_thread_for_tests_without_a_loop() -> None:
    with running_in_thread(FakeMessagesServer(Script([stall(reply("hello"))]))) as server:
        client = anthropic.Anthropic(
            base_url=server.url, api_key="k", max_retries=0, http_client=anthropic.DefaultHttpxClient(verify=False)
        )

        def ask_and_wait() -> str:
            message = client.messages.create(
                model="claude-opus-5-5", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
            )
            return str(message.content[0].to_dict()["text"])

        async def release_when_stalled() -> None:
            await asyncio.to_thread(server.wait_until_from_thread, lambda: server.stalled_count == 1)
            server.release()

        async def both() -> str:
            answer, _ = await asyncio.gather(asyncio.to_thread(ask_and_wait), release_when_stalled())
            return answer

        assert asyncio.run(both()) == "hello"
        client.close()


async def test_pacing_spreads_a_reply_and_ends_with_the_client() -> None:
    slow = reply("x" * 3_000, delta_chars=3, tokens_per_s=20)
    async with FakeMessagesServer(Script([slow])) as server:
        asking = asyncio.create_task(ask(server))
        await server.wait_until(lambda: bool(server.requests) and server.requests[0].status == 200)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await server.wait_until(lambda: server.requests[0].is_abandoned)


async def test_an_echo_is_an_answer() -> None:
    async with FakeMessagesServer(echo) as server:
        assert (await ask(server))["content"][0]["text"] == "You said: hi"


async def test_by_hand_it_prints_its_url_and_serves_until_told_to_stop() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.fakes.messages_server", "--script", "tools", "--window", "5000"),
        stdout=asyncio.subprocess.PIPE,
        cwd=REPOSITORY,
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    http_client = anthropic.DefaultAsyncHttpxClient(verify=False)
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", http_client=http_client) as client:
        message = await client.messages.create(
            model="claude-opus-5-5", max_tokens=99, messages=[{"role": "user", "content": "go"}]
        )
        assert message.stop_reason == "tool_use"
        assert (await client.models.retrieve("claude-opus-5-5")).max_input_tokens == 5_000
    process.terminate()
    assert await process.wait() == 0
