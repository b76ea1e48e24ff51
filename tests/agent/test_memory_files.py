"""Which memory files are loaded, in which order, and what keeps a stranger's from reaching further."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyagent.agent.memory_files import (
    MAX_FILE_CHARS,
    MAX_TOTAL_CHARS,
    LoadedMemory,
    imports_in,
    load_memory_files,
    without_comments,
)


class Place:
    """A user's home, pyagent's folder and a project, all in a temporary folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.user, self.project = root, root / "user", root / "work" / "project"
        self.home = self.user / ".pyagent"
        for folder in (self.home, self.project):
            folder.mkdir(parents=True)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def load(self, cwd: Path | None = None, *, is_trusted: bool = False, **environ: str) -> LoadedMemory:
        return load_memory_files(
            cwd or self.project, self.home, {"HOME": str(self.user), **environ}, is_trusted=is_trusted
        )

    def names(self, loaded: LoadedMemory) -> list[str]:
        return [os.path.relpath(file.path, self.root) for file in loaded.files]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_nothing_is_loaded_and_nothing_reported_where_there_is_nothing(place: Place) -> None:
    assert place.load() == LoadedMemory()


def test_files_come_from_broad_to_narrow_each_with_its_scope(place: Place) -> None:
    names = [
        "user/.claude/CLAUDE.md",
        "user/.pyagent/AGENTS.md",
        "work/CLAUDE.md",
        "work/CLAUDE.local.md",
        "work/project/.claude/CLAUDE.md",
        "work/project/CLAUDE.local.md",
    ]
    for name in reversed(names):
        place.write(name, f"text of {name}")
    loaded = place.load()
    assert place.names(loaded) == names
    assert [file.scope for file in loaded.files] == ["user", "user", "project", "local", "project", "local"]
    assert [file.text for file in loaded.files] == [f"text of {name}" for name in names]
    assert loaded.problems == ()


@pytest.mark.parametrize(
    ("present", "loaded"),
    [
        (["CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md"], ["CLAUDE.md"]),
        ([".claude/CLAUDE.md", "AGENTS.md"], [".claude/CLAUDE.md"]),
        (["AGENTS.md"], ["AGENTS.md"]),
        (["AGENTS.md", "CLAUDE.local.md"], ["AGENTS.md", "CLAUDE.local.md"]),
    ],
)
def test_agents_md_is_read_in_a_folder_without_claude_md(place: Place, present: list[str], loaded: list[str]) -> None:
    for name in present:
        place.write(f"work/project/{name}", name)
    assert [file.text for file in place.load().files] == loaded


def test_the_configuration_folder_can_be_elsewhere(place: Place) -> None:
    place.write("elsewhere/CLAUDE.md", "mine")
    place.write("user/.claude/CLAUDE.md", "not used")
    assert place.names(place.load(CLAUDE_CONFIG_DIR=str(place.root / "elsewhere"))) == ["elsewhere/CLAUDE.md"]


def test_a_file_reached_twice_is_loaded_once(place: Place) -> None:
    place.write("user/.claude/CLAUDE.md", "mine")
    below = place.write("user/code/AGENTS.md", "shared").parent
    (below / "CLAUDE.md").symlink_to("AGENTS.md")
    place.write("user/code/CLAUDE.local.md", "see @AGENTS.md")
    assert [file.text for file in place.load(below).files] == ["mine", "shared", "see @AGENTS.md"]


def test_an_import_follows_its_file_and_is_relative_to_it(place: Place) -> None:
    place.write("work/project/CLAUDE.md", "Read @docs/style.md, then @./more.md.")
    place.write("work/project/docs/style.md", "style, and @deep.md")
    place.write("work/project/docs/deep.md", "deep")
    place.write("work/project/more.md", "more")
    loaded = place.load()
    assert [file.text for file in loaded.files][1:] == ["style, and @deep.md", "deep", "more"]
    assert loaded.problems == ()


def test_imports_go_four_hops_deep_and_the_fifth_is_reported(place: Place) -> None:
    place.write("work/project/CLAUDE.md", "@1.md")
    for number in range(1, 6):
        place.write(f"work/project/{number}.md", f"@{number + 1}.md")
    loaded = place.load()
    assert [Path(file.path).name for file in loaded.files] == ["CLAUDE.md", "1.md", "2.md", "3.md", "4.md"]
    assert len(loaded.problems) == 1
    assert "5.md is not loaded" in loaded.problems[0]


def test_files_that_import_each_other_are_loaded_once_without_complaint(place: Place) -> None:
    place.write("work/project/CLAUDE.md", "@a.md @CLAUDE.md")
    place.write("work/project/a.md", "@b.md")
    place.write("work/project/b.md", "@a.md @CLAUDE.md")
    loaded = place.load()
    assert len(loaded.files) == 3
    assert loaded.problems == ()


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("@a.md", ("a.md",)),
        ("see @docs/a.md and\n- @~/b.md", ("docs/a.md", "~/b.md")),
        ("@a.md @a.md", ("a.md",)),
        (r"@with\ space.md", ("with space.md",)),
        ("mail me@example.com", ()),
        ("in `@code.md` no, in ``a ` @b.md`` no, @c.md yes", ("c.md",)),
        ("a `span\nover @lines.md` no", ()),
        ("an open ` tick @a.md\n\nand ` another @b.md", ("a.md", "b.md")),
        ("```\n@a.md\n```\n@b.md", ("b.md",)),
        ("~~~~ text\n@a.md\n~~~\n@b.md\n~~~~\n@c.md", ("c.md",)),
        ("```\n@never-closed.md", ()),
        ("@", ()),
        ("@@x", ()),
    ],
)
def test_mentions_are_imports_only_outside_code(text: str, paths: tuple[str, ...]) -> None:
    assert imports_in(text) == paths


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\n<!-- gone -->\nb\n", "a\nb\n"),
        ("a\n<!-- gone\n@x.md\ngone --> rest\nb", "a\nrest\nb"),
        ("a <!-- inline stays --> b", "a <!-- inline stays --> b"),
        ("```\n<!-- code stays -->\n```\n", "```\n<!-- code stays -->\n```\n"),
        ("<!-- one --><!-- two -->\nb", "<!-- two -->\nb"),
        ("rules\n<!-- never closed\nmore rules", "rules\n<!-- never closed\nmore rules"),
    ],
)
def test_block_comments_are_taken_out_and_nothing_else(text: str, kept: str) -> None:
    assert without_comments(text) == kept


def test_a_mention_that_is_no_file_is_reported_only_if_it_can_be_nothing_else(place: Place) -> None:
    place.write("work/project/CLAUDE.md", "ask @alice about @types/node, see @./gone.txt and @missing.md")
    problems = place.load().problems
    assert len(problems) == 2
    assert "@./gone.txt" in problems[0]
    assert "@missing.md" in problems[1]


def test_an_untrusted_project_cannot_bring_in_files_from_elsewhere(place: Place) -> None:
    place.write("user/.ssh/id", "secret key")
    place.write("work/project/CLAUDE.md", "@~/.ssh/id @../../user/.ssh/id @inner")
    (place.project / "inner").symlink_to(place.user / ".ssh" / "id")
    (place.project / "CLAUDE.local.md").symlink_to(place.user / ".ssh" / "id")
    loaded = place.load()
    assert place.names(loaded) == ["work/project/CLAUDE.md"]
    assert any("outside this folder" in problem for problem in loaded.problems)
    assert "secret key" not in repr(loaded)


def test_a_trusted_project_may_import_from_elsewhere(place: Place) -> None:
    place.write("user/rules.md", "my rules")
    place.write("work/project/CLAUDE.local.md", "@~/rules.md")
    assert place.names(place.load(is_trusted=True)) == ["work/project/CLAUDE.local.md", "user/rules.md"]


def test_a_file_of_a_repository_may_import_from_anywhere_in_it(place: Place) -> None:
    (place.project / ".git").mkdir()
    place.write("work/project/shared.md", "shared")
    below = place.write("work/project/sub/CLAUDE.md", "@../shared.md").parent
    assert place.names(place.load(below)) == ["work/project/sub/CLAUDE.md", "work/project/shared.md"]


def test_the_user_s_own_files_may_import_from_anywhere(place: Place) -> None:
    place.write("notes.md", "notes")
    place.write("user/.claude/CLAUDE.md", f"@{place.root}/notes.md")
    assert place.names(place.load()) == ["user/.claude/CLAUDE.md", "notes.md"]


def test_a_file_that_cannot_be_loaded_is_reported_and_the_others_are_loaded(place: Place) -> None:
    place.write("work/CLAUDE.md", "good")
    os.mkfifo(place.project / "CLAUDE.md")
    (place.project / "CLAUDE.local.md").symlink_to(place.project / "loop")
    (place.project / "loop").symlink_to(place.project / "CLAUDE.local.md")
    (place.user / ".claude" / "CLAUDE.md").mkdir(parents=True)
    (place.home / "CLAUDE.md").write_bytes(b"\0\1\2")
    loaded = place.load()
    assert [file.text for file in loaded.files] == ["good"]
    assert len(loaded.problems) == 4
    assert all("\n" not in problem for problem in loaded.problems)


def test_a_file_that_cannot_be_opened_is_reported(place: Place) -> None:
    place.write("work/project/notes.md", "@loop.md")
    (place.root / "work/project/CLAUDE.md").symlink_to("CLAUDE.md")
    assert "Too many levels of symbolic links" in place.load().problems[0]


@pytest.mark.parametrize(
    ("data", "text", "is_reported"),
    [
        (b"\xef\xbb\xbfrules", "rules", False),
        (b"one\r\ntwo", "one\ntwo", False),
        (b"caf\xe9", "caf\N{REPLACEMENT CHARACTER}", True),
    ],
)
def test_text_in_other_forms_is_read(place: Place, data: bytes, text: str, is_reported: bool) -> None:
    (place.project / "CLAUDE.md").write_bytes(data)
    loaded = place.load()
    assert loaded.files[0].text == text
    assert bool(loaded.problems) == is_reported


def test_a_file_too_long_is_cut_at_a_line_and_reported(place: Place) -> None:
    place.write("work/project/CLAUDE.md", "é rule\n" * MAX_FILE_CHARS)
    loaded = place.load()
    assert MAX_FILE_CHARS - 7 <= len(loaded.files[0].text) <= MAX_FILE_CHARS
    assert loaded.files[0].text.endswith("é rule\n")
    assert "is cut" in loaded.problems[0]


def test_all_files_together_stay_within_the_total(place: Place) -> None:
    place.write("work/project/CLAUDE.md", "@1.md @2.md @3.md @4.md")
    for number in range(1, 5):
        place.write(f"work/project/{number}.md", "x" * (MAX_FILE_CHARS - 100))
    loaded = place.load()
    assert sum(len(file.text) for file in loaded.files) <= MAX_TOTAL_CHARS
    assert len(loaded.problems) >= 1


def test_an_empty_file_is_left_out(place: Place) -> None:
    place.write("work/project/CLAUDE.md", "<!-- nothing yet -->\n \n")
    assert place.load() == LoadedMemory()


def test_a_working_folder_that_is_gone_still_gets_the_user_s_files(place: Place) -> None:
    place.write("user/.claude/CLAUDE.md", "mine")
    assert [file.text for file in place.load(place.root / "gone" / "deep").files] == ["mine"]
