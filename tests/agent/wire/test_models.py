"""Names, windows, thinking, prices, server-side edits and lost caches."""

from __future__ import annotations

import pytest

from pyagent.agent.wire.cache_break import CacheWatch
from pyagent.agent.wire.catalogue import (
    ALIASES,
    known_model,
    model_ids,
    model_info,
    resolve_model,
    thinking_for,
    with_endpoint_facts,
)
from pyagent.agent.wire.context_management import (
    AppliedEdits,
    applied_edits,
    compaction_field,
    context_edits,
    summary_block,
)
from pyagent.agent.wire.cost import cost_usd
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.stream import Response
from pyagent.errors import UsageError
from pyagent.log import ClearResults
from pyagent.messages import JsonObject, Usage
from tests.agent.wire.builders import OPUS, TOOL, Conversation, prompt, results, text_raw, use_raw
from tests.fakes.fields import CONTEXT_MANAGEMENT_BETA, check_edits
from tests.fakes.model_table import ModelTable
from tests.fakes.persona import first_party
from tests.fakes.rules import check_request


def usage(**counters: object) -> Usage:
    return Usage.from_wire(counters)


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["claude-opus-5.5", "opsu", "sonet"])
def test_an_unknown_name_is_refused_with_near_ones_by_the_first_party(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_model(name, is_first_party=True)
    assert "Did you mean" in caught.value.hint


def test_names_resolve_by_alias_date_and_server() -> None:
    assert resolve_model("Opus", is_first_party=True) == ALIASES["opus"]
    assert resolve_model("claude-haiku-4-5-20251001", is_first_party=True) == "claude-haiku-4-5-20251001"
    assert resolve_model("qwen3-coder", is_first_party=False) == "qwen3-coder"
    assert resolve_model("claude-next", is_first_party=True, listed=["claude-next"]) == "claude-next"
    assert set(ALIASES.values()) <= set(model_ids())


def test_dated_and_prefixed_ids_mean_their_model() -> None:
    assert known_model("anthropic/claude-sonnet-5-5") is not None
    assert model_info("claude-opus-4-5-20251101").window_tokens == 200_000
    unknown = model_info("claude-opus-9")
    assert (unknown.is_known, unknown.has_preserved_thinking, unknown.price) == (False, True, None)
    assert model_info("llama4").token_factor == 1.1


def test_the_models_endpoint_is_believed_over_the_table() -> None:
    for spec in ModelTable().all():
        if known_model(spec.id) is None:
            continue
        info = with_endpoint_facts(model_info(spec.id), spec.info())
        assert info.window_tokens == spec.window_tokens
        assert set(info.thinking_types) == spec.thinking_types
    assert with_endpoint_facts(model_info("x"), {"max_input_tokens": None, "capabilities": None}) == model_info("x")


def test_the_table_says_what_the_strict_server_says() -> None:
    for spec in ModelTable().all():
        info = known_model(spec.id)
        if info is None:
            continue
        assert (info.window_tokens, info.max_output_tokens) == (spec.window_tokens, spec.max_output_tokens)
        assert set(info.thinking_types) == spec.thinking_types
        assert info.has_preserved_thinking == spec.has_point_release_rules
        assert info.takes_system_messages == spec.accepts_system_messages
        assert info.takes_forced_tool_choice == spec.accepts_forced_tool_choice
        assert info.cache_minimum_tokens == spec.cache_minimum_tokens


@pytest.mark.parametrize("setting", ["", "off", "low", "medium", "high", "xhigh", "max"])
@pytest.mark.parametrize("model", [spec.id for spec in ModelTable().all() if known_model(spec.id)])
def test_every_thinking_setting_is_accepted_for_every_model(model: str, setting: str) -> None:
    info = model_info(model)
    config = thinking_for(info, setting)
    body: JsonObject = {
        "model": model,
        "max_tokens": 32_000,
        "messages": [{"role": "user", "content": "hi"}],
        **({"thinking": config.thinking} if config.thinking else {}),
        **({"output_config": config.output_config} if config.output_config else {}),
    }
    headers = {"anthropic-version": "2023-06-01"}
    check_request(body, headers, first_party(), ModelTable(), counting=False, issued_unknown=())


def test_an_unknown_effort_is_refused_in_words() -> None:
    with pytest.raises(UsageError, match="effort"):
        thinking_for(model_info("claude-opus-5-5"), "extreme")


# ── prices ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_sort_of_token_has_its_price() -> None:
    spent = usage(
        input_tokens=1_000_000,
        output_tokens=1_000_000,
        cache_creation_input_tokens=3_000_000,
        cache_read_input_tokens=1_000_000,
        cache_creation={"ephemeral_5m_input_tokens": 2_000_000, "ephemeral_1h_input_tokens": 1_000_000},
    )
    assert cost_usd("claude-opus-5-5", spent) == pytest.approx(4 + 20 + 2 * 5 + 8 + 0.20)


def test_haiku_counts_all_tokens_dearer_beyond_its_step_cached_ones_included() -> None:
    assert cost_usd("claude-haiku-5-5", usage(input_tokens=100_000)) == pytest.approx(0.01)
    above = usage(input_tokens=1, cache_read_input_tokens=100_000, output_tokens=1_000_000)
    assert cost_usd("claude-haiku-5-5", above) == pytest.approx(0.50e-6 + 0.005 + 2.50)


def test_passes_are_added_up_compactions_too() -> None:
    spent = usage(
        input_tokens=10,
        iterations=[
            {"type": "compaction", "input_tokens": 1_000_000, "output_tokens": 0},
            {"type": "message", "input_tokens": 0, "output_tokens": 1_000_000},
        ],
    )
    assert cost_usd("claude-opus-5-5", spent) == pytest.approx(24)


def test_searches_and_places_of_inference_are_billed() -> None:
    spent = usage(input_tokens=1_000_000, inference_geo="us", server_tool_use={"web_search_requests": 3})
    assert cost_usd("claude-opus-5-5", spent) == pytest.approx(4.4 + 0.03)


@pytest.mark.parametrize(
    ("model", "spent"),
    [
        ("llama4", usage(input_tokens=5)),
        ("claude-fable-5-2", usage(cache_read_input_tokens=5)),
        ("claude-opus-5-5", usage(input_tokens=5, speed="fast")),
    ],
)
def test_a_price_that_is_not_known_is_not_made_up(model: str, spent: Usage) -> None:
    assert cost_usd(model, spent) is None


# ── server-side edits ────────────────────────────────────────────────────────────────────────────────────────────


def edits_for(mode: str, *, is_warm: bool = True) -> JsonObject:
    supported = ("clear_thinking_20251015", "clear_tool_uses_20250919")
    found = context_edits(
        trigger_tokens=180_000,
        target_tokens=40_000,
        compact_trigger_tokens=167_000,
        mode="results" if mode == "results" else "uses",
        tool_names=["Read", "Edit", "Task"],
        supported=supported,
        is_cache_warm=is_warm,
        has_thinking=True,
    )
    assert found is not None
    check_edits(found, frozenset({CONTEXT_MANAGEMENT_BETA}))
    return found


def test_edits_clear_early_enough_and_spare_what_cannot_be_had_again() -> None:
    thinking, clearing = edits_for("results")["edits"]
    assert thinking == {"type": "clear_thinking_20251015", "keep": "all"}
    assert clearing["trigger"]["value"] == 100_200
    assert clearing["clear_at_least"]["value"] == 60_200
    assert clearing["exclude_tools"] == ["Task"]
    assert edits_for("uses")["edits"][1]["exclude_tools"] == ["Edit"]
    assert edits_for("uses", is_warm=False)["edits"][0]["keep"] == {"type": "thinking_turns", "value": 1}


def response(content: tuple[JsonObject, ...] = (), edits: tuple[JsonObject, ...] = ()) -> Response:
    return Response("m", "claude-opus-5-5", content, "end_turn", Usage(), applied_edits=edits)


def test_what_the_server_applied_is_added_up() -> None:
    done = applied_edits(
        response(
            edits=(
                {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 3, "cleared_input_tokens": 500},
                {"type": "clear_thinking_20251015", "cleared_thinking_turns": 2, "cleared_input_tokens": 50},
                {"type": "new_one", "cleared_input_tokens": None},
            )
        )
    )
    assert done == AppliedEdits(3, 2, 550)
    assert not applied_edits(response()).has_any


def test_only_a_summary_with_content_is_one() -> None:
    block: JsonObject = {"type": "compaction", "content": "so far", "signature": "s", "tool_changes": []}
    assert summary_block(response((block,))) == block
    assert summary_block(response(({"type": "compaction", "content": None},))) is None
    assert compaction_field(" ") == {"type": "summarize"}


# ── lost caches ──────────────────────────────────────────────────────────────────────────────────────────────────


class Watched:
    """A conversation whose requests are watched."""

    def __init__(self) -> None:
        self.talk = Conversation()
        self.talk.add(prompt("look"))
        self.talk.answer(use_raw("a"), stop_reason="tool_use")
        self.talk.add(results(("a", "contents")))
        self.watch = CacheWatch()
        self.now_s = 0.0
        self.ask(written=50_000)

    def ask(
        self, *, read: int = 0, written: int = 0, profile: RequestProfile = OPUS, is_announced: bool = False
    ) -> tuple[str, ...] | None:
        """The causes of the break that was found, None for none."""
        rendered = self.talk.renderer.render(self.talk.state.view, profile)
        self.watch = self.watch.requested(profile, rendered, now_s=self.now_s, is_announced=is_announced)
        counters = usage(cache_read_input_tokens=read, cache_creation_input_tokens=written)
        self.watch, found = self.watch.answered(counters, model_info(profile.model))
        return None if found is None else found.causes


def test_a_cache_that_is_read_is_no_break() -> None:
    watched = Watched()
    watched.talk.add(prompt("more"))
    assert watched.ask(read=50_000, written=100) is None


@pytest.mark.parametrize(
    ("profile", "cause"),
    [
        (OPUS.with_changes(system="You are careless."), "the system text changed"),
        (OPUS.with_changes(tools=(TOOL, {**TOOL, "name": "Grep"})), "the tool Grep was added"),
        (OPUS.with_changes(tools=({**TOOL, "description": "Other."},)), "the tool Read changed"),
        (OPUS.with_changes(output_config={"effort": "low"}), "thinking, effort or another setting changed"),
        (OPUS, "the server no longer held it"),
    ],
)
def test_a_lost_cache_is_reported_with_its_cause(profile: RequestProfile, cause: str) -> None:
    assert Watched().ask(profile=profile, written=50_000) == (cause,)


def test_an_edit_nobody_announced_is_found_by_its_message() -> None:
    watched = Watched()
    watched.talk.answer(text_raw("yes"))
    watched.talk.add(prompt("more"))
    watched.ask(read=50_000)
    watched.talk.add(ClearResults({"a": "[cleared]"}))
    assert watched.ask(written=50_000) == ("message 3 of 5 changed",)


def test_announced_edits_small_losses_and_cold_caches_are_no_breaks() -> None:
    assert Watched().ask(written=50_000, is_announced=True) is None
    assert Watched().ask(read=48_500) is None
    cold = Watched()
    cold.now_s = 301.0
    assert cold.ask(written=50_000) is None


def test_a_break_names_its_price() -> None:
    watched = Watched()
    rendered = watched.talk.renderer.render(watched.talk.state.view, OPUS)
    watch = watched.watch.requested(OPUS, rendered, now_s=1.0, is_announced=False)
    _, found = watch.answered(usage(cache_creation_input_tokens=50_000), model_info(OPUS.model))
    assert found is not None
    assert found.lost_tokens == 50_000
    assert found.extra_usd == pytest.approx(0.05 * (5 - 0.20))
