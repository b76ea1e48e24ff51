from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest
from textual import events
from textual.binding import Binding, BindingType
from textual.pilot import Pilot

from pyagent.ui.completion import Candidate, CompletionMenu
from pyagent.ui.images import FoundImage
from pyagent.ui.prompt import Prompt
from pyagent.ui.prompt_text import Burst, ListHistory, Pastes, normal_newlines
from tests.ui.screens import Stage, rows

SIZE = (60, 20)
COMMANDS = [
    Candidate("compact", "summarise"),
    Candidate("context", "what fills the window"),
    Candidate("clear", "start over"),
]
FILES = [Candidate("src/app.py"), Candidate("src/a b.txt"), Candidate("docs/"), Candidate("docs/why?")]


class Writing(Stage):
    """A prompt with its menu, and what it told."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "note('ctrl+c')"), Binding("ctrl+d", "note('ctrl+d')")]

    def __init__(self, history: Sequence[str] = ()) -> None:
        menu = CompletionMenu()
        self.prompt = Prompt(
            menu=menu,
            commands=lambda query: COMMANDS,
            files=lambda query: FILES,
            history=ListHistory(history),
            dropped=lambda text: [FoundImage(text, 640, 480)] if text.endswith(".png") else None,
            placeholder="Ask [anything]",
        )
        self.menu = menu
        self.sent: list[str] = []
        self.told: list[str] = []
        super().__init__(menu, self.prompt)

    def on_mount(self) -> None:
        super().on_mount()
        self.prompt.focus()

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        self.sent.append(event.text)

    def on_prompt_editor_requested(self, event: Prompt.EditorRequested) -> None:
        self.told.append(f"editor {event.text}")

    def on_prompt_help_requested(self) -> None:
        self.told.append("help")

    def on_completion_menu_picked(self) -> None:
        self.prompt.accept_completion()

    def action_note(self, key: str) -> None:
        self.told.append(key)


async def sent(pilot: Pilot[None], app: Writing, count: int = 1) -> list[str]:
    """What was sent, once that many prompts were: an Enter right behind a key is held for a moment."""
    for _ in range(500):
        if len(app.sent) >= count:
            break
        await pilot.pause(0.005)
    return app.sent


async def burst(pilot: Pilot[None], app: Writing, text: str) -> None:
    """Keys as a terminal without bracketed paste sends a paste: all at one moment."""
    at = 1_000.0
    for char in text:
        key = events.Key("enter", "\r") if char == "\n" else events.Key(char, char)
        key.time = at
        app.prompt.post_message(key)
    await pilot.pause()


async def test_enter_sends_and_empties_the_prompt() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(*"hello")
        await pilot.press("enter")
        assert await sent(pilot, app) == ["hello"]
        assert app.prompt.text == ""


async def test_blank_text_is_not_sent() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        app.prompt.set_text("  ")
        app.prompt.action_submit()
        await pilot.pause()
        assert app.sent == []


@pytest.mark.parametrize("key", ["shift+enter", "alt+enter", "ctrl+j"])
async def test_newline_keys_break_the_line(key: str) -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("a", key, "b")
        assert app.prompt.text == "a\nb"


async def test_backslash_enter_breaks_the_line() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("a", "backslash", "enter", "b")
        assert app.prompt.text == "a\nb"
        assert app.sent == []


async def test_a_pasted_burst_of_lines_is_text_and_not_many_prompts() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        text = "".join(f"line{n}\n" for n in range(15))
        await burst(pilot, app, text)
        assert app.prompt.text == text
        assert app.sent == []


async def test_a_single_line_that_arrives_at_once_is_sent() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await burst(pilot, app, "hello\n")
        assert await sent(pilot, app) == ["hello"]


async def test_enters_that_come_at_once_on_an_empty_line_leave_it_empty() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await burst(pilot, app, "\n" * 5)
        assert app.prompt.text == ""
        await burst(pilot, app, "\n\nfirst\nsecond")
        assert (app.prompt.text, app.sent) == ("first\nsecond", [])


async def test_an_earlier_prompt_of_a_megabyte_comes_back_as_a_chip_and_is_sent_whole() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        app.prompt.set_text("x" * 1_000_000)
        assert app.prompt.text == "[Pasted text #1]"
        await pilot.press("enter", "up")
        assert len(app.prompt.text) < 50
        assert app.prompt.expanded_text == "x" * 1_000_000


async def test_a_name_that_ends_like_a_sentence_is_quoted() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(*"@why", "tab")
        assert app.prompt.text == '@"docs/why?" '


async def test_history_walks_back_and_keeps_the_draft() -> None:
    app = Writing(history=["one", "two"])
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(*"draft", "up")
        assert app.prompt.text == "two"
        await pilot.press("up", "up")
        assert app.prompt.text == "one"
        await pilot.press("down", "down")
        assert app.prompt.text == "draft"


async def test_up_moves_inside_several_lines_before_it_walks_history() -> None:
    app = Writing(history=["one"])
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("a", "ctrl+j", "b", "up")
        assert app.prompt.text == "a\nb"
        await pilot.press("up")
        assert app.prompt.text == "one"


async def test_a_big_paste_is_a_chip_that_expands_on_sending() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        text = "\n".join(str(n) for n in range(58))
        app.prompt.post_message(events.Paste(text))
        await pilot.press(*"see ")
        assert app.prompt.text == "[Pasted text #1 +57 lines]see "
        app.prompt.action_submit()
        assert await sent(pilot, app) == [text + "see"]


async def test_backspace_takes_a_chip_whole() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        app.prompt.paste("x" * 900)
        assert app.prompt.text == "[Pasted text #1]"
        await pilot.press("backspace")
        assert app.prompt.text == ""


async def test_a_small_paste_is_text_and_its_control_characters_are_inert() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        app.prompt.post_message(events.Paste("a\r\nb\x1b[2J"))
        await pilot.pause()
        assert app.prompt.text == "a\nb"


async def test_a_megabyte_paste_stays_a_chip() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        app.prompt.paste("line of text\n" * 80_000)
        await pilot.pause()
        assert app.prompt.text == "[Pasted text #1 +80000 lines]"
        assert len(app.prompt.expanded_text) == 13 * 80_000


async def test_a_pasted_path_of_an_image_becomes_a_chip() -> None:
    app = Writing()
    async with app.run_test(size=SIZE):
        app.prompt.paste("/tmp/shot.png")
        assert app.prompt.text == "[Image #1 640×480] "


async def test_keys_that_come_at_once_act_in_their_order() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        for key, char in (("a", "a"), ("b", "b"), ("left", None), ("c", "c"), ("alt+enter", None), ("d", "d")):
            app.post_message(events.Key(key, char))
        await pilot.pause()
        assert app.prompt.text == "ac\ndb"


async def test_undo_stash_and_yank() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(*"one two", "ctrl+w")
        assert app.prompt.text == "one "
        await pilot.press("ctrl+y")
        assert app.prompt.text == "one two"
        await pilot.press("ctrl+s")
        assert app.prompt.text == ""
        await pilot.press("ctrl+s")
        assert app.prompt.text == "one two"
        await pilot.press("ctrl+a", "ctrl+k")
        assert app.prompt.text == ""
        await pilot.press("ctrl+underscore")
        assert app.prompt.text == "one two"


async def test_what_was_put_aside_is_never_overwritten() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(*"first", "ctrl+s", *"second", "ctrl+s")
        assert (app.prompt.text, app.prompt.stashed) == ("first", "second")
        await pilot.press("ctrl+s")
        assert (app.prompt.text, app.prompt.stashed) == ("second", "first")


async def test_the_external_editor_is_asked_for() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(*"ab", "ctrl+g")
        await pilot.pause()
        assert app.told == ["editor ab"]


async def test_ctrl_c_and_ctrl_d_on_an_empty_prompt_are_the_apps() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+c", "ctrl+d")
        assert app.told == ["ctrl+c", "ctrl+d"]


async def test_a_question_mark_asks_for_help_only_in_an_empty_prompt() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("question_mark", "a", "question_mark")
        assert app.told == ["help"]
        assert app.prompt.text == "a?"


async def test_the_prompt_grows_to_ten_rows() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        assert app.prompt.size.height == 1
        app.prompt.set_text("\n".join("abcd"))
        await pilot.pause()
        assert app.prompt.size.height == 4
        app.prompt.set_text("\n" * 30)
        await pilot.pause()
        assert app.prompt.size.height == 10


async def test_the_placeholder_is_literal() -> None:
    app = Writing()
    async with app.run_test(size=SIZE):
        assert rows(app.prompt)[0] == "Ask [anything]"


async def test_slash_lists_commands_and_tab_takes_one() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(*"/co")
        assert app.menu.labels == ("compact", "context")
        await pilot.press("down", "tab")
        assert app.prompt.text == "/context "
        assert not app.menu.is_open


async def test_enter_on_a_command_sends_it() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(*"/cle", "enter")
        assert await sent(pilot, app) == ["/clear"]


async def test_escape_closes_the_menu_and_leaves_the_text() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("slash", "c", "escape")
        assert not app.menu.is_open
        await pilot.press("o")
        assert not app.menu.is_open
        assert app.prompt.text == "/co"


async def test_at_completes_files_in_mid_sentence_and_quotes_spaces() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(*"see @a b")
        assert not app.menu.is_open
        app.prompt.set_text("see @ab.t")
        await pilot.pause()
        assert app.menu.labels[0] == "src/a b.txt"
        app.prompt.accept_completion()
        assert app.prompt.text == 'see @"src/a b.txt" '


async def test_a_directory_stays_open_for_its_files() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        app.prompt.set_text("@doc")
        await pilot.pause()
        app.prompt.accept_completion()
        assert app.prompt.text == "@docs/"


async def test_a_mail_address_is_no_file() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        app.prompt.set_text("me@src")
        await pilot.pause()
        assert not app.menu.is_open


async def test_a_click_takes_a_candidate() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("slash", "c", "o")
        await pilot.pause()
        await pilot.click(CompletionMenu, offset=(3, 1))
        await pilot.pause()
        assert app.prompt.text == "/context "


async def test_wide_characters_put_the_cursor_at_its_cell() -> None:
    app = Writing()
    async with app.run_test(size=SIZE) as pilot:
        app.prompt.set_text("한글中文ABC")
        await pilot.pause()
        assert app.prompt.cursor_screen_offset.x - app.prompt.content_region.x == 11


def test_a_burst_is_told_by_the_time_between_keys() -> None:
    keys = Burst()
    told: list[tuple[bool, bool]] = []
    for at_s in (1.0, 1.002, 1.1):
        keys.key(at_s)
        keys.newline()
        told.append((keys.is_burst, keys.is_multiline))
    assert told == [(False, False), (True, True), (False, False)]


def test_a_chip_typed_by_hand_is_text() -> None:
    assert Pastes().expand("[Pasted text #1 +3 lines]") == "[Pasted text #1 +3 lines]"
    assert normal_newlines("a\rb\r\nc") == "a\nb\nc"
