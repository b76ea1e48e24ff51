from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyagent.ui.blocks import DiffKind
from pyagent.ui.diff import Hunk, diff_counts, diff_lines, intraline_marks, patch_lines
from pyagent.ui.diff_view import diff_view
from pyagent.ui.lines import join_copied

TEXTS = st.lists(st.sampled_from(["a", "b", "c = 1", "", "d"]), max_size=12).map("\n".join)


@given(TEXTS, TEXTS)
def test_diff_counts_what_changed_and_numbers_lines_of_the_new_text(old: str, new: str) -> None:
    lines = diff_lines(old, new)
    source = new.split("\n")
    for line in lines:
        if line.new_number is not None:
            assert source[line.new_number - 1] == line.text
    added, removed = diff_counts(lines)
    old_count = len(old.removesuffix("\n").split("\n")) if old else 0
    new_count = len(new.removesuffix("\n").split("\n")) if new else 0
    assert added - removed == new_count - old_count


def test_changed_words_are_marked() -> None:
    assert intraline_marks("n = len(text)", "n = len(data)") == (((8, 12),), ((8, 12),))


def test_rewritten_lines_are_not_marked() -> None:
    assert intraline_marks("alpha beta", "1 + 2 == foo(bar)") == ((), ())


def test_distant_changes_are_parted() -> None:
    old = "\n".join(str(n) for n in range(40))
    new = old.replace("\n5\n", "\nfive\n").replace("\n35\n", "\nthirty\n")
    assert [line.kind for line in diff_lines(old, new)].count(DiffKind.HUNK) == 1


def test_a_long_diff_is_capped_and_says_so() -> None:
    lines = diff_lines("", "\n".join("x" * 3 for _ in range(100)), max_lines=20)
    assert len(lines) == 21
    assert lines[-1].text == "80 more lines"


def test_a_structured_patch_keeps_its_numbers() -> None:
    lines = patch_lines([Hunk(10, 12, (" a", "-b", "+c", "\\ No newline at end of file"))])
    assert [(line.kind, line.old_number, line.new_number) for line in lines] == [
        (DiffKind.CONTEXT, 10, 12),
        (DiffKind.REMOVED, 11, None),
        (DiffKind.ADDED, None, 13),
    ]


def test_a_diff_reads_without_colour_and_copies_as_code() -> None:
    rows = diff_view(diff_lines("a\nb\n", "a\nc\n"), 40)
    assert [row.text for row in rows] == ["  1   a", "  2 - b", "  2 + c"]
    assert join_copied((row, 0, None) for row in rows) == "a\nb\nc"
