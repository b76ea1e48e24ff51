"""`/diff`: what changed in the files, by turn, since the session began, or against git.

The work tree's checkpoints say it, so what shell commands changed is there too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyagent.agent.background import in_daemon_thread
from pyagent.agent.checkpoint_keeper import CheckpointKeeper
from pyagent.agent.checkpoints import ShadowRepository
from pyagent.agent.git_diff import head_diff
from pyagent.agent.journal import Journal
from pyagent.agent.shadow_git import CheckpointError
from pyagent.errors import UsageError
from pyagent.events import EventSink, Report
from pyagent.log import CheckpointTaken, Record, UserEntry
from pyagent.pages import DiffFile, DiffPage, DiffScope

GIT_TIMEOUT_S = 10.0
MAX_LABEL_CHARS = 100
SESSION, HEAD = "session", "head"


@dataclass(frozen=True, slots=True)
class TurnSpan:
    """One turn between two snapshots. `after` empty: it is the newest and has no end yet."""

    number: int
    prompt: str
    before: str
    after: str


class DiffCommand:
    """The handler of `/diff [turn N|session|head]`."""

    def __init__(
        self,
        *,
        journal: Journal,
        checkpoints: CheckpointKeeper,
        emit: EventSink,
        load_history: Callable[[], Coroutine[Any, Any, None]],
        cwd: Callable[[], Path],
    ) -> None:
        self._journal = journal
        self._checkpoints = checkpoints
        self._emit = emit
        self._load_history = load_history
        self._cwd = cwd

    async def show(self, argument: str) -> None:
        """Tell the differences of one scope, and which scopes there are."""
        await self._load_history()
        spans = turn_spans(self._journal.state.records, {record.seq for record in self._journal.state.branch})
        scopes = (
            *(DiffScope(f"turn {span.number}", span.prompt, f"turn {span.number}") for span in reversed(spans)),
            DiffScope(SESSION, "the whole session", "since it began"),
            DiffScope(HEAD, "against git", "HEAD and what is not committed"),
        )
        changing = (f"turn {span.number}" for span in reversed(spans) if span.after != span.before)
        chosen = " ".join(argument.split()) or next(changing, scopes[0].id)
        chosen = f"turn {chosen}" if chosen.isdecimal() else chosen
        if chosen not in {scope.id for scope in scopes}:
            raise UsageError(
                f"There is no {chosen!r} to compare.", hint="Use /diff, /diff turn N, /diff session, /diff head."
            )
        files, remark = await self._files(chosen, spans)
        if not files and not remark:
            remark = "No file differs."
        self._emit(Report("Diff", page=DiffPage(scopes, chosen, files, remark)))

    async def _files(self, chosen: str, spans: Sequence[TurnSpan]) -> tuple[tuple[DiffFile, ...], str]:
        if chosen == HEAD:
            deadline = time.monotonic() + GIT_TIMEOUT_S
            cwd = self._cwd()
            return await asyncio.wrap_future(in_daemon_thread(lambda: head_diff(cwd, deadline), name="git-diff"))
        if not spans:
            return (), "No prompt was sent yet, so nothing was saved to compare with."
        span = spans[0] if chosen == SESSION else next(s for s in spans if f"turn {s.number}" == chosen)
        if not span.before:
            return (), "The files were not saved before this turn."
        after = "" if chosen == SESSION else span.after
        try:
            return await self._checkpoints.with_shadow(lambda shadow: _between(shadow, span.before, after)), ""
        except CheckpointError as error:
            return (), error.message


def _between(shadow: ShadowRepository, before: str, after: str) -> tuple[DiffFile, ...]:
    end = after or shadow.snapshot("rewind").commit
    diffs = shadow.diffs(before, end)
    return tuple(
        DiffFile(change.shown_path, change.kind, diffs.get(change.path, "")) for change in shadow.changes(before, end)
    )


def turn_spans(records: Sequence[Record], on_branch: set[int]) -> list[TurnSpan]:
    """The turns of the current branch, each between the snapshot before it and the one after it.

    A turn that wrote nothing has none after it, so it ends where it began.
    """
    found: list[TurnSpan] = []
    before = prompt = end = ""
    for record in records:
        match record.payload:
            case CheckpointTaken(commit=commit, reason="turn"):
                if prompt:
                    found.append(TurnSpan(len(found) + 1, prompt, before, end or before))
                    prompt = ""
                before, end = commit, ""
            case CheckpointTaken(commit=commit, reason="turn_end" | "bash") if prompt:
                end = commit
            case UserEntry(origin="prompt") as entry if not record.tx and record.seq in on_branch:
                if prompt:
                    found.append(TurnSpan(len(found) + 1, prompt, before, end or before))
                    before = end = ""
                prompt = " ".join((entry.display or entry.text).split())[:MAX_LABEL_CHARS] or "(no text)"
            case _:
                pass
    if prompt:
        found.append(TurnSpan(len(found) + 1, prompt, before, ""))
    return found
