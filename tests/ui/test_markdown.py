from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from pyagent.ui.lines import join_copied
from pyagent.ui.markdown import StreamingMarkdown, markdown_lines

PIECES = (
    "para one two three\n",
    "a much longer sentence that needs to be wrapped over rows\n",
    "\n",
    "\n\n",
    "# head\n",
    "title\n===\n",
    "---\n",
    "- item\n",
    "- [x] task\n",
    "  - nested **bold**\n",
    "1. first\n",
    "7. seventh\n",
    "2) other\n",
    "* star\n",
    "    indented\n",
    "```python\n",
    "def f(): '''doc\n",
    "```\n",
    "~~~\n",
    "  ```\n",
    "> quote `code`\n",
    "> - in quote\n",
    "| a | 中文 |\n",
    "|---|:-:|\n",
    "| 1 | x\\|y | z |\n",
    "<b>html</b>\n",
    "[a]: http://x\n",
    "[a](http://x/y) *em* ~~no~~ https://x.y/z.\n",
    "[/foo] [@click=app.quit]x[/]",
    "no newline",
    "`",
    "**",
    "-",
    "\t",
    " ",
    "👩‍👩‍👧",
    "\r\n",
    "\x1b[0m",
)
SOURCES = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def texts(source: str, width: int = 60) -> list[str]:
    return [line.text.rstrip() for line in markdown_lines(source, width)]


@settings(max_examples=400, deadline=None)
@given(SOURCES, st.lists(st.integers(0, 400), max_size=12), st.sampled_from([10, 24, 60]))
def test_text_streamed_in_any_cuts_renders_as_the_whole(source: str, cuts: list[int], width: int) -> None:
    stream = StreamingMarkdown(width)
    ends = sorted({min(cut, len(source)) for cut in cuts} | {len(source)})
    start = 0
    for end in ends:
        stream.feed(source[start:end])
        start = end
    stream.finish()
    assert stream.lines == markdown_lines(source, width)


@settings(max_examples=150, deadline=None)
@given(SOURCES)
def test_text_streamed_by_character_renders_as_the_whole(source: str) -> None:
    stream = StreamingMarkdown(30)
    for char in source:
        stream.feed(char)
    stream.finish()
    assert stream.lines == markdown_lines(source, 30)


@settings(max_examples=150, deadline=None)
@given(SOURCES, st.integers(20, 80))
def test_no_row_is_wider_than_the_width(source: str, width: int) -> None:
    assert all(cell_len(line.text) <= width for line in markdown_lines(source, width))


@settings(max_examples=100, deadline=None)
@given(SOURCES)
def test_a_frozen_row_never_changes(source: str) -> None:
    stream = StreamingMarkdown(40)
    for start in range(0, len(source), 5):
        frozen = stream.lines[: stream.frozen_count]
        stream.feed(source[start : start + 5])
        assert stream.lines[: len(frozen)] == frozen


def test_markup_of_the_screen_library_stays_literal() -> None:
    source = "[/foo] [@click=app.quit]x[/] x[i] = y[j] [stage] count"
    assert texts(source) == [source]


def test_html_stays_literal() -> None:
    assert texts("<div>\n<b>x</b>\n</div>") == ["<div>", "<b>x</b>", "</div>"]


def test_control_characters_are_shown_and_do_nothing() -> None:
    assert texts("a\x1b]0;title\x07b") == ["a␛]0;title␇b"]


def test_entities_cannot_smuggle_characters_that_act() -> None:
    (row,) = markdown_lines("a &#x202E;b &NewLine; c [x&#10;y](z)", 60)
    assert row.text == "a \ufffdb   c x y"


def test_lists_nest_and_number() -> None:
    assert texts("3. a\n4. b\n   - c\n     - d\n") == ["3. a", "4. b", "   ◦ c", "     ▪ d"]


def test_tasks_have_boxes() -> None:
    assert texts("- [ ] open\n- [x] done\n") == ["☐ open", "☑ done"]


def test_a_list_stands_right_under_its_sentence_only_if_written_so() -> None:
    assert texts("Do:\n- a") == ["Do:", "• a"]
    assert texts("Do:\n\n- a") == ["Do:", "", "• a"]


def test_table_columns_align_by_cells() -> None:
    rows = texts("| a | b |\n|---|--:|\n| 中文 | 1 |\n| x | 22 |\n")
    assert rows == ["a    │  b", "─────┼───", "中文 │  1", "x    │ 22"]


def test_a_wide_table_wraps_inside_its_columns() -> None:
    rows = texts("| key | text |\n|---|---|\n| k | " + "word " * 12 + "|\n", 30)
    assert all(cell_len(row) <= 30 for row in rows)
    assert rows[2].startswith("k   │ word")
    assert rows[3].startswith("    │ word")


def test_a_table_of_too_many_columns_is_stacked() -> None:
    head = "|" + "|".join(f"c{n}" for n in range(8)) + "|\n"
    rows = texts(head + "|" + "---|" * 8 + "\n|" + "|".join(f"value{n}" for n in range(8)) + "|\n", 24)
    assert rows[0] == "c0: value0"
    assert len(rows) == 8


def test_code_copies_without_label_and_gutter() -> None:
    lines = markdown_lines("```python\nx = 1\n\ny = 2\n```", 40)
    copied = join_copied((line, 0, None) for line in lines if line.content or line.text == " ")
    assert copied == "x = 1\n\ny = 2"


def test_code_is_coloured_across_lines() -> None:
    lines = markdown_lines('```python\n"""doc\nstill doc\n"""\nx = 1\n```', 40)
    assert [span.role for span in lines[2].spans] == ["", "code.string"]
    assert "code.string" not in [span.role for span in lines[4].spans]


def test_an_open_fence_shows_its_unfinished_line() -> None:
    stream = StreamingMarkdown(40)
    stream.feed("```\nab")
    assert stream.lines[-1].content == "ab"
    stream.feed("c\n``")
    assert stream.lines[-1].content == "abc"
    stream.feed("`\nafter")
    assert [line.text.strip() for line in stream.lines] == ["abc", "", "after"]


def test_an_unknown_language_is_plain_code() -> None:
    assert texts("```nosuchlanguage\nx\n```") == [" nosuchlanguage", " x"]


def test_links_carry_their_target() -> None:
    spans = markdown_lines("see [docs](https://a.b/c) or https://d.e/f.", 60)[0].spans
    assert [(span.text, span.href) for span in spans if span.href] == [
        ("docs", "https://a.b/c"),
        ("https://d.e/f", "https://d.e/f"),
    ]


def test_a_short_source_line_ends_and_a_long_one_flows_on() -> None:
    assert texts("one\ntwo") == ["one", "two"]
    long = "x" * 30 + " " + "y" * 30
    assert texts(f"{long}\nand on", 80) == [f"{long} and on"]


def test_feeding_a_long_answer_costs_in_proportion_to_its_length() -> None:
    class Counting(StreamingMarkdown):
        seen_chars = 0

        def _show_tail(self) -> None:
            Counting.seen_chars += len(self._tail)
            super()._show_tail()

    source = "word " * 20_000
    stream = Counting(80)
    for start in range(0, len(source), 40):
        stream.feed(source[start : start + 40])
    stream.finish()
    assert Counting.seen_chars < 25 * len(source)
