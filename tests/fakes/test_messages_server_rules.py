"""What the fake refuses, seen through the real SDK."""

import base64
import json
import struct
import zlib
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest

from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.persona import html_413 as html_413_persona
from tests.fakes.persona import json_413, llama_cpp, ollama, strict_gateway, vllm
from tests.fakes.script import echo
from tests.fakes.sdk import client_of

Json = dict[str, Any]

BASH: Json = {"name": "Bash", "description": "Run a command.", "input_schema": {"type": "object", "properties": {}}}
NEWEST, OLD = "claude-opus-5-5", "claude-opus-4-5"


@pytest.fixture
async def server() -> AsyncIterator[FakeMessagesServer]:
    async with FakeMessagesServer(echo) as running:
        yield running


def png(width: int, height: int) -> str:
    """A PNG header of that size, in base64; nothing reads beyond the header."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", len(header)) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunk).decode()


def image(width: int, height: int) -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png(width, height)}}


def user(*content: Json | str) -> Json:
    return {"role": "user", "content": [_text(part) for part in content]}


def assistant(*content: Json | str) -> Json:
    return {"role": "assistant", "content": [_text(part) for part in content]}


def _text(part: Json | str) -> Json:
    return {"type": "text", "text": part} if isinstance(part, str) else part


def call(tool_id: str = "toolu_1") -> Json:
    return {"type": "tool_use", "id": tool_id, "name": "Bash", "input": {}}


def result(tool_id: str = "toolu_1", **fields: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": tool_id, "content": "ok", **fields}


def body(*messages: Json, **fields: Any) -> Json:
    return {"model": NEWEST, "max_tokens": 100, "messages": list(messages) or [user("hi")], **fields}


async def post(server: FakeMessagesServer, request: Json, *betas: str, path: str = "/v1/messages") -> Json:
    """Send a raw body through the SDK's transport."""
    headers = {"anthropic-beta": ",".join(betas)} if betas else {}
    async with client_of(server) as client:
        answer = await client.post(path, body=request, cast_to=object, options={"headers": headers})
    assert isinstance(answer, dict)
    return answer


async def refusal_of(server: FakeMessagesServer, request: Json, *betas: str) -> str:
    with pytest.raises(anthropic.BadRequestError) as caught:
        await post(server, request, *betas)
    return str(caught.value.body["error"]["message"]) if isinstance(caught.value.body, dict) else ""


SEARCH: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND: Json = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
MARK = {"cache_control": {"type": "ephemeral"}}
MARKED = {"type": "text", "text": "x", **MARK}

REFUSED: dict[str, tuple[Json, str]] = {
    "an unknown top-level field": (body(colour="red"), "colour: Extra inputs are not permitted"),
    "a beta field without its header": (
        body(context_management={"edits": []}),
        "context_management: Extra inputs are not permitted",
    ),
    "temperature": (body(temperature=1.0), "temperature: Extra inputs are not permitted"),
    "an unknown field of a block": (
        body(user({"type": "text", "text": "x", "uuid": "1"})),
        "messages.0.content.0.text.uuid: Extra inputs are not permitted",
    ),
    "an unknown field of a message": (
        body({"role": "user", "content": "x", "id": "1"}),
        "messages.0.id: Extra inputs are not permitted",
    ),
    "an unknown field of a tool": (
        body(tools=[{**BASH, "kind": "x"}]),
        "tools.0.custom.kind: Extra inputs are not permitted",
    ),
    "a missing field": ({"model": NEWEST, "messages": [user("x")]}, "max_tokens: Field required"),
    "an unknown role": (
        body({"role": "tool", "content": "x"}),
        "messages.0.role: Input should be 'user', 'assistant' or 'system'",
    ),
    "an unknown block": (body(user({"type": "hologram"})), "messages.0.content.0: Input tag 'hologram' found using"),
    "no messages": (body() | {"messages": []}, "messages: at least one message is required"),
    "an assistant message first": (
        body(assistant("x"), user("y")),
        'messages: first message must use the "user" role',
    ),
    "an empty message": (body(user("x"), assistant(), user("y")), "all messages must have non-empty content except"),
    "an empty string message": (body({"role": "user", "content": ""}), "all messages must have non-empty content"),
    "an empty text block": (body(user("")), "messages: text content blocks must be non-empty"),
    "a blank text block": (body(user("x"), assistant("\n\n", call())), "must contain non-whitespace text"),
    "an empty text block in a result": (
        body(user("x"), assistant(call()), user(result(content=[_text("")])), tools=[BASH]),
        "messages: text content blocks must be non-empty",
    ),
    "an error result without text": (
        body(user("x"), assistant(call()), user(result(content="", is_error=True)), tools=[BASH]),
        "content cannot be empty if `is_error` is true",
    ),
    "a call without a result": (
        body(user("x"), assistant(call()), user("go on"), tools=[BASH]),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each",
    ),
    "a call at the end": (
        body(user("x"), assistant(call()), tools=[BASH]),
        "messages.1: `tool_use` ids were found without `tool_result` blocks",
    ),
    "one of two parallel calls without a result": (
        body(user("x"), assistant(call("a"), call("b")), user(result("b")), tools=[BASH]),
        "immediately after: a. Each",
    ),
    "parallel results in two messages": (
        body(user("x"), assistant(call("a"), call("b")), user(result("a")), user(result("b")), tools=[BASH]),
        "immediately after: b. Each",
    ),
    "text before the results": (
        body(user("x"), assistant(call()), user("note", result()), tools=[BASH]),
        "`tool_use` ids were found without `tool_result` blocks",
    ),
    "a result without a call": (
        body(user(result()), tools=[BASH]),
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. Each `tool_result`",
    ),
    "two results for a call": (
        body(user("x"), assistant(call()), user(result(), result()), tools=[BASH]),
        "Found multiple `tool_result` blocks with id: toolu_1",
    ),
    "a call id used twice": (
        body(user("x"), assistant(call()), user(result()), assistant(call()), user(result()), tools=[BASH]),
        "messages.3.content.0: `tool_use` ids must be unique",
    ),
    "tool blocks without tools": (
        body(user("x"), assistant(call()), user(result())),
        "must define `tools`",
    ),
    "a call in a user message": (body(user(call()), tools=[BASH]), "can only be in `assistant` messages"),
    "a document in an assistant message": (
        body(user("x"), assistant({"type": "document", "source": {"type": "text", "data": "x"}}), user("y")),
        "`document` blocks can only be in `user` messages",
    ),
    "two tools of one name": (body(tools=[BASH, BASH]), "tools: Tool names must be unique."),
    "a tool schema that is no object": (
        body(tools=[{**BASH, "input_schema": {"type": "array"}}]),
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    "forced tool choice on the newest model": (
        body(tools=[BASH], tool_choice={"type": "any"}),
        'tool_choice: type "tool" and "any" are not supported for this model.',
    ),
    "prefill": (
        body(user("x"), assistant("<analysis>")),
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    ),
    "max_tokens above the cap": (body(max_tokens=200_000), "max_tokens: 200000 > 128000, which is the maximum"),
    "manual thinking on a new model": (
        body(thinking={"type": "enabled", "budget_tokens": 2_000}, max_tokens=4_000),
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive"',
    ),
    "adaptive thinking on an old model": (
        body(thinking={"type": "adaptive"}, model=OLD),
        "adaptive thinking is not supported on this model",
    ),
    "disabled thinking on Opus 5.5": (
        body(thinking={"type": "disabled"}),
        '"thinking.type.disabled" is not supported for this model.',
    ),
    "disabled thinking on Opus 5 at high effort": (
        body(model="claude-opus-5", thinking={"type": "disabled"}, output_config={"effort": "max"}),
        '"thinking.type.disabled" is not supported for this model at this effort.',
    ),
    "block binding without its header": (
        body(thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}),
        "thinking.adaptive.block_binding: Extra inputs are not permitted",
    ),
    "an open loop without thinking in manual mode": (
        body(
            user("x"),
            assistant(call()),
            user(result()),
            tools=[BASH],
            model=OLD,
            max_tokens=4_000,
            thinking={"type": "enabled", "budget_tokens": 2_000},
        ),
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    ),
    "five cache marks": (
        body(user(*[MARKED] * 5)),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "four cache marks and the automatic one": (
        body(user(*[MARKED] * 4, "y"), **MARK),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "a cache mark on an empty text": (
        body(user("x", {"type": "text", "text": "", **MARK})),
        "messages.0.content.1.text: cache_control cannot be set for empty text blocks",
    ),
    "a cache mark on thinking": (
        body(user("x"), assistant({"type": "thinking", "thinking": "", "signature": "s", **MARK}, "y"), user("z")),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    "a long cache mark after a short one": (
        body(user(MARKED, {"type": "text", "text": "y", "cache_control": {"type": "ephemeral", "ttl": "1h"}})),
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
    ),
    "a system message first": (body({"role": "system", "content": "x"}), 'first message must use the "user" role'),
    "a system message after an assistant's": (
        body(user("x"), assistant("y"), {"role": "system", "content": "z"}, assistant("w"), user("v")),
        "messages.2: a `system` message must follow a `user` message",
    ),
    "a system message before a user's": (
        body(user("x"), {"role": "system", "content": "z"}, user("v")),
        "messages.1: a `system` message must be last or be followed by an `assistant` message",
    ),
    "a system message on Sonnet 5": (
        body(user("x"), {"role": "system", "content": "z"}, model="claude-sonnet-5"),
        "messages.1.role: role 'system' is not supported on this model",
    ),
    "a server tool left open": (
        body(user("x"), assistant(SEARCH), user("y"), assistant("z"), user("w")),
        "`web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result` block",
    ),
    "a server result without its call": (
        body(user("x"), assistant(FOUND), user("y")),
        "must have a corresponding `server_tool_use` block before it.",
    ),
    "an image too wide": (body(user(image(8_001, 10))), "exceed max allowed size: 8000 pixels"),
    "many images, one too wide": (
        body(user(image(2_001, 10), *[image(10, 10)] * 20)),
        "exceed max allowed size for many-image requests: 2000 pixels",
    ),
    "too many images on a small window": (body(user(*[image(9, 9)] * 101), model=OLD), "Too many images"),
    "foreign thinking": (
        body(user("x"), assistant({"type": "thinking", "thinking": "t", "signature": "bm8="}, "y"), user("z")),
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_refused_with_the_text_of_the_api(server: FakeMessagesServer, case: str) -> None:
    request, expected = REFUSED[case]
    assert expected in await refusal_of(server, request)
    assert [record.errors for record in server.refusals] == [[server.requests[0].errors[0]]]


async def test_a_lone_surrogate_is_no_json_to_the_api(server: FakeMessagesServer) -> None:
    raw = json.dumps(body(user("cut \ud83d"))).encode()
    assert b"\\ud83d" in raw
    async with client_of(server) as client:
        headers = {"content-type": "application/json"}
        with pytest.raises(anthropic.BadRequestError, match="no low surrogate in string"):
            await client.post("/v1/messages", content=raw, cast_to=object, options={"headers": headers})
        whole = json.dumps(body(user("\U0001f600"))).encode()
        assert b"\\ud83d\\ude00" in whole
        await client.post("/v1/messages", content=whole, cast_to=object, options={"headers": headers})


ACCEPTED: dict[str, Json] = {
    "parallel results, then text": body(
        user("x"), assistant("y", call("a"), call("b")), user(result("b"), result("a"), "also"), tools=[BASH]
    ),
    "a result without content": body(
        user("x"),
        assistant(call()),
        user({"type": "tool_result", "tool_use_id": "toolu_1"}),
        tools=[BASH],
    ),
    "an empty result": body(user("x"), assistant(call()), user(result(content="")), tools=[BASH]),
    "a system message at the end": body(user("x"), {"role": "system", "content": "be brief"}),
    "a system message between turns": body(
        user("x"), {"role": "system", "content": "be brief"}, assistant("y"), user("z")
    ),
    "two user messages in a row": body(user("x"), user("y")),
    "prefill on an old model": body(user("x"), assistant("<analysis>"), model=OLD),
    "forced tool choice on Opus 5": body(tools=[BASH], tool_choice={"type": "any"}, model="claude-opus-5"),
    "between_tools on Sonnet 5.5": body(thinking={"type": "between_tools"}, model="claude-sonnet-5-5"),
    "four cache marks": body(user(*[MARKED] * 4)),
    "twenty wide images": body(user(*[image(4_000, 10)] * 20)),
    "a server tool with its result": body(user("x"), assistant(SEARCH, FOUND, "y"), user("z")),
    "a system message after a server result": body(
        user("x"), assistant(SEARCH, FOUND), {"role": "system", "content": "z"}
    ),
    "no output": body(max_tokens=0),
}


@pytest.mark.parametrize("case", ACCEPTED)
async def test_accepted_like_the_api_does(server: FakeMessagesServer, case: str) -> None:
    answer = await post(server, ACCEPTED[case])
    assert answer["type"] == "message"
    assert server.refusals == []


EDITS_BETA = "context-management-2025-06-27"
CLEAR = {"type": "clear_tool_uses_20250919"}


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({**CLEAR, "trigger": {"token_count": 5}}, "trigger.type: Input should be one of"),
        ({**CLEAR, "keep": {"tail_tool_use_count": 3}}, "keep.type: Input should be one of"),
        ({**CLEAR, "colour": 1}, "clear_tool_uses_20250919.colour: Extra inputs are not permitted"),
        ({"type": "cache_edits"}, "context_management.edits.0: Input tag 'cache_edits'"),
        ({"type": "compact_20260112"}, "context_management: Extra inputs are not permitted"),
        ({"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 0}}, "greater than or equal"),
    ],
)
async def test_edits_of_another_shape_are_refused(server: FakeMessagesServer, edit: Json, expected: str) -> None:
    assert expected in await refusal_of(server, body(context_management={"edits": [edit]}), EDITS_BETA)


async def test_clear_thinking_must_come_first(server: FakeMessagesServer) -> None:
    edits = [CLEAR, {"type": "clear_thinking_20251015", "keep": "all"}]
    assert "must be first" in await refusal_of(server, body(context_management={"edits": edits}), EDITS_BETA)
    await post(server, body(context_management={"edits": edits[::-1]}), EDITS_BETA)


async def test_clearing_on_the_server_lowers_the_input_and_is_reported(server: FakeMessagesServer) -> None:
    rounds = [
        message
        for n in range(5)
        for message in (assistant(call(f"t{n}")), user(result(f"t{n}", content="long " * 1_000)))
    ]
    request = body(user("x"), *rounds, tools=[BASH])
    plain = await post(server, request)
    edit = {**CLEAR, "trigger": {"type": "input_tokens", "value": 1_000}, "keep": {"type": "tool_uses", "value": 2}}
    edited = await post(server, {**request, "context_management": {"edits": [edit]}}, EDITS_BETA)
    [report] = edited["context_management"]["applied_edits"]
    assert report["cleared_tool_uses"] == 3
    freed = plain["usage"]["input_tokens"] - edited["usage"]["input_tokens"]
    assert report["cleared_input_tokens"] == freed > 4_500


async def test_input_beyond_the_window_is_refused_with_both_numbers() -> None:
    async with FakeMessagesServer(echo, window_tokens=1_000, bytes_per_token=2) as server:
        assert await refusal_of(server, body(user("x" * 2_002))) == "prompt is too long: 1001 tokens > 1000 maximum"


async def test_max_tokens_beyond_the_window_is_cut_on_new_models_and_refused_on_old() -> None:
    async with FakeMessagesServer(echo, window_tokens=1_000, bytes_per_token=1) as server:
        answer = await post(server, body(user("x" * 900), max_tokens=500))
        assert answer["stop_reason"] == "model_context_window_exceeded"
        assert answer["usage"]["output_tokens"] == 100
        old = body(user("x" * 900), max_tokens=500, model="claude-opus-4-1")
        text = "input length and `max_tokens` exceed context limit: 900 + 500 > 1000"
        assert text in await refusal_of(server, old)


async def test_a_reply_longer_than_max_tokens_is_cut() -> None:
    async with FakeMessagesServer(echo, bytes_per_token=1) as server:
        answer = await post(server, body(user("x" * 50), max_tokens=20))
        assert answer["stop_reason"] == "max_tokens"
        assert answer["usage"]["output_tokens"] == len(answer["content"][0]["text"]) == 20


async def test_an_unknown_model_is_not_found(server: FakeMessagesServer) -> None:
    with pytest.raises(anthropic.NotFoundError):
        await post(server, body(model="claude-nope-1"))


async def test_a_body_above_the_limit_gets_html_or_json() -> None:
    for persona, is_json in ((html_413_persona(limit_bytes=500), False), (json_413(limit_bytes=500), True)):
        async with FakeMessagesServer(echo, persona=persona) as server:
            with pytest.raises(anthropic.APIStatusError) as caught:
                await post(server, body(user("x" * 600)))
            assert caught.value.status_code == 413
            assert isinstance(caught.value.body, dict) is is_json


async def test_credentials_are_asked_for_as_the_persona_reads_them() -> None:
    async with FakeMessagesServer(echo, persona=strict_gateway()) as server:
        with pytest.raises(anthropic.AuthenticationError):
            await post(server, body())
        async with client_of(server, x_api_key="k") as client:
            await client.messages.create(model="any-model", max_tokens=9, messages=[{"role": "user", "content": "x"}])
            with pytest.raises(anthropic.BadRequestError, match="output_config: Extra inputs"):
                await client.messages.create(
                    model="any-model",
                    max_tokens=9,
                    messages=[{"role": "user", "content": "x"}],
                    output_config={"effort": "low"},
                )


async def test_a_wrong_key_is_refused() -> None:
    async with FakeMessagesServer(echo, api_key="right") as server:
        with pytest.raises(anthropic.AuthenticationError):
            await post(server, body())


async def test_ollama_counts_no_tokens_and_reports_no_cache() -> None:
    async with FakeMessagesServer(echo, persona=ollama(), window_tokens=100) as server:
        answer = await post(server, body(user("hi"), model="qwen3", colour="red"))
        assert answer["usage"].keys() == {"input_tokens", "output_tokens"}
        with pytest.raises(anthropic.NotFoundError):
            await post(server, body(model="qwen3"), path="/v1/messages/count_tokens")
        assert "maximum context length is 100" in await refusal_of(server, body(user("x" * 999), model="qwen3"))


async def test_a_server_without_a_cache_bills_all_input_and_ignores_edits() -> None:
    for persona in (vllm(), llama_cpp()):
        async with FakeMessagesServer(echo, persona=persona, bytes_per_token=1) as server:
            request = body(user("x" * 3_000), model="m", **MARK, context_management={"edits": [CLEAR]})
            for _ in range(2):
                answer = await post(server, request)
                assert answer["usage"]["input_tokens"] == 3_000
                assert not answer["usage"].get("cache_read_input_tokens")
                assert "context_management" not in answer


async def test_counting_refuses_what_creating_refuses(server: FakeMessagesServer) -> None:
    counted = {"model": NEWEST, "messages": [user("x" * 30)]}
    assert await post(server, counted, path="/v1/messages/count_tokens") == {"input_tokens": 10}
    with pytest.raises(anthropic.BadRequestError, match="max_tokens: Extra inputs"):
        await post(server, {**counted, "max_tokens": 5}, path="/v1/messages/count_tokens")
    with pytest.raises(anthropic.BadRequestError, match="unexpected `tool_use_id`"):
        await post(server, {**counted, "messages": [user(result())]}, path="/v1/messages/count_tokens")


async def test_models_tell_their_window_and_thinking(server: FakeMessagesServer) -> None:
    async with client_of(server) as client:
        info = await client.models.retrieve("claude-opus-4-5-20251101")
        assert (info.id, info.max_input_tokens, info.max_tokens) == ("claude-opus-4-5-20251101", 200_000, 64_000)
        assert info.capabilities is not None
        assert not info.capabilities.thinking.types.adaptive.supported
        assert len((await client.models.list()).data) > 10
        with pytest.raises(anthropic.NotFoundError):
            await client.models.retrieve("claude-nope-1")
