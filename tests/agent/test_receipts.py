from __future__ import annotations

from pyagent.agent.receipts import receipt_lines, rereads
from pyagent.log import Boundary, FileSeen
from tests.compaction.builder import Talk


def read(talk: Talk, path: str) -> None:
    use_id = talk.call("Read", "text", file_path=path)
    talk.write(FileSeen(path, "sha", use_id, "read"))


def talk_with_rereads(paths: tuple[str, ...]) -> tuple[Talk, int]:
    talk = Talk()
    talk.prompt("go")
    read(talk, "/p/a.py")
    read(talk, "/p/b.py")
    boundary = talk.write(Boundary((), "auto", "full", 100_000, 20_000, 5))
    for path in paths:
        read(talk, path)
    return talk, boundary.seq


def test_files_read_again_behind_a_compaction_are_counted() -> None:
    talk, seq = talk_with_rereads(("/p/a.py", "/p/new.py", "/p/a.py"))
    assert rereads(talk.state.branch, seq) == (2, 3)


def test_only_the_first_calls_behind_a_compaction_are_looked_at() -> None:
    talk, seq = talk_with_rereads(("/p/new.py",) * 15 + ("/p/a.py",))
    assert rereads(talk.state.branch, seq) == (0, 15)


def test_the_receipt_tells_of_files_read_again_once_there_were_calls() -> None:
    talk, seq = talk_with_rereads(("/p/b.py",))
    (record,) = talk.state.boundaries
    boundary = record.payload
    assert isinstance(boundary, Boundary)
    lines = receipt_lines(1, record.at, boundary, rereads(talk.state.branch, seq))
    assert "   afterwards: 1 of the first 1 calls read a file again" in lines
    assert not any("afterwards" in line for line in receipt_lines(1, record.at, boundary))
