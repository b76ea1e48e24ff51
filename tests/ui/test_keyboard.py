"""What is pasted stays text, wherever the reads cut it; what is typed passes untouched and at once."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual._xterm_parser import XTermParser

from pyagent.ui.keyboard import PasteFilter
from pyagent.ui.prompt_text import normal_newlines

START, END = "\x1b[200~", "\x1b[201~"
KEYS = st.text(st.sampled_from("ab\x1b[A~2\r"), max_size=12).filter(lambda text: START not in text)
PASTED = st.text(st.sampled_from("ab\x1b[]201~;m\x07\r"), max_size=30).filter(lambda text: END not in text)


def in_pieces(text: str, cuts: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(edges)]


@given(KEYS, PASTED, KEYS, st.lists(st.integers(0, 99), max_size=6))
def test_pastes_are_taken_out_and_keys_are_given_on(before: str, pasted: str, after: str, cuts: list[int]) -> None:
    # An opening that begins in the keys before it, or a closing in the paste, would be another paste than meant.
    whole = before + START + pasted + END
    if whole.index(START) != len(before) or (pasted + END).index(END) != len(pasted):
        return
    paste = PasteFilter()
    given_on = "".join(paste.feed(piece) for piece in in_pieces(whole + after, cuts))
    assert given_on == before + START + END + after
    assert list(paste.pastes) == [pasted]


@given(KEYS)
def test_keys_are_given_on_at_once(keys: str) -> None:
    paste = PasteFilter()
    assert [paste.feed(key) for key in keys] == list(keys)


def test_a_pasted_log_is_text_without_its_colours() -> None:
    log = "\x1b[31mred\x1b[0m \x1b]52;c;aGk=\x07 \x1b[A\x1bOA\x1b\r\ry\x1b"
    paste = PasteFilter()
    messages = list(XTermParser().feed(paste.feed(START + log + END + "x")))
    assert [type(message) for message in messages] == [events.Paste, events.Key]
    assert normal_newlines(paste.pastes[0]) == "red  ␛OA␛\n\ny␛"
