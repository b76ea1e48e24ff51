"""Two processes that open and write the same session, and sessions of the same project, round for round at once."""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Barrier

from pyagent.agent.session_reader import open_session
from pyagent.agent.session_store import SessionFile, list_sessions, read_session
from pyagent.errors import SessionLockedError
from pyagent.log import Record, SessionStarted, UserEntry
from pyagent.messages import TextBlock

RACERS = 2
LIMIT_S = 120.0
"""How long a race of 200 rounds may take before it counts as stuck; it takes a few seconds."""

NOW = datetime(2026, 5, 4, tzinfo=UTC)
SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Race:
    """What came of a race. `faults` says in sentences what must not be; empty if all is well."""

    rounds: int
    wins: tuple[int, ...]
    refusals: frozenset[str]
    """What those were told who came too late."""
    faults: tuple[str, ...]


def race(folder: Path, rounds: int) -> Race:
    """Each round both processes open one session at once, of which one may write it; and each a session of its own."""
    path = folder / f"{SHARED}.jsonl"
    start = SessionFile(path, on_problem=_fail)
    start.append(Record(0, "start", NOW, SessionStarted(1, SHARED, "/project", "0")))
    start.close()
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(RACERS, timeout=LIMIT_S)
    pipes = [context.Pipe(duplex=False) for _ in range(RACERS)]
    racers = [context.Process(target=_run, args=(folder, who, rounds, barrier, pipes[who][1])) for who in range(RACERS)]
    faults: list[str] = []
    for racer in racers:
        racer.start()
    told: list[tuple[int, list[str]]] = []
    for who, racer in enumerate(racers):
        told.append(pipes[who][0].recv() if pipes[who][0].poll(LIMIT_S) else (0, []))
        racer.join(LIMIT_S)
        if racer.exitcode != 0:
            faults.append(f"process {who} did not end well: {racer.exitcode}")
            racer.kill()
    wins = tuple(count for count, _ in told)
    refusals = frozenset(line for _, lines in told for line in lines)
    if sum(wins) != rounds:
        faults.append(f"{sum(wins)} of {rounds} rounds had a winner")
    if sum(len(lines) for _, lines in told) != rounds:
        faults.append("not every loser was told")
    faults += [f"more than a line: {line!r}" for line in refusals if "\n" in line]
    return Race(rounds, wins, refusals, (*faults, *_faults_of_files(folder, rounds)))


def _faults_of_files(folder: Path, rounds: int) -> list[str]:
    faults = []
    expected = {SHARED: rounds + 1} | {f"own-{who}": rounds + 1 for who in range(RACERS)}
    found = {info.session_id: info for info in list_sessions(folder)}
    if set(found) != set(expected):
        faults.append(f"sessions of the project: {sorted(found)}")
    for session_id, count in expected.items():
        loaded = read_session(folder / f"{session_id}.jsonl")
        faults += [f"{session_id}: {problem}" for problem in loaded.problems]
        if [record.seq for record in loaded.records] != list(range(count)):
            faults.append(f"{session_id}: {len(loaded.records)} records instead of {count}")
    return faults


def _run(folder: Path, who: int, rounds: int, together: Barrier, tell: Connection) -> None:
    wins, refusals = 0, list[str]()
    for number in range(rounds):
        together.wait()
        file: SessionFile | None = None
        try:
            file = SessionFile(folder / f"{SHARED}.jsonl", on_problem=_fail)
        except SessionLockedError as error:
            refusals.append(error.message)
        if file is not None:
            wins += 1
            _append(file, who, number)
        own = SessionFile(folder / f"own-{who}.jsonl", on_problem=_fail)
        if not number:
            own.append(Record(0, f"own-{who}", NOW, SessionStarted(1, f"own-{who}", "/project", "0")))
        _append(own, who, number)
        own.close()
        list_sessions(folder)
        # The winner holds on until the other has been refused.
        together.wait()
        if file is not None:
            file.close()
    tell.send((wins, refusals))


def _append(file: SessionFile, who: int, number: int) -> None:
    """A record large enough that a torn or mixed write would show."""
    seq = open_session(file.path).state.next_seq
    file.append(Record(seq, f"{who}-{number}", NOW, UserEntry((TextBlock(f"{who}" * 5_000),))))


def _fail(text: str) -> None:
    raise AssertionError(text)
