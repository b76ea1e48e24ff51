"""Runs the real program in a process of its own, with a home and a folder nothing else uses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.script import Request

REPOSITORY = Path(__file__).resolve().parents[2]
RUN_LIMIT_S = 120.0
"""How long a run may take before the test counts as stuck."""

SUMMARY = (
    "<analysis>draft</analysis>\n<summary>\n"
    + "\n".join(f"{number}. Section {number}\nWhat there is to say." for number in range(1, 10))
    + "\n</summary>"
)
"""A summary as the compaction prompt asks for it."""


def asks_for_summary(request: Request) -> bool:
    """Whether a request is the summary call of a compaction."""
    return "<summary>" in request.last_text


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that is over."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    def of(self, kind: str, subtype: str | None = None) -> list[dict[str, Any]]:
        """The JSON lines of a type and subtype."""
        return [line for line in self.lines if line["type"] == kind and line.get("subtype") == subtype]

    @property
    def result(self) -> dict[str, Any]:
        last = self.lines[-1]
        assert last["type"] == "result", last
        return last

    @property
    def complaints(self) -> list[str]:
        """The lines on standard error."""
        return self.err.splitlines()


@dataclass(frozen=True, slots=True)
class Program:
    """How to start pyagent: `folder` gets a `home` and the `work` it runs in."""

    folder: Path
    server_url: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def sessions(self) -> list[Path]:
        """The session files, oldest first."""
        files = (self.folder / "home" / ".pyagent" / "projects").rglob("*.jsonl")
        return sorted(files, key=lambda path: path.stat().st_mtime_ns)

    def full_environ(self) -> dict[str, str]:
        environ = {
            "HOME": str(self.folder / "home"),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONWARNINGS": "error",
        }
        if self.server_url:
            environ |= {"ANTHROPIC_API_KEY": "a-key", "ANTHROPIC_BASE_URL": self.server_url}
        return environ | dict(self.environ)

    def start(
        self, *arguments: str | bytes, before: Sequence[str] = (), stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        """A run under way, in a session of its own so that it can be killed whole."""
        self.work.mkdir(parents=True, exist_ok=True)
        (self.folder / "home").mkdir(exist_ok=True)
        return subprocess.Popen(
            [*before, sys.executable, "-m", "pyagent", *arguments],
            cwd=self.work,
            env=self.full_environ(),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, *arguments: str | bytes, before: Sequence[str] = (), input: bytes | None = None) -> Ran:
        """A run from its start to its end."""
        process = self.start(*arguments, before=before, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE)
        try:
            out, err = process.communicate(input, timeout=RUN_LIMIT_S)
        finally:
            kill(process)
        return Ran(process.returncode, out.decode(), err.decode())


def kill(process: subprocess.Popen[bytes]) -> None:
    """kill -9 for the program and everything it started that stayed in its session."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
