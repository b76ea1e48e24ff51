"""From log to fold to digest to request, through everything a session can go through.

A hypothesis state machine drives the assembled agent: prompts with parallel calls, compactions, undo and redo, cleared
results, rewinds, model switches, kills that tear the file anywhere, resumes. At every request it is asserted that the
strict server takes it, that no thinking is sent behind another prefix than its own, and that a session read anew from
the file at that moment would send the very same bytes.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import shutil
import tempfile
from collections.abc import Coroutine
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
from pyagent.events import (
    CompactionEnded,
    CompactionFinished,
    Notice,
    RunCommand,
    SettingMoved,
    Shutdown,
)
from pyagent.log import ClearResults, Payload, Record, Revoke, SetHead
from pyagent.messages import ToolResultBlock
from pyagent.state import ConversationState
from pyagent.view import ViewItem
from tests.agent.support import LiveAgent, launch_options
from tests.fakes.binding import check_bindings
from tests.fakes.direct import DirectServer
from tests.fakes.model_table import ModelTable
from tests.fakes.persona import first_party
from tests.fakes.rules import check_request, parse_body
from tests.fakes.script import Answer, Block, Request, redacted_thinking, reply, thinking, tool_use, unknown_block

MODELS = ("claude-sonnet-5-5", "claude-sonnet-4-5", "claude-haiku-5-5", "claude-opus-5", "claude-fable-5-2")
WINDOW_TOKENS = 30_000
"""Small, so that automatic compactions come in too."""
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


class Sessions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="pyagent-sessions-"))
        self.loop = asyncio.new_event_loop()
        self.answers: list[Answer] = []
        self.server = DirectServer(
            self.respond, window_tokens=200_000, binding="all", keeps_bodies=False, on_request=self.check_against_file
        )
        self.options = replace(
            launch_options(self.folder, "http://127.0.0.1:1"),
            environ={
                "HOME": str(self.folder / "home"),
                "ANTHROPIC_API_KEY": "k",
                "CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(WINDOW_TOKENS),
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
            return reply(thinking("Summing up."), SUMMARY)
        return self.answers.pop(0) if self.answers else reply("Done.")

    async def start(self) -> None:
        options = replace(self.options, is_continued=bool(self.files()))
        self.agent = LiveAgent(options, self.server)
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
        state = self.folded()
        assert state is not None
        profiles = [RequestProfile.from_json(body) for body in state.profiles.values()]
        bodies = [RequestPlan.of(one, Renderer().render(state.view, one)).body() for one in profiles]
        if _without_diagnostics(request.body) not in bodies:
            self.mismatches.append(f"{request.source}: {request.body!r} is none of {bodies!r}")

    @invariant()
    def every_request_was_right(self) -> None:
        assert self.server.refused == []
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

    @initialize()
    def begin(self) -> None:
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

    @rule()
    def compact(self) -> None:
        self.go(self._compact())

    async def _compact(self) -> None:
        since = len(self.live.events)
        self.live.send(RunCommand("compact"))
        await self.live.next_of(CompactionFinished, CompactionEnded, since=since)

    @rule()
    def undo(self) -> None:
        self.go(self.live.command("compact", "undo", Notice))

    @rule()
    def redo(self) -> None:
        state = self.folded()
        revokes = [r for r in (state.branch if state else []) if isinstance(r.payload, Revoke)]
        if revokes:
            self.go(self.reopened_with(Revoke(revokes[-1].seq)))

    @rule(data=st.data())
    def clear_results(self, data: st.DataObject) -> None:
        state = self.folded()
        ids = [block.tool_use_id for item in (state.view if state else ()) for block in _results(item)]
        if ids:
            chosen = data.draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))
            self.go(self.reopened_with(ClearResults(dict.fromkeys(chosen, "[Old tool result content cleared]"))))

    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        state = self.folded()
        if state is not None and len(state.branch) > 2:
            target = data.draw(st.sampled_from([record.seq for record in state.branch]))
            self.go(self.reopened_with(SetHead(target, reason="rewind")))

    @rule(model=st.sampled_from(MODELS))
    def switch_model(self, model: str) -> None:
        self.go(self.live.command("model", model, SettingMoved))

    @rule()
    def resume(self) -> None:
        self.go(self.reopened_with(None))

    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        """The process dies; of what it wrote last, any number of bytes never reached the disk."""
        self.go(self.stop())
        files = self.files()
        if files:
            content = files[0].read_bytes()
            first_line = content.index(b"\n") + 1
            lost = data.draw(st.integers(0, min(len(content) - first_line, 20_000)))
            files[0].write_bytes(content[: len(content) - lost])
        self.go(self.start())

    def teardown(self) -> None:
        if self.running is not None and not self.running.done():
            self.go(self.stop())
        self.loop.close()
        shutil.rmtree(self.folder)


def _results(item: ViewItem) -> list[ToolResultBlock]:
    return [block for block in item.blocks() if isinstance(block, ToolResultBlock)]


TestSessions = Sessions.TestCase
TestSessions.settings = settings(
    max_examples=20,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
