"""Broken mouse reports disappear, raw ones are rewritten, keys pass untouched, wherever the reads cut the stream."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual._xterm_parser import XTermParser

from pyagent.ui.mouse_input import MouseFilter

GOOD = st.builds(
    "\x1b[<{};{};{}{}".format, st.integers(0, 99), st.integers(1, 300), st.integers(1, 99), st.sampled_from("Mm")
)
KEYS = st.sampled_from(["a", "<", "[", "M", "3;4M", "\r", "\x1b[A", "\x1bOP", "\x1b[1;5C", "ü", "\x1b[13;2u"])


def decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def in_pieces(text: str, cuts: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(edges)]


@given(st.lists(st.one_of(GOOD, KEYS), max_size=8).map("".join), st.lists(st.integers(0, 99), max_size=6))
def test_keys_and_good_reports_pass_untouched_however_they_are_cut(text: str, cuts: list[int]) -> None:
    mouse = MouseFilter()
    assert "".join(mouse.feed(piece) for piece in in_pieces(text + "\r", cuts)) == text + "\r"
    assert not mouse.is_waiting


@given(st.lists(st.integers(0x20, 0xFF), min_size=3, max_size=3).map(bytes), st.lists(st.integers(0, 99), max_size=4))
def test_a_raw_report_becomes_a_modern_one_or_nothing_however_it_is_cut(raw: bytes, cuts: list[int]) -> None:
    mouse, parser = MouseFilter(), XTermParser()
    messages = [
        message
        for piece in in_pieces(f"x\x1b[M{decoded(raw)}y\r", cuts)
        if (passed := mouse.feed(piece))
        for message in parser.feed(passed)
    ]
    keys = [message.key for message in messages if isinstance(message, events.Key)]
    # A third byte that begins a character of two takes the key behind it only if the two are one character.
    assert keys in (["x", "y", "enter"], ["x", "enter"])
    assert all(isinstance(message, events.Key | events.MouseEvent) for message in messages)


@pytest.mark.parametrize(
    ("raw", "modern"),
    [
        (b"\x20\x21\x22", "\x1b[<0;1;2M"),
        (b"\x23\x21\x22", "\x1b[<0;1;2m"),
        (b"\x43\xff\x22", "\x1b[<35;223;2M"),
        (b"\x60\x21\x22", "\x1b[<64;1;2M"),
    ],
    ids=["press", "release", "motion far to the right", "wheel"],
)
def test_raw_reports_keep_their_meaning(raw: bytes, modern: str) -> None:
    assert MouseFilter().feed("\x1b[M" + decoded(raw)) == modern


@pytest.mark.parametrize("broken", ["\x1b[<1;2M", "\x1b[<1;2;3;4M", "\x1b[<;;m", "\x1b[<1;2;3x", "[<3;4;5M", "<3;4;5m"])
def test_a_malformed_report_is_taken_out_and_nothing_else(broken: str) -> None:
    assert MouseFilter().feed(f"ab{broken}cd") == "abcd"


def test_a_report_whose_end_never_comes_is_given_up() -> None:
    mouse = MouseFilter()
    assert mouse.feed("a\x1b[<35;1") == "a"
    assert mouse.is_waiting
    mouse.give_up()
    assert mouse.feed("b") == "b"


def test_a_terminal_that_falls_back_to_raw_reports_is_noticed_once() -> None:
    def noticed(mouse: MouseFilter, text: str) -> bool:
        mouse.has_lost_sgr = False
        mouse.feed(text)
        return mouse.has_lost_sgr

    mouse = MouseFilter()
    assert not noticed(mouse, "\x1b[M !!"), "it may know no other kind"
    assert noticed(mouse, "\x1b[<0;1;1M\x1b[M !!\x1b[M !!")
    assert not noticed(mouse, "\x1b[M !!")


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert MouseFilter().feed(decoded(b"a\xffb")) == "a\ufffdb"
