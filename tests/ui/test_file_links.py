"""Names of files that exist become links; everything else stays text."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyagent.ui.file_links import with_file_links
from pyagent.ui.lines import Line, Span


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("src/app.py", "Makefile", "notes.md", "a b.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    return tmp_path


def links(text: str, folder: Path) -> dict[str, str]:
    """Linked text → what it leads to, below the folder."""
    line = with_file_links(Line((Span(text, "muted"),)), folder)
    assert line.text == text
    assert {span.role for span in line.spans} == {"muted"}
    return {span.text: span.href.partition(str(folder))[2] for span in line.spans if span.href}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see src/app.py and ./notes.md.", {"src/app.py": "/src/app.py", "./notes.md": "/notes.md"}),
        ("src/app.py:12:3: error", {"src/app.py:12:3": "/src/app.py#12"}),
        ("src/app.py", {"src/app.py": "/src/app.py"}),
        ("Makefile:3 is one, the word Makefile is none", {"Makefile:3": "/Makefile#3"}),
        ("src/gone.py src ../app.py", {}),
        ("/etc/passwd and ~/x.py", {}),
    ],
)
def test_paths_below_the_folder_are_linked(folder: Path, text: str, expected: dict[str, str]) -> None:
    assert links(text, folder) == expected


def test_a_full_path_below_the_folder_is_linked(folder: Path) -> None:
    assert list(links(f"wrote {folder}/src/app.py", folder).values()) == ["/src/app.py"]


def test_links_that_are_there_stay_and_long_rows_are_left_alone(folder: Path) -> None:
    line = Line((Span("src/app.py", "link", "https://example.org/"),))
    assert with_file_links(line, folder) == line
    assert links("src/app.py " + "x" * 600, folder) == {}


def test_gutter_and_joint_of_a_line_stay(folder: Path) -> None:
    line = with_file_links(Line((Span("│ "), Span("src/app.py:1")), gutter_chars=2, joint=" ", fill="fill"), folder)
    assert (line.gutter_chars, line.joint, line.fill) == (2, " ", "fill")
    assert line.spans[1].href.endswith("/src/app.py#1")
