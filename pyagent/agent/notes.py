"""Session memory at work: notes, and drafts of a summary, are written in the background while the conversation goes on.

A fork of the main loop's request reads the conversation from the prompt cache and answers with the whole notes text;
it runs as a task of its own beside the turn. What it wrote stands in the log, and in a file the user may edit.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pyagent.agent.journal import Journal
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.side_calls import SideCalls
from pyagent.agent.summarizer import thinking_tokens
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.compaction.cleanup import is_main_thread
from pyagent.compaction.context import PipelineContext, Sizer, is_cache_warm
from pyagent.compaction.outcome import Declined
from pyagent.compaction.pipeline import Pipeline
from pyagent.compaction.ports import SessionNotes, Summarizer
from pyagent.compaction.rounds import complete_end
from pyagent.compaction.session_memory import (
    DEAD_AFTER_S,
    MAX_NOTES_TOKENS,
    WAIT_S,
    NotesProgress,
    draft_due,
    has_updates_to_come,
    notes_instruction,
    notes_template,
    parse_notes,
    update_due,
)
from pyagent.errors import PyagentError
from pyagent.log import Boundary, NotesSaved, NoticeShown
from pyagent.messages import parse_block, text_of
from pyagent.settings import CompactionSettings
from pyagent.view import View

SOURCE = "session_memory"
DRAFT_SOURCE = "draft"
"""Query sources, for the bill."""

MAX_NOTES_FILE_BYTES = 1_000_000
"""A file someone filled with more than this is not read: no notes are that long."""

_log = logging.getLogger(__name__)

_Kind: TypeAlias = Literal["notes", "draft"]


@dataclass(frozen=True, slots=True)
class _Running:
    kind: _Kind
    task: asyncio.Task[None]
    started_at: datetime


class NotesKeeper:
    """The `NotesSource` of a real conversation. One piece of background work at a time."""

    def __init__(
        self,
        calls: SideCalls,
        drafts: Summarizer,
        *,
        pipeline: Pipeline,
        journal: Journal,
        profiles: ProfileBook,
        renderer: Renderer,
        settings: CompactionSettings,
        path: Path | None,
    ) -> None:
        """`path` is the notes file; None keeps the notes in the log alone."""
        self._calls = calls
        self._drafts = drafts
        self._pipeline = pipeline
        self._journal = journal
        self._profiles = profiles
        self._renderer = renderer
        self._settings = settings
        self.path = path
        self._running: _Running | None = None
        self._draft: SessionNotes | None = None
        self._has_drafted = False
        self._failures = 0
        self._last_failure = ""
        self._failed_at_tokens = self._tried_at_tokens = 0

    # ── what a compaction asks for ───────────────────────────────────────────────────────────────────────────────

    async def current(self) -> SessionNotes | None:
        await self._wait_for_running()
        notes = await self._notes() if self._settings.gates.session_memory else None
        view = self._journal.state.view
        found = [(at, n) for n in (notes, self._draft) if n and (at := view.position_of(n.covered_uuid)) is not None]
        return max(found, key=lambda pair: pair[0])[1] if found else None

    async def _wait_for_running(self) -> None:
        running = self._running
        if running is None or running.task.done():
            return
        age_s = (self._journal.clock() - running.started_at).total_seconds()
        if age_s < DEAD_AFTER_S:
            await asyncio.wait({running.task}, timeout=min(WAIT_S, DEAD_AFTER_S - age_s))

    async def _notes(self) -> SessionNotes | None:
        known = self._journal.state.notes
        if not known.covered_uuid:
            return None
        return SessionNotes(await self._edited_text() or known.text, known.covered_uuid)

    async def _edited_text(self) -> str:
        """What the notes file holds if a person edited it; empty if they did not."""
        if self.path is None:
            return ""
        text = await asyncio.to_thread(_read, self.path)
        written = self._journal.state.notes_written
        return text if text.strip() and text.strip() != written.strip() else ""

    # ── keeping up ───────────────────────────────────────────────────────────────────────────────────────────────

    def after_round(self, ctx: PipelineContext, tokens: int) -> None:
        """At a natural break: begin in the background what is due. Returns at once."""
        lines = ctx.thresholds
        if not lines.is_auto_on or not is_main_thread(ctx.query_source) or self._is_busy():
            return
        is_warm, gates = is_cache_warm(ctx.view, ctx.now), self._settings.gates
        sizer = Sizer(self._pipeline.counter, ctx.model.family)
        known = self._journal.state.notes
        notes = SessionNotes(known.text, known.covered_uuid) if known.covered_uuid and gates.session_memory else None
        if gates.session_memory:
            progress = NotesProgress(max(known.tokens, self._failed_at_tokens), known.covered_uuid)
            if update_due(ctx.view, tokens, lines, progress, is_cache_warm=is_warm):
                self._tried_at_tokens = tokens
                self._start("notes", self._update(ctx.view, tokens, sizer))
                return
            if has_updates_to_come(lines, progress) and not self._failures:
                return
        if gates.reactive_only or self._has_drafted:
            return
        if draft_due(ctx.view, tokens, lines, notes, sizer, overhead_tokens=ctx.overhead_tokens, is_cache_warm=is_warm):
            self._start("draft", self._prepare_draft(ctx))

    def _is_busy(self) -> bool:
        running = self._running
        if running is None or running.task.done():
            return False
        if (self._journal.clock() - running.started_at).total_seconds() < DEAD_AFTER_S:
            return True
        running.task.cancel()
        return False

    def _start(self, kind: _Kind, work: Coroutine[Any, Any, None]) -> None:
        self._running = _Running(kind, asyncio.create_task(self._guarded(work)), self._journal.clock())

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Background work never ends a turn: its errors are logged and told by `/context`."""
        try:
            await work
        except PyagentError as error:
            self._failed(error.message)
        except Exception as error:
            _log.exception("background work on the notes ended by a mistake of pyagent's")
            self._failed(f"{type(error).__name__}: {error}")

    def _failed(self, reason: str) -> None:
        self._failures += 1
        self._failed_at_tokens = self._tried_at_tokens
        self._last_failure = reason
        _log.warning("the notes were not brought up to date: %s", reason)

    async def _update(self, view: View, tokens: int, sizer: Sizer) -> None:
        known = self._journal.state.notes
        text = await self._edited_text() or known.text or notes_template()
        end = complete_end(view)
        if not end:
            return
        covered_uuid = view.items[end - 1].uuid
        part = view if end == len(view) else View(view.items[:end], view.epoch, view.boundary)
        instruction = notes_instruction(text, sizer)

        def make(view: View, profile: RequestProfile, most_tokens: int | None) -> RequestPlan:
            limit = self._profiles.model.max_output_tokens if most_tokens is None else most_tokens
            max_tokens = min(MAX_NOTES_TOKENS + thinking_tokens(profile), limit)
            plan = RequestPlan.of(profile, self._renderer.render(view, profile))
            return plan.fork(instruction, max_tokens=max_tokens)

        response = await self._calls.call(part, make, SOURCE)
        notes = parse_notes(text_of(tuple(parse_block(raw) for raw in response.content)), response.stop_reason)
        if notes is None:
            self._failed("the answer held no notes")
            return
        if self._journal.state.view.position_of(covered_uuid) is None:
            self._failed("the conversation went another way meanwhile")
            return
        edited = await self._edited_text()
        if edited and edited.strip() != text.strip():
            # Edited while the fork was at work: the person's version stays, and the next update starts from it.
            notes = edited
        self._journal.commit(NotesSaved(notes, covered_uuid, tokens))
        self._last_failure = ""
        if self.path is not None:
            await asyncio.to_thread(_write, self.path, notes)

    async def _prepare_draft(self, ctx: PipelineContext) -> None:
        made = await self._pipeline.draft(replace(ctx, ports=replace(ctx.ports, summarizer=self._drafts)))
        if isinstance(made, Declined):
            # What it declines before any call costs nothing, so it may be asked again after the next round.
            self._has_drafted = made.is_failure
            if made.is_failure:
                self._failed(made.reason)
        else:
            self._has_drafted, self._draft = True, made

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def after_boundary(self, boundary: Boundary) -> None:
        """A compaction was committed: what was prepared for it is used up or told of, and a new cycle begins."""
        if self._running is not None:
            self._running.task.cancel()
        if self._draft is not None and boundary.layer != "draft":
            self._tell_unused(self._draft)
        self._draft, self._has_drafted, self._failures, self._last_failure = None, False, 0, ""
        self._failed_at_tokens = self._tried_at_tokens = 0

    async def close(self) -> None:
        if self._running is not None:
            self._running.task.cancel()
            await asyncio.gather(self._running.task, return_exceptions=True)
        if self._draft is not None:
            self._tell_unused(self._draft)
            self._draft = None

    def _tell_unused(self, draft: SessionNotes) -> None:
        price = "price unknown" if draft.cost_usd is None else f"${draft.cost_usd:.4f}"
        self._journal.commit(NoticeShown(f"A summary prepared in the background was not needed ({price})."))

    def use(self, settings: CompactionSettings) -> None:
        """Follow changed settings from the next round on."""
        self._settings = settings

    def lines(self) -> list[str]:
        """For `/context`: how far the notes reach, and where they can be edited."""
        state = self._journal.state
        if not self._settings.gates.session_memory:
            lines = ["Notes: off"]
        elif not state.notes.covered_uuid:
            lines = ["Notes: none in this stretch yet"]
        else:
            at = state.view.position_of(state.notes.covered_uuid)
            behind = "another branch" if at is None else f"{len(state.view) - at - 1:,} messages behind"
            lines = [f"Notes: {state.notes.updates} updates in this stretch, {behind}"]
        if self._running is not None and not self._running.task.done():
            lines.append(f"  being written now: {self._running.kind}")
        if self._draft is not None:
            lines.append("  a summary is prepared for the next compaction")
        if self._last_failure:
            lines.append(f"  last update failed: {self._last_failure}")
        if self.path is not None and state.notes_written:
            lines.append(f"  to read and edit: {self.path}")
        return lines


def _read(path: Path) -> str:
    """The file's text; empty if there is none to be had."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_NOTES_FILE_BYTES + 1)
    except OSError:
        return ""
    return data.decode("utf-8", "replace") if len(data) <= MAX_NOTES_FILE_BYTES else ""


def _write(path: Path, text: str) -> None:
    """Replace the file as a whole, readable by its owner alone. That it fails is no harm: the log has the notes."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        _log.warning("the notes file cannot be written: %s", error)
        return
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text.rstrip("\n") + "\n")
        os.replace(temporary, path)
    except OSError as error:
        _log.warning("the notes file cannot be written: %s", error)
        with contextlib.suppress(OSError):
            os.unlink(temporary)
