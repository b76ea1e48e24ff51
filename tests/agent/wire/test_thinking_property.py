"""Random conversations with random edits: the strict server never finds thinking behind a changed prefix."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.repair import find_repair
from pyagent.log import Boundary, ClearResults, Fold, Revoke, SetHead, Snip, UserEntry
from pyagent.messages import JsonObject, TextBlock, ToolUseBlock
from pyagent.state import ConversationState
from tests.agent.wire.builders import OPUS, Conversation, prompt, results, text_raw, use_raw
from tests.fakes.binding import check_bindings
from tests.fakes.model_table import ModelTable
from tests.fakes.persona import first_party
from tests.fakes.rules import check_request, parse_body

MODELS = ModelTable()
OPUS_SPEC = next(spec for spec in MODELS.all() if spec.id == OPUS.model)
HEADERS = {"anthropic-version": "2023-06-01"}
NAMES = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-4-8")
STEPS = (
    *("prompt", "round", "round", "finish", "clear", "fold", "snip", "compact", "undo", "redo", "rewind", "model"),
    *("note", "note", "system messages"),
)


class Player:
    """Plays a conversation against the server's rules, each response signed for the request it answers."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.talk = Conversation(OPUS.with_changes(has_system_messages=seed % 2 == 0))
        self.talk.add(prompt("begin"))
        self.serial = 0
        self.undoable: list[int] = []
        self.sent_thinking_count = 0

    @property
    def state(self) -> ConversationState:
        return self.talk.state

    def request(self) -> tuple[dict[str, Any], Any]:
        """The accepted request for the view, and the state a reply's thinking is bound to."""
        repair = find_repair(self.state.view)
        if repair is not None:
            self.talk.add(repair)
        rendered = self.talk.renderer.render(self.state.view, self.talk.profile)
        if not rendered.messages:
            self.talk.add(prompt("still there?"))
            rendered = self.talk.renderer.render(self.state.view, self.talk.profile)
        body = parse_body(RequestPlan.of(self.talk.profile, rendered).body())
        model = check_request(body, HEADERS, first_party(), MODELS, counting=False, issued_unknown=())
        check = check_bindings(body, model, "all")
        assert check.dropped == []
        self.sent_thinking_count = sum(b["type"] == "thinking" for m in body["messages"] for b in m["content"])
        return body, check.chain

    def reply(self, *, calls: int) -> None:
        """A response with one or two thinking blocks."""
        _, chain = self.request()
        self.serial += 1
        total = self.chance.choice((1, 2))
        content: list[JsonObject] = []
        for ordinal in range(total):
            shown = self.chance.choice(("", f"thought {self.serial}.{ordinal}"))
            signature = chain.seal_thinking(shown, f"msg_{self.serial}", ordinal, total, 10)
            content.append({"type": "thinking", "thinking": shown, "signature": signature})
            if ordinal + 1 < total:
                note = text_raw(f"note {self.serial}")
                chain.add("assistant", note)
                content.append(note)
        content += [use_raw(f"toolu_{self.serial}_{number}") for number in range(calls)] or [text_raw("Done.")]
        self.talk.answer(*content, stop_reason="tool_use" if calls else "end_turn")

    def step(self, name: str) -> None:
        view, chance = self.state.view, self.chance
        uuids = [item.uuid for item in view.items]
        match name:
            case "prompt":
                self.talk.add(prompt(f"prompt {self.serial}"))
            case "round":
                self.reply(calls=chance.choice((1, 2)))
                open_uses = self.state.view.open_tool_uses()
                for use in open_uses[: chance.choice((len(open_uses), 1))]:
                    self.talk.add(results((use.id, f"result of {use.id}")))
            case "finish":
                self.reply(calls=0)
            case "clear":
                ids = [
                    b.id
                    for item in view.items
                    if not item.is_user
                    for b in item.blocks()
                    if isinstance(b, ToolUseBlock)
                ]
                if ids:
                    (record,) = self.talk.add(ClearResults({chance.choice(ids): "[cleared]"}))
                    self.undoable.append(record.seq)
            case "fold" | "snip" if len(uuids) > 3:
                start = chance.randrange(len(uuids) - 2)
                chosen = tuple(uuids[start : start + chance.choice((1, 2, 3))])
                (record,) = self.talk.add(Fold(chosen, "[folded]") if name == "fold" else Snip(chosen))
                self.undoable.append(record.seq)
            case "compact" if uuids:
                self.compact(tuple(uuids[-chance.choice((1, 2, 3)) :]))
            case "undo" | "redo" if self.undoable:
                (record,) = self.talk.add(Revoke(chance.choice(self.undoable)))
                self.undoable.append(record.seq)
            case "rewind":
                self.talk.add(SetHead(chance.randrange(self.state.next_seq)))
            case "model":
                self.talk.profile = self.talk.profile.with_changes(model=chance.choice(NAMES))
            case "note":
                self.talk.add(UserEntry((TextBlock(f"note {self.serial}"),), origin="reminder"))
            case "system messages":
                self.talk.profile = self.talk.profile.with_changes(has_system_messages=chance.choice((True, False)))
            case _:
                pass

    def compact(self, kept: tuple[str, ...]) -> None:
        (summary,) = self.talk.add(prompt(f"summary {self.serial}"))
        boundary = Boundary((summary.uuid, *kept), "manual", "full", 0, 0, 0, kept=kept, summary_uuid=summary.uuid)
        (record,) = self.talk.add(boundary)
        self.undoable.append(record.seq)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(STEPS), min_size=1, max_size=25))
def test_no_edit_of_history_ever_sends_thinking_behind_another_prefix(seed: int, steps: list[str]) -> None:
    player = Player(seed)
    for name in steps:
        player.step(name)
    if player.state.view.items:
        player.request()


@pytest.mark.parametrize("seed", range(5))
def test_without_edits_all_thinking_is_sent_back(seed: int) -> None:
    player = Player(seed)
    made = 0
    for _ in range(6):
        player.reply(calls=1)
        made += sum(raw["type"] == "thinking" for raw in _last_content(player))
        player.talk.add(results((player.state.view.open_tool_uses()[0].id, "ok")))
    player.request()
    assert player.sent_thinking_count == made


def test_undoing_an_edit_brings_all_thinking_from_before_it_back() -> None:
    player = Player(1)
    for _ in range(4):
        player.step("round")
    player.request()
    before = player.sent_thinking_count
    player.compact(tuple(item.uuid for item in player.state.view.items[-2:]))
    player.request()
    assert player.sent_thinking_count < before
    player.talk.add(Revoke(player.undoable[-1]))
    player.request()
    assert player.sent_thinking_count == before


def test_a_resume_sends_the_same_bytes() -> None:
    player = Player(2)
    for name in ("round", "finish", "prompt", "round", "clear", "round"):
        player.step(name)
    profile = RequestProfile.from_json(player.talk.profile.to_json())
    player.request()
    resumed = Conversation(profile)
    resumed.state = ConversationState(player.state.records)
    first = RequestPlan.of(profile, player.talk.renderer.render(player.state.view, profile)).body()
    assert RequestPlan.of(profile, resumed.renderer.render(resumed.state.view, profile)).body() == first


def test_thinking_kept_behind_a_summary_the_server_signed_is_still_sent() -> None:
    player = Player(3)
    player.step("round")
    player.step("finish")
    player.talk.add(prompt("go on"))
    kept = player.state.view.items[-1].uuid
    view = player.state.view
    before = type(view)(view.items[:-1], view.epoch)
    body = parse_body(RequestPlan.of(OPUS, player.talk.renderer.render(before, OPUS)).body())
    # The closing text the renderer adds is no part of what the kept messages were sampled under.
    body["messages"] = body["messages"][:-1]
    chain = check_bindings(body, OPUS_SPEC, "all").chain
    rendered = player.talk.renderer.render(before, OPUS)
    summary: JsonObject = {"type": "compaction", "content": "the story so far", "signature": chain.seal_compaction()}
    digest = rendered.upto(len(rendered.messages) - 1).prefix_digest
    signed: JsonObject = {"block": summary, "prefix_digest": digest}
    entry = UserEntry((TextBlock("the story so far"),), origin="summary", signed=signed)
    player.reply(calls=0)
    answered = player.state.view.items[-1].uuid
    (record,) = player.talk.add(entry)
    player.talk.add(Boundary((record.uuid, kept, answered), "manual", "server", 0, 0, 0, kept=(kept, answered)))
    player.talk.add(prompt("and now"))
    managed = OPUS.with_changes(context_management={"edits": []}, betas=("context-management-2025-06-27",))
    plan = RequestPlan.of(managed, player.talk.renderer.render(player.state.view, managed))
    body = parse_body(plan.body())
    headers = HEADERS | {"anthropic-beta": ",".join(plan.betas)}
    check_request(body, headers, first_party(), MODELS, counting=False, issued_unknown=())
    assert "context_management" not in body
    assert check_bindings(body, OPUS_SPEC, "all").dropped == []
    assert [block["type"] for block in body["messages"][2]["content"]].count("thinking") >= 1


def _last_content(player: Player) -> tuple[JsonObject, ...]:
    last = player.state.view.last_assistant
    assert last is not None
    return last.assistant_content(with_thinking=True)
