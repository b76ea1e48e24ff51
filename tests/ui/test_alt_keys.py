"""Alt with a character, from terminals that send an escape character before it."""

from __future__ import annotations

import pytest
from textual import events
from textual._xterm_parser import XTermParser

from pyagent.ui.alt_keys import with_alt_keys


def keys_of(text: str) -> list[str]:
    parser = XTermParser()
    messages = [*parser.feed(with_alt_keys(text)), *parser.tick()]
    return [message.key for message in messages if isinstance(message, events.Key)]


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("\x1bp", ["alt+p"]),
        ("\x1bt\x1by", ["alt+t", "alt+y"]),
        ("a\x1bdb", ["a", "alt+d", "b"]),
        ("\x1b\r", ["alt+enter"]),
    ],
)
def test_alt_and_a_character_is_one_key(sent: str, keys: list[str]) -> None:
    assert keys_of(sent) == keys


@pytest.mark.parametrize(
    "sent", ["\x1b[A", "\x1bOA", "\x1b[1;3A", "\x1b[116;3u", "\x1b", "\x1b\x1b", "\x1bb", "\x1b\x7f"]
)
def test_every_other_sequence_is_left_as_it_is(sent: str) -> None:
    assert with_alt_keys(sent) == sent


def test_alt_with_a_capital_is_alt_and_shift() -> None:
    assert with_alt_keys("\x1bK") == "\x1b[107;4u"
