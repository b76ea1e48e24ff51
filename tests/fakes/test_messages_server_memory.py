"""The prefix check on replayed thinking, and the prompt cache, seen through the real SDK."""

from typing import Any

import anthropic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.binding import Enforcement
from tests.fakes.cache import PromptCache
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.model_table import ModelTable
from tests.fakes.recorded import Price, divergence
from tests.fakes.script import Answer, Request, compaction, reply, thinking, tool_use
from tests.fakes.sdk import client_of
from tests.fakes.tokens import TokenCounter

Json = dict[str, Any]

TOOLS: list[Any] = [{"name": "Bash", "description": "Run.", "input_schema": {"type": "object", "properties": {}}}]
MODEL = "claude-opus-5-5"
BINDING = "thinking-binding-controls-2026-08-01"
DIFFERENT = "The block is bound to a different conversation"


def thinker(request: Request) -> Answer:
    """Thinks, and calls a tool when asked to."""
    calls = [tool_use("Bash", {})] if "tool" in request.last_text else []
    return reply(thinking(f"thought {request.index}"), f"reply {request.index}", *calls)


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


class Talk:
    """A conversation kept verbatim."""

    def __init__(self, server: FakeMessagesServer, **fields: Any) -> None:
        self.server = server
        self.fields: dict[str, Any] = {"model": MODEL, "max_tokens": 500, "tools": TOOLS, "system": "Be brief."}
        self.fields |= fields
        self.messages: list[Json] = []

    async def send(self, *betas: str) -> Json:
        async with client_of(self.server) as client:
            answer = await client.beta.messages.create(
                messages=self.messages,  # type: ignore[arg-type]  # plain dicts, as a client keeps them
                betas=list(betas) or anthropic.omit,
                **self.fields,
            )
        return answer.to_dict()

    async def say(self, content: Any, *betas: str) -> Json:
        self.messages.append(user(content))
        answer = await self.send(*betas)
        self.messages.append({"role": "assistant", "content": answer["content"]})
        return answer

    async def three_turns(self) -> "Talk":
        for prompt in ("one", "two", "three"):
            await self.say(prompt)
        self.messages.append(user("four"))
        return self


def strip_thinking(message: Json) -> None:
    message["content"] = [block for block in message["content"] if block["type"] != "thinking"]


async def test_a_verbatim_replay_passes() -> None:
    async with FakeMessagesServer(thinker) as server:
        talk = await Talk(server).three_turns()
        await talk.send()
        assert server.refusals == []


def edit_prompt(talk: Talk) -> None:
    talk.messages[0]["content"] = "uno"


def edit_reply(talk: Talk) -> None:
    talk.messages[1]["content"][1]["text"] = "shorter"


def edit_system(talk: Talk) -> None:
    talk.fields["system"] = "Be long."


def add_tool(talk: Talk) -> None:
    talk.fields["tools"] = [*TOOLS, {**TOOLS[0], "name": "Read"}]


def drop_first_turn(talk: Talk) -> None:
    del talk.messages[:2]


def strip_from_the_middle(talk: Talk) -> None:
    strip_thinking(talk.messages[3])


CHANGES = [edit_prompt, edit_reply, edit_system, add_tool, drop_first_turn, strip_from_the_middle]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_a_changed_prefix_is_refused_or_its_thinking_dropped(change: Any) -> None:
    async with FakeMessagesServer(thinker) as server:
        talk = await Talk(server).three_turns()
        change(talk)
        with pytest.raises(anthropic.BadRequestError, match=DIFFERENT):
            await talk.send()
        talk.fields["thinking"] = {
            "type": "adaptive",
            "block_binding": {"prefix_mismatch_behavior": "drop_block"},
        }
        answer = await talk.send(BINDING)
        reasons = {entry["reason"] for entry in answer["input_transformations"]}
        assert reasons == {"prefix_binding_mismatch"}
        talk.messages.append({"role": "assistant", "content": answer["content"]})
        talk.messages.append(user("five"))
        again = await talk.send(BINDING)
        assert again["input_transformations"] == answer["input_transformations"]


def strip_from_the_start(talk: Talk) -> None:
    strip_thinking(talk.messages[1])
    strip_thinking(talk.messages[3])


def strip_everything_after_an_edit(talk: Talk) -> None:
    talk.messages[0]["content"] = "uno"
    for message in talk.messages[1::2]:
        strip_thinking(message)


def mark_for_the_cache(talk: Talk) -> None:
    talk.messages[2]["content"] = [{"type": "text", "text": "two", "cache_control": {"type": "ephemeral"}}]


def change_display(talk: Talk) -> None:
    talk.fields["thinking"] = {"type": "adaptive", "display": "summarized"}


def add_deferred_tool(talk: Talk) -> None:
    talk.fields["tools"] = [*TOOLS, {**TOOLS[0], "name": "Read", "defer_loading": True}]


HARMLESS = [
    strip_from_the_start,
    strip_everything_after_an_edit,
    mark_for_the_cache,
    change_display,
    add_deferred_tool,
]


@pytest.mark.parametrize("change", HARMLESS, ids=lambda change: change.__name__)
async def test_what_is_no_change_of_the_prefix_passes(change: Any) -> None:
    async with FakeMessagesServer(thinker) as server:
        talk = await Talk(server).three_turns()
        change(talk)
        await talk.send()


@pytest.mark.parametrize(
    ("enforcement", "model", "is_refused"),
    [
        ("by_model", "claude-opus-5", False),
        ("all", "claude-opus-5", True),
        ("off", MODEL, False),
        ("on_request", MODEL, False),
        ("by_model", "claude-haiku-5-5", True),
    ],
)
async def test_which_requests_the_check_covers(enforcement: Enforcement, model: str, is_refused: bool) -> None:
    async with FakeMessagesServer(thinker, binding=enforcement) as server:
        talk = await Talk(server, model=model).three_turns()
        edit_prompt(talk)
        if is_refused:
            with pytest.raises(anthropic.BadRequestError, match=DIFFERENT):
                await talk.send()
        else:
            await talk.send()


async def test_thinking_of_another_model_is_dropped_in_silence_and_reported_on_request() -> None:
    async with FakeMessagesServer(thinker) as server:
        talk = await Talk(server).three_turns()
        talk.fields["model"] = "claude-fable-5-2"
        assert "input_transformations" not in await talk.send()
        answer = await talk.send(BINDING)
        assert {entry["reason"] for entry in answer["input_transformations"]} == {"model_binding_mismatch"}
        assert len(answer["input_transformations"]) == 3


async def test_the_open_tool_loop_goes_back_whole_or_without_any_thinking() -> None:
    async with FakeMessagesServer(thinker) as server:
        talk = Talk(server, thinking={"type": "adaptive", "display": "summarized"})
        answer = await talk.say("use the tool")
        use = answer["content"][-1]
        talk.messages.append(user([{"type": "tool_result", "tool_use_id": use["id"], "content": "ok"}]))
        kept = talk.messages[1]["content"]
        talk.messages[1]["content"] = [{**kept[0], "thinking": "shorter"}, *kept[1:]]
        with pytest.raises(anthropic.BadRequestError, match="latest assistant message cannot be modified"):
            await talk.send()
        talk.messages[1]["content"] = kept[1:]
        await talk.send()
        talk.messages[1]["content"] = kept
        await talk.send()


async def test_part_of_the_thinking_of_an_open_tool_loop_is_refused() -> None:
    def two_thoughts(request: Request) -> Answer:
        return reply(thinking("a"), "x", thinking("b"), tool_use("Bash", {}))

    async with FakeMessagesServer(two_thoughts) as server:
        talk = Talk(server)
        answer = await talk.say("go")
        use = answer["content"][-1]
        talk.messages.append(user([{"type": "tool_result", "tool_use_id": use["id"], "content": "ok"}]))
        del talk.messages[1]["content"][0]
        with pytest.raises(anthropic.BadRequestError, match="latest assistant message cannot be modified"):
            await talk.send()


async def test_a_summary_of_the_api_keeps_the_thinking_behind_it_valid() -> None:
    beta = "compact-2026-09-04"

    def answering(request: Request) -> Answer:
        return reply(compaction("All so far.")) if "compaction" in request.body else thinker(request)

    async with FakeMessagesServer(answering) as server:
        talk = await Talk(server).three_turns()
        whole = talk.messages
        talk.messages = whole[:4]
        talk.fields["compaction"] = {"type": "summarize"}
        block = (await talk.send(beta))["content"][0]
        del talk.fields["compaction"]
        talk.messages = [{"role": "assistant", "content": [block]}, *whole[4:]]
        await talk.send(beta)
        talk.messages[1] = user("tres")
        with pytest.raises(anthropic.BadRequestError, match=DIFFERENT):
            await talk.send(beta)


async def test_thinking_cleared_by_the_server_is_not_billed_and_breaks_no_binding() -> None:
    async with FakeMessagesServer(thinker) as server:
        talk = await Talk(server).three_turns()
        whole = (await talk.send())["usage"]["input_tokens"]
        keep = {"type": "thinking_turns", "value": 1}
        talk.fields["context_management"] = {"edits": [{"type": "clear_thinking_20251015", "keep": keep}]}
        answer = await talk.send("context-management-2025-06-27")
        [report] = answer["context_management"]["applied_edits"]
        assert report["cleared_thinking_turns"] == 2
        assert report["cleared_input_tokens"] == whole - answer["usage"]["input_tokens"] > 0


# The cache

MARK = {"type": "ephemeral"}


class Clock:
    """Seconds set by the test."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def split(answer: Json) -> tuple[int, int, int]:
    """Tokens read, written, fresh."""
    usage = answer["usage"]
    return usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"], usage["input_tokens"]


def cached_talk(server: FakeMessagesServer, **fields: Any) -> Talk:
    return Talk(server, **{"cache_control": MARK, "system": "s" * 2_000, "tools": [], **fields})


async def test_an_append_only_loop_reads_all_it_wrote() -> None:
    async with FakeMessagesServer(thinker, bytes_per_token=1) as server:
        talk = cached_talk(server)
        assert split(await talk.say("a" * 100)) == (0, 2_100, 0)
        read, written, fresh = split(await talk.say("b" * 100))
        assert (read, fresh) == (2_100, 0)
        assert 100 < written < 130
        prices = {MODEL: Price.of(4.0, 20.0, 0.2)}
        outputs = sum(request.usage["output_tokens"] for request in server.requests)
        expected = (5.0 * (2_100 + written) + 0.2 * 2_100 + 20.0 * outputs) / 1e6
        assert server.bill(prices) == pytest.approx(expected)


async def test_a_changed_system_or_setting_misses() -> None:
    for change, reads in (
        ({"system": "t" * 2_000}, 0),
        ({"model": "claude-fable-5-2"}, 0),
        ({"output_config": {"effort": "low"}}, 0),
        ({}, 2_010),
    ):
        async with FakeMessagesServer(thinker, bytes_per_token=1) as server:
            talk = cached_talk(server)
            await talk.say("a" * 10)
            talk.messages = [user("a" * 10)]
            talk.fields |= change
            assert split(await talk.send())[0] == reads


async def test_a_mark_on_the_system_survives_changed_messages() -> None:
    async with FakeMessagesServer(thinker, bytes_per_token=1) as server:
        talk = cached_talk(server, system=[{"type": "text", "text": "s" * 2_000, "cache_control": MARK}])
        await talk.say("a" * 10)
        talk.messages = [user("b" * 10)]
        assert split(await talk.send()) == (2_000, 10, 0)


async def test_a_turn_of_twenty_blocks_is_out_of_reach() -> None:
    for added, reads in ((19, 2_001), (20, 0)):
        async with FakeMessagesServer(thinker, bytes_per_token=1) as server:
            talk = cached_talk(server)
            talk.messages = [user("a")]
            await talk.send()
            talk.messages = [user([{"type": "text", "text": "a"}, *[{"type": "text", "text": "b"}] * added])]
            assert split(await talk.send())[0] == reads


async def test_a_prefix_below_the_minimum_is_not_cached() -> None:
    async with FakeMessagesServer(thinker, bytes_per_token=1) as server:
        talk = cached_talk(server, system="s" * 1_000)
        for _ in range(2):
            talk.messages = [user("a")]
            assert split(await talk.send()) == (0, 0, 1_001)


async def test_entries_live_five_minutes_from_their_last_use_or_an_hour() -> None:
    for ttl, steps in (("5m", [(299, True), (598, True), (899, False)]), ("1h", [(3_599, True), (7_200, False)])):
        clock = Clock()
        async with FakeMessagesServer(thinker, bytes_per_token=1, clock=clock) as server:
            talk = cached_talk(server, cache_control={**MARK, "ttl": ttl})
            talk.messages = [user("a")]
            first = await talk.send()
            assert first["usage"]["cache_creation"][f"ephemeral_{ttl}_input_tokens"] == 2_001
            for now_s, is_warm in steps:
                clock.now_s = now_s
                assert (split(await talk.send())[0] > 0) is is_warm


async def test_a_prewarming_request_needs_no_answer() -> None:
    async with FakeMessagesServer(thinker, bytes_per_token=1) as server:
        talk = cached_talk(server, max_tokens=0)
        talk.messages = [user("a")]
        assert split(await talk.send()) == (0, 2_001, 0)
        talk.fields["max_tokens"] = 100
        assert split(await talk.send()) == (2_001, 0, 0)


@pytest.mark.parametrize(
    ("change", "kind", "path"),
    [
        (edit_prompt, "messages_changed", "messages.0.content.0"),
        (strip_from_the_middle, "messages_changed", "messages.3.content.0"),
        (drop_first_turn, "messages_changed", "messages.0.content.0"),
        (edit_system, "system_changed", "system.0"),
        (add_tool, "tools_changed", "tools.1"),
        (mark_for_the_cache, None, None),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_where_a_request_stops_continuing_an_earlier_one_is_named(
    change: Any, kind: str | None, path: str | None
) -> None:
    async with FakeMessagesServer(thinker, binding="off") as server:
        talk = await Talk(server).three_turns()
        before = await talk.send()
        change(talk)
        talk.fields["diagnostics"] = {"previous_message_id": before["id"]}
        after = await talk.send()
        found = divergence(server.requests[-2].body, server.requests[-1].body)
        assert (found and found.kind, found and found.path) == (kind, path)
        told = after["diagnostics"]
        assert (told and told["cache_miss_reason"]["type"]) == kind


async def test_bodies_beyond_the_number_kept_are_let_go() -> None:
    async with FakeMessagesServer(thinker, kept_bodies_count=1) as server:
        await Talk(server).three_turns()
        assert ["messages" in request.body for request in server.requests] == [False, False, True]
        assert server.bill({MODEL: Price.of(1, 1, 1)}) > 0


@given(
    texts=st.lists(st.integers(1, 900), min_size=1, max_size=30),
    marks=st.sets(st.integers(0, 29), max_size=4),
    kept_count=st.integers(0, 29),
    has_hour=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_the_parts_of_the_input_add_up_and_nothing_is_read_that_was_not_written(
    texts: list[int], marks: set[int], kept_count: int, has_hour: bool
) -> None:
    model = ModelTable().find(MODEL)
    assert model is not None
    counter = TokenCounter(1)
    cache = PromptCache(Clock())

    def request(sizes: list[int], letter: str) -> Json:
        blocks: list[Json] = [
            {"type": "text", "text": (letter if at >= kept_count else "k") * size} for at, size in enumerate(sizes)
        ]
        for at in marks & set(range(len(blocks))):
            blocks[at]["cache_control"] = {**MARK, "ttl": "1h"} if has_hour else MARK
        return {"model": MODEL, "messages": [{"role": "user", "content": blocks}]}

    written = 0
    for letter in "aab":
        plan = cache.plan(request(texts, letter), model, counter, frozenset())
        usage = plan.usage
        assert usage.total_tokens == sum(texts)
        assert min(usage.fresh_tokens, usage.read_tokens, usage.written_5m_tokens, usage.written_1h_tokens) >= 0
        assert usage.read_tokens <= written
        assert not (usage.written_5m_tokens if has_hour else usage.written_1h_tokens)
        if letter == "b":
            assert usage.read_tokens <= sum(texts[:kept_count])
        cache.commit(plan)
        written += usage.written_tokens
