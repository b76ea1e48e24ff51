"""Glob: a pattern → files, newest first; with ripgrep and without it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pyagent.tools.glob import GlobTool
from pyagent.tools.glob_pattern import GlobPattern, PatternError, expand_braces
from pyagent.tools.ripgrep import ripgrep_command, ripgrep_path, run_search
from pyagent.tools.without_ripgrep.listing import walk_files
from tests.tools.support import Workbench

FILES = (
    "a.py", "b.txt", "src/a.py", "src/deep/b.py", "src/deep/c.ts", "src/[id]/page.tsx", ".env", ".github/ci.yml",
    ".github/deep/x.yml", "build/out.py", "node_modules/x/index.js", "apps/one/x.json", "apps/two/x.json", ".git/HEAD",
)  # fmt: skip

ENGINES: dict[str, Callable[[], str | None]] = {"ripgrep": ripgrep_path, "fallback": lambda: None}


@pytest.fixture(params=list(ENGINES.values()), ids=list(ENGINES))
def glob_bench(bench: Workbench, request: pytest.FixtureRequest) -> Workbench:
    bench.tools["Glob"] = GlobTool(request.param)
    for age, name in enumerate(FILES):
        os.utime(bench.path(name, "x"), (1_000_000 - age, 1_000_000 - age))
    bench.path(".gitignore", "build/\nnode_modules\n")
    return bench


ROWS = (
    ("files of this folder", "*.py", "a.py"),
    ("in all folders, newest first", "**/*.py", "a.py src/a.py src/deep/b.py"),
    ("in one folder", "src/*.py", "src/a.py"),
    ("below one folder", "src/**", "src/a.py src/deep/b.py src/deep/c.ts src/[id]/page.tsx"),
    ("** in the middle", "src/**/b.py", "src/deep/b.py"),
    ("** may be nothing", "src/**/a.py", "src/a.py"),
    ("braces", "**/*.{ts,tsx}", "src/deep/c.ts src/[id]/page.tsx"),
    ("braces over folders", "{src,apps/one}/*.{py,json}", "src/a.py apps/one/x.json"),
    ("a class", "[ab].*", "a.py b.txt"),
    ("a negated class", "[!a].*", "b.txt"),
    ("a question mark", "?.txt", "b.txt"),
    ("brackets can be escaped", r"src/\[id\]/*", "src/[id]/page.tsx"),
    ("one star is one folder", "apps/*/x.json", "apps/one/x.json apps/two/x.json"),
    ("hidden when named", ".env", ".env"),
    ("hidden by a dot and a star", ".e*", ".env"),
    ("a hidden folder when named", ".github/**", ".github/ci.yml .github/deep/x.yml"),
    ("an ignored folder when named", "node_modules/**/*.js", "node_modules/x/index.js"),
    ("./ is nothing", "./a.py", "a.py"),
)


@pytest.mark.parametrize(("pattern", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
async def test_glob(glob_bench: Workbench, pattern: str, expected: str) -> None:
    result = await glob_bench.call("Glob", pattern=pattern)
    assert result.text.split("\n") == expected.split(" ")


async def test_an_absolute_pattern_and_a_path(glob_bench: Workbench) -> None:
    absolute = await glob_bench.call("Glob", pattern=f"{glob_bench.root}/src/*.py")
    assert absolute.text == "src/a.py"
    assert (await glob_bench.call("Glob", pattern="*.py", path="src")).text == "src/a.py"
    glob_bench.cwd = glob_bench.root / "src"
    assert (await glob_bench.call("Glob", pattern="../b.*")).text == str(glob_bench.root / "b.txt")


async def test_only_ignored_files_match_is_said(glob_bench: Workbench) -> None:
    result = await glob_bench.call("Glob", pattern="**/out.py")
    assert result.text.startswith("[No files found.")
    assert "[1 files in ignored folders match, such as build/out.py; name their folder" in result.text


async def test_nothing_found_is_no_error_and_a_wrong_folder_is(glob_bench: Workbench) -> None:
    assert not (await glob_bench.call("Glob", pattern="*.zig")).is_error
    assert not (await glob_bench.call("Glob", pattern="no/such/*.zig")).is_error
    assert (await glob_bench.call("Glob", pattern="*", path="missing")).is_error
    assert (await glob_bench.call("Glob", pattern="*", path="a.py")).is_error
    assert (await glob_bench.call("Glob", pattern="[z-a]*")).is_error
    assert (await glob_bench.call("Glob", pattern="{a,b}" * 9)).is_error


async def test_a_hundred_at_most_the_newest(glob_bench: Workbench) -> None:
    for number in range(150):
        os.utime(glob_bench.path(f"many/{number:03}.md", "x"), (2_000_000 + number, 2_000_000 + number))
    result = await glob_bench.call("Glob", pattern="many/*")
    lines = result.text.split("\n")
    assert lines[:2] == ["many/149.md", "many/148.md"]
    assert lines[100] == "[The newest 100 of 150 files. Narrow the pattern to see others.]"
    assert len(lines) == 101


async def test_circles_of_links_end_and_links_lead_nowhere(glob_bench: Workbench, tmp_path: Path) -> None:
    (tmp_path / "outside.zig").write_text("x")
    (glob_bench.root / "apps/up").symlink_to("..")
    (glob_bench.root / "out").symlink_to(tmp_path)
    result = await glob_bench.call("Glob", pattern="**/*.json")
    assert result.text == "apps/one/x.json\napps/two/x.json"
    assert "No files found" in (await glob_bench.call("Glob", pattern="**/outside.zig")).text
    assert "a link leads out" in (await glob_bench.call("Glob", pattern="out/*.zig")).text


@pytest.mark.parametrize(
    ("pattern", "folder", "depth"),
    [
        ("apps/*/x.json", "apps", 3),
        ("**/x", "", None),
        ("src/deep/*.py", "src/deep", 3),
        ("{src/a,src/b}/x/*.py", "src", 4),
        ("a.py", "", 1),
        ("src/**/x.py", "src", None),
    ],
)
def test_only_what_can_match_is_walked(pattern: str, folder: str, depth: int | None) -> None:
    assert (GlobPattern(pattern).fixed_folder, GlobPattern(pattern).depth) == (folder, depth)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a{b,c{d,e}}f", ["abf", "acdf", "acef"]),
        ("{a,b}{1,2}", ["a1", "b1", "a2", "b2"]),
        ("{a}", ["{a}"]),
        ("a{b", ["a{b"]),
        ("{,x}a", ["a", "xa"]),
    ],
)
def test_braces_are_multiplied_out(pattern: str, expected: list[str]) -> None:
    assert sorted(expand_braces(pattern)) == sorted(expected)


def test_too_many_braces_are_refused() -> None:
    with pytest.raises(PatternError):
        expand_braces("{a,b,c,d,e,f}" * 8)


async def test_a_walk_that_runs_out_of_time_gives_what_it_has(glob_bench: Workbench) -> None:
    names, is_cut = await walk_files(glob_bench.root, False, False, timeout_s=-1)
    assert len(names) == 1
    assert is_cut


async def test_a_listing_that_is_too_long_ends_at_a_whole_name(glob_bench: Workbench) -> None:
    program = ripgrep_path()
    assert program is not None
    for number in range(3_000):
        glob_bench.path(f"many/some-longer-name-{number:04}.md", "")
    run = await run_search(
        ripgrep_command(program, ["--files", "--null"]),
        cwd=glob_bench.root,
        timeout_s=60,
        max_bytes=1_000,
        separator=b"\0",
    )
    assert run.is_cut
    assert run.output.endswith(b"\0")
