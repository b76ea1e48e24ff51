"""What a slow link cuts is put together, and a paste without brackets is a paste."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyagent.ui.cut_input import CUT_S, ESCAPE_S, CutSequences, RawPaste

SLOW_S = 0.5
"""A pause between two halves: longer than Esc waits, shorter than a lost packet takes."""
KEYS = ["\x1b[1;5C", "\x1b[<35;10;10M", "\x1b[13;2u", "\x1b[?2026;2$y", "\x1b[200~", "\x1b[15~"]
ANSWERS = [
    "\x1b]11;rgb:00/00/00\x1b\\",
    "\x1b]4;1;rgb:0/0/0\x07",
    "\x1bP>|xterm(380)\x1b\\",
    "\x1b_Gi=1;OK\x1b\\",
    "\x1b[?62;22c",
]


def read(pieces: list[str], pause_s: float) -> str:
    """What comes through if each piece is followed by such a pause."""
    cut, now_s, passed = CutSequences(), 0.0, ""
    for piece in pieces:
        passed += "".join(cut.feed(piece, now_s))
        now_s += pause_s
        passed += cut.settle(now_s)
    return passed


@pytest.mark.parametrize("sequence", KEYS, ids=ascii)
@given(st.data())
def test_a_sequence_cut_in_two_is_waited_for(sequence: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(3, len(sequence)))
    assert read([f"a{sequence[:at]}", f"{sequence[at:]}b"], SLOW_S) == f"a{sequence}b"


@pytest.mark.parametrize("answer", ANSWERS, ids=ascii)
@given(st.data())
def test_an_answer_nobody_waits_for_is_not_typed(answer: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(3, len(answer)))
    assert read([f"a{answer[:at]}", f"{answer[at:]}b"], SLOW_S) == "ab"


@pytest.mark.parametrize("begun", ["\x1b[<35;1", "\x1b[13;", "\x1b]11;rgb:", "\x1bP>|x"], ids=ascii)
def test_a_sequence_whose_end_never_comes_is_dropped_and_the_keys_go_on(begun: str) -> None:
    assert read([f"a{begun}", "b"], CUT_S) == "ab"


@pytest.mark.parametrize("key", ["\x1b", "\x1b[", "\x1bO", "\x1b]"], ids=ascii)
def test_escape_and_a_bracket_with_alt_are_keys_after_the_shortest_wait(key: str) -> None:
    cut = CutSequences()
    assert cut.feed(key, 0.0) == []
    assert cut.settle(ESCAPE_S / 2) == ""
    assert cut.settle(ESCAPE_S) == key
    assert not cut.is_waiting


def test_escape_and_right_after_it_a_control_key_are_two_keys() -> None:
    cut = CutSequences()
    assert cut.feed("\x1b", 0.0) == []
    assert cut.feed("\x1a", ESCAPE_S / 2) == ["\x1b", "\x1a"]


@given(st.text("ab\x1b[A<M;1O~", max_size=20), st.lists(st.integers(0, 19), max_size=3))
def test_typed_keys_never_wait_for_ever(text: str, cuts: list[int]) -> None:
    cut, edges = CutSequences(), sorted({0, len(text), *(at % (len(text) + 1) for at in cuts)})
    for start, end in pairwise(edges):
        cut.feed(text[start:end], 0.0)
    cut.settle(CUT_S)
    assert not cut.is_waiting


# ── pastes without brackets ──


def pasted(pieces: list[str]) -> tuple[str, str]:
    """The paste and the keys that come of these reads."""
    raw, paste, keys = RawPaste(), "", ""
    for text, typed in (*map(raw.feed, pieces), raw.end()):
        paste, keys = paste + text, keys + typed
    return paste, keys


def test_a_long_run_of_characters_is_one_paste_however_it_is_read() -> None:
    text = "one line\rand another\r" * 1_000
    assert pasted([text[:4_095], text[4_095:8_190], text[8_190:]]) == (text, "")


def test_the_enter_behind_a_long_line_is_a_key() -> None:
    assert pasted(["x" * 500 + "\r"]) == ("x" * 500, "\r")


def test_what_a_person_types_is_no_paste() -> None:
    assert pasted(["hello\r", "\x1b[A", "y"]) == ("", "hello\r\x1b[Ay")


def test_a_key_that_is_no_text_ends_the_paste() -> None:
    assert pasted(["x" * 500 + "\x03y"]) == ("x" * 500, "\x03y")
