"""Sessions are renamed, deleted and brought back without being opened."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from pyagent.agent.session_cleanup import delete_old_sessions
from pyagent.agent.session_shelf import SessionShelf
from pyagent.agent.session_store import SessionFile, list_sessions, project_dir, read_session
from pyagent.errors import SessionError, SessionLockedError
from pyagent.log import Record, SessionStarted, SettingChanged
from tests.agent.support import SteadyClock

CLOCK = SteadyClock()


def saved(folder: Path, session_id: str, age: timedelta = timedelta(hours=1)) -> Path:
    """A session with one title and a stored tool result beside it."""
    path = folder / f"{session_id}.jsonl"
    file = SessionFile(path, on_problem=pytest.fail)
    file.append(Record(0, "a", CLOCK(), SessionStarted(1, session_id, "/w", "1", "main")))
    file.append(Record(1, "b", CLOCK(), SettingChanged("title", f"the {session_id} one")))
    file.close()
    (folder / session_id / "tool-results").mkdir(parents=True)
    (folder / session_id / "tool-results" / "r.txt").write_text("kept")
    moment_s = (CLOCK() - age).timestamp()
    os.utime(path, (moment_s, moment_s))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return project_dir(tmp_path, Path("/w"))


@pytest.fixture
def shelf(tmp_path: Path) -> SessionShelf:
    return SessionShelf(tmp_path, Path("/w"), clock=CLOCK)


def titles(folder: Path) -> list[str]:
    return [info.title for info in list_sessions(folder)]


def test_a_session_gets_another_title_and_keeps_its_place(shelf: SessionShelf, folder: Path) -> None:
    saved(folder, "older", timedelta(days=2))
    saved(folder, "newer")
    shelf.rename("older", " Parser\n\ud800work ")
    assert titles(folder) == ["the newer one", "Parser \ufffdwork"]
    loaded = read_session(folder / "older.jsonl")
    assert [record.seq for record in loaded.records] == [0, 1, 2]
    assert not loaded.problems


def test_what_was_deleted_last_comes_back_first_whole(shelf: SessionShelf, folder: Path) -> None:
    for name in ("one", "two"):
        path = saved(folder, name)
        before = path.read_bytes(), path.stat().st_mtime_ns
        shelf.delete(name)
        CLOCK.pass_time(seconds=1)
    assert titles(folder) == []
    assert list(folder.iterdir()) == []
    assert [shelf.restore(), shelf.restore()] == ["two", "one"]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert (folder / "two" / "tool-results" / "r.txt").read_text() == "kept"
    with pytest.raises(SessionError, match="No deleted session"):
        shelf.restore()


def test_a_session_that_is_open_or_gone_is_left_alone(shelf: SessionShelf, folder: Path) -> None:
    path = saved(folder, "held")
    before = path.read_bytes()
    holder = SessionFile(path, on_problem=pytest.fail)
    with pytest.raises(SessionLockedError):
        shelf.rename("held", "x")
    with pytest.raises(SessionLockedError):
        shelf.delete("held")
    holder.close()
    assert path.read_bytes() == before
    with pytest.raises(SessionError, match="no session gone"):
        shelf.delete("gone")
    assert not (folder / "gone.jsonl").exists()


def test_a_deleted_session_never_replaces_one_that_took_its_id(shelf: SessionShelf, folder: Path) -> None:
    saved(folder, "same")
    shelf.delete("same")
    path = folder / "same.jsonl"
    path.write_text("mine")
    with pytest.raises(SessionError, match="again"):
        shelf.restore()
    assert path.read_text() == "mine"


def test_the_trash_is_emptied_after_the_days_that_old_sessions_have(
    shelf: SessionShelf, folder: Path, tmp_path: Path
) -> None:
    saved(folder, "long-ago", timedelta(days=400))
    shelf.delete("long-ago")
    deleted_at = CLOCK()
    CLOCK.pass_time(days=20)
    saved(folder, "lately")
    shelf.delete("lately")

    def clean_up(days_later: int, days: int) -> list[str]:
        now_s = (deleted_at + timedelta(days=days_later)).timestamp()
        delete_old_sessions(tmp_path, folder, tmp_path, days=days, now_s=now_s, user_home=tmp_path)
        return sorted(place.name.partition("-")[2] for place in (tmp_path / "trash" / folder.name).iterdir())

    assert clean_up(29, 30) == ["lately", "long-ago"]
    assert clean_up(31, 0) == ["lately", "long-ago"]
    assert clean_up(31, 30) == ["lately"]
