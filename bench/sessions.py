"""What it costs to open a huge session, and to list a great many.

    python -m bench.sessions [megabytes] [sessions]

Limits: a session of 300 MB with 40 compactions opens in under 1 s and 200 MB of memory; 10,000 sessions are listed in
under 1 s.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from pyagent.agent.journal import Journal
from pyagent.agent.session_store import SessionFile
from pyagent.log import AssistantEntry, Boundary, SessionStarted, UserEntry
from pyagent.messages import TextBlock, ToolResultBlock, Usage
from pyagent.record_lines import SCHEMA_VERSION
from pyagent.state import ConversationState

BOUNDARIES = 40
RESULT_CHARS = 30_000
OPEN_LIMIT_S, OPEN_LIMIT_MB, LIST_LIMIT_S = 1.0, 200, 1.0
RUNS = 3

OPEN = """
import re, sys, time
from pathlib import Path
from pyagent.agent.session_reader import open_session
started_s = time.perf_counter()
opened = open_session(Path(sys.argv[1]))
elapsed_s = time.perf_counter() - started_s
assert opened.state.is_partial and len(opened.state.view) > 2
peak_kb = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
print(elapsed_s, peak_kb / 1_000)
"""

LIST = """
import sys, time
from pathlib import Path
from pyagent.agent.session_store import list_sessions
started_s = time.perf_counter()
count = len(list_sessions(Path(sys.argv[1])))
print(time.perf_counter() - started_s, count)
"""


def _fail(text: str) -> None:
    raise SystemExit(text)


def write_huge(path: Path, size_bytes: int) -> None:
    """A session with forty boundaries, each behind the same amount of tool results."""
    numbers = iter(range(10**9))
    file = SessionFile(path, on_problem=_fail)
    journal = Journal(
        ConversationState(),
        sink=file,
        emit=lambda event: None,
        clock=lambda: datetime(2026, 11, 30, tzinfo=UTC),
        new_uuid=lambda: f"uuid-{next(numbers)}",
    )
    journal.commit(SessionStarted(SCHEMA_VERSION, "huge", "/project", "0", "main"))
    for stretch in range(BOUNDARIES):
        end_bytes = size_bytes * (stretch + 1) // (BOUNDARIES + 1)
        journal.commit(UserEntry((TextBlock(f"prompt {stretch}"),)))
        while path.stat().st_size < end_bytes:
            add_round(journal)
        summary = journal.commit(UserEntry((TextBlock("summary " * 500),), origin="summary"), tx=f"tx{stretch}")
        kept = journal.state.view.items[-1].uuid
        boundary = Boundary((summary.uuid, kept), "auto", "full", 167_000, 24_000, 50, kept=(kept,))
        journal.commit(boundary, tx=f"tx{stretch}")
        journal.save_state()
    while path.stat().st_size < size_bytes:
        add_round(journal)
    journal.close()


def add_round(journal: Journal) -> None:
    """A call of a tool and its long result."""
    use = {"type": "tool_use", "id": journal.new_uuid(), "name": "Bash", "input": {"command": "make"}}
    usage = Usage(input_tokens=10, output_tokens=10)
    journal.commit(AssistantEntry("m", "claude-sonnet-5-5", (use,), "tool_use", usage, "digest", "profile"))
    result = ToolResultBlock(str(use["id"]), (TextBlock("a line of output\n" * (RESULT_CHARS // 17)),))
    journal.commit(UserEntry((result,), origin="tool_results"))


def write_many(folder: Path, count: int) -> None:
    """Small sessions with a prompt and an answer each."""
    sample = folder / "sample.jsonl"
    write_huge(sample, 1)
    data = sample.read_bytes()[:20_000]
    sample.unlink()
    data = data[: data.rfind(b"\n") + 1]
    for number in range(count):
        (folder / f"session-{number}.jsonl").write_bytes(data)


def measured(script: str, target: Path) -> tuple[float, float]:
    """The two figures a script prints, best of some runs by the first."""
    runs = []
    for _ in range(RUNS):
        done = subprocess.run([sys.executable, "-c", script, str(target)], check=True, capture_output=True, text=True)
        first, second = done.stdout.split()
        runs.append((float(first), float(second)))
    return min(runs)


def main() -> int:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started_s = time.perf_counter()
        write_huge(folder / "huge.jsonl", megabytes * 1_000_000)
        print(f"written in {time.perf_counter() - started_s:.1f} s")
        open_s, memory_mb = measured(OPEN, folder / "huge.jsonl")
        (folder / "huge.jsonl").unlink()
        write_many(folder, count)
        list_s, listed = measured(LIST, folder)
    limits = f"(limits {OPEN_LIMIT_S} s, {OPEN_LIMIT_MB} MB)"
    print(f"open {megabytes} MB  {open_s * 1_000:6.0f} ms  {memory_mb:4.0f} MB  {limits}")
    print(f"list {listed:,.0f}   {list_s * 1_000:6.0f} ms  (limit {LIST_LIMIT_S} s)")
    return 0 if open_s <= OPEN_LIMIT_S and memory_mb <= OPEN_LIMIT_MB and list_s <= LIST_LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
