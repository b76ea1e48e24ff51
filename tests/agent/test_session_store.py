"""Session files: written record by record, readable after any crash, listed by their ends."""

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pyagent.agent.deferred_sink import DeferredSink
from pyagent.agent.session_store import (
    SessionFile,
    find_session,
    list_sessions,
    project_slug,
    read_session,
)
from pyagent.errors import SessionError, SessionLockedError
from pyagent.log import Payload, Record, SessionStarted, SettingChanged, UserEntry
from pyagent.messages import TextBlock
from pyagent.record_lines import record_to_line

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def record(seq: int, payload: Payload) -> Record:
    return Record(seq, f"u{seq}", NOW, payload)


def started(session_id: str = "s") -> SessionStarted:
    return SessionStarted(1, session_id, "/project", "0.1.0", "main")


def prompt(text: str) -> UserEntry:
    return UserEntry((TextBlock(text),))


def no_problem(text: str) -> None:
    raise AssertionError(text)


def write(path: Path, *payloads: Payload) -> list[Record]:
    session = SessionFile(path, on_problem=no_problem)
    records = [record(seq, payload) for seq, payload in enumerate(payloads)]
    for item in records:
        session.append(item)
    session.close()
    return records


def test_what_was_appended_is_read_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a" / "s.jsonl"
    records = write(path, started(), prompt("one\u2028two\u0085three"), prompt("zwei"))
    loaded = read_session(path)
    assert list(loaded.records) == records
    assert loaded.problems == ()


def test_files_and_folders_are_closed_to_others_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write(tmp_path / "new" / "s.jsonl", started())
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new" / "s.jsonl").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_an_open_file_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"")
    path.chmod(0o644)
    write(path, started())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_second_writer_is_refused_in_one_sentence(tmp_path: Path) -> None:
    first = SessionFile(tmp_path / "s.jsonl", on_problem=no_problem)
    with pytest.raises(SessionLockedError, match="open in another pyagent"):
        SessionFile(tmp_path / "s.jsonl", on_problem=no_problem)
    first.close()
    SessionFile(tmp_path / "s.jsonl", on_problem=no_problem).close()


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_line_torn_by_a_crash_costs_that_line_and_no_other(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "s.jsonl"
    write(path, started(), prompt("one"), prompt("two"))
    path.write_bytes(path.read_bytes()[:-cut])
    if cut > 1:
        assert [type(r.payload) for r in read_session(path).records] == [SessionStarted, UserEntry]
        assert "broken off" in read_session(path).problems[0]
    session = SessionFile(path, on_problem=no_problem)
    session.append(record(3, prompt("after")))
    session.close()
    texts = [r.payload.text for r in read_session(path).records if isinstance(r.payload, UserEntry)]
    assert texts == (["one", "after"] if cut > 1 else ["one", "two", "after"])


def test_bad_lines_in_the_middle_are_reported_and_the_rest_is_there(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    payloads: list[Payload] = [started(), prompt("a"), prompt("b")]
    lines = [record_to_line(record(seq, payload)) for seq, payload in enumerate(payloads)]
    path.write_bytes(lines[0] + b"\xff\xfe not json\n" + b"[1,2]\n" + b'{"seq":9}\n' + lines[1] + b"\n\n" + lines[2])
    loaded = read_session(path)
    assert len(loaded.records) == 3
    assert loaded.problems == ("3 lines of the session file (first: 2) are unreadable and are left out.",)


def test_two_records_on_one_line_are_both_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    one, two = record_to_line(record(0, started())), record_to_line(record(1, prompt("a")))
    path.write_bytes(one.rstrip() + two)
    assert len(read_session(path).records) == 2


def test_a_record_written_twice_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    one, two = record_to_line(record(0, started())), record_to_line(record(1, prompt("a")))
    path.write_bytes(one + two + two)
    assert len(read_session(path).records) == 2


@pytest.mark.parametrize("content", [b"", b"\n", b"hello\n", b'{"type":"user"}\n', b"\x00" * 50])
def test_a_file_that_is_no_session_is_refused_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(content)
    with pytest.raises(SessionError, match="Not a pyagent session"):
        read_session(path)


def test_a_full_disk_is_told_once_and_nothing_is_lost_when_it_is_free_again(tmp_path: Path) -> None:
    told: list[str] = []
    path = tmp_path / "s.jsonl"
    session = SessionFile(path, on_problem=told.append)
    session.append(record(0, started()))
    writable, readonly = os.dup(session._fd), os.open(path, os.O_RDONLY)
    os.dup2(readonly, session._fd)
    session.append(record(1, prompt("one")))
    session.append(record(2, prompt("two")))
    assert len(told) == 1
    assert "cannot be saved" in told[0]
    os.dup2(writable, session._fd)
    session.append(record(3, prompt("three")))
    session.close()
    os.close(writable)
    os.close(readonly)
    assert len(read_session(path).records) == 4
    assert "saved again" in told[1]


def test_sessions_are_listed_newest_first_with_title_prompt_and_branch(tmp_path: Path) -> None:
    write(tmp_path / "old.jsonl", started("old"), prompt("fix  the\nbug"))
    write(tmp_path / "new.jsonl", started("new"), prompt("first"), SettingChanged("title", "Parser work"))
    os.utime(tmp_path / "old.jsonl", (1, 1))
    (tmp_path / "other.jsonl").write_text("not a session\n")
    infos = list_sessions(tmp_path)
    assert [(info.session_id, info.name, info.git_branch) for info in infos] == [
        ("new", "Parser work", "main"),
        ("old", "fix the bug", "main"),
    ]


def test_a_huge_session_is_listed_by_its_ends(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    filler = [prompt("x" * 1000) for _ in range(500)]
    write(path, started(), prompt("the first words"), *filler, SettingChanged("title", "At the end"))
    (info,) = list_sessions(tmp_path)
    assert (info.title, info.first_prompt) == ("At the end", "the first words")


@pytest.mark.parametrize("wanted", ["abcdef-1", "abcd", "Parser work", "parser", "FIRST words"])
def test_a_session_is_found_by_id_start_of_id_title_or_words(tmp_path: Path, wanted: str) -> None:
    write(tmp_path / "abcdef-1.jsonl", started(), prompt("first words"), SettingChanged("title", "Parser work"))
    assert find_session(tmp_path, wanted).session_id == "abcdef-1"


def test_a_session_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="no earlier session"):
        find_session(tmp_path, "x")
    write(tmp_path / "s.jsonl", started(), prompt("first"))
    with pytest.raises(SessionError, match="No session here matches 'zzz'"):
        find_session(tmp_path, "zzz")


def test_no_file_is_made_before_the_first_prompt(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    sink = DeferredSink(lambda: SessionFile(path, on_problem=no_problem), on_problem=no_problem)
    sink.append(record(0, started()))
    sink.append(record(1, SettingChanged("mode", "plan")))
    assert not path.exists()
    sink.append(record(2, prompt("hello")))
    sink.close()
    assert len(read_session(path).records) == 3


def test_a_folder_that_cannot_be_written_costs_the_file_and_not_the_conversation(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    told: list[str] = []
    sink = DeferredSink(
        lambda: SessionFile(tmp_path / "file" / "s.jsonl", on_problem=told.append), on_problem=told.append
    )
    sink.append(record(0, started()))
    sink.append(record(1, prompt("hello")))
    sink.append(record(2, prompt("again")))
    assert len(told) == 1
    assert "not saved" in told[0]


def test_slugs_of_long_paths_stay_short_and_apart() -> None:
    one, two = project_slug(Path("/" + "a" * 300 + "/x")), project_slug(Path("/" + "a" * 300 + "/y"))
    assert one != two
    assert len(one) < 255
    assert project_slug(Path("/home/me/my.project")) == "-home-me-my-project"


def test_lines_hold_plain_json(tmp_path: Path) -> None:
    write(tmp_path / "s.jsonl", started(), prompt("hi"))
    first = json.loads((tmp_path / "s.jsonl").read_bytes().split(b"\n")[0])
    assert (first["seq"], first["type"], first["schema_version"]) == (0, "session", 1)


def is_file(fd: int, path: Path) -> bool:
    """Whether a number stands for an open file of this process, and for this one."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False


def test_a_closed_session_can_be_opened_again_although_a_child_still_holds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    file = SessionFile(path, on_problem=lambda text: None)
    # A child holds the same open file: two numbers for it are the same to the lock.
    held = os.dup(next(fd for fd in map(int, os.listdir("/dev/fd")) if is_file(fd, path)))
    try:
        file.close()
        SessionFile(path, on_problem=lambda text: None).close()
    finally:
        os.close(held)
