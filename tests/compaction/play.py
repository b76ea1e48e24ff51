"""Plays a random conversation through a chain of layers, ready to be looked at before and after each.

The request is made as the agent makes it: the view is repaired by a record, rendered, marked, and shown to the strict
server's rules, which also check every signed thinking block against the prefix it stands behind.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.render import RenderedConversation, Renderer, bytes_estimate
from pyagent.agent.wire.repair import Repairer, find_repair
from pyagent.agent.wire.validate import Validator
from pyagent.compaction.cached_state import CachedEdits
from pyagent.compaction.pipeline import PipelineResult
from pyagent.compaction.ports import RestorableState, RestoreText, SessionNotes
from pyagent.compaction.rounds import complete_end
from pyagent.compaction.tracking import AutoCompactTracking
from pyagent.errors import ModelUnavailableError, PromptTooLongError
from pyagent.log import AssistantEntry, Payload, Repair
from pyagent.messages import JsonObject
from pyagent.record_lines import record_from_json, record_to_line
from pyagent.state import ConversationState
from pyagent.view import View
from tests.agent.wire.builders import OPUS
from tests.compaction.builder import Talk, words
from tests.compaction.fakes import Bench, FixedSources, Reply, ScriptedSummarizer, summary
from tests.compaction.strategies import UNKNOWN_KIND, ForeignPen, Speaker, pairing_faults, response_runs
from tests.fakes.binding import check_bindings
from tests.fakes.model_table import ModelTable
from tests.fakes.persona import first_party
from tests.fakes.rules import check_request, parse_body

OVERFLOW = PromptTooLongError("prompt is too long", prompt_tokens=40_000, limit_tokens=30_000)
PROFILE = OPUS
OVERHEAD_TOKENS = 800

STATE = RestorableState(
    memory=(RestoreText("memory:/p/CLAUDE.md", "Always run the linter.\n" * 30),),
    pins=(RestoreText("pins", "keep the API stable"),),
    plan=RestoreText("plan", "1. parse 2. test"),
    tasks=RestoreText("tasks", "[ ] tests"),
    skills=(RestoreText("skill:review", words(800)),),
)
FILES = {"/p/app.py": words(300), "/p/core/parse.py": words(30_000), "/p/README.md": "short"}

REPLIES: dict[str, Reply] = {
    "short": summary("We renamed parse_date in /p/app.py."),
    "long": summary(words(900)),
    "unavailable": ModelUnavailableError("down"),
    "too long": OVERFLOW,
}

_MODELS = ModelTable()
_SPEC = next(spec for spec in _MODELS.all() if spec.id == PROFILE.model)
_HEADERS = {"anthropic-version": "2026-10-21"}
_ISSUED = (json.dumps({"type": UNKNOWN_KIND, "payload": [1, 2]}, sort_keys=True),)
MAX_SIGNED_COUNT = 3
"""Signing costs a request each; three blocks in a conversation already stand before and behind every kind of cut."""
MAX_MARKS = 4
"""Cache breakpoints the API takes in one request."""

T = TypeVar("T")
Step: TypeAlias = Callable[["Scene"], Coroutine[Any, Any, PipelineResult]]


@dataclass(frozen=True)
class Sent:
    """A request as it would go out."""

    messages: tuple[bytes, ...]
    """Each without its cache marks, and without a closing "go on" that stands for no entry."""
    epoch: int

    @classmethod
    def of(cls, rendered: RenderedConversation, epoch: int) -> Sent:
        return cls(tuple(message.data for message in rendered.messages if message.keys), epoch)


class Moment:
    """What there is to compare before and after a step."""

    def __init__(self, state: ConversationState) -> None:
        self.view: View = state.view
        self.seq = state.next_seq
        self.faults = pairing_faults(self.view)
        self.runs = response_runs(self.view)

    @cached_property
    def items(self) -> list[object]:
        return items_of(self.view)


def items_of(view: View) -> list[object]:
    """Everything of a view that can reach the wire."""
    return [(item.uuid, item.blocks(), item.answer_blocks(), item.is_user) for item in view.items]


class OwnPen:
    """Writes as a session of pyagent's does: a response with the digest of its prefix, its thinking signed for that."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def write(self, payload: Payload) -> object:
        if isinstance(payload, AssistantEntry):
            scene = self._scene
            if scene.speaker.is_broken:
                scene.repair()
                scene.speaker.is_broken = False
            digest = scene.renderer.prefix_digest(scene.talk.view, PROFILE)
            payload = replace(payload, prefix_digest=digest, profile_id=PROFILE.profile_id, model=PROFILE.model)
        return self._scene.bench.write(payload)

    def thinking(self, shown: str) -> list[JsonObject]:
        scene = self._scene
        if scene.signed_count == MAX_SIGNED_COUNT or scene.chance.random() < 0.5:
            return []
        scene.signed_count += 1
        signature = scene.sent_chain().seal_thinking(shown, f"msg_{scene.signed_count}", 0, 1, 10)
        return [{"type": "thinking", "thinking": shown, "signature": signature}]


class Scene:
    """One conversation, its pipeline and its server."""

    def __init__(self, chance: random.Random, talk: Talk, window_tokens: int, *, is_own: bool) -> None:
        self.chance = chance
        self.talk = talk
        self.bench = Bench(
            talk,
            sources=FixedSources(STATE, FILES),
            window_tokens=window_tokens,
            overhead_tokens=OVERHEAD_TOKENS,
            cached_edits=CachedEdits(),
        )
        self.bench.set_gates(history_snip=True, context_collapse=True, cached_microcompact=True)
        self.parts_rendered = self.signed_count = 0
        self.renderer = Renderer(self._count_part)
        self.is_own = is_own
        """Whether pyagent held this conversation, and did not import it."""
        self.repairer, self.validator = Repairer(), Validator()
        self.typed: set[str] = set()
        """The first words of every prompt seen so far."""
        pen = OwnPen(self) if is_own else ForeignPen(talk)
        self.speaker = Speaker(chance, talk, pen, splits_responses=not is_own)

    def reopened(self) -> Scene:
        """The same conversation in a process that was just started and read its file."""
        chance, talk = random.Random(), Talk()
        chance.setstate(self.chance.getstate())
        talk.state, talk.now, talk.ids = self.resumed(), self.talk.now, self.talk.ids
        scene = Scene(chance, talk, self.bench.window_tokens, is_own=self.is_own)
        scene.speaker.turns, scene.signed_count = self.speaker.turns, self.signed_count
        scene.bench.ids = self.bench.ids
        scene.bench.pipeline = scene.bench.resumed()
        scene.bench.tracking = AutoCompactTracking.from_json(talk.state.tracking)
        return scene

    def _count_part(self, data: bytes) -> int:
        self.parts_rendered += 1
        return bytes_estimate(data)

    # ── the request ──────────────────────────────────────────────────────────────────────────────────────────────

    def repair(self) -> Repair | None:
        repair = self.repairer.find(self.talk.view)
        if repair is not None:
            self.talk.write(repair)
        return repair

    def send(self) -> Sent | None:
        """The next request, taken by the strict rules; None while there is nothing to send."""
        found = find_repair(self.talk.view)
        assert self.repair() == found, "looking at the new part alone finds the same"
        if not len(self.talk.view):
            return None
        plan = sendable(self.talk.view, self.renderer)
        assert self.validator.fault(plan.rendered, plan.marks) is None
        return Sent.of(plan.rendered, self.talk.view.epoch)

    def rendered(self) -> Sent | None:
        """The next request, looked at by nobody."""
        self.repair()
        if not len(self.talk.view):
            return None
        return Sent.of(self.renderer.render(self.talk.view, PROFILE), self.talk.view.epoch)

    def sent_chain(self) -> Any:
        """What thinking of the response to the next request is bound to."""
        self.repair()
        rendered = self.renderer.render(self.talk.view, PROFILE)
        body = parse_body(RequestPlan.of(PROFILE, rendered).body())
        return check_bindings(body, _SPEC, "all").chain

    # ── the steps ────────────────────────────────────────────────────────────────────────────────────────────────

    def play(self, step: Step, reply: str) -> PipelineResult:
        """One step, in which a model that is asked for a summary gives one of `REPLIES`."""
        self.bench.summarizer = ScriptedSummarizer(*[REPLIES[reply]] * 6)
        return run_now(step(self))

    def resumed(self) -> ConversationState:
        """The conversation as its file would fold it."""
        lines = b"".join(record_to_line(record) for record in self.talk.state.records)
        return ConversationState(record_from_json(json.loads(line)) for line in lines.split(b"\n") if line)


def begin(seed: int, turns: int, window_tokens: int, *, is_own: bool) -> Scene:
    """A conversation that ends anywhere between two steps of the turn loop."""
    chance = random.Random(seed)
    scene = Scene(chance, Talk(), window_tokens, is_own=is_own)
    for _ in range(turns):
        scene.speaker.turn()
    if chance.random() < 0.5:
        scene.speaker.prompt()
    return scene


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """The result of work that never waits for anything: without a loop, which would cost more than the work."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise AssertionError("a scripted port waited for something")


async def edit_all(scene: Scene) -> PipelineResult:
    """What is due before a request with every edit of history allowed, after a pause."""
    return await _before_request(scene, hours=2)


async def snip(scene: Scene) -> PipelineResult:
    return await _before_request(scene, hours=2, history_snip=True)


async def collapse(scene: Scene) -> PipelineResult:
    return await _before_request(scene, hours=2, context_collapse=True)


async def clear_by_time(scene: Scene) -> PipelineResult:
    return await _before_request(scene, hours=2, time_based_microcompact=True)


async def clear_by_cache_edits(scene: Scene) -> PipelineResult:
    return await _before_request(scene, hours=0, cached_microcompact=True)


async def auto_compact(scene: Scene) -> PipelineResult:
    scene.bench.notes.notes = None
    return await _before_request(scene, hours=0, session_memory=False)


async def clear_when_asked(scene: Scene) -> PipelineResult:
    scene.talk.wait(minutes=6)
    return scene.bench.take(scene.bench.pipeline.clear_old_results(scene.bench.context()))


async def compact(scene: Scene) -> PipelineResult:
    scene.bench.notes.notes = None
    return await scene.bench.compact("keep names")


async def compact_upto(scene: Scene) -> PipelineResult:
    scene.bench.notes.notes = None
    return await scene.bench.compact(upto=len(scene.talk.view) * 2 // 3)


async def compact_from_notes(scene: Scene) -> PipelineResult:
    """Notes that cover nearly all: older ones are too old to serve in windows as small as these."""
    view = scene.talk.view
    covered = complete_end(view) - 1 - scene.chance.randrange(6)
    scene.bench.notes.notes = None
    if covered >= 0:
        notes = SessionNotes("# Title\nA task\n# Task\n" + words(60), view.items[covered].uuid)
        scene.bench.notes.notes = notes
    return await scene.bench.compact()


async def overflow(scene: Scene) -> PipelineResult:
    return await scene.bench.overflow(OVERFLOW)


async def overflow_again(scene: Scene) -> PipelineResult:
    return await scene.bench.overflow(OVERFLOW, refusals=2)


async def too_many_bytes(scene: Scene) -> PipelineResult:
    return await scene.bench.overflow(PromptTooLongError("413", is_byte_limit=True))


async def _before_request(scene: Scene, *, hours: float, **gates: bool) -> PipelineResult:
    """With these gates alone, or with all edits of history if none is named."""
    scene.talk.wait(hours=hours)
    bench = scene.bench
    every = dict.fromkeys(EDIT_GATES, not gates)
    bench.set_gates(**{**every, "session_memory": True, **gates})
    return await bench.before_request()


EDIT_GATES = ("history_snip", "context_collapse", "time_based_microcompact", "cached_microcompact")

STEPS: tuple[Step, ...] = (
    edit_all,
    snip,
    collapse,
    clear_by_time,
    clear_by_cache_edits,
    auto_compact,
    clear_when_asked,
    compact,
    compact_upto,
    compact_from_notes,
    overflow,
    overflow_again,
    too_many_bytes,
)


def sendable(view: View, renderer: Renderer) -> RequestPlan:
    """The request for a view that needs no repair, taken by the strict server's rules."""
    plan = RequestPlan.of(PROFILE, renderer.render(view, PROFILE))
    body = parse_body(plan.body())
    model = check_request(body, _HEADERS, first_party(), _MODELS, counting=False, issued_unknown=_ISSUED)
    assert check_bindings(body, model, "all").dropped == []
    assert plan.marks.count <= MAX_MARKS
    return plan
