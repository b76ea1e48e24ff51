"""Model calls through the real SDK against the strict server on this machine: every way a stream can end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pyagent.agent.wire.body import count_body
from pyagent.agent.wire.client import AnthropicClient, Credentials, ModelRequest, credentials_from
from pyagent.agent.wire.failures import (
    ApiFailure,
    BrokenStreamFailure,
    CredentialsFailure,
    OverflowFailure,
    RefusedFailure,
    SpendLimitFailure,
    UnavailableFailure,
)
from pyagent.agent.wire.overflow import MAX_BODY_BYTES
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.retry import CallEvent, LongWaitFailure, RetryPolicy, call_model
from pyagent.agent.wire.stream import Response
from pyagent.errors import CredentialsError, ModelUnavailableError, PromptTooLongError
from pyagent.events import (
    RequestStarted,
    RetryScheduled,
    StreamDiscarded,
    StreamSilent,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from tests.agent.wire.builders import OPUS, Conversation, prompt, results
from tests.fakes import persona
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import (
    BEFORE_HEADERS,
    BEFORE_STOP,
    Answer,
    Point,
    RawBlock,
    Script,
    Step,
    after_deltas,
    after_events,
    cut_mid_chunk,
    eof,
    error_event,
    garbage,
    http_error,
    overloaded,
    ping,
    prompt_too_long,
    rate_limited,
    refusal,
    reply,
    reset,
    stall,
    thinking,
    tool_use,
    unknown_block,
    unknown_delta,
    unknown_event,
)

SECRET = "sk-ant-very-secret"
TALK = reply(thinking("first I think"), "Hello there, friend.", tool_use("Read", {"file_path": "a"}), delta_chars=4)


class Waits:
    """Stands for time: notes each wait and lets it pass at once."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


class Call:
    """A conversation with one prompt, and what calling the model for it gave."""

    def __init__(self, server: FakeMessagesServer, profile: RequestProfile = OPUS) -> None:
        self.talk = Conversation(profile)
        self.talk.add(prompt("go on"))
        self.client = AnthropicClient(Credentials(SECRET, base_url=server.url))
        self.events: list[CallEvent] = []
        self.waits = Waits()

    def request(self, **options: Any) -> ModelRequest:
        plan = RequestPlan.of(self.talk.profile, self.talk.renderer.render(self.talk.state.view, self.talk.profile))
        return ModelRequest(plan.body(), self.talk.profile.model, self.talk.profile.all_betas, "test", **options)

    async def run(self, *, max_attempts: int = 3, **options: float) -> Response:
        try:
            return await call_model(
                self.client,
                self.request(**options),
                emit=self.events.append,
                policy=RetryPolicy(max_attempts=max_attempts),
                sleep=self.waits,
                random=lambda: 0.5,
            )
        finally:
            await self.client.close()

    def of(self, kind: type[CallEvent]) -> list[CallEvent]:
        return [event for event in self.events if isinstance(event, kind)]


async def answer_to(*steps: Step) -> tuple[Response, Call]:
    async with FakeMessagesServer(Script(steps)) as server:
        call = Call(server)
        response = await call.run()
        server.assert_finished()
        return response, call


async def failure_of(*steps: Step, max_attempts: int = 1, **options: float) -> tuple[ApiFailure, Call]:
    async with FakeMessagesServer(Script(steps)) as server:
        call = Call(server)
        with pytest.raises(ApiFailure) as caught:
            await call.run(max_attempts=max_attempts, **options)
        return caught.value, call


async def test_a_response_holds_its_blocks_and_shows_them_as_they_come() -> None:
    response, call = await answer_to(TALK)
    assert [raw["type"] for raw in response.content] == ["thinking", "text", "tool_use"]
    assert response.content[2]["input"] == {"file_path": "a"}
    assert response.stop_reason == "tool_use"
    assert response.usage.is_reported
    assert "".join(e.text for e in call.events if isinstance(e, TextDelta)) == "Hello there, friend."
    assert "".join(e.text for e in call.events if isinstance(e, ThinkingDelta)) == "first I think"
    sizes = [event.chars for event in call.events if isinstance(event, ToolInputDelta)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == len('{"file_path": "a"}')


async def test_a_response_is_accepted_back_word_for_word_with_its_thinking() -> None:
    async with FakeMessagesServer(Script([TALK, "fine"]), binding="all") as server:
        call = Call(server)
        response = await call_model(call.client, call.request())
        call.talk.take(response)
        call.talk.add(results((response.tool_uses[0]["id"], "contents")))
        assert (await call.run()).text == "fine"
        assert "thinking" in [block["type"] for block in server.message_requests[1].body["messages"][1]["content"]]


@pytest.mark.parametrize(
    "broken",
    [
        lambda answer: eof(answer),
        lambda answer: eof(answer, after_deltas(2)),
        lambda answer: cut_mid_chunk(answer, after_deltas(2)),
        lambda answer: reset(answer, after_deltas(2)),
        lambda answer: garbage(answer, after_deltas(2)),
        lambda answer: error_event(answer, after_deltas(2)),
        lambda answer: error_event(answer, BEFORE_STOP),
    ],
)
async def test_a_stream_that_breaks_is_discarded_and_made_again(broken: Callable[[Answer], Answer]) -> None:
    response, call = await answer_to(broken(TALK), "whole")
    assert response.text == "whole"
    assert len(call.of(StreamDiscarded)) == 1
    assert [event.attempt for event in call.events if isinstance(event, RequestStarted)] == [1, 2]


async def test_a_stall_before_the_headers_ends_the_attempt() -> None:
    failure, _ = await failure_of(stall(TALK, BEFORE_HEADERS), first_byte_timeout_s=0.2)
    assert isinstance(failure, UnavailableFailure)
    assert failure.is_retryable


async def test_a_stall_in_mid_stream_ends_the_attempt() -> None:
    failure, call = await failure_of(stall(TALK, after_deltas(2)), idle_timeout_s=0.2)
    assert isinstance(failure, BrokenStreamFailure)
    assert call.of(StreamDiscarded)


async def test_pings_reach_the_reader_of_raw_events() -> None:
    async with FakeMessagesServer(Script([ping(reply("hi"), after_events(1))])) as server:
        call = Call(server)
        kinds = [event["type"] async for event in call.client.stream(call.request())]
        await call.client.close()
    assert "ping" in kinds
    assert kinds[-1] == "message_stop"


@pytest.mark.parametrize("extra", [unknown_block(glow=3), unknown_delta("some text here")])
async def test_blocks_and_deltas_of_unknown_type_are_passed_over_or_kept(extra: RawBlock) -> None:
    response, _ = await answer_to(unknown_event(reply("a", extra, "b"), after_events(2)))
    assert response.content[1] == (extra.final or extra.start)
    assert len(response.content) == 3


@pytest.mark.parametrize("raw_json", ['{"file_path": "a', "[1]", "{'a': 1}"])
async def test_tool_input_that_is_no_json_object_is_named_and_kept_apart(raw_json: str) -> None:
    response, _ = await answer_to(reply(tool_use("Read", id="toolu_x", raw_json=raw_json)))
    assert response.broken_tool_inputs == {"toolu_x": raw_json}
    assert response.content[0]["input"] == {"INVALID_JSON": raw_json}


async def test_a_call_cut_off_by_the_output_limit_is_never_whole() -> None:
    response, _ = await answer_to(reply(tool_use("Read", {"file_path": "a"}, id="toolu_x"), stop_reason="max_tokens"))
    assert "toolu_x" in response.broken_tool_inputs


async def test_surrogate_escapes_in_tool_input_are_joined_or_replaced() -> None:
    response, _ = await answer_to(reply(tool_use("Read", raw_json='{"a": "\\ud83c\\udf78", "b": "\\ud83c"}')))
    assert response.content[0]["input"] == {"a": "🍸", "b": "\ufffd"}


async def test_cumulative_usage_is_not_added_up_and_a_refusal_is_a_response() -> None:
    response, _ = await answer_to(reply("one two three", double_usage=True))
    once, _ = await answer_to(reply("one two three"))
    assert response.usage.output_tokens == once.usage.output_tokens
    declined, _ = await answer_to(refusal())
    assert declined.stop_reason == "refusal"
    assert (declined.stop_details or {})["category"] == "cyber"


async def test_overload_is_retried_with_growing_announced_waits() -> None:
    response, call = await answer_to(overloaded(), http_error(500), "there")
    assert response.text == "there"
    assert call.waits.seconds == [0.5, 1.0]
    scheduled = [event for event in call.events if isinstance(event, RetryScheduled)]
    assert [event.status for event in scheduled] == [529, 500]


async def test_the_wait_a_server_asks_for_is_kept() -> None:
    _, call = await answer_to(rate_limited(retry_after_s=7), "there")
    assert call.waits.seconds == [7]


async def test_a_wait_beyond_the_cap_is_a_question_for_a_person() -> None:
    failure, call = await failure_of(rate_limited(retry_after_s=3_600), max_attempts=3)
    assert isinstance(failure, LongWaitFailure)
    assert failure.retry_after_s == 3_600
    assert call.waits.seconds == []


async def test_a_long_wait_that_was_agreed_to_is_waited_with_the_attempts_anew() -> None:
    asked: list[str] = []

    async def agree(failure: LongWaitFailure) -> bool:
        asked.append(failure.wait_text)
        return True

    async with FakeMessagesServer(Script([overloaded(), rate_limited(retry_after_s=3_600), "there"])) as server:
        call = Call(server)
        response = await call_model(
            call.client,
            call.request(),
            emit=call.events.append,
            policy=RetryPolicy(max_attempts=2),
            sleep=call.waits,
            random=lambda: 0.5,
            agree_to_wait=agree,
        )
        await call.client.close()
    assert response.text == "there"
    assert asked == ["60 min"]
    assert call.waits.seconds == [0.5, 3_600]
    assert [event.delay_s for event in call.events if isinstance(event, RetryScheduled)] == [0.5, 3_600]


@pytest.mark.parametrize("place", [BEFORE_HEADERS, after_deltas(2)])
async def test_a_silent_server_is_told_of_with_the_limit_and_so_is_the_end_of_the_silence(place: Point) -> None:
    async with FakeMessagesServer(Script([stall(TALK, place)])) as server:
        call = Call(server)
        request = replace(call.request(first_byte_timeout_s=40, idle_timeout_s=50), silence_shown_after_s=0.01)
        limit_s = 40.0 if place is BEFORE_HEADERS else 50.0
        is_told = asyncio.Event()

        def take(event: CallEvent) -> None:
            call.events.append(event)
            if event == StreamSilent(0.01, limit_s):
                is_told.set()

        task = asyncio.create_task(call_model(call.client, request, emit=take))
        await asyncio.wait_for(is_told.wait(), 20)
        server.release()
        await task
        await call.client.close()
    told = call.of(StreamSilent)
    assert told[told.index(StreamSilent(0.01, limit_s)) + 1] == StreamSilent(0.0, limit_s)


async def test_a_fallback_spares_the_question_about_a_long_wait() -> None:
    async with FakeMessagesServer(Script([rate_limited(retry_after_s=3_600), "from haiku"])) as server:
        call = Call(server)
        other = Call(server, OPUS.with_changes(model="claude-haiku-5-5")).request()
        response = await call_model(call.client, call.request(), next_request=lambda failure: other)
        await call.client.close()
    assert response.text == "from haiku"


async def test_attempts_run_out() -> None:
    failure, call = await failure_of(overloaded(), overloaded(), overloaded(), max_attempts=3)
    assert isinstance(failure, ModelUnavailableError)
    assert len(call.waits.seconds) == 2


async def test_streams_may_break_as_often_as_the_caller_says_whatever_else_is_tried_again() -> None:
    broken = eof(TALK, after_deltas(2))
    async with FakeMessagesServer(Script([broken, overloaded(), overloaded(), broken])) as server:
        call = Call(server)
        with pytest.raises(BrokenStreamFailure):
            await call_model(
                call.client,
                call.request(),
                sleep=call.waits,
                next_request=lambda failure: call.request(),
                broken_stream_attempts=2,
            )
        await call.client.close()
        server.assert_finished()
    assert len(call.waits.seconds) == 3


async def test_a_model_that_stays_overloaded_hands_over_to_its_fallback() -> None:
    async with FakeMessagesServer(Script([overloaded(), overloaded(), overloaded(), "from haiku"])) as server:
        call = Call(server)
        other = Call(server, OPUS.with_changes(model="claude-haiku-5-5"))
        fallbacks = iter([other.request()])
        response = await call_model(
            call.client, call.request(), sleep=call.waits, next_request=lambda failure: next(fallbacks, None)
        )
        await call.client.close()
    assert response.model == "claude-haiku-5-5"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (http_error(401, "authentication_error", "invalid x-api-key"), CredentialsError),
        (http_error(403, "permission_error", "no"), CredentialsError),
        (http_error(404, "not_found_error", "model: x"), RefusedFailure),
        (http_error(402, "billing_error", "pay"), SpendLimitFailure),
        (
            http_error(429, "rate_limit_error", "cap", details={"error_code": "enforced_spend_limit_reached"}),
            SpendLimitFailure,
        ),
        (
            http_error(400, "invalid_request_error", "You have reached your specified API usage limits."),
            SpendLimitFailure,
        ),
        (http_error(413, html="<html><h1>413</h1></html>"), PromptTooLongError),
        (prompt_too_long(210_000, 200_000), PromptTooLongError),
    ],
)
async def test_what_can_never_succeed_is_not_tried_again(answer: Answer, kind: type[Exception]) -> None:
    failure, call = await failure_of(answer, max_attempts=5)
    assert isinstance(failure, kind)
    assert call.waits.seconds == []
    assert SECRET not in f"{failure!r} {failure} {failure.facts} {failure.hint}"


async def test_an_overflow_tells_the_gap() -> None:
    failure, _ = await failure_of(prompt_too_long(210_000, 200_000))
    assert isinstance(failure, OverflowFailure)
    assert failure.gap_tokens == 10_000


async def test_an_html_error_page_is_shown_as_its_words() -> None:
    page = "<html><head><style>b{}</style></head><body><h1>502</h1><p>Bad gateway</p></body></html>"
    failure, _ = await failure_of(http_error(502, html=page))
    assert failure.message.endswith("502 Bad gateway.")


async def test_a_server_nobody_runs_is_out_of_reach_in_words() -> None:
    client = AnthropicClient(Credentials(SECRET, base_url="http://127.0.0.1:9"))
    with pytest.raises(UnavailableFailure, match="cannot be reached"):
        await call_model(client, ModelRequest(b"{}", "m"), policy=RetryPolicy(max_attempts=1))
    await client.close()


async def test_without_credentials_the_first_party_is_never_asked() -> None:
    with pytest.raises(CredentialsFailure):
        await call_model(AnthropicClient(credentials_from({})), ModelRequest(b"{}", "m"))


async def test_a_cancel_closes_the_connection_at_once() -> None:
    async with FakeMessagesServer(Script([stall(TALK, after_deltas(2))])) as server:
        call = Call(server)
        has_begun = asyncio.Event()

        def note(event: CallEvent) -> None:
            if isinstance(event, ThinkingDelta):
                has_begun.set()

        task = asyncio.create_task(call_model(call.client, call.request(), emit=note))
        await has_begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_until(lambda: server.message_requests[0].is_abandoned)
        await call.client.close()


async def test_a_cancel_during_a_wait_ends_the_call() -> None:
    async with FakeMessagesServer(Script([overloaded()])) as server:
        call = Call(server)
        waiting = asyncio.Event()

        async def forever(seconds: float) -> None:
            waiting.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(call_model(call.client, call.request(), sleep=forever))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await call.client.close()


async def test_other_servers_get_the_key_in_both_headers_and_the_version_they_know() -> None:
    async with FakeMessagesServer(Script(["hi"])) as server:
        await Call(server).run()
        headers = server.message_requests[0].headers
    assert headers["authorization"] == f"Bearer {SECRET}"
    assert headers["x-api-key"] == SECRET
    assert headers["anthropic-version"] == "2023-06-01"
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("server_kind", [persona.ollama, persona.vllm, persona.llama_cpp])
async def test_local_servers_answer_without_a_key(server_kind: Callable[[], persona.Persona]) -> None:
    local = RequestProfile("qwen3-coder", "s", OPUS.tools, cache_ttl="off")
    async with FakeMessagesServer(Script([reply("hi", tool_use("Read", {}))]), persona=server_kind()) as server:
        call = Call(server, local)
        call.client = AnthropicClient(credentials_from({"ANTHROPIC_BASE_URL": server.url}))
        response = await call.run()
        assert "authorization" not in server.message_requests[0].headers
    assert response.stop_reason == "tool_use"


async def test_a_missing_stop_reason_is_told_from_the_content() -> None:
    local = RequestProfile("qwen3-coder", "s", OPUS.tools, cache_ttl="off")
    quiet = persona.ollama(sends_stop_reason=False)
    async with FakeMessagesServer(Script([reply("hi", tool_use("Read", {}))]), persona=quiet) as server:
        assert (await Call(server, local).run()).stop_reason == "tool_use"


async def test_call_ids_the_conversation_holds_are_renamed() -> None:
    async with FakeMessagesServer(Script([reply(tool_use("Read", {}, id="call_0"))])) as server:
        call = Call(server)
        response = await call_model(call.client, call.request(), is_id_taken={"call_0", "call_0_2"}.__contains__)
        await call.client.close()
    assert response.content[0]["id"] == "call_0_3"


async def test_tokens_and_models_can_be_asked_for() -> None:
    async with FakeMessagesServer(Script([])) as server:
        client = AnthropicClient(Credentials(SECRET, base_url=server.url))
        body = b'{"model":"claude-opus-5-5","messages":[{"role":"user","content":"count me"}]}'
        assert await client.count_tokens(body) > 0
        assert (await client.model_info("claude-opus-5-5"))["max_input_tokens"] == 1_000_000
        assert "claude-haiku-5-5" in [info["id"] for info in await client.list_models()]
        await client.close()


def test_credentials_come_from_the_environment_and_hide_their_secrets() -> None:
    found = credentials_from(
        {
            "ANTHROPIC_API_KEY": SECRET,
            "ANTHROPIC_AUTH_TOKEN": "other",
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:1/",
            "ANTHROPIC_CUSTOM_HEADERS": "X-Team: core\nbroken",
        }
    )
    assert (found.api_key, found.auth_token, found.base_url) == (SECRET, None, "http://127.0.0.1:1")
    assert found.custom_headers == {"X-Team": "core"}
    assert SECRET not in repr(found)
    assert not found.is_first_party
    assert not Credentials(base_url="https://evil-anthropic.com").is_first_party


async def test_a_key_stands_in_no_error_whatever_the_server_or_the_library_quotes() -> None:
    failure, _ = await failure_of(http_error(400, "invalid_request_error", f"bad header Bearer {SECRET}"))
    assert SECRET not in f"{failure} {failure.facts}"
    assert failure.__cause__ is None


@pytest.mark.parametrize("key", ["sk-ant-\nbroken", "sk-ant-ü"])
async def test_a_key_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    client = AnthropicClient(Credentials(key, base_url="http://127.0.0.1:9"))
    with pytest.raises(CredentialsFailure) as caught:
        await call_model(client, ModelRequest(b"{}", "m"))
    assert key not in str(caught.value)


async def test_a_header_of_the_users_own_replaces_the_key() -> None:
    async with FakeMessagesServer(Script(["hi"])) as server:
        call = Call(server)
        lines = "authorization: Bearer mine\nAnthropic-Version: 2026-10-21"
        environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_CUSTOM_HEADERS": lines}
        call.client = AnthropicClient(credentials_from(environ))
        await call.run()
        headers = server.message_requests[0].headers
    assert headers["authorization"] == "Bearer mine"
    assert headers["anthropic-version"] == "2026-10-21"


async def test_a_body_above_the_limit_is_never_sent() -> None:
    client = AnthropicClient(Credentials(SECRET))
    with pytest.raises(PromptTooLongError) as caught:
        await call_model(client, ModelRequest(b" " * (MAX_BODY_BYTES + 1), "m"))
    assert caught.value.is_byte_limit


async def test_a_web_page_in_place_of_an_answer_is_named_as_such() -> None:
    page = http_error(200, html="<html><body>Please log in</body></html>")
    failure, call = await failure_of(page, max_attempts=3)
    assert "Please log in" in failure.message
    assert call.waits.seconds == []


async def test_a_conversation_can_be_counted_with_its_thinking() -> None:
    async with FakeMessagesServer(Script([TALK]), binding="all") as server:
        call = Call(server, OPUS.with_changes(block_binding_drop=True, output_config={"effort": "low"}))
        response = await call_model(call.client, call.request())
        call.talk.take(response)
        call.talk.add(results((response.tool_uses[0]["id"], "contents")))
        body = count_body(call.talk.profile, call.talk.renderer.render(call.talk.state.view, call.talk.profile))
        assert await call.client.count_tokens(body, call.talk.profile.all_betas) > 0
        await call.client.close()


async def test_a_turn_of_any_length_reads_all_that_the_request_before_it_wrote() -> None:
    calls = [tool_use("Read", {"file_path": f"f{number}"}) for number in range(30)]
    async with FakeMessagesServer(Script([reply(*calls), reply(*calls), "done", "notes"])) as server:
        talk = Conversation(OPUS.with_changes(system="Read with care. " * 2_000))
        client = AnthropicClient(Credentials(SECRET, base_url=server.url))
        talk.add(prompt("go on"))
        cached = 0
        for _ in range(3):
            plan = RequestPlan.of(talk.profile, talk.renderer.render(talk.state.view, talk.profile))
            response = await call_model(client, ModelRequest(plan.body(), plan.profile.model))
            assert response.usage.cache_read_input_tokens == cached
            cached = response.usage.cache_read_input_tokens + response.usage.cache_creation_input_tokens
            talk.take(response)
            if response.tool_uses:
                talk.add(results(*((use["id"], "contents " * 50) for use in response.tool_uses)))
        plan = RequestPlan.of(talk.profile, talk.renderer.render(talk.state.view, talk.profile))
        fork = await call_model(client, ModelRequest(plan.fork("Take notes.").body(), plan.profile.model))
        await client.close()
    assert cached > 0
    assert fork.usage.cache_read_input_tokens == cached


def test_the_sdk_is_not_imported_before_the_first_call() -> None:
    names = "client retry heal capabilities cost context_management cache_break plan repair validate"
    imports = "; ".join(f"import pyagent.agent.wire.{name}" for name in names.split())
    heavy = "{'anthropic', 'httpx2', 'httpx', 'pydantic', 'tiktoken', 'git', 'textual'}"
    code = f"import sys; {imports}; print(sorted({heavy} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
