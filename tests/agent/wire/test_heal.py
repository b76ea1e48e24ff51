"""Refused once, cured, accepted: each cause through the real SDK against a server that minds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pyagent.agent.wire.capabilities import RETRY_AFTER_S, CapabilityStore, ServerFacts, degrade
from pyagent.agent.wire.client import AnthropicClient, Credentials, ModelRequest
from pyagent.agent.wire.context_management import CONTEXT_MANAGEMENT_BETA, context_edits
from pyagent.agent.wire.failures import ApiFailure, failure_from_response
from pyagent.agent.wire.heal import Cure, LowerMaxTokens, SwitchOff, WriteRepair, find_cure
from pyagent.agent.wire.overflow import find_overflow
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.retry import RetryPolicy, call_model
from pyagent.agent.wire.stream import Response
from pyagent.log import UserEntry
from pyagent.messages import ImageBlock, TextBlock, ToolResultBlock
from tests.agent.wire.builders import OPUS, Conversation, prompt, results, text_raw, thinking_raw, use_raw
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.persona import Persona, first_party, strict_gateway
from tests.fakes.script import Script

LARGE_PNG_5000 = (
    # The header alone of a PNG of 5,000 × 10 pixels: sizes are read from there.
    "iVBORw0KGgoAAAANSUhEUgAAE4gAAAAKCAYAAAAAAAAA"
)


class Patient:
    """A conversation that sends, is refused, and applies the cures it is given."""

    def __init__(self, server: FakeMessagesServer, profile: RequestProfile, home: Path) -> None:
        self.talk = Conversation(profile)
        self.url = server.url
        self.client = AnthropicClient(Credentials("k", base_url=server.url))
        self.store = CapabilityStore(home, clock=lambda: 1_000_000.0)
        self.cures: list[Cure] = []

    async def send(self) -> Response:
        try:
            while True:
                profile = self.store.degraded(self.url, self.talk.profile)
                rendered = self.talk.renderer.render(self.talk.state.view, profile)
                request = ModelRequest(RequestPlan.of(profile, rendered).body(), profile.model, profile.all_betas)
                try:
                    return await call_model(self.client, request, policy=RetryPolicy(max_attempts=1))
                except ApiFailure as failure:
                    tried = [cure.cause for cure in self.cures]
                    cure = find_cure(failure, self.talk.state.view, rendered, profile, tried)
                    if cure is None:
                        raise
                    self.cures.append(cure)
                    self.apply(cure)
        finally:
            await self.client.close()

    def apply(self, cure: Cure) -> None:
        match cure:
            case WriteRepair(repair=repair):
                self.talk.add(repair)
            case SwitchOff(feature=feature):
                self.store.switch_off(self.url, self.talk.profile.model, feature)
            case LowerMaxTokens(max_tokens=limit, is_model_limit=True):
                self.store.learn(self.url, self.talk.profile.model, max_output_tokens=limit)
            case LowerMaxTokens(max_tokens=limit):
                self.talk.profile = self.talk.profile.with_changes(max_tokens=limit)


async def healed(
    tmp_path: Path, fill: Callable[[Conversation], None], profile: RequestProfile = OPUS, kind: Persona | None = None
) -> Patient:
    async with FakeMessagesServer(Script(["fine"]), persona=kind or first_party()) as server:
        patient = Patient(server, profile, tmp_path)
        fill(patient.talk)
        assert (await patient.send()).text == "fine"
        return patient


def begin(talk: Conversation) -> None:
    talk.add(prompt("go"))


async def test_a_signature_the_server_does_not_know_costs_the_thinking_only(tmp_path: Path) -> None:
    def fill(talk: Conversation) -> None:
        begin(talk)
        talk.answer(thinking_raw(), use_raw("a"), stop_reason="tool_use")
        talk.add(results(("a", "1")))

    patient = await healed(tmp_path, fill)
    assert [cure.cause for cure in patient.cures] == ["thinking"]


async def test_an_open_call_is_answered_and_sent_again(tmp_path: Path) -> None:
    def fill(talk: Conversation) -> None:
        begin(talk)
        talk.answer(use_raw("a"), stop_reason="tool_use")
        talk.add(prompt("next"))

    patient = await healed(tmp_path, fill)
    assert [cure.cause for cure in patient.cures] == ["pairing"]


async def test_an_image_that_is_too_large_leaves_and_the_text_beside_it_stays(tmp_path: Path) -> None:
    big = ImageBlock({"type": "base64", "media_type": "image/png", "data": LARGE_PNG_5000})

    def fill(talk: Conversation) -> None:
        talk.add(UserEntry((TextBlock("see"), *([big] * 21))))
        talk.answer(use_raw("a"), stop_reason="tool_use")
        talk.add(UserEntry((ToolResultBlock("a", (TextBlock("shot"), big)),), origin="tool_results"))

    patient = await healed(tmp_path, fill)
    assert [cure.cause for cure in patient.cures] == ["media"]
    assert "shot" in patient.talk.state.view.items[1].overlay.answers[0][1]


async def test_a_limit_of_output_tokens_is_learned(tmp_path: Path) -> None:
    patient = await healed(tmp_path, begin, OPUS.with_changes(max_tokens=500_000))
    assert patient.cures == [LowerMaxTokens(128_000, "max_tokens", is_model_limit=True)]
    again = CapabilityStore(tmp_path, clock=lambda: 1_000_000.0)
    assert again.degraded(patient.url, patient.talk.profile).max_tokens == 128_000


async def test_a_gateway_loses_each_feature_it_refuses_once_and_for_the_next_session_too(tmp_path: Path) -> None:
    edits = context_edits(
        trigger_tokens=180_000,
        target_tokens=40_000,
        compact_trigger_tokens=167_000,
        mode="results",
        tool_names=["Read"],
        supported=["clear_tool_uses_20250919"],
        is_cache_warm=True,
        has_thinking=False,
    )
    profile = OPUS.with_changes(
        betas=(CONTEXT_MANAGEMENT_BETA,),
        context_management=edits,
        output_config={"effort": "low"},
        block_binding_drop=True,
    )
    patient = await healed(tmp_path, begin, profile, strict_gateway())
    off = {cure.feature for cure in patient.cures if isinstance(cure, SwitchOff)}
    assert off == {"context_management", "output_config", "block_binding"}
    again = CapabilityStore(tmp_path, clock=lambda: 1_000_000.0)
    assert again.degraded(patient.url, profile).context_management is None
    assert again.degraded("http://127.0.0.1:1", profile).context_management is not None


async def test_the_same_cause_is_not_cured_twice(tmp_path: Path) -> None:
    talk = Conversation()
    begin(talk)
    talk.answer(thinking_raw(), text_raw("x"))
    rendered = talk.renderer.render(talk.state.view, OPUS)
    refused = failure_from_response(
        400,
        {},
        {"error": {"type": "invalid_request_error", "message": "messages.1: Invalid `signature` in `thinking`"}},
    )
    cure = find_cure(refused, talk.state.view, rendered, OPUS)
    assert isinstance(cure, WriteRepair)
    assert find_cure(refused, talk.state.view, rendered, OPUS, [cure.cause]) is None


def test_prompt_and_answer_together_too_long_ask_for_a_shorter_answer() -> None:
    talk = Conversation()
    begin(talk)
    text = "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length"
    refused = failure_from_response(400, {}, {"error": {"type": "invalid_request_error", "message": text}})
    cure = find_cure(refused, talk.state.view, talk.renderer.render(talk.state.view, OPUS), OPUS)
    assert cure == LowerMaxTokens(10_000, "output room", is_model_limit=False)


@pytest.mark.parametrize(
    ("text", "prompt_tokens", "limit_tokens"),
    [
        ("prompt is too long: 210000 tokens > 199999 maximum", 210_000, 199_999),
        ("input length and max_tokens exceed context limit: 190 + 20 > 200", 190, 200),
        (
            "This model's maximum context length is 8192 tokens. However, your request has 9000 input tokens.",
            9_000,
            8_192,
        ),
        ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens", 9_000, 8_192),
        ("request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it", 9_000, 4_096),
        ("the request exceeds the available context size", None, None),
        ("error code: context_length_exceeded", None, None),
        ("too many tokens in the prompt", None, None),
        ("Input length 940,123 exceeds the maximum allowed input length of 922,000 tokens", 940_123, 922_000),
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 537_812, 131_072),
        (
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
            300_000,
            272_000,
        ),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens "
            "and 200 `max_new_tokens`",
            5_000,
            4_096,
        ),
        ("prompt token count of 130000 exceeds the limit of 128000 of model-x-20250929", 130_000, 128_000),
        ("InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]", None, None),
        ("messages: the conversation is too long, reduce its length", None, None),
    ],
)
def test_every_wording_of_an_overflow_is_known(text: str, prompt_tokens: int | None, limit_tokens: int | None) -> None:
    found = find_overflow(400, text, "invalid_request_error")
    assert found is not None
    assert (found.prompt_tokens, found.limit_tokens) == (prompt_tokens, limit_tokens)


@pytest.mark.parametrize(
    "text",
    [
        "messages: text content blocks must be non-empty",
        "max_tokens: 9 > 8, which is the maximum",
        "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for this model",
        "overloaded",
        "thinking.budget_tokens: Input should be greater than or equal to 1024",
        "context_management.edits.0.trigger.value: Input should be a number of input tokens of at most 1000000",
        "messages.3.content.0.image.source.base64: image exceeds 5 MB maximum",
        "metadata.user_id: String should have a length of at most 256",
        "This request exceeds the limit of 40,000 input tokens per minute of your organisation",
        "messages: at least one message is required",
        "tools.0.custom.description: the length of this message exceeds the maximum",
    ],
)
def test_other_refusals_are_no_overflow(text: str) -> None:
    assert find_overflow(400, text, "invalid_request_error") is None


# ── what servers take ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_refused_feature_is_tried_again_after_a_week() -> None:
    facts = ServerFacts().without("thinking", 100.0)
    assert degrade(OPUS, facts, 101.0).thinking is None
    assert degrade(OPUS, facts, 100.0 + RETRY_AFTER_S) == OPUS


def test_the_ladder_takes_away_only_what_was_refused() -> None:
    profile = OPUS.with_changes(cache_ttl="1h", extra={"diagnostics": {}, "metadata": {}})
    hour = degrade(profile, ServerFacts({"cache_1h": 1.0}), 2.0)
    assert (hour.cache_ttl, hour.extra) == ("5m", profile.extra)
    assert degrade(profile, ServerFacts({"cache_control": 1.0}), 2.0).cache_ttl == "off"
    assert degrade(profile, ServerFacts({"diagnostics": 1.0}), 2.0).extra == {"metadata": {}}
    assert degrade(profile, ServerFacts({"betas": 1.0}), 2.0).all_betas == ()


def test_learned_facts_survive_and_those_of_other_processes_are_kept(tmp_path: Path) -> None:
    first, second = (CapabilityStore(tmp_path, clock=lambda: 5.0) for _ in range(2))
    assert first.is_on("http://a", "m", "count_tokens")
    first.learn("http://a", "m", window_tokens=8_192)
    second.put_endpoint("http://b", "claude-opus-5-5", {"max_input_tokens": 500_000})
    assert first.switch_off("http://a", "m", "count_tokens")
    assert not first.switch_off("http://a", "m", "count_tokens")
    third = CapabilityStore(tmp_path, clock=lambda: 5.0)
    assert third.info("http://a", "m").window_tokens == 8_192
    assert third.info("http://b", "claude-opus-5-5").window_tokens == 500_000
    assert not third.is_on("http://a", "m", "count_tokens")
    assert not third.wants_endpoint("http://b", "claude-opus-5-5")


def test_a_broken_facts_file_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "server-facts.json").write_bytes(b"\xff{")
    store = CapabilityStore(tmp_path, clock=lambda: 5.0)
    assert store.facts("http://a", "m") == ServerFacts()
    (tmp_path / "server-facts.json").write_text('{"http://a m": {"off": [], "window_tokens": "x"}}')
    store = CapabilityStore(tmp_path, clock=lambda: 5.0)
    assert store.facts("http://a", "m") == ServerFacts()
