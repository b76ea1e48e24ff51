"""What a screen reader hears of tables, columns and signs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyagent.ui.plain_keys import removed
from pyagent.ui.spoken import SpokenLines, spoken, spoken_report

TABLE = "Files:\n\n| Name | Lines |\n|------|------:|\n| a.py | 12 |\n| b.py |  |\n\nDone."


def said(text: str, size: int = 10_000) -> str:
    lines = SpokenLines()
    return "".join(lines.feed(text[at : at + size]) for at in range(0, len(text), size)) + lines.finish()


def test_a_table_is_told_row_by_row() -> None:
    assert said(TABLE) == "Files:\n\nName: a.py, Lines: 12\nName: b.py\n\nDone."


@given(st.integers(min_value=1, max_value=12))
def test_it_makes_no_difference_how_the_text_comes(size: int) -> None:
    assert said(TABLE, size) == said(TABLE)


@given(st.lists(st.sampled_from(["| a | b |", "|---|---|", "text", "a | b", "--- | ---", "", "|"]), max_size=8))
def test_text_without_tables_stays_and_nothing_is_held_back_at_the_end(lines: list[str]) -> None:
    text = "\n".join(lines)
    result = said(text)
    if not any("-" in line for line in lines):
        assert result == text.removesuffix("\n") or result == text
    assert "text" not in text or "text" in result


def test_a_line_with_a_bar_that_heads_no_table_is_a_line() -> None:
    assert said("a | b\nc") == "a | b\nc"
    assert said("a | b") == "a | b"


def test_a_code_block_is_no_table() -> None:
    code = "```\na | b\n--- | ---\nc | d\n```"
    assert said(code) == code


def test_columns_are_pairs_and_signs_are_words() -> None:
    assert spoken_report("model         offline\n\n  3,100  user: hi") == "model: offline\n3,100: user: hi"
    assert spoken("167k → 24k · 0.3 s") == "167k to 24k, 0.3 s"


def test_what_a_deletion_took_is_told_without_the_blanks_around_it() -> None:
    assert removed("some words", "some ", 5) == "words"
    assert removed("one two three", "one three", 4) == "two"
    assert removed("same", "same", 2) == ""
