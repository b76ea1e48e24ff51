"""What counts as one character, for the cursor and for Backspace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.app import App, ComposeResult

from pyagent.ui.graphemes import (
    OneCodeEach,
    boundary_at_or_before,
    graphemes,
    is_boundary,
    next_boundary,
    previous_boundary,
    word_classes,
)
from pyagent.ui.prompt import Prompt
from pyagent.ui.sign_input import SignInput

FAMILY, FLAG, SKIN, HEART, ACCENT = "👩‍👩‍👧", "🇩🇪", "👍🏽", "❤️", "e\u0301"
KEYCAP, SCOTLAND, HANGUL, THAI = "1️⃣", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "하", "ก็"
SIGNS = (FAMILY, FLAG, SKIN, HEART, ACCENT, KEYCAP, SCOTLAND, HANGUL, THAI)
PIECES = st.sampled_from([*SIGNS, "a", " ", "\n", "中", "א", "\u200d", "\u0301", "🇩", "\U00100000"])


@pytest.mark.parametrize("sign", SIGNS, ids=ascii)
def test_a_sign_of_several_code_points_is_one_character(sign: str) -> None:
    assert graphemes(f"a{sign}b") == ["a", sign, "b"]


def test_flags_are_told_apart_by_pairs() -> None:
    assert graphemes("🇩🇪🇫🇷🇮") == ["🇩🇪", "🇫🇷", "🇮"]


@pytest.mark.parametrize("text", ["ab", "中文", "שלום", "a\tb", "👩👩", "\r\u0301", "a\u200db"], ids=ascii)
def test_signs_that_only_stand_side_by_side_stay_apart(text: str) -> None:
    assert is_boundary(text, len(text) - 1)


def test_a_carriage_return_and_its_newline_are_one() -> None:
    assert graphemes("a\r\n\n") == ["a", "\r\n", "\n"]


@given(st.lists(PIECES).map("".join))
def test_walking_either_way_stops_at_the_same_places(text: str) -> None:
    forth, place = [0], 0
    while place < len(text):
        place = next_boundary(text, place)
        forth.append(place)
    back = [place]
    while place:
        place = previous_boundary(text, place)
        back.append(place)
    assert forth == back[::-1]
    assert "".join(graphemes(text)) == text
    assert all(boundary_at_or_before(text, at) in forth for at in range(len(text) + 1))


@given(st.lists(PIECES).map("".join))
def test_one_code_for_each_character_is_read_back_as_it_was(text: str) -> None:
    codes = OneCodeEach()
    assert len(codes.encode(text)) == len(graphemes(text))
    assert codes.decode(codes.encode(text)) == text


def test_a_word_with_accents_of_their_own_is_one_word() -> None:
    assert word_classes("cafe\u0301s हिन्दी") == "cafxxs xxxxxx"


class OneLine(App[None]):
    def compose(self) -> ComposeResult:
        yield Prompt()
        yield SignInput()


@pytest.mark.parametrize("sign", SIGNS, ids=ascii)
async def test_the_prompts_keys_take_a_sign_whole(sign: str) -> None:
    async with OneLine().run_test() as pilot:
        prompt = pilot.app.query_one(Prompt)
        prompt.focus()
        prompt.set_text(f"a{sign}b")
        await pilot.press("left", "left")
        assert prompt.cursor_location == (0, 1)
        await pilot.press("right")
        assert prompt.cursor_location == (0, 1 + len(sign))
        await pilot.press("left", "delete")
        assert prompt.text == "ab"
        prompt.set_text(f"a{sign}")
        await pilot.press("backspace")
        assert prompt.text == "a"


async def test_a_sign_typed_before_another_is_not_torn_from_what_follows() -> None:
    """An emoji comes from the keyboard code point by code point."""
    async with OneLine().run_test() as pilot:
        prompt = pilot.app.query_one(Prompt)
        prompt.focus()
        prompt.set_text(FLAG)
        await pilot.press("home")
        for char in "🇫🇷":
            prompt.post_message(events.Key(char, char))
        await pilot.pause()
        assert prompt.text == f"🇫🇷{FLAG}"


async def test_word_keys_take_a_word_with_its_accents_whole() -> None:
    async with OneLine().run_test() as pilot:
        prompt = pilot.app.query_one(Prompt)
        prompt.focus()
        prompt.set_text("un cafe\u0301s")
        await pilot.press("ctrl+w")
        assert prompt.text == "un "
        prompt.set_text("cafe\u0301s là")
        await pilot.press("home", "ctrl+right")
        assert prompt.cursor_location == (0, len("cafe\u0301s"))


async def test_moving_to_another_row_never_ends_inside_a_sign() -> None:
    async with OneLine().run_test() as pilot:
        prompt = pilot.app.query_one(Prompt)
        prompt.focus()
        prompt.set_text(f"{FAMILY}\nab")
        await pilot.press("left", "up")
        assert is_boundary(FAMILY, prompt.cursor_location[1])


async def test_vim_counts_signs_and_not_code_points() -> None:
    async with OneLine().run_test() as pilot:
        prompt = pilot.app.query_one(Prompt)
        prompt.focus()
        prompt.switch_vim(True)
        prompt.set_text(f"x{FAMILY}{FLAG} cafe\u0301s")
        await pilot.press("escape", "0", "l", "x")
        assert prompt.text == f"x{FLAG} cafe\u0301s"
        await pilot.press("p")
        assert prompt.text == f"x{FLAG}{FAMILY} cafe\u0301s"
        await pilot.press("$", "b", "d", "w")
        assert prompt.text == f"x{FLAG}{FAMILY} "
        await pilot.press("u")
        assert prompt.text == f"x{FLAG}{FAMILY} cafe\u0301s"


async def test_a_field_of_a_dialog_takes_a_sign_whole() -> None:
    async with OneLine().run_test() as pilot:
        field = pilot.app.query_one(SignInput)
        field.value = f"a{FAMILY}b{FLAG}"
        field.focus()
        await pilot.press("end")
        await pilot.press("backspace", "left", "left")
        assert (field.value, field.cursor_position) == (f"a{FAMILY}b", 1)
        await pilot.press("delete")
        assert field.value == "ab"


@pytest.mark.parametrize("sign", SIGNS, ids=ascii)
def test_a_long_row_of_one_sign_is_cut_into_that_sign_everywhere(sign: str) -> None:
    assert graphemes(sign * 300) == [sign] * 300
