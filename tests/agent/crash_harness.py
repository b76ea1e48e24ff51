"""Kills a running agent at any write to its session file, and looks at what a resume makes of the rest.

The parent imports everything once and forks a child for each crash, so that a crash costs no more than the session.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pyagent.agent.session_reader import open_session
from pyagent.agent.session_store import list_sessions, project_dir, read_session
from pyagent.events import CompactionFinished, Notice, PromptReturned, TurnFinished
from pyagent.launch import LaunchOptions
from pyagent.log import Boundary, Record, UserEntry
from pyagent.state import ConversationState
from tests.agent.support import LiveAgent, launch_options, running_agent
from tests.agent.test_session_reader import everything

Moment: TypeAlias = Literal["before", "within", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "within", "after")
"""Of a write: none, half or all of its bytes are in the file."""


class KillingDisk:
    """Kills its own process at one write."""

    def __init__(self, kill_at: int, moment: Moment) -> None:
        self.count = 0
        self._kill_at = kill_at
        self._moment = moment

    def write(self, fd: int, data: bytes | bytearray) -> int:
        self.count += 1
        is_due = self.count == self._kill_at
        if is_due and self._moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        written = os.write(fd, data[: len(data) // 2] if is_due and self._moment == "within" else data)
        if is_due:
            os.kill(os.getpid(), signal.SIGKILL)
        return written

    def truncate(self, fd: int, size_bytes: int) -> None:
        os.ftruncate(fd, size_bytes)


class FullDisk:
    """Has no room from one write to another; with `is_short`, each failing write leaves a few bytes behind."""

    def __init__(self, full_from: int, full_to: int, *, is_short: bool) -> None:
        self.count = 0
        self._full = range(full_from, full_to)
        self._is_short = is_short
        self._has_cut = False

    def write(self, fd: int, data: bytes | bytearray) -> int:
        self.count += 1
        if self.count not in self._full:
            return os.write(fd, data)
        if self._is_short and not self._has_cut:
            self._has_cut = True
            return os.write(fd, data[:7])
        self._has_cut = False
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def truncate(self, fd: int, size_bytes: int) -> None:
        os.ftruncate(fd, size_bytes)


def offline_options(folder: Path) -> LaunchOptions:
    """A session on the built-in model, so that no server has to outlive the crash."""
    return launch_options(folder, "", model="offline", environ={"ANTHROPIC_BASE_URL": "", "ANTHROPIC_API_KEY": ""})


async def scenario(agent: LiveAgent) -> None:
    """A real session: answers, a tool that writes, a compaction, its undoing, a rewind with files."""
    await agent.prompt("run `seq 1 3000; echo changed > made.txt`")
    await agent.prompt("run `seq 1 3000`")
    await agent.command("compact", "", CompactionFinished)
    await agent.prompt("hello")
    await agent.command("compact", "undo", Notice)
    await agent.prompt("hello again")
    await agent.command("rewind", "1 both", PromptReturned)
    await agent.prompt("hello at last")


def in_child(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Run a coroutine in a forked process; its wait status."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def write_count(folder: Path) -> int:
    """How many writes the whole scenario makes."""
    counter = folder / "count"

    async def run() -> None:
        disk = KillingDisk(0, "before")
        async with running_agent(offline_options(folder), disk=disk) as agent:
            await scenario(agent)
        counter.write_text(str(disk.count))

    status = in_child(run)
    assert status == 0, f"the scenario itself fails: {status}"
    return int(counter.read_text())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one crash. `fault` is empty if nothing was lost or broken."""

    record_count: int
    compaction: Literal["none", "before", "after", "undone"]
    was_reported: bool
    fault: str


def crash(folder: Path, kill_at: int, moment: Moment) -> Outcome:
    """Run the scenario up to the crash, then resume and go on."""
    options = offline_options(folder)

    async def run() -> None:
        async with running_agent(options, disk=KillingDisk(kill_at, moment)) as agent:
            await scenario(agent)

    status = in_child(run)
    if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
        return Outcome(0, "none", False, f"the process was not killed: status {status}")
    sessions = list_sessions(project_dir(options.home, options.cwd))
    if not sessions:
        path = next(project_dir(options.home, options.cwd).glob("*.jsonl"), None)
        has_started = path is not None and b"\n" in path.read_bytes()
        return Outcome(0, "none", False, "the session is not listed" if has_started else "")
    path = sessions[0].path
    loaded = read_session(path)
    state = open_session(path, whole_file_bytes=0).state
    faults = _faults(state, loaded.records)

    async def resume() -> None:
        async with running_agent(replace(options, is_continued=True)) as agent:
            ended = await agent.prompt("what did we just do?")
            assert isinstance(ended, TurnFinished), ended
        said = [r.payload.text for r in read_session(path).records if isinstance(r.payload, UserEntry)]
        assert "what did we just do?" in said

    if in_child(resume) != 0:
        faults.append("the resumed session does not go on")
    boundaries = sum(isinstance(record.payload, Boundary) for record in loaded.records)
    compaction: Literal["none", "before", "after", "undone"] = "none"
    if boundaries:
        compaction = "after" if state.boundaries else "undone"
    elif state.open_transactions:
        compaction = "before"
    return Outcome(len(loaded.records), compaction, bool(loaded.problems), "; ".join(faults))


def _faults(state: ConversationState, records: tuple[Record, ...]) -> list[str]:
    faults = []
    if everything(state) != everything(ConversationState(records)):
        faults.append("the newest saved state differs from the full fold")
    if [record.seq for record in records] != list(range(len(records))):
        faults.append("records are missing in the middle")
    boundary = state.view.boundary
    if boundary is not None:
        assert isinstance(boundary.payload, Boundary)
        shown = [item.uuid for item in state.view]
        if list(boundary.payload.layout) != shown[: len(boundary.payload.layout)]:
            faults.append("the compaction is neither wholly there nor wholly absent")
    hidden = {record.tx for record in records if record.tx and record.uuid in {item.uuid for item in state.view}}
    if hidden & set(state.open_transactions):
        faults.append("part of an unfinished compaction is in view")
    return faults
