"""Edit: file, what the model gives → file afterwards, or why not."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyagent.tools.patch import structured_patch
from pyagent.tools.tool import RefusedError
from tests.tools.support import Workbench


@dataclass(frozen=True)
class Row:
    situation: str
    before: bytes
    old: str
    new: str
    after: bytes | None
    """None: refused, and the file is as before."""
    says: str = ""
    replace_all: bool = False


ROWS = (
    Row("one match is replaced", b"a = 1\nb = 2\n", "a = 1", "a = 3", b"a = 3\nb = 2\n"),
    Row("deleting a line", b"a\nb\nc\n", "b\n", "", b"a\nc\n"),
    Row("two matches are refused with their lines", b"x\ny\nx\n", "x", "z", None, "2 times in the file, at lines 1, 3"),
    Row("overlapping matches are two", b"aaa\n", "aa", "b", None, "2 times"),
    Row("replace_all takes every one", b"x y x\n", "x", "z", b"z y z\n", "2 places", replace_all=True),
    Row(
        "no match shows the nearest place",
        b"def load(path):\n    return path\n",
        "def load(file):\n    return path",
        "",
        None,
        "1\tdef load(path):",
    ),
    Row(
        "line numbers of Read are recognised",
        b"a\nb\n",
        "     1\ta\n     2\tb",
        "c",
        None,
        "Leave out the line numbers",
    ),
    Row("old and new the same", b"a\n", "a", "a", None, "the same"),
    Row("no final newline stays none", b"a\nb", "b", "c", b"a\nc"),
    Row("a UTF-8 mark stays", b"\xef\xbb\xbfa\r\nb \xc3\xa9\r\n", "a", "x", b"\xef\xbb\xbfx\r\nb \xc3\xa9\r\n"),
    Row("CRLF: new lines get it too", b"a\r\nb\r\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\r\n"),
    Row("CRLF: given as CRLF", b"a\r\nb\r\n", "a\r\nb", "a\r\nx", b"a\r\nx\r\n"),
    Row("CRLF: a line is removed with its end", b"a\r\nb\r\nc\r\n", "b\n", "", b"a\r\nc\r\n"),
    Row("mixed line ends: each place its own", b"a\r\nb\nc\n", "c", "c\nd", b"a\r\nb\nc\nd\n"),
    Row("mixed line ends: shared lines are not touched", b"a\r\nb\nc\r\n", "a\nb\nc", "a\nb\nX", b"a\r\nb\nX\r\n"),
    Row("lone CR stays", b"a\rb\nc\n", "c", "d", b"a\rb\nd\n"),
    Row(
        "Latin-1 elsewhere stays byte for byte",
        b"const x = 1;\n// caf\xe9\n",
        "x = 1",
        "x = 2",
        b"const x = 2;\n// caf\xe9\n",
    ),
    Row("Latin-1 is written as Latin-1", b"// caf\xe9\n", "café", "cafés à", b"// caf\xe9s \xe0\n"),
    Row("a character the encoding lacks is refused", b"// caf\xe9\n", "café", "→", None, "U+2192"),
    Row(
        "Shift-JIS stays byte for byte",
        "x = 1 # 日本".encode("shift_jis"),
        "x = 1",
        "x = 2",
        "x = 2 # 日本".encode("shift_jis"),
    ),
    Row("GBK stays byte for byte", "a // 中文".encode("gbk"), "a ", "b ", "b // 中文".encode("gbk")),
    Row("a stray byte in UTF-8 stays", "ä ö ü\n".encode() + b"\xff x\n", "x", "y", "ä ö ü\n".encode() + b"\xff y\n"),
    Row("UTF-16 stays UTF-16", "a é\r\n".encode("utf-16"), "a", "b", "b é\r\n".encode("utf-16")),
    Row("curly quotes elsewhere stay", "it’s\nx = 1\n".encode(), "x = 1", "x = 'a'", "it’s\nx = 'a'\n".encode()),
    Row("curly quotes are not matched by straight ones", "say ‘hi’\n".encode(), "say 'hi'", "say 'ho'", None, "U+2018"),
    Row(
        "Go: spaces for tabs match, tabs are kept",
        b"func f() {\n\tx := 1\n}\n",
        "    x := 1",
        "    x := 2\n    if x {\n        y()\n    }",
        b"func f() {\n\tx := 2\n\tif x {\n\t\ty()\n\t}\n}\n",
    ),
    Row(
        "tabs for spaces match, spaces are kept",
        b"if a:\n    b()\n",
        "if a:\n\tb()",
        "if a:\n\tc()\n\td()",
        b"if a:\n    c()\n    d()\n",
    ),
    Row(
        "too little indentation overall is moved",
        b"class A:\n    def f(self):\n        pass\n",
        "def f(self):\n    pass\n",
        "def g(self):\n    return 1\n",
        b"class A:\n    def g(self):\n        return 1\n",
    ),
    Row(
        "a tolerant match must be unique", b"\tx\n\ty\n  x\n  y\n", "    x\n    y", "z", None, "2 times, at lines 1, 3"
    ),
    Row("trailing blanks are tolerated", b"a  \nb\n", "a\nb\n", "a\nc\n", b"a  \nc\n"),
    Row("a dollar and a backslash are plain text", b"a\n", "a", r"\1 $0 \g<0>", b"\\1 $0 \\g<0>\n"),
    Row("a regular expression is plain text", b"f(x).*\n", "(x).*", "y", b"fy\n"),
    Row("binary is refused", b"\0\1\2", "a", "b", None, "binary"),
    Row("an emoji pair is scrubbed into one character", b"a\n", "a", "\ud83c\udf78", "🍸\n".encode()),
)


async def _read_behind(bench: Workbench, path: Path) -> None:
    result = await bench.call("Read", file_path=str(path))
    if result.is_error:
        return
    assert result.files_seen


@pytest.mark.parametrize("row", ROWS, ids=[row.situation for row in ROWS])
async def test_edit(bench: Workbench, row: Row) -> None:
    path = bench.path("file.txt", row.before)
    await _read_behind(bench, path)
    result = await bench.call(
        "Edit", file_path="file.txt", old_string=row.old, new_string=row.new, replace_all=row.replace_all
    )
    assert path.read_bytes() == (row.before if row.after is None else row.after), result.text
    assert result.is_error == (row.after is None)
    assert row.says in result.text
    assert os.listdir(bench.root) == ["file.txt"]


async def test_a_file_that_was_not_read_is_refused(bench: Workbench) -> None:
    bench.path("a.txt", "a\n")
    result = await bench.call("Edit", file_path="a.txt", old_string="a", new_string="b")
    assert result.is_error
    assert "has not been read" in result.text


async def test_a_touch_is_no_change(bench: Workbench) -> None:
    path = bench.path("a.txt", "a\n")
    await bench.call("Read", file_path="a.txt")
    os.utime(path, (2_000_000_000, 2_000_000_000))
    result = await bench.call("Edit", file_path="a.txt", old_string="a", new_string="b")
    assert result.text == f"Edited {path} at line 1."


async def test_a_foreign_change_elsewhere_passes_and_is_said(bench: Workbench) -> None:
    path = bench.path("a.txt", "a\nb\n")
    await bench.call("Read", file_path="a.txt")
    path.write_text("a\nb\nforeign\n")
    result = await bench.call("Edit", file_path="a.txt", old_string="a", new_string="x")
    assert path.read_text() == "x\nb\nforeign\n"
    assert "changed by somebody else" in result.text
    assert (await bench.call("Write", file_path="a.txt", content="")).is_error


@pytest.mark.parametrize(
    "fields", [{"old_string": "b"}, {"old_string": "a", "replace_all": True}, {"old_string": " c"}]
)
async def test_a_foreign_change_that_leaves_doubt_is_refused(bench: Workbench, fields: dict[str, object]) -> None:
    path = bench.path("a.txt", "a\nb\n\tc\n")
    await bench.call("Read", file_path="a.txt")
    path.write_text("a\na\n\tc\n")
    result = await bench.call("Edit", file_path="a.txt", new_string="x", **fields)
    assert result.is_error
    assert "has changed since it was read" in result.text
    assert path.read_text() == "a\na\n\tc\n"


async def test_a_read_that_was_cleared_still_allows_an_edit(bench: Workbench) -> None:
    path = bench.path("a.txt", "a\n")
    await bench.call("Read", file_path="a.txt")
    bench.files.clear_results()
    await bench.call("Edit", file_path="a.txt", old_string="a", new_string="b")
    assert path.read_text() == "b\n"


async def test_edits_follow_each_other_without_a_new_read(bench: Workbench) -> None:
    path = bench.path("a.txt", "a b c\n")
    await bench.call("Read", file_path="a.txt")
    for old, new in (("a", "1"), ("b", "2"), ("c", "3")):
        result = await bench.call("Edit", file_path="a.txt", old_string=old, new_string=new)
        assert result.files_seen[0].sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert path.read_text() == "1 2 3\n"


async def test_an_empty_old_string_creates_a_file_and_its_folders(bench: Workbench) -> None:
    result = await bench.call("Edit", file_path="new/deep/a.txt", old_string="", new_string="hi\n")
    assert (bench.root / "new/deep/a.txt").read_text() == "hi\n"
    assert result.display["is_new"]


async def test_an_empty_old_string_never_replaces_a_file(bench: Workbench) -> None:
    path = bench.path("a.txt", "a\n")
    await bench.call("Read", file_path="a.txt")
    assert (await bench.call("Edit", file_path="a.txt", old_string="", new_string="x")).is_error
    assert path.read_text() == "a\n"


async def test_mode_and_attributes_are_kept(bench: Workbench) -> None:
    for mode in (0o755, 0o640, 0o600):
        path = bench.path(f"{mode:o}.sh", "a\n")
        path.chmod(mode)
        has_attribute = True
        try:
            os.setxattr(path, "user.note", b"kept")
        except (OSError, AttributeError):
            has_attribute = False
        await bench.call("Read", file_path=str(path))
        await bench.call("Edit", file_path=str(path), old_string="a", new_string="b")
        assert path.read_text() == "b\n"
        assert stat.S_IMODE(path.stat().st_mode) == mode
        if has_attribute:
            assert os.getxattr(path, "user.note") == b"kept"


async def test_the_target_of_a_link_is_written_and_the_link_stays(bench: Workbench) -> None:
    path = bench.path("deep/real.txt", "a\n")
    link = bench.root / "link.txt"
    link.symlink_to("deep/real.txt")
    await bench.call("Read", file_path="link.txt")
    await bench.call("Edit", file_path="link.txt", old_string="a", new_string="b")
    assert link.is_symlink()
    assert path.read_text() == "b\n"


async def test_hard_links_stay_one_file(bench: Workbench) -> None:
    path = bench.path("a.txt", "a long line\n")
    os.link(path, bench.root / "b.txt")
    await bench.call("Read", file_path="a.txt")
    await bench.call("Edit", file_path="a.txt", old_string="a long", new_string="b")
    assert (bench.root / "b.txt").read_text() == "b line\n"
    assert path.stat().st_ino == (bench.root / "b.txt").stat().st_ino
    assert sorted(os.listdir(bench.root)) == ["a.txt", "b.txt"]


async def test_the_patch_and_its_summary_are_for_the_screen(bench: Workbench) -> None:
    bench.path("a.txt", "".join(f"{n}\n" for n in range(1, 21)))
    await bench.call("Read", file_path="a.txt")
    result = await bench.call("Edit", file_path="a.txt", old_string="10\n", new_string="ten\nTEN\n")
    assert result.display["summary"] == "+2 -1"
    (hunk,) = result.display["patch"]
    assert (hunk["oldStart"], hunk["oldLines"], hunk["newStart"], hunk["newLines"]) == (7, 7, 7, 8)
    assert hunk["lines"] == [" 7", " 8", " 9", "-10", "+ten", "+TEN", " 11", " 12", " 13"]


async def test_a_notebook_is_left_to_its_own_tool(bench: Workbench) -> None:
    bench.path("a.ipynb", '{"cells": []}')
    result = await bench.call("Edit", file_path="a.ipynb", old_string="a", new_string="b")
    assert "NotebookEdit" in result.text


async def test_the_dialog_shows_the_whole_difference(bench: Workbench) -> None:
    bench.path("a.txt", "a\nb\n")
    await bench.call("Read", file_path="a.txt")
    question = bench.ask("Edit", file_path="a.txt", old_string="b", new_string="c")
    assert question is not None
    assert (question.old_text, question.new_text) == ("a\nb\n", "a\nc\n")
    assert question.subject == str(bench.root / "a.txt")
    assert question.session_rule == f"Edit(/{bench.root}/**)"


async def test_a_hopeless_edit_asks_nobody(bench: Workbench) -> None:
    bench.path("a.txt", "a\n")
    with pytest.raises(RefusedError, match="has not been read yet"):
        bench.ask("Edit", file_path="a.txt", old_string="a", new_string="b")


@pytest.mark.parametrize("name", [".git/hooks/pre-commit", ".pyagent/settings.json", ".bashrc", "sub/.envrc", ".git"])
def test_protected_paths_say_why_and_offer_no_rule(bench: Workbench, name: str) -> None:
    question = bench.ask("Write", file_path=name, content="x")
    assert question is not None
    assert "decides what other programs run" in question.reason
    assert question.session_rule == ""


def test_a_link_out_of_the_project_is_seen_through(bench: Workbench, tmp_path: Path) -> None:
    (bench.root / "out").symlink_to(tmp_path)
    question = bench.ask("Write", file_path="out/x.txt", content="x")
    assert question is not None
    assert question.subject == str(tmp_path / "x.txt")
    assert "outside" in question.reason
    assert question.session_rule == f"Edit(/{tmp_path / 'x.txt'})"


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
def test_a_patch_leads_from_the_old_text_to_the_new(old: list[str], new: list[str]) -> None:
    hunks = structured_patch("".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new))
    result, position = [], 0
    for hunk in hunks:
        start = hunk["oldStart"] - 1 if hunk["oldLines"] else hunk["oldStart"]
        result += old[position:start]
        assert len(result) == (hunk["newStart"] - 1 if hunk["newLines"] else hunk["newStart"])
        assert [line[1:] for line in hunk["lines"] if line[0] in " -"] == old[start : start + hunk["oldLines"]]
        result += [line[1:] for line in hunk["lines"] if line[0] in " +"]
        position = start + hunk["oldLines"]
    assert result + old[position:] == new
    assert (not hunks) == (old == new)
