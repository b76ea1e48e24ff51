"""The input line in the whole program: shell commands, memories, vim, keys, images and drafts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual import events

from pyagent.commands import LetRunOn, RunCommand, RunShell, SubmitPrompt
from pyagent.events import PromptReturned, QueueChanged, ToolFinished, ToolStarted, TurnFinished, TurnStarted
from pyagent.log import ShellRan
from pyagent.ui.blocks import BlockKind
from pyagent.ui.completion import CompletionMenu
from pyagent.ui.dialogs.help import HelpScreen
from pyagent.ui.dialogs.picker import PickerScreen
from pyagent.ui.drafts import Draft
from pyagent.ui.images import kept_image
from pyagent.ui.task_panel import TaskPanel
from tests.pictures import png
from tests.ui.fake_agent import opened
from tests.ui.records import tool_ran
from tests.ui.test_app import Session, session


async def write(s: Session, text: str) -> None:
    """Type any characters, one after the other."""
    for char in text:
        s.app.post_message(events.Key("enter" if char == "\n" else char, char))
        await s.pilot.pause()


async def test_a_command_for_the_shell_is_marked_by_a_word_and_sent_as_one(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await write(s, "!ls -l")
        assert s.prompt.border_title == "shell"
        await s.pilot.press("enter")
        await s.until(lambda: s.agent.sent(RunShell) == [RunShell("ls -l")])
        assert s.prompt.border_title == ""
        assert s.agent.sent(SubmitPrompt) == []


async def test_a_private_command_says_that_the_model_is_not_told(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await write(s, "!!env")
        assert s.prompt.border_title == "shell, not told to the model"
        await s.pilot.press("enter")
        await s.until(lambda: s.agent.sent(RunShell) == [RunShell("env", is_private=True)])


async def test_what_a_command_says_stands_in_the_transcript_unfolded(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.emit(ToolStarted("r1", "Shell", "ls", {"command": "ls"}))
        assert "Shell" in s.busy_words
        record = s.recorder.commit(ShellRan("r1", "ls", "a\nb", display={"summary": "2 lines", "private": True}))
        await s.emit(record, ToolFinished("r1", "Shell", "ls", False, "a\nb", 0.1, {"summary": "2 lines"}))
        block = s.transcript.block("tool:r1")
        assert (block.text, block.detail, block.is_collapsed) == ("ls", "a\nb", False)
        assert s.busy_words == ""


async def test_a_replayed_command_looks_the_same(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        record = s.recorder.commit(ShellRan("r1", "ls", "a", display={"summary": "1 line", "private": True}))
        await s.emit(record)
        assert s.transcript.block("tool:r1").facts == ("1 line", "not told to the model")


async def test_a_pasted_text_that_begins_with_an_exclamation_mark_is_no_command(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        pasted = "!important\n" * 20
        s.prompt.paste(pasted)
        assert not s.prompt.border_title
        await s.pilot.press("enter")
        await s.until(lambda: s.agent.sent(SubmitPrompt))
        assert s.agent.sent(RunShell) == []


async def test_words_to_remember_ask_where_and_go_there(tmp_path: Path) -> None:
    async with session(tmp_path, (opened(cwd=str(tmp_path)),)) as s:
        await write(s, "# use tabs")
        assert s.prompt.border_title == "memory"
        await s.pilot.press("enter")
        await s.until(lambda: isinstance(s.app.screen, PickerScreen))
        await s.pilot.press("down", "enter")
        await s.until(lambda: s.agent.sent(RunCommand) == [RunCommand("remember", "user use tabs")])


async def test_words_that_are_not_remembered_return_to_the_line(tmp_path: Path) -> None:
    async with session(tmp_path, (opened(cwd=str(tmp_path)),)) as s:
        await write(s, "# use tabs")
        await s.pilot.press("enter")
        await s.until(lambda: isinstance(s.app.screen, PickerScreen))
        await s.pilot.press("escape")
        await s.until(lambda: s.prompt.text == "# use tabs")


async def test_a_text_of_several_lines_that_begins_with_a_heading_is_a_prompt(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        s.prompt.set_text("# Plan\nfirst this")
        await s.pilot.press("enter")
        await s.until(lambda: s.agent.sent(SubmitPrompt) == [SubmitPrompt("# Plan\nfirst this")])


# ── vim ──


async def test_vim_from_the_settings_edits_the_line_and_escape_stops_the_turn_only_in_normal_mode(
    tmp_path: Path,
) -> None:
    async with session(tmp_path, (opened(is_vim=True),)) as s:
        await s.until(lambda: s.prompt.border_subtitle == "INSERT")
        await write(s, "one two three")
        await s.pilot.press("escape")
        assert s.prompt.border_subtitle == "NORMAL"
        await write(s, "bdw")
        assert s.prompt.text == "one two "
        await s.pilot.press("u")
        assert s.prompt.text == "one two three"
        await s.pilot.press("ctrl+r")
        assert s.prompt.text == "one two "
        await s.emit(TurnStarted("u0"))
        await s.pilot.press("i", "escape")
        assert s.view.status.is_busy
        assert [type(c).__name__ for c in s.agent.commands if type(c).__name__ == "Interrupt"] == []
        await s.pilot.press("escape")
        assert [type(c).__name__ for c in s.agent.commands if type(c).__name__ == "Interrupt"] == ["Interrupt"]


async def test_vims_selection_shows_and_the_next_prompt_begins_with_typing(tmp_path: Path) -> None:
    async with session(tmp_path, (opened(is_vim=True),)) as s:
        await s.until(lambda: s.prompt.border_subtitle == "INSERT")
        await write(s, "one two")
        await s.pilot.press("escape")
        await write(s, "0ve")
        assert s.prompt.border_subtitle == "VISUAL"
        assert s.prompt.selected_text == "one"
        await write(s, "d")
        assert s.prompt.text == " two"
        await s.pilot.press("enter")
        await s.until(lambda: s.agent.sent(SubmitPrompt))
        assert s.prompt.border_subtitle == "INSERT"


async def test_letters_that_are_no_command_of_vims_are_not_text(tmp_path: Path) -> None:
    async with session(tmp_path, (opened(is_vim=True),)) as s:
        await s.until(lambda: s.prompt.border_subtitle == "INSERT")
        await write(s, "ab")
        await s.pilot.press("escape")
        await write(s, "qzé")
        assert s.prompt.text == "ab"


async def test_a_sequence_from_the_settings_ends_vims_insertion(tmp_path: Path) -> None:
    async with session(tmp_path, (opened(is_vim=True, insert_remaps=(("jj", "<Esc>"),)),)) as s:
        await s.until(lambda: s.prompt.border_subtitle == "INSERT")
        await write(s, "abjj")
        assert (s.prompt.text, s.prompt.border_subtitle) == ("ab", "NORMAL")


async def test_the_command_switches_vim_on_and_off(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.type("/vim", "enter")
        await s.until(lambda: s.prompt.border_subtitle == "INSERT")
        await s.type("/vim", "enter")
        await s.until(lambda: s.prompt.border_subtitle == "")


async def test_vim_switched_on_before_the_session_is_open_stays_on(tmp_path: Path) -> None:
    async with session(tmp_path, ()) as s:
        await s.type("/vim", "enter")
        await s.until(lambda: s.prompt.border_subtitle == "INSERT")
        await s.emit(opened(is_vim=False, insert_remaps=(("jj", "<Esc>"),)))
        assert s.prompt.border_subtitle == "INSERT"
        await write(s, "abjj")
        assert (s.prompt.text, s.prompt.border_subtitle) == ("ab", "NORMAL")


# ── keys ──


async def test_the_shells_own_keys_cut_and_bring_back(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.type("one two three")
        await s.pilot.press("ctrl+w", "ctrl+a", "alt+d")
        assert s.prompt.text == " two "
        await s.pilot.press("ctrl+e", "ctrl+y")
        assert s.prompt.text == " two one"
        await s.pilot.press("alt+y")
        assert s.prompt.text == " two three"
        await s.pilot.press("ctrl+b", "ctrl+b", "ctrl+f", "ctrl+k")
        assert s.prompt.text == " two thre"


async def test_ctrl_b_leaves_a_running_command_to_the_background(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.emit(TurnStarted("u0"), ToolStarted("t1", "Bash", "Bash make", {"command": "make"}))
        await s.pilot.press("ctrl+b")
        assert s.agent.sent(LetRunOn) == [LetRunOn()]


async def test_alt_t_switches_thinking(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.pilot.press("alt+t")
        assert s.agent.sent(RunCommand) == [RunCommand("thinking")]


async def test_ctrl_t_shows_the_task_list_and_hides_it_again(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        panel = s.app.query_one(TaskPanel)

        def rows() -> list[str]:
            return list(panel.shown)

        await s.pilot.press("ctrl+t")
        assert "no task list" in s.busy_words
        tasks = [{"content": "read", "status": "completed"}, {"content": "write", "status": "in_progress"}]
        await s.emit(s.recorder.commit(tool_ran("t1", "TodoWrite", tasks=tasks)))
        assert rows() == []
        await s.pilot.press("ctrl+t")
        assert rows() == ["[x] read", "[~] write"]
        await s.pilot.press("ctrl+t")
        assert rows() == []


async def test_a_chord_is_one_key_and_its_first_key_alone_does_nothing(tmp_path: Path) -> None:
    home = tmp_path / "pyagent-home"
    home.mkdir()
    (home / "keybindings.json").write_text('{"Chat": {"chat:stash": "ctrl+x ctrl+s"}}')
    async with session(tmp_path) as s:
        await s.type("ab")
        await s.pilot.press("ctrl+x", "c")
        assert s.prompt.text == "abc"
        await s.pilot.press("ctrl+x")
        assert "Ctrl+X …" in s.busy_words
        await s.pilot.press("ctrl+s")
        assert (s.prompt.text, s.prompt.stashed) == ("", "abc")


async def test_keys_of_a_file_are_in_force_and_help_shows_them(tmp_path: Path) -> None:
    home = tmp_path / "pyagent-home"
    home.mkdir()
    content = {"Chat": {"chat:stash": "ctrl+e", "chat:submit": "f5", "chat:cycleMode": "ctrl+n"}}
    (home / "keybindings.json").write_text(json.dumps(content))
    async with session(tmp_path) as s:
        await s.type("ab", "enter", "c", "ctrl+e")
        assert (s.prompt.text, s.prompt.stashed) == ("", "ab\nc")
        await s.type("go", "f5")
        await s.until(lambda: s.agent.sent(SubmitPrompt) == [SubmitPrompt("go")])
        await s.pilot.press("ctrl+n")
        await s.until(lambda: s.agent.sent(RunCommand) == [RunCommand("mode", "acceptEdits")])
        await s.pilot.press("?")
        assert isinstance(s.app.screen, HelpScreen)


async def test_dialogs_take_the_keys_of_the_file_too(tmp_path: Path) -> None:
    home = tmp_path / "pyagent-home"
    home.mkdir()
    (home / "keybindings.json").write_text('{"Select": {"select:accept": "f5"}}')
    async with session(tmp_path, (opened(cwd=str(tmp_path)),)) as s:
        await write(s, "# use tabs")
        await s.pilot.press("enter")
        await s.until(lambda: isinstance(s.app.screen, PickerScreen))
        await s.pilot.press("f5")
        await s.until(lambda: s.agent.sent(RunCommand) == [RunCommand("remember", "project use tabs")])


async def test_a_mistake_in_the_file_is_told_in_one_line(tmp_path: Path) -> None:
    home = tmp_path / "pyagent-home"
    home.mkdir()
    (home / "keybindings.json").write_text('{"Chat": {"chat:stahs": "ctrl+e"}}')
    async with session(tmp_path) as s:
        await s.until(lambda: any("chat:stahs" in text for text in s.texts(BlockKind.NOTICE)))
        notices = [text for text in s.texts(BlockKind.NOTICE) if "chat:stahs" in text]
        assert len(notices) == 1
        assert "the nearest is chat:stash" in notices[0]


async def test_names_that_are_known_only_later_are_offered_then(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await write(s, "see @zeb")
        (tmp_path / "zebra.txt").touch()
        s.app.index_files(tmp_path)
        await s.until(lambda: s.app.query_one(CompletionMenu).labels == ("zebra.txt",))


# ── images ──


class OneImage:
    """A clipboard that holds this, or refuses."""

    def __init__(self, data: bytes = b"", problem: str = "") -> None:
        self.data, self.problem = data, problem

    def image(self) -> bytes:
        if self.problem:
            raise OSError(self.problem)
        return self.data


async def test_the_clipboards_image_becomes_a_chip_and_goes_with_the_prompt(tmp_path: Path) -> None:
    async with session(tmp_path, clipboard=OneImage(png(64, 48))) as s:
        await s.type("what is ")
        await s.pilot.press("ctrl+v")
        await s.until(lambda: s.prompt.text == "what is [Image #1 64×48] ")
        await s.pilot.press("enter")
        await s.until(lambda: s.agent.sent(SubmitPrompt))
        sent = s.agent.sent(SubmitPrompt)[0]
        assert isinstance(sent, SubmitPrompt)
        assert sent.text == "what is [Image #1 64×48]"
        assert sent.images == (str(kept_image(png(64, 48), tmp_path / "pyagent-home")),)
        await s.pilot.press("up")
        assert s.prompt.text == f'what is @"{sent.images[0]}"'


@pytest.mark.parametrize(
    ("clipboard", "words"),
    [(OneImage(), "no image"), (OneImage(b"text"), "no kind"), (OneImage(problem="Over SSH …"), "Over SSH")],
)
async def test_without_an_image_one_line_says_why(tmp_path: Path, clipboard: OneImage, words: str) -> None:
    async with session(tmp_path, clipboard=clipboard) as s:
        await s.pilot.press("ctrl+v")
        await s.until(lambda: words in s.busy_words)
        assert s.prompt.text == ""


async def test_a_dropped_image_becomes_a_chip_that_one_backspace_takes_away(tmp_path: Path) -> None:
    (tmp_path / "my shot.png").write_bytes(png(6, 4))
    async with session(tmp_path) as s:
        s.app.post_message(events.Paste(str(tmp_path / "my shot.png").replace(" ", "\\ ")))
        await s.until(lambda: s.prompt.text == "[Image #1 6×4] ")
        await s.pilot.press("backspace", "backspace")
        assert s.prompt.text == ""


async def test_a_prompt_that_returns_still_knows_its_chips(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(6, 4))
    long = "x\n" * 50
    async with session(tmp_path) as s:
        s.prompt.paste(long)
        s.prompt.paste(str(tmp_path / "a.png"))
        shown = s.prompt.text.rstrip()
        await s.pilot.press("enter")
        await s.until(lambda: s.agent.sent(SubmitPrompt))
        sent = s.agent.sent(SubmitPrompt)[0]
        assert isinstance(sent, SubmitPrompt)
        assert sent.display == shown
        await s.emit(PromptReturned(sent.text, sent.display))
        await s.pilot.press("enter")
        await s.until(lambda: len(s.agent.sent(SubmitPrompt)) == 2)
        assert s.agent.sent(SubmitPrompt)[1] == sent


async def test_a_prompt_of_another_run_returns_in_full(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.emit(QueueChanged((("q", "the whole text"),)))
        await s.emit(PromptReturned("the whole text", "[Pasted text #7 +3 lines]"))
        assert s.prompt.text == "the whole text"


# ── drafts ──


async def test_a_draft_is_there_again_after_the_program_was_left(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.type("half a thought")
        folder = tmp_path / "pyagent-home" / "drafts"
        await s.until(lambda: any("half a thought" in path.read_text() for path in folder.glob("*.json")))
    (left,) = (tmp_path / "pyagent-home" / "drafts").glob("*.json")
    left.rename(left.with_name(left.name.replace(left.suffixes[-2], ".999999999")))
    async with session(tmp_path) as s:
        await s.until(lambda: s.prompt.text == "half a thought")
        assert "draft of an earlier run" in s.busy_words


async def test_a_draft_waits_aside_while_something_else_was_typed_already(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        s.prompt.bring_back(Draft("an old thought"), is_aside=True)
        assert (s.prompt.text, s.prompt.stashed) == ("", "an old thought")
        await s.pilot.press("ctrl+s")
        assert s.prompt.text == "an old thought"


async def test_a_sign_with_nothing_behind_it_stays_in_the_line(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await write(s, "!")
        await s.pilot.press("enter")
        await s.until(lambda: "nothing behind" in s.busy_words)
        assert s.prompt.text == "!"
        assert s.agent.sent(RunShell) == []


async def test_a_sent_prompt_is_no_draft(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.type("whole thought")
        await s.until(lambda: list((tmp_path / "pyagent-home" / "drafts").glob("*.json")))
        await s.pilot.press("enter")
        await s.until(lambda: not list((tmp_path / "pyagent-home" / "drafts").glob("*.json")))
        await s.emit(TurnStarted("u0"), TurnFinished("end_turn", 1, 0.1))
        assert s.prompt.text == ""
