from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from pyagent.ui.lines import Line, Span, inert, inert_row, join_copied, pad, truncate, wrap_spans, wrap_text
from pyagent.ui.strips import line_strip
from pyagent.ui.theme import DARK, palette

WORDS = st.text(alphabet=st.sampled_from("ab c  -中文한👩‍👩‍👧é☺️⛅"), max_size=60)


def joined(lines: list[Line]) -> str:
    return "".join((line.joint or "") + line.text for line in lines)


@given(st.lists(st.tuples(WORDS, st.sampled_from(["", "strong"])), max_size=5), st.integers(2, 40))
def test_wrapped_rows_join_back_to_the_text(parts: list[tuple[str, str]], width: int) -> None:
    spans = [Span(text, role) for text, role in parts]
    lines = wrap_spans(spans, width)
    assert joined(lines).rstrip() == "".join(text for text, _ in parts).rstrip()


@given(WORDS, st.integers(2, 40))
def test_no_wrapped_row_is_wider_than_asked(text: str, width: int) -> None:
    assert all(cell_len(line.text) <= width for line in wrap_spans([Span(text)], width))


def test_a_row_breaks_at_the_space_and_remembers_it() -> None:
    first, second = wrap_spans([Span("hello brave world")], 11)
    assert (first.text, first.joint) == ("hello brave", None)
    assert (second.text, second.joint) == ("world", " ")


def test_wide_scripts_break_between_characters() -> None:
    assert [line.text for line in wrap_spans([Span("한글中文ABC")], 6)] == ["한글中", "文ABC"]


def test_a_word_longer_than_the_row_is_cut_without_losing_a_character() -> None:
    assert [line.text for line in wrap_spans([Span("x" * 25)], 10)] == ["x" * 10, "x" * 10, "x" * 5]


@given(st.text(max_size=50))
def test_inert_text_has_no_control_character_that_acts(text: str) -> None:
    shown = inert(text)
    assert not any((ord(c) < 32 and c not in "\t\n") or 0x7F <= ord(c) < 0xA0 for c in shown)
    shown.encode()


def test_escape_sequences_become_visible() -> None:
    assert inert("a\x1b[31mb\x07\r\n") == "a␛[31mb␇\n"


def test_direction_overrides_are_replaced() -> None:
    assert inert("a\u202eb") == "a\ufffdb"


def test_a_copy_is_unwrapped_and_without_gutters() -> None:
    lines = [line.indented((Span("│ "),)) for line in wrap_text("one two three\nfour", 8)]
    assert len(lines) == 3
    assert join_copied((line, 0, None) for line in lines) == "one two three\nfour"


def test_truncate_counts_cells_and_marks_the_cut() -> None:
    assert truncate("中文中文", 5) == "中文…"
    assert truncate("abc", 3) == "abc"
    assert cell_len(pad("中", 5, "right")) == 5


def test_a_row_stays_one_row_whatever_is_in_it() -> None:
    assert inert_row("a\nb\tc\x1b[2J\r\u2028d") == "a␊b c␛[2J␊d"


def test_a_control_character_that_was_forgotten_stays_off_the_terminal() -> None:
    line = Line((Span("a\x1b[31mb\tc\x9bd\u202e", "text", "http://x/\x1b\\"),))
    strip = line_strip(line, palette(DARK), 20, Style())
    assert strip.text.rstrip() == "a\ufffd[31mb c\ufffdd\ufffd"
    assert all(segment.style is None or segment.style.link is None for segment in strip)
