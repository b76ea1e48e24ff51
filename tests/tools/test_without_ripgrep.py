"""Searching without ripgrep finds what ripgrep finds, in the same words, or says that it cannot."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from pyagent.tools.grep import GrepTool
from pyagent.tools.ripgrep import ripgrep_path, run_search
from pyagent.tools.without_ripgrep.file_types import type_globs
from pyagent.tools.without_ripgrep.query import SearchQuery
from pyagent.tools.without_ripgrep.worker import worker_command
from tests.tools.engines import by_ripgrep, without_ripgrep, without_ripgrep_within
from tests.tools.support import Workbench

pytestmark = pytest.mark.skipif(ripgrep_path() is None, reason="nothing to compare with")

CORPUS: dict[str, bytes] = {
    "a.txt": b"foo foo\nbar\n\nfoo\nFOO Bar k\nline five\n",
    "crlf.txt": b"foo\r\nbar\r\n\r\nfoo bar\r\n",
    "no-newline.txt": b"foo\nbar",
    "empty.txt": b"",
    "newlines.txt": b"\n\n\n",
    "wide.txt": (
        "café naïve straße STRASSE\n\u212a elvin ſ long\ne\u0301 combining\n١٢٣ digits ½ ²\n"
        "\x1c sep\u00a0nbsp\u2028ls\nİ ı i I\nΣίσυφος ς\n日本語 foo\n😀👍🏽 foo\n"
    ).encode(),
    "latin.txt": b"caf\xe9 foo\nfoo \xff\xfe bar\n\xc3\x28 foo\nplain foo\n",
    "utf16le.txt": b"\xff\xfe" + "foo é\r\nbar foo\n".encode("utf-16-le"),
    "utf16be.txt": b"\xfe\xff" + "foo é\nbar\n".encode("utf-16-be"),
    "bom.txt": b"\xef\xbb\xbffoo\nbar\n",
    "long.txt": b"x" * 600 + b" foo " + b"y" * 600 + b"foo\n" + b"a" * 497 + b"foo\n" + "é".encode() * 600 + b"foo\n",
    "long-marks.txt": "e\u0301".encode() * 600 + b"foo\n",
    "binary": b"foo\nfoo\n\0bar\nfoo\n",
    "binary-late": (b"foo bar" * 11 + b"\n") * 900 + b"\0\nfoo\n",
    "binary-inside": (b"foo bar" * 11 + b"\n") * 900 + b"ab\0foo\nfoo\n",
    "code.py": b"import os\ndef f(x):\n    return x{1}\n",
}

PATTERNS = (
    "", "foo", "^foo", "foo$", "^$", "bar$", "-x", "--", "o+", r"\bfoo\b", r"fo{2}", "a|", "|", r"\w+", r"\W", r"\s",
    r"\d", "é", "caf.", "[^a-z]", r"[\w--[a-m]]", "[a-z&&[^o]]", "[a~~[ab]]", "[[:alpha:]]+", "[[:^space:]]", "[]a]",
    r"\p{Lu}", r"\PL", r"\p{gc=Nd}", r"\x{1F600}", r"\u00e9", "(?i)straße", "(?i)k", "(?i)ſ", "(?i)i", "ς", "a*+",
    r"\p{Greek}", "fo**", "(?x) f o o # end\n", "(?U)fo+", "(?s).", r"\<f", r"o\>", r"\b{start}b", r"\Afoo", r"foo\z",
    "a{", "a{,2}", "x{3,2}", "(", ")", "a)|(b", "*", "[", "[z-a]", "\\", r"\q", r"\1", r"(a)\1", "(?=a)", "(?<!a)b",
    r"\Z", r"\n", "foo\nbar", r"foo\r?$", r"\x00", "(?P<n>o)(?P<n>o)", "(?z)", "{", "}", "]", r"\-\#\&", "(?i", "[a",
    r".\B", r"\B.", r".\b{start-half}", r"\b{end-half}.", r".\b",
    r"[\b]", r"foo\s+bar", r"(?m:^)bar", "(?-m)^foo", "foo.*bar", r"[\s\S]", r"o\nb", "x{1}", "🏽", "[é-ü]", "日本",
)  # fmt: skip
KNOWN_HERE_ONLY = (r"\p{Greek}",)
"""Refused in words without ripgrep, which finds them."""
REFUSED_WITH_PARTS = (r"\Afoo", r"foo\z", "(?-m)^foo")
"""ripgrep shows the whole line for these, or nothing, where only the parts that match are asked for."""

PATIENCE_S = 3.0
"""A pattern that tries every stretch of a text takes minutes on some, where ripgrep takes none. Such are not compared:
the program ends a search that takes for ever with its time."""

_SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("corpus")
    for name, data in CORPUS.items():
        (base / name).write_bytes(data)
    return base


def assert_same(query: SearchQuery, base: Path) -> None:
    assert without_ripgrep(query, base) == by_ripgrep(query, base), query


@pytest.mark.parametrize("pattern", [p for p in PATTERNS if p not in KNOWN_HERE_ONLY])
def test_a_pattern_means_the_same(corpus: Path, pattern: str) -> None:
    if pattern not in REFUSED_WITH_PARTS:
        assert_same(SearchQuery(pattern, "content", is_only_matching=True), corpus)
    for query in (
        SearchQuery(pattern, "content"),
        SearchQuery(pattern, "content", before=1, after=2, is_case_ignored=True),
        SearchQuery(pattern, "content", is_multiline=True, after=1),
        SearchQuery(pattern, "count"),
        SearchQuery(pattern, "files_with_matches", is_multiline=True),
    ):
        assert_same(query, corpus)


@pytest.mark.parametrize("pattern", KNOWN_HERE_ONLY)
def test_what_only_ripgrep_knows_is_refused_and_not_passed_over(corpus: Path, pattern: str) -> None:
    assert by_ripgrep(SearchQuery(pattern, "count"), corpus).error == ""
    assert without_ripgrep(SearchQuery(pattern, "count"), corpus).error != ""


@pytest.mark.parametrize("pattern", REFUSED_WITH_PARTS)
def test_the_ends_of_the_text_are_refused_where_only_parts_are_asked_for(corpus: Path, pattern: str) -> None:
    assert without_ripgrep(SearchQuery(pattern, "content", is_only_matching=True), corpus).error != ""


@pytest.mark.parametrize("name", CORPUS)
def test_a_file_asked_for_by_name_is_searched_alike(corpus: Path, name: str) -> None:
    for mode in ("content", "count", "files_with_matches"):
        for is_multiline in (False, True):
            assert_same(SearchQuery("foo", mode, is_multiline=is_multiline, only=name, after=1), corpus)


def test_there_is_every_type_ripgrep_has() -> None:
    program = ripgrep_path()
    assert program is not None
    if "ripgrep 15.2" not in subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout:
        pytest.skip("the table is that of ripgrep 15.2")
    listed = subprocess.run([program, "--type-list"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert {name: ", ".join(globs) for name, globs in type_globs().items()} == dict(
        line.split(": ", 1) for line in listed
    )


_ATOMS = st.sampled_from(
    ["foo", "o", ".", r"\w", r"\d", r"\s", r"\W", r"\b", r"\B", "^", "$", "[a-f]", "[^a]", "é", "ß", "k", "ſ", "İ", "x"]  # noqa: RUF005
    + [r"\p{L}", "[[:alpha:]]", "[a-z&&[^o]]", r"[\s\S]", r"\r", "(?i:foo)", "(?s:.)", r"\<", "{", "[", "(", "\\", "日"]
)
_COUNTS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{0,2}", "*?", "**", "{,2}", "{2,1}"])
_PIECES = st.lists(st.tuples(_ATOMS, _COUNTS).map("".join), min_size=1, max_size=3).map("".join)
_REGEXES = st.one_of(
    _PIECES, st.tuples(_PIECES, _PIECES).map("|".join), st.tuples(_PIECES, _PIECES).map("({0[0]}){0[1]}".format)
)


@settings(max_examples=300, deadline=None, suppress_health_check=_SLOW)
@given(_REGEXES, st.booleans(), st.booleans(), st.sampled_from(["content", "count"]), st.integers(0, 2), st.booleans())
@example("foo.", False, True, "count", 0, False)
@example("bar$", False, True, "count", 0, False)
@example("$", False, False, "content", 0, True)
@example("a|$", False, False, "content", 0, True)
def test_any_pattern_finds_the_same(
    corpus: Path, pattern: str, is_case_ignored: bool, is_multiline: bool, mode: str, around: int, is_only: bool
) -> None:
    query = SearchQuery(pattern, mode, is_case_ignored, is_multiline, is_only, around, around, globs=("!long*",))
    ours = without_ripgrep_within(query, corpus, PATIENCE_S)
    assume(ours is not None and "empty matches" not in ours.error)
    assert ours == by_ripgrep(query, corpus), query


_NAMES = [
    "a",
    "b",
    "ab",
    "a.py",
    "b.txt",
    ".h",
    "x.log",
    "build",
    "src",
    "[a]",
    "a b",
    "é",
    ".git",
    "{a}",
    "a.rs",
    "Makefile",
]
_SEGMENTS = st.lists(
    st.sampled_from(
        [*"ab*?x[]{},", "**", "[!a]", "{a,b}", "{a,}", "é", ".py", "\\a", "\\*", "{a,{b,x}}", "build", "[b-a]"]
    ),
    min_size=1,
    max_size=3,
).map("".join)
_GLOBS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "", "!", "/", "!/"]),
    st.lists(st.one_of(_SEGMENTS, st.sampled_from(["**", "*", *_NAMES])), min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/", "/**", " "]),
)
_FOLDERS = st.lists(st.sampled_from(_NAMES), max_size=2).map("/".join)
_TREES = st.dictionaries(
    st.tuples(_FOLDERS, st.sampled_from(_NAMES)).map("/".join), st.just("x\n"), min_size=2, max_size=12
)
_IGNORE_FILES = st.dictionaries(
    st.tuples(_FOLDERS, st.sampled_from([".gitignore", ".ignore", ".rgignore", ".git/info/exclude"])).map("/".join),
    st.lists(_GLOBS, min_size=1, max_size=4).map("\n".join),
    max_size=3,
)


@settings(max_examples=60, deadline=None, suppress_health_check=_SLOW)
@given(
    _TREES,
    _IGNORE_FILES,
    st.lists(_GLOBS, max_size=2).map(tuple),
    st.sampled_from(["", "", "py", "rust", "make", "all", "no-such-type"]),
    st.booleans(),
)
def test_any_tree_is_walked_alike(
    tmp_path_factory: pytest.TempPathFactory,
    tree: dict[str, str],
    ignore_files: dict[str, str],
    globs: tuple[str, ...],
    type_name: str,
    is_ignored_shown: bool,
) -> None:
    base = tmp_path_factory.mktemp("tree")
    for name, text in (*tree.items(), *ignore_files.items()):
        path = base / name.lstrip("/")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        except OSError:
            continue
    for start in (base, *(folder for folder in base.iterdir() if folder.is_dir())):
        query = SearchQuery(
            "x", "files_with_matches", globs=globs, type_name=type_name, is_ignored_shown=is_ignored_shown
        )
        assert_same(query, start)


def test_links_are_not_followed_and_a_personal_ignore_file_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "home/.config/git").mkdir(parents=True)
    (tmp_path / "home/.config/git/ignore").write_text("*.mine\n")
    tree = tmp_path / "tree"
    (tree / "real").mkdir(parents=True)
    for name in ("a", "b.mine", "real/c"):
        (tree / name).write_text("x\n")
    os.symlink("real", tree / "link")
    os.symlink("a", tree / "also-a")
    query = SearchQuery("x", "files_with_matches")
    assert_same(query, tree)
    assert set(without_ripgrep(query, tree).found) == {b"./a", b"./real/c"}


def test_a_named_ignore_file_of_the_person_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text('[core]\n\texcludesFile = "~/mine"\n')
    (tmp_path / "mine").write_text("b\n")
    (tmp_path / "tree").mkdir()
    for name in "ab":
        (tmp_path / "tree" / name).write_text("x\n")
    assert_same(SearchQuery("x", "files_with_matches"), tmp_path / "tree")


async def test_a_pattern_that_takes_for_ever_is_ended_with_its_time(bench: Workbench) -> None:
    bench.path("a.txt", "a" * 60 + "!\n")
    command = worker_command(SearchQuery("(a*)*$b", "count"))
    run = await run_search(command, cwd=bench.root, timeout_s=2, max_bytes=1_000)
    assert run.is_cut


async def test_a_module_in_the_folder_searched_is_not_run(bench: Workbench) -> None:
    bench.tools["Grep"] = GrepTool(lambda: None)
    bench.path("re.py", "raise SystemExit('run')\n")
    bench.path("pyagent/__init__.py", "raise SystemExit('run')\n")
    result = await bench.call("Grep", pattern="SystemExit", output_mode="count")
    assert "2 matches in 2 files" in str(result.content)
