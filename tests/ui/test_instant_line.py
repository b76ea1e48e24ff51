"""What the instant prompt makes of the terminal's bytes, and what it keeps for the real prompt."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pyagent.ui.columns import placed
from pyagent.ui.images import IMAGE_SUFFIXES
from pyagent.ui.instant_line import (
    INTERRUPT,
    LEAVE,
    PICTURE_SUFFIXES,
    SUSPEND,
    TypedAhead,
    TypedLine,
    cells,
    is_plain,
    word_start,
)

LONG_S = 1.0
"""Longer than any pause that means something."""


def line(*, room_chars: int = 1_000, can_send: bool = True, has_own_keys: bool = False) -> TypedLine:
    return TypedLine(
        lambda draft, _: len(draft) <= room_chars,
        lambda text: len(text) > 40,
        can_send=can_send,
        has_own_keys=has_own_keys,
    )


def typed(*keys: str, gap_s: float = 0.1, can_send: bool = True, room_chars: int = 1_000) -> TypedAhead:
    """What is handed over after these keys, each pressed by itself."""
    taken, at_s = line(can_send=can_send, room_chars=room_chars), 0.0
    for key in keys:
        taken.settle(at_s)
        taken.feed(key.encode(), at_s)
        at_s += gap_s
    taken.settle(at_s)
    return taken.take_over(at_s)


def kept(ahead: TypedAhead) -> str:
    return "".join(text for _, text in ahead.rest)


def test_text_becomes_the_draft() -> None:
    ahead = typed(*"héllo 日本")
    assert (ahead.draft, ahead.queued, ahead.rest) == ("héllo 日本", (), ())


def test_enter_sends_and_the_next_key_begins_a_new_draft() -> None:
    ahead = typed(*"one", "\r", *"two", "\r", *"thr")
    assert (ahead.queued, ahead.draft) == (("one", "two"), "thr")


def test_enter_in_an_empty_prompt_sends_nothing() -> None:
    assert typed("\r", " ", "\r").queued == ()


def test_a_backslash_or_ctrl_j_breaks_the_line() -> None:
    assert typed("a", "\\", "\r", "b", "\n", "c").draft == "a\nb\nc"


def test_an_enter_at_the_end_of_a_burst_sends_once_nothing_followed() -> None:
    taken = line()
    taken.feed(b"one\r", 0.0)
    assert taken.draft == "one"
    assert not taken.settle(0.01)
    assert taken.settle(0.05)
    assert taken.take_over(0.05).queued == ("one",)


def test_a_burst_with_newlines_inside_is_one_text_that_waits() -> None:
    taken = line()
    taken.feed(b"one\rtwo\r", 0.0)
    taken.settle(1.0)
    assert taken.take_over(1.0).draft == "one\ntwo\n"


def test_an_enter_that_ends_a_burst_is_handed_over_undecided_if_it_is_too_soon_to_tell() -> None:
    taken = line()
    taken.feed(b"one\r", 0.0)
    ahead = taken.take_over(0.01)
    assert (ahead.draft, ahead.queued, ahead.rest) == ("one", (), ((0.0, "\r"),))


@pytest.mark.parametrize("first", ["/", "see @"])
def test_enter_is_left_to_the_prompt_where_its_menu_may_be_open(first: str) -> None:
    ahead = typed(*first, "h", "\r", "x")
    assert (ahead.draft, kept(ahead)) == (f"{first}h", "\rx")


@pytest.mark.parametrize(
    "key", ["\x1b[A", "\x1b[D", "\x1bOP", "\t", "\x12", "\x1b[Z", "\x1bb", "\x1b[1;5D", "\x1b[97u"]
)
def test_a_key_that_only_the_prompt_understands_is_kept_with_all_that_follows(key: str) -> None:
    ahead = typed("a", key, "b", "\r")
    assert (ahead.draft, kept(ahead)) == ("a", f"{key}b\r")


@pytest.mark.parametrize("sign", ["?", "!", "#"])
def test_a_sign_with_a_meaning_of_its_own_at_the_start_is_kept(sign: str) -> None:
    assert kept(typed(sign, "a")) == f"{sign}a"
    assert typed("a", sign).draft == f"a{sign}"


def test_a_lone_escape_is_kept_as_the_key_and_swallows_nothing() -> None:
    ahead = typed("a", "\x1b", "b", gap_s=LONG_S)
    assert (ahead.draft, kept(ahead)) == ("a", "\x1b[27ub")


@pytest.mark.parametrize(
    "report",
    [
        "\x1b[?62;22c",
        "\x1b[>41;2500;0c",
        "\x1b[24;80R",
        "\x1b[?2026;2$y",
        "\x1b[?0u",
        "\x1b]11;rgb:1515/1717/1b1b\x1b\\",
        "\x1b]11;rgb:1515/1717/1b1b\x07",
        "\x1bP>|term(1)\x1b\\",
        "\x1b[I",
        "\x1b[O",
        "\x1b[<35;10;10M",
        "\x1b[M !!",
        "\x1b[8;24;80t",
    ],
)
def test_what_the_terminal_reports_is_no_text(report: str) -> None:
    ahead = typed("a", report, "b")
    assert (ahead.draft, ahead.rest) == ("ab", ())


def test_a_small_paste_is_text_with_plain_newlines() -> None:
    assert typed("a", "\x1b[200~b\r\nc\rd\x1b[201~", "e").draft == "ab\nc\nde"


@pytest.mark.parametrize("text", ["x" * 801, "\n" * 10, "/tmp/picture", "chart.PNG", "a\x1b[31mred", "tab\there"])
def test_a_paste_the_prompt_shows_in_another_form_is_kept_whole(text: str) -> None:
    paste = f"\x1b[200~{text}\x1b[201~"
    assert kept(typed("a", paste)) == paste


def test_an_enter_inside_a_paste_never_sends() -> None:
    ahead = typed("\x1b[200~one\rtwo\r\x1b[201~")
    assert (ahead.queued, ahead.draft) == ((), "one\ntwo\n")


def test_controls_inside_a_paste_end_nothing() -> None:
    taken = line()
    assert taken.feed(b"\x1b[200~\x03\x04\x1a\x1b[201~", 0.0) == ""


def test_backspace_and_the_cutting_keys_edit() -> None:
    assert typed(*"abé", "\x7f", "\x08").draft == "a"
    ahead = typed(*"one two ", "\x17")
    assert (ahead.draft, ahead.cuts) == ("one ", ("two ",))
    ahead = typed(*"one", "\n", *"two", "\x15")
    assert (ahead.draft, ahead.cuts) == ("one\n", ("two",))


def test_a_line_of_several_rows_is_cut_by_the_prompt_which_knows_the_rows() -> None:
    assert kept(typed(*"x" * 41, "\x15")) == "\x15"


def test_what_no_longer_fits_is_kept() -> None:
    ahead = typed(*"abcd", room_chars=3)
    assert (ahead.draft, kept(ahead)) == ("abc", "d")


def test_without_sending_enter_is_no_key_but_the_text_stays() -> None:
    ahead = typed(*"ab", "\r", "\t", "\r", "c", can_send=False)
    assert (ahead.queued, ahead.draft, kept(ahead)) == ((), "ab", "\tc")


def test_ctrl_c_and_ctrl_z_act_and_ctrl_d_only_while_nothing_was_typed() -> None:
    assert line().feed(b"\x03", 0.0) == INTERRUPT
    assert line().feed(b"\x1a", 0.0) == SUSPEND
    assert line().feed(b"\x04", 0.0) == LEAVE
    taken = line()
    taken.feed(b"a", 0.0)
    assert taken.feed(b"\x04", 1.0) == ""
    assert kept(taken.take_over(2.0)) == "\x04"


def test_once_the_real_driver_is_at_it_the_control_keys_are_kept_for_it() -> None:
    taken = line()
    taken.acts = False
    assert taken.feed(b"\x03\x1a\x04", 0.0) == ""
    assert kept(taken.take_over(1.0)) == "\x03\x1a\x04"


def test_the_answers_to_the_real_driver_are_handed_over_apart_from_the_text() -> None:
    taken = line()
    taken.acts = False
    taken.feed(b"a\x1b[?2026;2$yb", 0.0)
    ahead = taken.take_over(1.0)
    assert (ahead.draft, ahead.rest, ahead.reports) == ("ab", (), "\x1b[?2026;2$y")


def test_what_was_typed_in_line_mode_has_its_enter_and_its_ctrl_d() -> None:
    taken = line()
    taken.feed_before_raw(b"hello\n", 0.0)
    taken.settle(1.0)
    assert taken.take_over(1.0).queued == ("hello",)
    assert line().feed_before_raw(b"\0", 0.0) == LEAVE


@pytest.mark.parametrize("key", ["\r", "\n", "\x7f", "\x15", "?"])
def test_where_keys_were_given_other_meanings_only_characters_are_understood(key: str) -> None:
    taken = line(has_own_keys=True)
    taken.feed(b"ab" if key != "?" else b"", 0.0)
    taken.feed(key.encode(), 1.0)
    assert kept(taken.take_over(2.0)) == key


def test_every_kind_of_image_is_left_to_the_prompt() -> None:
    assert set(PICTURE_SUFFIXES) >= set(IMAGE_SUFFIXES)


def test_half_a_character_and_half_a_sequence_are_handed_over() -> None:
    taken = line()
    taken.feed("aé".encode()[:-1], 0.0)
    assert (taken.draft, taken.take_over(0.0).pending) == ("a", b"\xc3")
    taken = line()
    taken.feed(b"a\x1b[20", 0.0)
    assert kept(taken.take_over(0.01)) == "\x1b[20"
    taken = line()
    taken.feed(b"a\x1b[200~some te", 0.0)
    assert kept(taken.take_over(0.01)) == "\x1b[200~some te"


_KEYS = st.one_of(
    st.sampled_from([*"ab /@?é日", "\r", "\n", "\x7f", "\x15", "\x17", "\x1b[A", "\x1b[?1;2c", "\t"]),
    st.text("xyz\r", max_size=6).map(lambda text: f"\x1b[200~{text}\x1b[201~"),
)


@given(st.lists(_KEYS, max_size=12), st.lists(st.integers(1, 4), min_size=1, max_size=60))
def test_where_the_reads_cut_the_stream_makes_no_difference(keys: list[str], sizes: list[int]) -> None:
    data = "".join(keys).encode()
    whole, sliced = line(), line()
    whole.feed(data, 0.0)
    at = turn = 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        sliced.feed(data[at : at + size], 0.0)
        at, turn = at + size, turn + 1
    one, other = whole.take_over(0.0), sliced.take_over(0.0)
    assert (one.queued, one.draft, kept(one), one.cuts) == (other.queued, other.draft, kept(other), other.cuts)


@given(st.text("ab_ .-é日", max_size=12))
def test_ctrl_w_cuts_where_the_text_area_does(text: str) -> None:
    pattern = re.compile(r"(?<=\W)(?=\w)|(?<=\w)(?=\W)")  # As in Textual's TextArea.
    matches = list(pattern.finditer(text.rstrip()))
    assert word_start(text) == (matches[-1].start() if matches else 0)


def test_plain_characters_take_the_cells_the_screen_gives_them() -> None:
    every = [chr(code) for code in range(0x20, 0x30000) if not 0xD800 <= code < 0xE000]
    wrong = [char for char in every if is_plain(char) and cells(char) != cell_len(char)]
    assert wrong == []
    row = "\x1b[1;1H"
    assert [char for char in every if is_plain(char) and placed(row + char) != row + char] == []
    assert is_plain("é")
    assert is_plain("日")
    for char in ("\u0301", "\u200d", "😀", "✅", "ㅤ", "\ufe0f", "\x9b"):
        assert not is_plain(char)
