"""Whatever ends or hinders a session at whatever write, the rest of it stands and goes on."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pyagent.agent.session_reader import open_session
from pyagent.agent.session_store import SessionFile, list_sessions, project_dir, read_session
from pyagent.errors import SessionLockedError
from pyagent.events import PromptReturned
from pyagent.log import Record, SessionStarted, UserEntry
from pyagent.messages import TextBlock
from tests.agent.crash_harness import FullDisk, Moment, crash, offline_options, scenario
from tests.agent.race_harness import race
from tests.agent.support import running_agent
from tests.agent.test_session_reader import everything

RACE_ROUNDS = 200


def ignored(text: str) -> None:
    """What a writer has to say."""


NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize(("kill_at", "moment"), [(1, "within"), (9, "after"), (20, "before"), (22, "within")])
def test_a_session_killed_at_a_write_loses_at_most_that_line_and_goes_on(
    tmp_path: Path, kill_at: int, moment: Moment
) -> None:
    outcome = crash(tmp_path, kill_at, moment)
    assert outcome.fault == ""
    assert outcome.record_count == (kill_at if moment == "after" else kill_at - 1)


@pytest.mark.parametrize("is_short", [False, True])
async def test_a_disk_that_is_full_for_a_while_costs_nothing(tmp_path: Path, is_short: bool) -> None:
    options = offline_options(tmp_path)
    async with running_agent(options, disk=FullDisk(6, 15, is_short=is_short)) as agent:
        await scenario(agent)
    warnings = [text for text in agent.notices if "cannot be saved" in text]
    assert len(warnings) == 1
    assert "nothing is missing" in " ".join(agent.notices)
    path = list_sessions(project_dir(options.home, options.cwd))[0].path
    loaded = read_session(path)
    assert loaded.problems == ()
    assert [record.seq for record in loaded.records] == list(range(len(loaded.records)))
    assert everything(open_session(path, whole_file_bytes=0).state) == everything(open_session(path).state)


@pytest.mark.parametrize("is_short", [False, True])
async def test_a_disk_that_stays_full_leaves_whole_lines_and_a_running_session(tmp_path: Path, is_short: bool) -> None:
    options = offline_options(tmp_path)
    async with running_agent(options, disk=FullDisk(6, 10**6, is_short=is_short)) as agent:
        await scenario(agent)
    path = list_sessions(project_dir(options.home, options.cwd))[0].path
    loaded = read_session(path)
    assert len(loaded.records) == 5
    assert loaded.problems == ()
    assert path.read_bytes().endswith(b"\n")
    async with running_agent(replace(options, is_continued=True)) as agent:
        await agent.prompt("hello")
    assert len(read_session(path).records) > 5


def test_of_many_that_open_one_session_at_once_only_one_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    won: list[int] = []
    together = threading.Barrier(2)

    def race(who: int) -> None:
        for number in range(RACE_ROUNDS):
            together.wait()
            try:
                file = SessionFile(path, on_problem=ignored)
            except SessionLockedError:
                continue
            seq = 2 * number + who + 1
            file.append(Record(seq, f"{who}-{number}", NOW, UserEntry((TextBlock("x" * 5_000),))))
            won.append(who)
            file.close()

    start = SessionFile(path, on_problem=ignored)
    start.append(Record(0, "start", NOW, SessionStarted(1, "s", "/project", "0")))
    start.close()
    racers = [threading.Thread(target=race, args=(who,)) for who in (0, 1)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    lines = path.read_bytes().splitlines()
    assert len(lines) == 1 + len(won)
    assert len(won) >= RACE_ROUNDS
    assert all(line.startswith(b'{"seq":') and line.endswith(b"}") for line in lines)


def test_two_processes_never_write_one_session_at_once_nor_disturb_each_others(tmp_path: Path) -> None:
    outcome = race(tmp_path, rounds=5)
    assert outcome.faults == ()
    assert outcome.refusals == {"This session is open in another pyagent: shared."}


async def test_two_agents_of_one_project_keep_sessions_of_their_own(tmp_path: Path) -> None:
    options = offline_options(tmp_path)
    async with running_agent(options) as one, running_agent(options) as other:
        await one.prompt("run `echo one > one.txt`")
        await other.prompt("run `echo other > other.txt`")
        await one.command("rewind", "1 both", PromptReturned)
    sessions = list_sessions(project_dir(options.home, options.cwd))
    assert len(sessions) == 2
    for info in sessions:
        loaded = read_session(info.path)
        assert loaded.problems == ()
    assert not (options.cwd / "one.txt").exists()
    assert (options.cwd / "other.txt").read_text() == "other\n"
