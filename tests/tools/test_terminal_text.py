"""Bytes a program writes → the text a terminal would be left with."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyagent.tools.terminal_text import LINE_CHARS, TerminalText


def final_text(*chunks: bytes) -> str:
    parts: list[str] = []
    text = TerminalText(parts.append)
    for chunk in chunks:
        text.feed(chunk)
    text.finish()
    return "".join(parts)


ROWS: tuple[tuple[str, bytes, str], ...] = (
    ("plain text passes", b"a\nb\n", "a\nb\n"),
    ("no final newline stays none", b"a", "a"),
    ("CRLF is a line end", b"a\r\nb\r\n", "a\nb\n"),
    ("2,000 carriage returns leave the last state", b"".join(b"\r%d%%" % n for n in range(2_000)) + b"\n", "1999%\n"),
    ("a shorter state leaves the rest of the longer one", b"12345\rab\n", "ab345\n"),
    ("erasing to the end of the line", b"12345\rab\x1b[K\n", "ab\n"),
    ("erasing the whole line", b"12345\x1b[2K\rab\n", "ab\n"),
    ("colours go", b"\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[m\n", "red x\n"),
    ("a link keeps its text", b"\x1b]8;;https://x.y\x1b\\text\x1b]8;;\x1b\\\n", "text\n"),
    ("the clipboard is not written", b"a\x1b]52;c;aGVsbG8=\x07b\n", "ab\n"),
    ("a title goes", b"\x1b]0;title\x07a\n", "a\n"),
    ("device control strings go", b"\x1bPq#0;2;0\x1b\\a\x1b_Gabc\x1b\\b\n", "ab\n"),
    ("an unfinished sequence goes", b"a\x1b[31", "a"),
    ("an unfinished string goes", b"a\x1b]52;c;aaaa", "a"),
    ("a string two escapes break off goes", b"a\x1b]52;c;aaaa\x1b\x1b", "a"),
    ("C1 controls go", "a\x9d52;c;x\x9cb\n".encode(), "a52;c;xb\n"),
    ("bell and backspace", b"ab\x08c\x07\n", "ac\n"),
    ("lines redrawn by moving up", b"one 1%\ntwo 1%\n\x1b[2Aone 9%\ntwo 9%\n", "one 9%\ntwo 9%\n"),
    ("the alternate screen leaves nothing", b"a\n\x1b[?1049hmenu\n\x1b[Hx\x1b[?1049lb\n", "a\nb\n"),
    ("a full-screen program that was killed leaves its last frame", b"\x1b[?1049h\x1b[2J\x1b[Htop", "top"),
    ("clear and home draw anew", b"frame 1\n\x1b[H\x1b[2Jframe 2\n", "frame 2\n"),
    ("bytes that are not UTF-8 are replaced", b"\xff\xfea\n", "\ufffd\ufffda\n"),
    ("tabs stay", b"a\tb\n", "a\tb\n"),
)


@pytest.mark.parametrize(("data", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_final_state(data: bytes, expected: str) -> None:
    assert final_text(data) == expected


@pytest.mark.parametrize(("data", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_pieces_it_comes_in_do_not_matter(data: bytes, expected: str) -> None:
    assert final_text(*(data[i : i + 1] for i in range(len(data)))) == expected


_PIECES = st.sampled_from(
    [
        b"\x1b",
        b"[",
        b"]",
        b"52;c;",
        b"2A",
        b"\r",
        b"\n",
        b"\x07",
        b"?1049h",
        b"abc",
        b"\xc3",
        b"\xa9",
        b"H",
        b"J",
        b"K",
        b"31m",
    ]
)


@given(st.lists(_PIECES, max_size=40), st.integers(1, 7))
def test_no_control_character_ever_comes_out(pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces)
    text = final_text(*(data[i : i + size] for i in range(0, len(data), size)))
    assert not [char for char in text if (char < " " and char not in "\n\t") or "\x7f" <= char <= "\x9f"]


@given(st.text(st.characters(min_codepoint=32, exclude_characters=[chr(n) for n in range(0x7F, 0xA0)]) | st.just("\n")))
def test_text_without_controls_is_not_changed(text: str) -> None:
    expected = "\n".join([*text.split("\n")[:-1], text.split("\n")[-1].rstrip(" ")])
    trimmed = [line.rstrip(" ") for line in final_text(text.encode("utf-8", "replace")).split("\n")]
    assert trimmed == [line.rstrip(" ") for line in expected.encode("utf-8", "replace").decode().split("\n")]


def test_an_endless_line_is_let_go_in_pieces() -> None:
    parts: list[str] = []
    text = TerminalText(parts.append)
    for _ in range(100):
        text.feed(b"x" * 10_000)
        assert len(text.partial_line) <= LINE_CHARS
    text.finish()
    assert len("".join(parts)) == 1_000_000


def test_an_endless_control_string_takes_no_memory() -> None:
    parts: list[str] = []
    text = TerminalText(parts.append)
    text.feed(b"\x1b]52;c;")
    for _ in range(50):
        text.feed(b"A" * 60_000)
    text.feed(b"\x07after\n")
    text.finish()
    assert "".join(parts) == "after\n"


@given(st.lists(_PIECES, max_size=40))
@example([b"\x1b", b"]", b"\x1b", b"\x1b", b"\x1b"])
@example([b"\x1b", b"]", b"\x1b", b"[", b"\x1b"])
def test_what_comes_at_once_reads_like_what_comes_byte_by_byte(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    assert final_text(data) == final_text(*(data[i : i + 1] for i in range(len(data))))
