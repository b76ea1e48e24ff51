"""The shadow repository: every byte and mode comes back, and nothing of the user's own repository is touched."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pyagent.agent import checkpoints
from pyagent.agent.checkpoints import ShadowRepository, work_tree_of
from pyagent.agent.shadow_git import CheckpointsUnavailableError


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def shadow_of(work: Path, session_id: str = "s") -> ShadowRepository:
    return ShadowRepository(work.parent / "home", work, session_id, user_home=work.parent / "nobody")


def put(path: Path, content: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def tree_of(root: Path) -> dict[bytes, tuple[int, bytes]]:
    """Path → (mode, content or link target), of everything but repositories' own folders."""
    found: dict[bytes, tuple[int, bytes]] = {}
    for folder, names, files in os.walk(os.fsencode(root)):
        names[:] = [name for name in names if name != b".git" and not os.path.islink(os.path.join(folder, name))]
        links = [name for name in os.listdir(folder) if os.path.islink(os.path.join(folder, name))]
        for name in {*files, *links}:
            full = os.path.join(folder, name)
            mode = os.lstat(full).st_mode
            content = os.readlink(full) if stat.S_ISLNK(mode) else Path(os.fsdecode(full)).read_bytes()
            found[os.path.relpath(full, os.fsencode(root))] = (mode, content)
    return found


def git(folder: Path, *arguments: str) -> str:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    done = subprocess.run(["git", *arguments], cwd=folder, env=environ, check=True, capture_output=True, text=True)
    return done.stdout


def odd_tree(work: Path) -> None:
    """One of everything that a repository with conversions on would not bring back."""
    put(work / ".gitattributes", b"* text=auto eol=lf\n*.bin filter=lfs diff=lfs\n*.u16 working-tree-encoding=UTF-16\n")
    put(work / "crlf.txt", b"one\r\ntwo\r\n")
    put(work / "mixed.txt", b"one\r\ntwo\nthree\r")
    put(work / "id.txt", b"$Id: kept as it is$\n")
    put(work / "x.bin", bytes(range(256)))
    put(work / "x.u16", b"no UTF-16 at all")
    put(work / "run.sh", b"#!/bin/sh\n", 0o755)
    put(work / "secret", b"s", 0o600)
    put(work / "frozen", b"f", 0o444)
    put(work / "empty", b"")
    put(work / "with space\tand tab\nand newline", b"odd")
    put(Path(os.fsdecode(os.fsencode(work) + b"/caf\xe9")), b"latin-1 name")
    put(work / "-dash", b"d")
    put(work / ":(glob)*", b"no pathspec")
    put(work / "sub" / "deep" / "file", b"deep")
    (work / "link").symlink_to("crlf.txt")
    (work / "broken").symlink_to("nowhere")
    (work / "folder-link").symlink_to("sub")


def test_every_byte_mode_and_name_comes_back(work: Path) -> None:
    odd_tree(work)
    before = tree_of(work)
    shadow = shadow_of(work)
    target = shadow.snapshot("before").commit
    for path in sorted(before):
        os.unlink(os.path.join(os.fsencode(work), path))
    (work / "sub" / "deep").rmdir()
    (work / "sub").rmdir()
    put(work / "sub", b"a file where a folder was")
    put(work / "crlf.txt" / "inner", b"a folder where a file was")
    put(work / "new", b"new")
    after = tree_of(work)
    current = shadow.snapshot("after").commit
    shadow.restore(current, target)
    assert tree_of(work) == before
    back = shadow.snapshot("again").commit
    shadow.restore(back, current)
    assert tree_of(work) == after


def test_a_great_many_files_go_into_one_pack_and_come_back_the_same(work: Path) -> None:
    odd_tree(work)
    for number in range(checkpoints.PACKED_FROM_FILES):
        put(work / "many" / f"f{number}", f"{number}\r\n".encode() * number)
    before = tree_of(work)
    shadow = shadow_of(work)
    target = shadow.snapshot("before").commit
    assert len(list((work.parent / "home").rglob("pack-*.pack"))) == 1
    for path in before:
        os.unlink(os.path.join(os.fsencode(work), path))
    shadow.restore(shadow.snapshot("after").commit, target)
    assert tree_of(work) == before


def test_a_change_of_nothing_but_permissions_is_undone(work: Path) -> None:
    put(work / "a", b"a", 0o600)
    put(work / "b", b"b", 0o644)
    shadow = shadow_of(work)
    target = shadow.snapshot("before").commit
    (work / "a").chmod(0o640)
    (work / "b").chmod(0o755)
    current = shadow.snapshot("after").commit
    assert [change.path for change in shadow.changes(current, target)] == [b"a", b"b"]
    shadow.restore(current, target)
    assert stat.S_IMODE((work / "a").stat().st_mode) == 0o600
    assert stat.S_IMODE((work / "b").stat().st_mode) == 0o644


def test_the_users_repository_is_not_touched_and_no_hook_runs(work: Path) -> None:
    put(work / "a", b"a\n")
    git(work, "init", "-q")
    git(work, "add", "a")
    git(work, "commit", "-q", "-m", "first")
    put(work / "a", b"changed\n")
    git(work, "stash", "-q")
    put(work / "staged", b"s\n")
    git(work, "add", "staged")
    for hook in ("post-index-change", "pre-commit", "post-checkout", "reference-transaction"):
        put(work / ".git" / "hooks" / hook, b"#!/bin/sh\ntouch ../hook-ran\n", 0o755)
    before = {path: path.stat().st_mtime_ns for path in (work / ".git").rglob("*")}
    shadow = shadow_of(work)
    target = shadow.snapshot("before").commit
    put(work / "a", b"again\n")
    shadow.restore(shadow.snapshot("after").commit, target)
    assert {path: path.stat().st_mtime_ns for path in (work / ".git").rglob("*")} == before
    assert not (work.parent / "hook-ran").exists()
    assert not (work / "hook-ran").exists()
    assert (work / "a").read_bytes() == b"a\n"


def test_ignored_files_are_neither_saved_nor_removed(work: Path) -> None:
    put(work / ".gitignore", b"build/\n*.log\n")
    put(work / "build" / "out", b"1")
    put(work / "a.log", b"1")
    put(work / "kept", b"1")
    shadow = shadow_of(work)
    target = shadow.snapshot("before").commit
    put(work / "build" / "out", b"2")
    put(work / "a.log", b"2")
    put(work / "kept", b"2")
    current = shadow.snapshot("after").commit
    assert [change.path for change in shadow.changes(current, target)] == [b"kept"]
    shadow.restore(current, target)
    assert (work / "build" / "out").read_bytes() == b"2"
    assert (work / "kept").read_bytes() == b"1"


def test_an_ignored_file_in_the_way_is_left_alone(work: Path) -> None:
    put(work / "data", b"saved")
    shadow = shadow_of(work)
    target = shadow.snapshot("before").commit
    (work / "data").unlink()
    put(work / ".gitignore", b"data\n")
    current = shadow.snapshot("gone").commit
    put(work / "data", b"never saved anywhere")
    restored = shadow.restore(current, target, [b"data"])
    assert [change.path for change in restored.left_alone] == [b"data"]
    assert (work / "data").read_bytes() == b"never saved anywhere"


def test_huge_and_unreadable_files_are_skipped_and_named(work: Path) -> None:
    with (work / "huge").open("wb") as file:
        file.truncate(checkpoints.MAX_FILE_BYTES + 1)
    put(work / "small", b"1")
    shadow = shadow_of(work)
    taken = shadow.snapshot("before")
    assert taken.skipped == ("huge",)
    put(work / "small", b"2")
    with (work / "huge").open("ab") as file:
        file.write(b"more")
    current = shadow.snapshot("after")
    shadow.restore(current.commit, taken.commit)
    assert (work / "huge").stat().st_size == checkpoints.MAX_FILE_BYTES + 5
    assert (work / "small").read_bytes() == b"1"


def test_files_of_a_repository_inside_are_saved_too(work: Path) -> None:
    put(work / "top", b"1")
    inner = work / "vendor" / "lib"
    put(inner / "code.c", b"1")
    git(inner, "init", "-q")
    deeper = inner / "third"
    put(deeper / "more.c", b"1")
    git(deeper, "init", "-q")
    git(deeper, "add", "more.c")
    git(deeper, "commit", "-q", "-m", "x")
    before = tree_of(work)
    shadow = shadow_of(work)
    target = shadow.snapshot("before").commit
    put(inner / "code.c", b"2")
    (deeper / "more.c").unlink()
    put(inner / "new.c", b"n")
    shadow.restore(shadow.snapshot("after").commit, target)
    assert tree_of(work) == before
    assert (inner / ".git" / "HEAD").exists()


def test_an_unchanged_tree_gives_the_same_commit_and_a_new_process_goes_on_from_it(work: Path) -> None:
    put(work / "a", b"a", 0o664)
    shadow = shadow_of(work)
    first = shadow.snapshot("one").commit
    assert shadow.snapshot("two").commit == first
    assert shadow_of(work).snapshot("three").commit == first


def test_two_sessions_of_one_folder_do_not_disturb_each_other(work: Path) -> None:
    put(work / "a", b"1")
    one, other = shadow_of(work, "one"), shadow_of(work, "other")
    first = one.snapshot("x").commit
    put(work / "a", b"2")
    second = other.snapshot("y").commit
    put(work / "a", b"3")
    one.restore(one.snapshot("z").commit, first)
    assert (work / "a").read_bytes() == b"1"
    other.restore(other.snapshot("w").commit, second)
    assert (work / "a").read_bytes() == b"2"


def test_locks_that_a_killed_git_left_behind_are_no_obstacle(work: Path) -> None:
    put(work / "a", b"1")
    shadow = shadow_of(work)
    shadow.snapshot("x")
    folder = next((work.parent / "home").rglob("checkpoints"))
    (folder / "index-s.lock").touch()
    put(work / "a", b"2")
    assert shadow.snapshot("y").commit


def test_a_home_folder_and_the_root_are_refused(work: Path) -> None:
    with pytest.raises(CheckpointsUnavailableError):
        ShadowRepository(work.parent / "home", work, "s", user_home=work)
    with pytest.raises(CheckpointsUnavailableError):
        ShadowRepository(work.parent / "home", Path("/"), "s", user_home=work)


def test_the_whole_repository_is_saved_from_a_folder_inside_it(work: Path) -> None:
    git(work, "init", "-q")
    inside = work / "deep" / "down"
    inside.mkdir(parents=True)
    assert work_tree_of(inside, work.parent / "nobody") == work.resolve()
    assert work_tree_of(work.parent, work.parent / "nobody") == work.parent.resolve()


def test_a_damaged_index_is_made_anew(work: Path) -> None:
    put(work / "a", b"1")
    shadow = shadow_of(work)
    first = shadow.snapshot("x").commit
    index = next((work.parent / "home").rglob("index-s"))
    index.write_bytes(b"no index")
    put(work / "a", b"2")
    shadow.restore(shadow.snapshot("y").commit, first)
    assert (work / "a").read_bytes() == b"1"


def test_forgetting_a_session_leaves_the_others_whole(work: Path) -> None:
    put(work / "a", b"1")
    kept, gone = shadow_of(work, "kept"), shadow_of(work, "gone")
    first = kept.snapshot("x").commit
    put(work / "a", b"only in the other")
    gone.snapshot("y")
    folder = next((work.parent / "home").rglob("checkpoints"))
    for path in folder.rglob("objects/*/*"):
        os.utime(path, (0, 0))
    count = len(list(folder.rglob("objects/*/*")))
    checkpoints.forget_sessions(work.parent / "home", work, ["gone"], user_home=work.parent / "nobody")
    assert len(list(folder.rglob("objects/*/*"))) < count
    put(work / "a", b"later")
    kept.restore(kept.snapshot("z").commit, first)
    assert (work / "a").read_bytes() == b"1"
    assert shadow_of(work, "new").snapshot("n").commit


NO_GIT = """
import sys
from pathlib import Path
from pyagent.agent.checkpoints import ShadowRepository
from pyagent.agent.shadow_git import CheckpointsUnavailableError
try:
    ShadowRepository(Path(sys.argv[1]) / "home", Path(sys.argv[1]) / "work", "s", user_home=Path("/nobody"))
except CheckpointsUnavailableError as error:
    print(error.message)
"""


def test_without_a_git_binary_one_sentence_says_so(work: Path) -> None:
    environ = {"PATH": str(work), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", NO_GIT, str(work.parent)], env=environ, check=True, capture_output=True, text=True
    )
    assert done.stdout == "There is no git on this machine, so /rewind cannot bring files back.\n"
