"""The processes of this machine: from /proc, or from `ps` where there is none (macOS, the BSDs)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    group: int
    session: int
    started: str
    """Ticks since boot or a date, as text: together with the pid it names one process for good."""


class ProcessLister(Protocol):
    def look(self, assignment: str) -> tuple[list[Process], set[int]]:
        """All processes alive now (zombies are not), and the pids of those with `NAME=value` in their environment."""
        ...


class ProcLister:
    """Linux."""

    def look(self, assignment: str) -> tuple[list[Process], set[int]]:
        needle = assignment.encode()
        processes = list(self._processes())
        return processes, {process.pid for process in processes if self._has(process.pid, needle)}

    def _processes(self) -> list[Process]:
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    stat = file.read()
            except OSError:
                continue
            # The name in parentheses may hold spaces and parentheses itself.
            values = stat[stat.rindex(b")") + 2 :].split()
            if values[0] in (b"Z", b"X", b"x"):
                continue
            found.append(Process(int(name), int(values[1]), int(values[2]), int(values[3]), values[19].decode()))
        return found

    def _has(self, pid: int, needle: bytes) -> bool:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return needle in file.read().split(b"\0")
        except OSError:
            return False


_FIELDS = "pid=,ppid=,pgid=,stat=,lstart=,command="
_DATE_WORDS = 5
"""Of `lstart` in the C locale: `Mon Nov 30 16:57:38 2026`."""


class PsLister:
    """`ps` shows the environment behind the command of the user's own processes, which ours are."""

    def __init__(self, platform: str = sys.platform) -> None:
        # An `e` for the environment: a letter of its own on macOS, a dashed one on the BSDs, a bare one on Linux.
        self._words = {"darwin": ["-axww", "-E"], "linux": ["axwwe"]}.get(platform, ["-axwwe"])

    def look(self, assignment: str) -> tuple[list[Process], set[int]]:
        listing = subprocess.run(
            ["ps", *self._words, "-o", _FIELDS],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        ).stdout
        processes: list[Process] = []
        marked: set[int] = set()
        for line in listing.decode("utf-8", "replace").split("\n"):
            words = line.split(None, 4 + _DATE_WORDS)
            if len(words) < 4 + _DATE_WORDS or not all(word.isdigit() for word in words[:3]):
                # Not a line of its own: a command may hold newlines.
                if processes and assignment in line.split(" "):
                    marked.add(processes[-1].pid)
                continue
            pid, parent, group = (int(word) for word in words[:3])
            if words[3].startswith("Z"):
                continue
            session = group
            with contextlib.suppress(OSError):
                session = os.getsid(pid)
            processes.append(Process(pid, parent, group, session, " ".join(words[4 : 4 + _DATE_WORDS])))
            if assignment in words[-1].split(" "):
                marked.add(pid)
        return processes, marked


@cache
def system_lister() -> ProcessLister:
    return ProcLister() if Path("/proc/self/stat").exists() else PsLister()
