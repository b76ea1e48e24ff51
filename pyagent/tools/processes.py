"""The processes a command started, found and ended whole: the shell, its children, and those that left its session."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field

from pyagent.tools.process_list import Process, ProcessLister, system_lister

MARKER_VARIABLE = "PYAGENT_TASK"
"""A random id in the environment of each command: a child keeps it through `setsid`, `nohup` and double forks."""

POLL_S = 0.01
KILL_ROUNDS = 300
"""Rounds of SIGKILL, `POLL_S` apart: a tree that forks while it is killed is caught by a later round."""


@dataclass(slots=True)
class ProcessTree:
    """All processes of one command. `leader` is the shell, which leads its own session and process group."""

    leader: int
    marker: str
    is_leader_reaped: bool = False
    """Once its pid may have been given to somebody else, only the marker and what was seen before count."""
    lister: ProcessLister = field(default_factory=system_lister)
    _seen: set[tuple[int, str]] = field(default_factory=set)

    def members(self) -> tuple[Process, ...]:
        """Those alive now; zombies do not count."""
        processes, marked = self.lister.look(f"{MARKER_VARIABLE}={self.marker}")
        found: dict[int, Process] = {}
        for process in processes:
            is_member = (
                (process.pid, process.started) in self._seen
                or (not self.is_leader_reaped and self.leader in (process.pid, process.group, process.session))
                or process.pid in marked
            )
            if is_member:
                found[process.pid] = process
        has_grown = True
        while has_grown:
            children = [p for p in processes if p.parent in found and p.pid not in found]
            found.update((p.pid, p) for p in children)
            has_grown = bool(children)
        found.pop(os.getpid(), None)
        self._seen.update((p.pid, p.started) for p in found.values())
        return tuple(found.values())

    def in_session(self) -> tuple[Process, ...]:
        """Those that still belong to the command's session: background jobs, as opposed to daemons that left it."""
        return tuple(process for process in self.members() if process.session == self.leader)

    def has_group(self) -> bool:
        """Whether the process group still has a member. Costs one system call."""
        try:
            os.killpg(self.leader, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def send(self, signal_number: int) -> int:
        """Signal every member; returns how many there were."""
        members = self.members()
        for process in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal_number)
        return len(members)

    def end(self, grace_s: float) -> int:
        """SIGTERM, then after `grace_s` SIGKILL until nobody is left. Blocks; returns the number of survivors."""
        self.send(signal.SIGTERM)
        # A stopped process acts on SIGTERM only once it is continued.
        self.send(signal.SIGCONT)
        deadline = time.monotonic() + grace_s
        while time.monotonic() < deadline:
            if not self.members():
                return 0
            time.sleep(POLL_S)
        for _ in range(KILL_ROUNDS):
            if not self.send(signal.SIGKILL):
                return 0
            time.sleep(POLL_S)
        return len(self.members())
