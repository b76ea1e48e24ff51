"""From log to fold to digest to request, through everything a session can go through.

A hypothesis state machine drives the assembled agent: prompts with parallel calls, prompts while it is busy,
interrupts, pauses, compactions by every layer, overflows, undo and redo, cleared results, rewinds, model switches,
kills that tear the file anywhere, resumes, forks. At every request it is asserted that the strict server takes it, that
no thinking is sent behind another prefix than its own, and that a session read anew from the file at that moment would
send the very same bytes; at every resume, that the gauge stands where it stood.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pyagent.agent.notes import DRAFT_SOURCE, SOURCE
from pyagent.agent.session_store import SessionFile, list_sessions, project_dir, read_session
from pyagent.agent.wire.client import ModelRequest
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.agent.wire.repair import find_repair
from pyagent.commands import Interrupt, RunCommand, Shutdown, SubmitPrompt
from pyagent.events import (
    CompactionEnded,
    CompactionFinished,
    GaugeMoved,
    Notice,
    SettingMoved,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
)
from pyagent.log import Boundary, ClearResults, Fold, Payload, Record, Revoke, SetHead, Snip
from pyagent.messages import ToolResultBlock
from pyagent.state import ConversationState
from pyagent.view import ViewItem
from tests.agent.support import LiveAgent, SteadyClock, launch_options
from tests.fakes.binding import check_bindings
from tests.fakes.direct import DirectServer
from tests.fakes.model_table import ModelTable
from tests.fakes.persona import first_party
from tests.fakes.refusal import Refusal
from tests.fakes.rules import check_request, parse_body
from tests.fakes.script import Answer, Block, Request, redacted_thinking, reply, thinking, tool_use, unknown_block

MODELS = ("claude-sonnet-5-5", "claude-sonnet-4-5", "claude-haiku-5-5", "claude-opus-5", "claude-fable-5-2")
WINDOWS_TOKENS = (30_000, 60_000)
"""Small, so that automatic compactions come in too; the larger leaves room for notes and folds."""
NOTES = "<notes>\n# Title\nReading\n# Current state\nHalf of the files are read.\n</notes>"
OVERFLOW = "prompt is too long: 31000 tokens > 30000 maximum"
SUMMARY = "<analysis>.</analysis><summary>" + "\n".join(f"{n}. Section {n}" for n in range(1, 10)) + "</summary>"

T = TypeVar("T")

CALLS = st.sampled_from(
    [
        tool_use("Read", {"file_path": "short.txt"}),
        tool_use("Read", {"file_path": "long.txt"}),
        tool_use("Read", {"file_path": "missing.txt"}),
        tool_use("Glob", {"pattern": "*.txt"}),
        tool_use("Write", {"file_path": "new.txt", "content": "new\n"}),
        tool_use("Nothing", {}),
        tool_use("Read", {}),
        tool_use("Read", raw_json='{"file_path": "short'),
    ]
)


@st.composite
def rounds(draw: st.DrawFn) -> Answer:
    """One answer with calls."""
    blocks: list[Block] = []
    if draw(st.booleans()):
        blocks.append(thinking(draw(st.sampled_from(["Considering.", "One more\u2028thought \U0001f600."]))))
    if draw(st.integers(0, 5)) == 0:
        blocks.append(redacted_thinking())
    if draw(st.integers(0, 5)) == 0:
        blocks.append(unknown_block(colour="blue"))
    calls = draw(st.lists(CALLS, min_size=1, max_size=3))
    text = draw(st.sampled_from(["", "Looking.", "\n\n"]))
    return reply(*blocks, *([text] if text else []), *calls)


ENDINGS = st.sampled_from(
    [
        reply("Done."),
        reply(thinking("It is done."), "Done."),
        reply("Cut at the lim", stop_reason="max_tokens"),
        reply("I had to stop.", stop_reason="stop_sequence"),
        reply(thinking("No."), stop_reason="refusal", stop_details={"category": "cyber"}),
        reply(),
        reply("\n"),
    ]
)


def _without_diagnostics(body: bytes) -> bytes:
    """The body without the question about the request before, which is in no log: it changes no prefix."""
    return re.sub(rb',"diagnostics":\{"previous_message_id":[^}]*\}', b"", body, count=1)


PLACES = st.floats(0, 1, exclude_max=True)
"""Where something is chosen, as a share. What is drawn must not depend on the session: a background task may have
written one record more the next time."""


def at_place(choices: Sequence[T], place: float) -> T:
    return choices[int(place * len(choices))]


SUMMARIES = st.sampled_from(
    [
        reply(thinking("Summing up."), SUMMARY),
        reply(SUMMARY),
        reply(),
        reply(stop_reason="refusal", stop_details={"category": "cyber"}),
        reply(tool_use("Read", {"file_path": "short.txt"})),
    ]
)


class Sessions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="pyagent-sessions-"))
        self.loop = asyncio.new_event_loop()
        self.answers: list[Answer] = []
        self.summary = reply(thinking("Summing up."), SUMMARY)
        self.refusals_to_come = 0
        self.refused: list[str] = []
        """What the server was told to refuse."""
        self.clock = SteadyClock()
        self.server = DirectServer(
            self.respond,
            window_tokens=200_000,
            binding="all",
            keeps_bodies=False,
            on_request=self.check_against_file,
            clock=self.clock.seconds,
        )
        self.options = replace(
            launch_options(self.folder, "http://127.0.0.1:1"),
            environ={
                "HOME": str(self.folder / "home"),
                "ANTHROPIC_API_KEY": "k",
            },
        )
        (self.options.cwd / "short.txt").write_text("a few words\n")
        (self.options.cwd / "long.txt").write_text("".join(f"line {n} of a longer file\n" for n in range(400)))
        self.mismatches: list[str] = []
        self.uuids = (f"by-hand-{number}" for number in itertools.count())
        self.agent: LiveAgent | None = None
        self.running: asyncio.Task[None] | None = None

    # ── machinery ────────────────────────────────────────────────────────────────────────────────────────────────

    def go(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    def respond(self, request: Request) -> Answer:
        if "<summary>" in request.last_text:
            return self.summary
        if "<notes>" in request.last_text:
            return reply(NOTES)
        if self.refusals_to_come:
            self.refusals_to_come -= 1
            self.refused.append(OVERFLOW)
            raise Refusal(OVERFLOW)
        return self.answers.pop(0) if self.answers else reply("Done.")

    async def start(self, *, in_a_copy: bool = False) -> None:
        options = replace(self.options, is_continued=bool(self.files()), is_forked=in_a_copy)
        self.agent = LiveAgent(options, self.server, clock=self.clock)
        self.running = asyncio.create_task(self.agent.run())
        await self.agent.until(lambda: bool(self.agent and self.agent.events))

    async def stop(self) -> None:
        assert self.agent is not None
        assert self.running is not None
        self.agent.send(Shutdown())
        await self.running

    def files(self) -> list[Path]:
        return [info.path for info in list_sessions(project_dir(self.options.home, self.options.cwd))]

    def folded(self) -> ConversationState | None:
        """The newest session as a resume would fold it."""
        files = self.files()
        return ConversationState(read_session(files[0]).records) if files else None

    @property
    def live(self) -> LiveAgent:
        assert self.agent is not None
        return self.agent

    async def reopened_with(self, payload: Payload | None) -> None:
        """Close the session, write one record as another run would, and go on with it."""
        await self.stop()
        state = self.folded()
        if payload is not None and state is not None:
            file = SessionFile(self.files()[0], on_problem=lambda text: None)
            file.append(Record(state.next_seq, next(self.uuids), datetime.now(UTC), payload))
            file.close()
        await self.start()

    # ── what must hold ───────────────────────────────────────────────────────────────────────────────────────────

    def check_against_file(self, request: ModelRequest) -> None:
        """A session read anew at this moment would send these very bytes. Calls beside the main loop end in a question
        of their own, which is in no log."""
        if request.source in ("compact", SOURCE, DRAFT_SOURCE):
            return
        bodies = self.next_bodies()
        if _without_diagnostics(request.body) not in bodies:
            self.mismatches.append(f"{request.source}: {request.body!r} is none of {bodies!r}")

    def next_bodies(self) -> list[bytes]:
        """What a session read anew would send next, under each of its profiles."""
        state = self.folded()
        profiles = [RequestProfile.from_json(body) for body in state.profiles.values()] if state else []
        return [RequestPlan.of(one, Renderer().render(state.view, one)).body() for one in profiles if state]

    @invariant()
    def every_request_was_right(self) -> None:
        assert self.server.refused == self.refused
        assert self.server.dropped == []
        assert self.mismatches == []

    @invariant()
    def the_session_as_it_stands_could_be_sent(self) -> None:
        state = self.folded()
        if state is None or not state.profiles or not len(state.view):
            return
        view = state.view
        repair = find_repair(view)
        if repair is not None:
            view = view.with_op(repair, state.next_seq)
        for body in state.profiles.values():
            profile = RequestProfile.from_json(body)
            plan = RequestPlan.of(profile, Renderer().render(view, profile))
            sent = parse_body(plan.body())
            headers = {"anthropic-version": "2026-10-21", "anthropic-beta": ",".join(profile.all_betas)}
            model = check_request(
                sent, headers, first_party(), ModelTable(), counting=False, issued_unknown=self.server.issued_unknown
            )
            assert check_bindings(sent, model, "all").dropped == []

    # ── what happens ─────────────────────────────────────────────────────────────────────────────────────────────

    @initialize(snips=st.booleans(), collapses=st.booleans(), window_tokens=st.sampled_from(WINDOWS_TOKENS))
    def begin(self, snips: bool, collapses: bool, window_tokens: int) -> None:
        environ = {**self.options.environ, "CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(window_tokens)}
        self.options = replace(self.options, environ=environ)
        self.options.home.mkdir(parents=True, exist_ok=True)
        gates = {"gates": {"historySnip": snips, "contextCollapse": collapses}}
        (self.options.home / "settings.json").write_text(json.dumps(gates))
        self.go(self.start())

    @rule(
        text=st.sampled_from(["go on", "caf\u00e9 \u2028 \U0001f600", "x" * 3_000]),
        plan=st.lists(rounds(), max_size=4),
        end=ENDINGS,
    )
    def prompt(self, text: str, plan: list[Answer], end: Answer) -> None:
        self.answers = [*plan, end]
        self.go(self.live.prompt(text))
        self.answers = []

    @rule(plans=st.lists(rounds(), max_size=5), count=st.integers(2, 3))
    def prompts_while_busy(self, plans: list[Answer], count: int) -> None:
        self.answers = [answer for plan in plans for answer in (plan, reply("Done."))]
        self.go(self._hurry(count))
        self.answers = []

    async def _hurry(self, count: int) -> None:
        since = len(self.live.events)
        for number in range(count):
            self.live.send(SubmitPrompt(f"and also {number}"))

        def ended() -> int:
            return sum(isinstance(event, TurnFinished | TurnFailed) for event in self.live.events[since:])

        await self.live.until(lambda: ended() == count)

    @rule(plan=st.lists(rounds(), min_size=1, max_size=3), at=st.sampled_from([TurnStarted, ToolStarted, ToolFinished]))
    def interrupt(self, plan: list[Answer], at: type[TurnStarted | ToolStarted | ToolFinished]) -> None:
        self.answers = list(plan)
        self.go(self._interrupt(at))
        self.answers = []

    async def _interrupt(self, at: type[TurnStarted | ToolStarted | ToolFinished]) -> None:
        since = len(self.live.events)
        self.live.send(SubmitPrompt("this one is stopped"))
        await self.live.next_of(at, TurnFinished, TurnFailed, since=since)
        self.live.send(Interrupt())
        await self.live.next_of(TurnFinished, TurnFailed, since=since)

    @rule(minutes=st.sampled_from((3, 20, 90, 6_000)))
    def pause(self, minutes: int) -> None:
        """Long enough, and the next prompt clears old results; any pause over the cache's lifetime opens the gate."""
        self.clock.pass_time(minutes=minutes)

    @rule(refusals=st.integers(1, 3), summary=SUMMARIES)
    def overflow(self, refusals: int, summary: Answer) -> None:
        """The server finds the next requests too long, whatever was counted."""
        self.refusals_to_come, self.summary = refusals, summary
        self.answers = [reply("It fits now.")]
        self.go(self.live.prompt("go on, there is room"))
        self.refusals_to_come, self.answers = 0, []

    @rule(words=st.sampled_from(("", "keep the names", "upto 2", "from 1")), summary=SUMMARIES)
    def compact(self, words: str, summary: Answer) -> None:
        """By the notes where there are some and nothing is said; else by the model, or without one if it fails."""
        self.summary = summary
        self.go(self._compact(words))

    async def _compact(self, words: str) -> None:
        since = len(self.live.events)
        self.live.send(RunCommand("compact", words))
        await self.live.next_of(CompactionFinished, CompactionEnded, Notice, since=since)

    @rule()
    def undo(self) -> None:
        self.go(self.live.command("compact", "undo", Notice))

    @rule()
    def redo(self) -> None:
        state = self.folded()
        revokes = [r for r in (state.branch if state else []) if isinstance(r.payload, Revoke)]
        if revokes:
            self.go(self.reopened_with(Revoke(revokes[-1].seq)))

    @rule(places=st.lists(PLACES, min_size=1, max_size=5))
    def clear_results(self, places: list[float]) -> None:
        state = self.folded()
        ids = [block.tool_use_id for item in (state.view if state else ()) for block in _results(item)]
        if ids:
            chosen = [at_place(ids, place) for place in places]
            self.go(self.reopened_with(ClearResults(dict.fromkeys(chosen, "[Old tool result content cleared]"))))

    @rule(place=PLACES)
    def rewind(self, place: float) -> None:
        state = self.folded()
        if state is not None and len(state.branch) > 2:
            target = at_place([record.seq for record in state.branch], place)
            self.go(self.reopened_with(SetHead(target, reason="rewind")))

    @rule(model=st.sampled_from(MODELS))
    def switch_model(self, model: str) -> None:
        self.go(self.live.command("model", model, SettingMoved))
        # Named at the next start too, where a model that is named comes before the session's own.
        self.options = replace(self.options, model=model)

    @rule()
    def resume(self) -> None:
        self.go(self.stop())
        shown = self.live.all_of(GaugeMoved)
        self.go(self.start())
        # The first is from the coarse measure, before the encoding is loaded.
        if self.files() and len(shown) > 1:
            self.go(self.live.until(lambda: len(self.live.all_of(GaugeMoved)) > 1))
            again = self.live.all_of(GaugeMoved)[-1].gauge
            assert (again.used_tokens, again.is_estimate) == (shown[-1].gauge.used_tokens, shown[-1].gauge.is_estimate)

    @rule()
    def fork(self) -> None:
        """Go on in a copy: it would send what the session it came from would have sent."""
        self.go(self.stop())
        before = self.next_bodies()
        self.go(self.start(in_a_copy=bool(self.files())))
        assert self.next_bodies() == before

    @rule(place=PLACES)
    def kill(self, place: float) -> None:
        """The process dies; of what it wrote last, any number of bytes never reached the disk."""
        self.go(self.stop())
        files = self.files()
        if files:
            content = files[0].read_bytes()
            first_line = content.index(b"\n") + 1
            lost = int(place * (min(len(content) - first_line, 20_000) + 1))
            files[0].write_bytes(content[: len(content) - lost])
        self.go(self.start())

    def teardown(self) -> None:
        if self.running is not None and not self.running.done():
            self.go(self.stop())
        self.loop.close()
        # A snapshot under way at the end may still be tidying up its own files there.
        shutil.rmtree(self.folder, ignore_errors=True)


def test_the_machine_s_steps_reach_every_layer() -> None:
    """Guards the machine against steps that no longer lead where they are meant to."""
    machine = Sessions()
    machine.begin(snips=True, collapses=True, window_tokens=60_000)
    for number in range(20):
        (machine.options.cwd / f"{number}.txt").write_text("".join(f"line {n} of file {number}\n" for n in range(250)))
    files = (tool_use("Read", {"file_path": f"{number}.txt"}) for number in itertools.count())
    again = tool_use("Read", {"file_path": "long.txt"})
    search = tool_use("Grep", {"pattern": "longer", "output_mode": "content"})

    def read(prompts: int) -> None:
        for _ in range(prompts):
            machine.prompt("read on", [reply(next(files), again), reply(next(files))], reply("Done."))

    try:
        read(2)
        machine.prompt("look for it", [reply(search), reply(search)], reply("Done."))
        machine.pause(20)
        read(5)
        machine.compact("", reply(SUMMARY))
        read(4)
        machine.pause(90)
        read(1)
        machine.compact("keep the names", reply(SUMMARY))
        read(1)
        machine.compact("keep the names", reply())
        read(1)
        machine.overflow(1, reply(SUMMARY))
        machine.every_request_was_right()
        machine.the_session_as_it_stands_could_be_sent()
        state = machine.folded()
        assert state is not None
        made = {record.payload.kind for record in state.records}
        layers = {record.payload.layer for record in state.records if isinstance(record.payload, Boundary)}
        assert {"session_memory", "full", "extractive", "reactive"} <= layers
        assert {ClearResults.kind, Snip.kind, Fold.kind} <= made
    finally:
        machine.teardown()


def _results(item: ViewItem) -> list[ToolResultBlock]:
    return [block for block in item.blocks() if isinstance(block, ToolResultBlock)]


TestSessions = Sessions.TestCase
IN_CI = os.environ.get("CI") == "true"
"""There a change is judged by more sessions, and by the same in every run."""
TestSessions.settings = settings(
    max_examples=60 if IN_CI else 20,
    derandomize=IN_CI,
    database=None,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
