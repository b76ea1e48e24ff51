"""When a conversation saves the work tree: before each prompt, before shell commands that may write, and after a turn
that did. Without git, or in a folder too large, everything else goes on and the person is told once."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar

from pyagent.agent.background import in_daemon_thread
from pyagent.agent.bash_policy import is_read_only_line
from pyagent.agent.checkpoints import ShadowRepository, Snapshot
from pyagent.agent.journal import Journal
from pyagent.agent.shadow_git import CheckpointError, CheckpointsUnavailableError
from pyagent.events import EventSink, Notice
from pyagent.log import CheckpointTaken
from pyagent.messages import JsonObject, scrub_surrogates

SHOWN_SKIPPED = 3
"""Paths named in the notice of what was left out."""

MAX_FAILURES = 3
"""Failed snapshots in a row after which no more are tried: each may cost a time-out."""

Reason: TypeAlias = Literal["turn", "bash", "turn_end", "rewind"]
ResultT = TypeVar("ResultT")

_log = logging.getLogger(__name__)


class CheckpointKeeper:
    """The snapshots of one conversation. For its event loop; Git runs on a thread."""

    def __init__(
        self, open_shadow: Callable[[], ShadowRepository] | None, *, journal: Journal, emit: EventSink
    ) -> None:
        """`open_shadow` makes the repository; None where snapshots are switched off."""
        self._open = open_shadow
        self._journal = journal
        self._emit = emit
        self._shadow: ShadowRepository | None = None
        self._lock = threading.Lock()
        """Held by the working thread itself: a wait that is cancelled leaves its thread at work."""
        self._newest = ""
        self._told_skipped: set[str] = set()
        self._failure_count = 0
        self._may_have_written = False

    @property
    def is_on(self) -> bool:
        return self._open is not None

    async def before_prompt(self) -> None:
        await self._take("turn")

    async def before_tool(self, name: str, tool_input: JsonObject, is_read_only: bool) -> None:
        """Called once a call is allowed to run."""
        if is_read_only:
            return
        if name == "Bash":
            if is_read_only_line(str(tool_input.get("command", ""))):
                return
            await self._take("bash")
        self._may_have_written = True

    async def after_turn(self) -> None:
        """Saves what the turn has left behind, so that a person's own edits since can be told from the agent's."""
        if self._may_have_written:
            self._may_have_written = False
            await self._take("turn_end")

    async def now(self, reason: Reason) -> Snapshot:
        """A snapshot before (`rewind`) or after (`turn_end`) files are restored.

        Raises:
            CheckpointError: none can be taken.
        """
        snapshot = await self.with_shadow(lambda shadow: shadow.snapshot(reason))
        self._record(snapshot, reason)
        return snapshot

    async def with_shadow(self, work: Callable[[ShadowRepository], ResultT]) -> ResultT:
        """Run `work` on a thread, alone.

        Raises:
            CheckpointError: there are no snapshots here, or the work failed.
        """
        open_shadow = self._open
        if open_shadow is None:
            raise CheckpointsUnavailableError("File checkpoints are off in this session.")

        def run() -> ResultT:
            with self._lock:
                if self._shadow is None:
                    self._shadow = open_shadow()
                return work(self._shadow)

        return await asyncio.wrap_future(in_daemon_thread(run, name="checkpoint"))

    async def _take(self, reason: Reason) -> None:
        if self._open is None:
            return
        try:
            snapshot = await self.with_shadow(lambda shadow: shadow.snapshot(reason))
        except CheckpointsUnavailableError as error:
            self._open = None
            self._emit(Notice(error.message, "info", error.hint))
            return
        except CheckpointError as error:
            self._failure_count += 1
            _log.warning("no checkpoint (%s): %s", reason, error)
            if self._failure_count == MAX_FAILURES:
                self._open = None
                self._emit(Notice("File checkpoints are off: they failed several times.", "warning", error.message))
            return
        self._failure_count = 0
        if reason == "turn" or snapshot.commit != self._newest:
            self._record(snapshot, reason)

    def _record(self, snapshot: Snapshot, reason: Reason) -> None:
        self._newest = snapshot.commit
        skipped = tuple(scrub_surrogates(path) for path in snapshot.skipped)
        self._journal.commit(CheckpointTaken(snapshot.commit, reason, skipped))
        new = [path for path in skipped if path not in self._told_skipped]
        if new:
            self._told_skipped.update(new)
            more = f" and {len(new) - SHOWN_SKIPPED:,} more" if len(new) > SHOWN_SKIPPED else ""
            self._emit(
                Notice(
                    f"Not in the file checkpoints, for its size or permissions: {', '.join(new[:SHOWN_SKIPPED])}{more}."
                )
            )
