"""The branch and the summary, in every kind of folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyagent.agent.git_state import MAX_STATUS_PATHS, branch_of, git_summary


def git(folder: Path, *arguments: str) -> str:
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    who = ("-c", "user.name=A", "-c", "user.email=a@example.invalid", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, env=environ, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--initial-branch=main")
    (folder / "kept.txt").write_text("one\n")
    (folder / "old name.txt").write_text("some text that is long enough to be recognised\n" * 5)
    git(folder, "add", ".")
    git(folder, "commit", "-m", "First commit")
    return folder


def test_the_branch_is_known_in_the_root_and_below_it(repository: Path) -> None:
    below = repository / "a" / "b"
    below.mkdir(parents=True)
    git(repository, "checkout", "-b", "feature/x")
    assert branch_of(repository) == branch_of(below) == "feature/x"


def test_a_repository_without_a_commit_has_a_branch(tmp_path: Path) -> None:
    git(tmp_path, "init", "--initial-branch=trunk")
    assert branch_of(tmp_path) == "trunk"


def test_a_detached_head_shows_a_short_hash(repository: Path) -> None:
    git(repository, "checkout", "--detach")
    assert branch_of(repository) == git(repository, "rev-parse", "HEAD")[:8]


def test_a_linked_work_tree_shows_its_own_branch(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", str(tmp_path / "linked"), "-b", "linked")
    assert branch_of(tmp_path / "linked") == "linked"
    assert branch_of(repository) == "main"


def test_a_git_file_with_a_relative_path_is_followed_from_where_it_lies(repository: Path) -> None:
    module = repository / "module"
    module.mkdir()
    (module / ".git").write_text("gitdir: ../.git\n")
    assert branch_of(module) == "main"


@pytest.mark.parametrize("head", ["", "garbage", "ref: refs/heads/.invalid\n", "0123", "\0\0\0", "\xff\xfe"], ids=ascii)
def test_a_head_that_names_nothing_gives_no_branch(tmp_path: Path, head: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head, encoding="latin-1")
    assert branch_of(tmp_path) == ""


@pytest.mark.parametrize("pointer", ["", "nonsense", "gitdir: /nowhere/at/all", "gitdir: a\0b"], ids=ascii)
def test_a_git_file_that_leads_nowhere_gives_no_branch(tmp_path: Path, pointer: str) -> None:
    (tmp_path / ".git").write_text(pointer)
    assert branch_of(tmp_path) == ""


def test_a_missing_folder_has_no_branch(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert branch_of(tmp_path / "gone" / "too") == ""


async def test_the_summary_names_branch_changes_and_commits(repository: Path) -> None:
    (repository / "kept.txt").write_text("two\n")
    (repository / "new.txt").write_text("")
    git(repository, "mv", "old name.txt", "new name.txt")
    summary = await git_summary(repository)
    assert "Branch: main" in summary
    assert "Changed paths (3):" in summary
    assert "   M kept.txt" in summary
    assert "  ?? new.txt" in summary
    assert "  R  new name.txt (was old name.txt)" in summary
    assert "First commit" in summary


async def test_a_clean_work_tree_is_called_clean(repository: Path) -> None:
    assert "Work tree clean." in await git_summary(repository)


async def test_a_repository_without_a_commit_still_has_a_status(tmp_path: Path) -> None:
    git(tmp_path, "init", "--initial-branch=trunk")
    (tmp_path / "new.txt").write_text("")
    summary = await git_summary(tmp_path)
    assert "Branch: trunk" in summary
    assert "?? new.txt" in summary
    assert "Recent commits" not in summary


async def test_only_the_first_of_many_changes_and_the_newest_commits_are_named(repository: Path) -> None:
    for number in range(7):
        git(repository, "commit", "--allow-empty", "-m", f"Commit number {number}")
    for number in range(MAX_STATUS_PATHS + 12):
        (repository / f"new{number:02}.txt").write_text("")
    summary = await git_summary(repository)
    assert f"Changed paths ({MAX_STATUS_PATHS + 12}):" in summary
    assert "… and 12 more" in summary
    assert f"new{MAX_STATUS_PATHS - 1:02}.txt" in summary
    assert f"new{MAX_STATUS_PATHS:02}.txt" not in summary
    assert "Commit number 2" in summary
    assert "Commit number 1\n" not in summary + "\n"


async def test_a_path_with_line_breaks_stays_on_one_line(repository: Path) -> None:
    (repository / "a\nBranch: forged\x1b[31m").write_text("")
    summary = await git_summary(repository)
    assert "?? a\\nBranch: forged\\x1b[31m" in summary


async def test_looking_runs_no_program_of_the_repository_s_and_takes_no_lock(repository: Path, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch '{trace}'\n")
    monitor.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(monitor))
    (repository / ".git" / "index.lock").write_text("")
    assert "Branch: main" in await git_summary(repository)
    assert not trace.exists()


async def test_there_is_no_summary_outside_a_repository_or_in_a_missing_folder(tmp_path: Path) -> None:
    assert await git_summary(tmp_path) == ""
    assert await git_summary(tmp_path / "gone") == ""


async def test_there_is_no_summary_once_the_time_is_up(repository: Path) -> None:
    assert await git_summary(repository, timeout_s=0) == ""


async def test_there_is_no_summary_of_another_user_s_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert await git_summary(repository) == ""
    assert branch_of(repository) == "main"


def test_without_a_git_binary_there_is_a_branch_and_no_summary(repository: Path, tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from pyagent.agent.git_state import branch_of, git_summary\n"
        "assert 'git' not in sys.modules\n"
        f"folder = Path({str(repository)!r})\n"
        "assert branch_of(folder) == 'main'\n"
        "assert asyncio.run(git_summary(folder)) == ''\n"
    )
    environ = {"PATH": str(tmp_path / "empty"), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
