"""A summary or notes call is put right, cured and billed on the same path as the main loop's requests."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from pyagent.agent.caller import ModelCaller
from pyagent.agent.fallbacks import Fallbacks
from pyagent.agent.journal import Journal
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.session_store import DiscardingSink
from pyagent.agent.side_calls import SideCalls
from pyagent.agent.summarizer import ForkSummarizer
from pyagent.agent.wire.capabilities import CapabilityStore
from pyagent.agent.wire.catalogue import model_info
from pyagent.agent.wire.client import AnthropicClient, Credentials
from pyagent.agent.wire.failures import ApiFailure, OverflowFailure
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.agent.wire.retry import CallWaits, LongWaitFailure, RetryPolicy
from pyagent.compaction.ports import SummaryAnswer, SummaryRequest
from pyagent.events import CompactionProgress, Event, Notice, RetryScheduled
from pyagent.log import CallCost, NoticeShown, Payload, Repair, UserEntry
from pyagent.messages import ImageBlock, JsonObject, TextBlock
from pyagent.state import ConversationState
from pyagent.view import View
from tests.agent.wire.builders import OPUS, START, Conversation, prompt, results, text_raw, thinking_raw, use_raw
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.persona import Persona, first_party, strict_gateway
from tests.fakes.script import Answer, Script, after_deltas, eof, http_error, rate_limited, reply

WIDE_PNG = "iVBORw0KGgoAAAANSUhEUgAAI/AAAAAKCAYAAAAAAAAA"
"""The header alone of a PNG of 9,200 × 10 pixels: sizes are read from there."""


PayloadT = TypeVar("PayloadT")


@dataclass
class Desk:
    """The parts behind a conversation's calls."""

    journal: Journal
    profiles: ProfileBook
    calls: SideCalls
    server: FakeMessagesServer
    events: list[Event]

    @property
    def told(self) -> list[Notice]:
        return [event for event in self.events if isinstance(event, Notice)]

    async def summarize(self, view: View | None = None, *, is_awaited: bool = True) -> SummaryAnswer:
        summarizer = ForkSummarizer(
            self.calls,
            journal=self.journal,
            profiles=self.profiles,
            renderer=Renderer(),
            emit=lambda event: self.events.append(event),
            is_awaited=is_awaited,
        )
        request = SummaryRequest(view or self.view, "Summarise.", 2_000, shares_prefix=True, strip_media=False)
        return await summarizer.summarize(request)

    @property
    def view(self) -> View:
        return self.journal.state.view

    def written(self, kind: type[PayloadT]) -> list[PayloadT]:
        return [record.payload for record in self.journal.state.records if isinstance(record.payload, kind)]

    @property
    def last_body(self) -> JsonObject:
        body: JsonObject = self.server.message_requests[-1].body
        return body


@asynccontextmanager
async def desk(
    home: Path,
    *history: Payload,
    profile: RequestProfile = OPUS,
    persona: Persona | None = None,
    answers: Sequence[Answer | str] = ("the summary",),
    waits: CallWaits | None = None,
    fallback: str = "",
) -> AsyncIterator[Desk]:
    async with FakeMessagesServer(Script(list(answers)), persona=persona or first_party()) as server:
        events: list[Event] = []
        ids = itertools.count()
        journal = Journal(
            ConversationState(),
            sink=DiscardingSink(),
            emit=lambda event: None,
            clock=lambda: START,
            new_uuid=lambda: f"u{next(ids)}",
        )
        for payload in history:
            journal.commit(payload)
        profiles = ProfileBook(journal, profile, model_info(profile.model))
        client = AnthropicClient(Credentials("k", base_url=server.url))
        stand_in = (profile.with_changes(model=fallback), model_info(fallback)) if fallback else None
        caller = ModelCaller(
            client,
            journal=journal,
            profiles=profiles,
            store=CapabilityStore(home, clock=lambda: 1_000_000.0),
            endpoint=lambda: server.url,
            waits=waits or CallWaits(RetryPolicy(max_attempts=1)),
            emit=lambda event: events.append(event),
            fallbacks=Fallbacks([fallback] if fallback else [], lambda name: stand_in),
        )
        calls = SideCalls(caller, journal=journal, profiles=profiles)
        try:
            yield Desk(journal, profiles, calls, server, events)
        finally:
            await client.close()
        server.raise_failures()


def said(*parts: Sequence[JsonObject]) -> tuple[Payload, ...]:
    """A prompt, the given responses, each with the results of its calls, and a closing word."""
    talk = Conversation()
    payloads: list[Payload] = [prompt("go")]
    talk.add(payloads[0])
    for content in (*parts, [text_raw("done")]):
        uses = [str(raw["id"]) for raw in content if raw["type"] == "tool_use"]
        payloads.append(talk.answer(*content, stop_reason="tool_use" if uses else "end_turn").payload)
        if uses:
            payloads.append(results(*((use_id, "1") for use_id in uses)))
            talk.add(payloads[-1])
    return tuple(payloads)


def orphaned() -> tuple[Payload, ...]:
    """A call whose result never came, in the middle of the conversation."""
    history = list(said([use_raw("a")], [use_raw("b")]))
    history[2] = prompt("never mind")
    return tuple(history)


async def test_a_summary_of_a_call_without_a_result_is_put_right_before_it_is_sent(tmp_path: Path) -> None:
    async with desk(tmp_path, *orphaned()) as at:
        answer = await at.summarize()
    assert answer.content[0]["text"] == "the summary"
    assert len(at.server.message_requests) == 1
    # The view was the conversation's own, so that the main loop's next request needs no repair of its own.
    assert len(at.written(Repair)) == 1
    assert at.view.result_block("a") is not None


async def test_the_repair_of_a_part_or_of_a_background_call_stays_out_of_the_log(tmp_path: Path) -> None:
    async with desk(tmp_path, *orphaned(), answers=["one", "two"]) as at:
        part = View(at.view.items[:-1], at.view.epoch, at.view.boundary)
        await at.summarize(part)
        await at.summarize(is_awaited=False)
    assert not at.written(Repair)


async def test_an_image_too_wide_for_the_api_leaves_the_summary_request(tmp_path: Path) -> None:
    picture = ImageBlock({"type": "base64", "media_type": "image/png", "data": WIDE_PNG}, 9_200, 10)
    first, *rest = said([use_raw("a")])
    assert isinstance(first, UserEntry)
    async with desk(tmp_path, UserEntry((TextBlock("see"), picture)), *rest) as at:
        await at.summarize()
    assert len(at.server.message_requests) == 1
    assert '"image"' not in str(at.last_body["messages"])


async def test_an_image_the_server_alone_minds_leaves_after_its_refusal(tmp_path: Path) -> None:
    # Of unknown size here, so that only the server can tell.
    picture = ImageBlock({"type": "base64", "media_type": "image/png", "data": WIDE_PNG})
    async with desk(tmp_path, UserEntry((TextBlock("see"), picture)), *said([use_raw("a")])[1:]) as at:
        await at.summarize()
    assert len(at.server.message_requests) == 2
    assert "'image'" not in str(at.last_body["messages"])


async def test_a_feature_refused_to_a_summary_is_switched_off_for_all_that_follows(tmp_path: Path) -> None:
    profile = OPUS.with_changes(output_config={"effort": "high"})
    gateway = strict_gateway(refused_fields=frozenset({"output_config"}))
    async with desk(tmp_path, *said(), profile=profile, persona=gateway) as at:
        await at.summarize()
    assert "output_config" not in at.last_body
    assert at.profiles.current.output_config is None
    assert [event.text for event in at.told] == ["This server does not take an effort setting; going on without."]


async def test_thinking_a_server_does_not_take_back_is_left_out_of_the_summary_request(tmp_path: Path) -> None:
    async with desk(tmp_path, *said([thinking_raw(), use_raw("a")])) as at:
        await at.summarize()
    assert len(at.server.message_requests) == 2
    assert "'thinking'" not in str(at.last_body["messages"])
    assert len(at.written(Repair)) == 1


async def test_a_cause_that_comes_back_after_its_cure_is_told(tmp_path: Path) -> None:
    refusal = http_error(400, "invalid_request_error", "output_config: Extra inputs are not permitted")
    profile = OPUS.with_changes(output_config={"effort": "high"})
    async with desk(tmp_path, *said(), profile=profile, answers=[refusal, refusal]) as at:
        with pytest.raises(ApiFailure, match="output_config"):
            await at.summarize()


async def test_a_limit_of_output_tokens_is_learned_by_a_summary(tmp_path: Path) -> None:
    refusal = http_error(400, "invalid_request_error", "max_tokens: 14000 > 8192, which is the maximum")
    async with desk(tmp_path, *said(), answers=[refusal, "the summary"]) as at:
        await at.summarize()
    assert at.last_body["max_tokens"] == 8_192
    assert at.profiles.model.max_output_tokens == 8_192
    assert at.profiles.current.max_tokens <= 8_192


async def test_a_side_call_that_is_too_long_is_for_its_caller_to_shorten(tmp_path: Path) -> None:
    text = "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"
    async with desk(tmp_path, *said(), answers=[http_error(400, "invalid_request_error", text)]) as at:
        with pytest.raises(OverflowFailure):
            await at.summarize()


async def test_a_side_call_never_asks_to_wait_for_long(tmp_path: Path) -> None:
    asked: list[LongWaitFailure] = []

    async def agree(failure: LongWaitFailure) -> bool:
        asked.append(failure)
        return True

    slow = rate_limited(retry_after_s=3_600)
    async with desk(tmp_path, *said(), answers=[slow], waits=CallWaits(agree_to_wait=agree)) as at:
        with pytest.raises(LongWaitFailure):
            await at.summarize()
    assert not asked


async def test_a_fallback_model_summarises_where_it_is_waited_for_and_nowhere_else(tmp_path: Path) -> None:
    busy = http_error(529, "overloaded_error", "busy")
    async with desk(tmp_path, *said(), answers=[busy, busy, "the summary"], fallback="claude-sonnet-5-5") as at:
        with pytest.raises(ApiFailure):
            await at.summarize(is_awaited=False)
        await at.summarize()
    assert at.last_body["model"] == "claude-sonnet-5-5"
    assert len(at.written(NoticeShown)) == 1


async def test_what_a_broken_side_call_used_is_billed_once(tmp_path: Path) -> None:
    broken = eof(reply("the summary"), after_deltas(1))
    waits = CallWaits(RetryPolicy(max_attempts=1))
    async with desk(tmp_path, *said(), answers=[broken], waits=waits) as at:
        with pytest.raises(ApiFailure):
            await at.summarize()
    assert [cost.source for cost in at.written(CallCost)] == ["compact"]


async def test_once_the_wait_is_over_a_summary_is_shown_as_under_way_again(tmp_path: Path) -> None:
    async def at_once(delay_s: float) -> None:
        """No time passes."""

    busy = http_error(529, "overloaded_error", "busy")
    async with desk(tmp_path, *said(), answers=[busy, "the summary"], waits=CallWaits(sleep=at_once)) as at:
        await at.summarize()
    assert [type(event) for event in at.events] == [CompactionProgress, RetryScheduled, CompactionProgress]
