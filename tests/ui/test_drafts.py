"""Drafts that outlive the program that held them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pyagent.ui.drafts import Draft, DraftFile
from pyagent.ui.images import FoundImage

DRAFT = Draft("see [Pasted text #1] [Image #2]", {"1": "long"}, {"2": FoundImage("/a.png", 3, 4)}, "put aside")


def left_by_a_dead_program(home: Path, draft: Draft) -> DraftFile:
    """A draft file of a process that has ended."""
    drafts = DraftFile(home / "history" / "-work.jsonl")
    drafts.save(draft)
    ended = subprocess.Popen(["true"])
    ended.wait()
    for path in (home / "drafts").iterdir():
        path.rename(path.with_name(f"-work.{ended.pid}.json"))
    return DraftFile(home / "history" / "-work.jsonl")


def test_a_draft_comes_back_whole_and_once(tmp_path: Path) -> None:
    drafts = left_by_a_dead_program(tmp_path, DRAFT)
    assert drafts.take_left_behind() == DRAFT
    assert drafts.take_left_behind() is None


def test_of_several_drafts_the_newest_comes_first_and_the_others_later(tmp_path: Path) -> None:
    ended = [subprocess.Popen(["true"]) for _ in range(2)]
    for number, process in enumerate(ended):
        process.wait()
        DraftFile(tmp_path / "history" / "-work.jsonl").save(Draft(f"draft {number}"))
        (tmp_path / "drafts" / f"-work.{os.getpid()}.json").rename(tmp_path / "drafts" / f"-work.{process.pid}.json")
        os.utime(tmp_path / "drafts" / f"-work.{process.pid}.json", (number, number))
    found = []
    for _ in range(3):
        drafts = DraftFile(tmp_path / "history" / "-work.jsonl")
        found.append(drafts.take_left_behind())
        drafts.save(Draft())
    assert found == [Draft("draft 1"), Draft("draft 0"), None]


def test_the_draft_of_a_program_that_still_runs_is_left_alone(tmp_path: Path) -> None:
    drafts = DraftFile(tmp_path / "history" / "-work.jsonl")
    drafts.save(DRAFT)
    assert drafts.take_left_behind() is None


def test_drafts_of_other_projects_are_left_alone(tmp_path: Path) -> None:
    left_by_a_dead_program(tmp_path, DRAFT)
    assert DraftFile(tmp_path / "history" / "-other.jsonl").take_left_behind() is None


def test_an_empty_line_leaves_no_file(tmp_path: Path) -> None:
    drafts = DraftFile(tmp_path / "history" / "-work.jsonl")
    drafts.save(DRAFT)
    drafts.save(Draft())
    assert list((tmp_path / "drafts").iterdir()) == []


def test_a_draft_is_readable_for_its_owner_only(tmp_path: Path) -> None:
    DraftFile(tmp_path / "history" / "-work.jsonl").save(DRAFT)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "drafts").iterdir()] == [0o600]


@pytest.mark.parametrize("content", ["", "[]", '{"shown": 1}', '{"shown": "a", "pastes": 3}'])
def test_a_broken_draft_is_no_draft(tmp_path: Path, content: str) -> None:
    drafts = left_by_a_dead_program(tmp_path, DRAFT)
    for path in (tmp_path / "drafts").iterdir():
        path.write_text(content)
    assert drafts.take_left_behind() is None
