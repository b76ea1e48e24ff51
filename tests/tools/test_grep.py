"""Grep: with ripgrep and without it, the same answers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyagent.tools.grep import GrepTool
from pyagent.tools.ripgrep import ripgrep_command, ripgrep_path, run_search
from tests.tools.support import Workbench, until

ENGINES: dict[str, Callable[[], str | None]] = {"ripgrep": ripgrep_path, "fallback": lambda: None}


@pytest.fixture(params=list(ENGINES.values()), ids=list(ENGINES))
def grep_bench(bench: Workbench, request: pytest.FixtureRequest) -> Workbench:
    bench.tools["Grep"] = GrepTool(request.param)
    bench.path("src/a.py", "import os\n\ndef foo():\n    return 1\n\ndef bar():\n    return foo()\n")
    bench.path("src/b.ts", "const foo = 1\n")
    bench.path("docs/c.md", "Foo\n-x marks\n")
    bench.path(".hidden/d.py", "foo\n")
    bench.path(".git/config", "foo\n")
    bench.path(".gitignore", "build/\n*.log\n!keep.log\n")
    bench.path("build/e.py", "foo\nfoo\n")
    bench.path("x.log", "foo\n")
    bench.path("keep.log", "other\n")
    bench.path("binary.bin", b"foo\0foo\n")
    for age, name in enumerate(("src/a.py", "src/b.ts", "docs/c.md", ".hidden/d.py")):
        os.utime(bench.root / name, (1_000_000 - age, 1_000_000 - age))
    return bench


ROWS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("newest file first", {"pattern": "foo"}, "src/a.py\nsrc/b.ts\n.hidden/d.py"),
    ("case ignored", {"pattern": "foo", "-i": True, "glob": "*.md"}, "docs/c.md"),
    ("a pattern that begins with a dash", {"pattern": "-x"}, "docs/c.md"),
    ("by type", {"pattern": "foo", "type": "ts"}, "src/b.ts"),
    ("by glob with braces", {"pattern": "foo", "glob": "*.{ts,tsx}"}, "src/b.ts"),
    ("by two globs", {"pattern": "foo", "glob": "*.ts, *.md", "-i": True}, "src/b.ts\ndocs/c.md"),
    ("in one folder", {"pattern": "foo", "path": "src"}, "src/a.py\nsrc/b.ts"),
    (
        "lines with numbers",
        {"pattern": "foo", "path": "src", "output_mode": "content"},
        "src/a.py:3:def foo():\nsrc/a.py:7:    return foo()\nsrc/b.ts:1:const foo = 1",
    ),
    ("lines without numbers", {"pattern": "const", "output_mode": "content", "-n": False}, "src/b.ts:const foo = 1"),
    (
        "lines around, with a gap",
        {"pattern": "def", "path": "src", "output_mode": "content", "-A": 1},
        "src/a.py:3:def foo():\nsrc/a.py-4-    return 1\n--\nsrc/a.py:6:def bar():\nsrc/a.py-7-    return foo()",
    ),
    (
        "-C is both sides",
        {"pattern": "return 1", "output_mode": "content", "-C": 1},
        "src/a.py-3-def foo():\nsrc/a.py:4:    return 1\nsrc/a.py-5-",
    ),
    ("one file by name", {"pattern": "foo", "path": "src/b.ts", "output_mode": "content"}, "src/b.ts:1:const foo = 1"),
    (
        "only the parts that match",
        {"pattern": r"fo+|ret\w*", "path": "src/a.py", "output_mode": "content", "-o": True},
        "src/a.py:3:foo\nsrc/a.py:4:return\nsrc/a.py:7:return\nsrc/a.py:7:foo",
    ),
    (
        "a binary file by name",
        {"pattern": "foo", "path": "binary.bin", "output_mode": "content"},
        "[The file is binary, and matches there are not shown.]",
    ),
    ("an ignored file by name", {"pattern": "foo", "path": "x.log", "output_mode": "content"}, "x.log:1:foo"),
    ("ignored files by a glob that names them", {"pattern": "foo", "glob": "*.log"}, "x.log"),
    (
        "counts with a total",
        {"pattern": "foo", "path": "src", "output_mode": "count"},
        "src/a.py:2\nsrc/b.ts:1\n[3 matches in 2 files.]",
    ),
    (
        "across lines",
        {"pattern": r"foo\(\):\n    return", "multiline": True, "output_mode": "content"},
        "src/a.py:3:def foo():\nsrc/a.py:4:    return 1",
    ),
    ("the dot crosses lines in multiline", {"pattern": "import.*bar", "multiline": True}, "src/a.py"),
    ("anchors are of the line", {"pattern": "^const.*1$"}, "src/b.ts"),
    ("a page", {"pattern": "foo", "head_limit": 1}, "src/a.py\n[1-1 of 3. Go on with offset=1.]"),
    ("the last page", {"pattern": "foo", "head_limit": 5, "offset": 2}, ".hidden/d.py\n[3-3 of 3.]"),
    ("past the last page", {"pattern": "foo", "offset": 9}, "[No entries at offset 9: there are 3.]"),
    (
        "a total covers what the page does not",
        {"pattern": "foo", "output_mode": "count", "head_limit": 1},
        ".hidden/d.py:1\n[1-1 of 3. Go on with offset=1.]\n[4 matches in 3 files.]",
    ),
    ("no match is said", {"pattern": "nowhere_at_all"}, "[No matches.]"),
)


@pytest.mark.parametrize(("fields", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
async def test_grep(grep_bench: Workbench, fields: dict[str, Any], expected: str) -> None:
    result = await grep_bench.call("Grep", **fields)
    lines = [line for line in result.text.split("\n") if "ignored files" not in line]
    assert "\n".join(lines) == expected
    assert not result.is_error


async def test_few_matches_count_those_in_ignored_files(grep_bench: Workbench) -> None:
    result = await grep_bench.call("Grep", pattern="const foo|^foo$", glob="*.{ts,py}")
    assert "[2 matches in ignored files not shown, such as in build/e.py; give that path to search it.]" in result.text
    given = await grep_bench.call("Grep", pattern="foo", path="build", output_mode="count")
    assert given.text.startswith("build/e.py:2")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"pattern": "foo("}, "regex parse error"),
        ({"pattern": "foo", "type": "nosuch"}, "unrecognized file type"),
        ({"pattern": "foo", "path": "missing"}, "does not exist"),
    ],
)
async def test_an_error_is_never_no_match(grep_bench: Workbench, fields: dict[str, Any], says: str) -> None:
    result = await grep_bench.call("Grep", **fields)
    assert result.is_error
    assert says in result.text


async def test_links_are_not_followed_out_of_the_root_nor_in_circles(grep_bench: Workbench, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("unique_needle\n")
    (grep_bench.root / "out").symlink_to(tmp_path)
    (grep_bench.root / "src/loop").symlink_to("..")
    assert (await grep_bench.call("Grep", pattern="unique_needle")).text.startswith("[No matches.]")


async def test_odd_names_and_bytes_come_through(grep_bench: Workbench) -> None:
    grep_bench.path(os.fsdecode(b"caf\xe9: 1\n.txt"), b"needle \xff\n")
    result = await grep_bench.call("Grep", pattern="needle", output_mode="content")
    assert result.text == "caf\\xe9: 1\\x0a.txt:1:needle \\xff"


async def test_a_minified_line_is_cut(bench: Workbench) -> None:
    bench.path("min.js", "x" * 3_000_000 + "needle" + "y" * 3_000_000)
    result = await bench.call("Grep", pattern="needle", output_mode="content")
    assert len(result.text) < 1_000


async def test_what_did_not_fit_is_said(bench: Workbench) -> None:
    program = ripgrep_path()
    assert program is not None
    bench.path("big.txt", "needle and some more text\n" * 200_000)
    run = await run_search(ripgrep_command(program, ["needle", "."]), cwd=bench.root, timeout_s=60, max_bytes=10_000)
    assert run.is_cut
    assert run.output.endswith(b"\n")
    assert run.error == ""


async def test_a_cancel_stops_the_search(bench: Workbench) -> None:
    os.mkfifo(bench.root / "pipe")
    program = ripgrep_path()
    assert program is not None
    # A named pipe given by name is waited for; nothing else lasts as surely.
    search = asyncio.create_task(
        run_search(ripgrep_command(program, ["needle", "pipe"]), cwd=bench.root, timeout_s=1_000, max_bytes=10_000)
    )
    await until(_children)
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    assert not _children()


def _children() -> list[str]:
    pid = os.getpid()
    return [name for name in Path(f"/proc/{pid}/task/{pid}/children").read_text().split() if _is_ripgrep(name)]


def _is_ripgrep(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "rg\n"
    except OSError:
        return False


def test_searching_outside_is_asked_about(bench: Workbench) -> None:
    assert bench.ask("Grep", pattern="x") is None
    assert bench.ask("Grep", pattern="x", path="/etc") is not None
    assert bench.ask("Glob", pattern="/etc/*") is not None
    assert bench.ask("Glob", pattern="../*") is not None


async def test_a_message_that_comes_in_pieces_is_given_whole(tmp_path: Path) -> None:
    """Longer than a pipe holds, so it cannot come in one."""
    command = ["sh", "-c", "printf '%0300000d' 0 >&2; exit 2"]
    run = await run_search(command, cwd=tmp_path, timeout_s=60, max_bytes=1000)
    assert run.error == "0" * 300_000
