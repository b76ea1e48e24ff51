from __future__ import annotations

import gc

import pytest
from textual.pilot import Pilot
from textual.strip import Strip

from pyagent.ui.blocks import Block, BlockKind, BlockState
from pyagent.ui.theme import ANSI, DARK, LIGHT
from pyagent.ui.transcript import Transcript
from tests.ui.screens import Stage, rows, shown

SIZE = (60, 20)


def turn(number: int) -> list[Block]:
    return [
        Block(f"u{number}", BlockKind.USER, f"prompt {number}"),
        Block(f"a{number}", BlockKind.ASSISTANT, f"## Answer {number}\n\n" + "words and more words " * 8),
        Block(
            f"t{number}",
            BlockKind.TOOL,
            f"call {number}",
            title="Bash",
            state=BlockState.OK,
            detail=f"output of {number}\nsecond row",
        ),
    ]


def turns(count: int) -> list[Block]:
    return [block for number in range(count) for block in turn(number)]


async def staged(pilot: Pilot[None], blocks: list[Block]) -> Transcript:
    transcript = pilot.app.query_one(Transcript)
    transcript.load(blocks)
    transcript.focus()
    await pilot.pause()
    return transcript


async def test_a_loaded_session_shows_its_end() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(50))
        assert rows(transcript)[-1].startswith("  ✓ Bash  call 49")
        assert transcript.follow


async def test_growing_text_is_followed_only_at_the_end() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(10))
        transcript.append(Block("s", BlockKind.ASSISTANT, state=BlockState.STREAMING))
        transcript.append_text("s", "line\n\n" * 30 + "the end")
        await pilot.pause()
        assert rows(transcript)[-1] == "  the end"
        await pilot.press("pageup")
        before = rows(transcript)
        transcript.append_text("s", "\n\nmore" * 5)
        await pilot.pause()
        assert rows(transcript)[:-1] == before[:-1]
        assert not transcript.follow
        assert transcript.unseen_lines == 10
        assert "10 new lines ↓" in rows(transcript)[-1]
        await pilot.press("end")
        assert rows(transcript)[-1] == "  more"
        assert transcript.unseen_lines == 0
        assert transcript.follow


async def test_scrolling_back_down_follows_again() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(10))
        await pilot.press("up", "up")
        assert not transcript.follow
        await pilot.press("down", "down")
        assert transcript.follow


async def test_paging_up_meets_every_row_once() -> None:
    blocks = turns(12)
    async with Stage(Transcript()).run_test(size=(60, 2_000)) as pilot:
        whole = [row for row in rows(await staged(pilot, blocks)) if row]
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, blocks)
        collected = rows(transcript)
        while transcript.scroll_offset.y:
            before = transcript.scroll_offset.y
            await pilot.press("up")
            collected.insert(0, rows(transcript)[0])
            assert transcript.scroll_offset.y < before or transcript.scroll_offset.y == 0 or before > 0
            if len(collected) > 2_000:
                pytest.fail("never reached the top")
        assert [row for row in collected if row] == whole


async def test_a_resize_keeps_the_block_at_the_top() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(50))
        transcript.show_block("u20")
        await pilot.pause()
        assert rows(transcript)[0] == "▌ prompt 20"
        for size in ((100, 24), (36, 15), (60, 20)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert rows(transcript)[0] == "▌ prompt 20"
        assert not transcript.follow


async def test_a_resize_at_the_end_stays_at_the_end() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(50))
        await pilot.resize_terminal(40, 12)
        await pilot.pause()
        assert rows(transcript)[-1].startswith("  ✓ Bash  call 49")


async def test_prompts_are_jumped_between() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(20))
        transcript.show_block("u10")
        await pilot.press("left_curly_bracket")
        assert rows(transcript)[0] == "▌ prompt 9"
        await pilot.press("right_curly_bracket", "right_curly_bracket")
        assert rows(transcript)[0] == "▌ prompt 11"
        await pilot.press("down", "left_curly_bracket")
        assert rows(transcript)[0] == "▌ prompt 11"


async def test_a_click_on_a_headline_unfolds_and_folds() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(1))
        y = next(y for y, row in enumerate(rows(transcript)) if "Bash" in row)
        await pilot.click(Transcript, offset=(5, y))
        assert "output of 0" in shown(transcript)
        await pilot.click(Transcript, offset=(5, y))
        assert "output of 0" not in shown(transcript)


async def test_keys_choose_and_fold_blocks() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(3))
        await pilot.press("home", "J")
        assert transcript.current_id == "t0"
        await pilot.press("enter")
        assert "output of 0" in shown(transcript)
        await pilot.press("J")
        assert transcript.current_id == "t1"
        await pilot.press("K", "enter")
        assert "output of 0" not in shown(transcript)


async def test_search_finds_text_in_folded_blocks_and_unfolds_them() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(30))
        assert transcript.find("OUTPUT of 7") == 1
        await pilot.pause()
        assert "output of 7" in shown(transcript)
        assert transcript.find("nowhere") == 0


async def test_search_goes_round_all_matches() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(5))
        assert transcript.find("prompt") == 5
        seen = []
        for _ in range(5):
            seen.append(next(row for row in rows(transcript) if "prompt" in row))
            transcript.action_find_next(-1)
            await pilot.pause()
        transcript.clear_find()
        assert "▌ prompt 0" in seen


async def test_a_drag_over_blocks_copies_unwrapped_text_without_gutters() -> None:
    blocks = [
        Block("u", BlockKind.USER, "first"),
        Block("a", BlockKind.ASSISTANT, "word " * 20 + "end"),
        Block("n", BlockKind.NOTICE, "last"),
    ]
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, blocks)
        await pilot.mouse_down(Transcript, offset=(0, 0))
        await pilot.hover(Transcript, offset=(40, 5))
        await pilot.mouse_up(Transcript, offset=(40, 5))
        copied = transcript.screen.get_selected_text()
        assert copied == "first\n\n" + "word " * 20 + "end\n\nlast"


@pytest.mark.parametrize("theme_name", [DARK, LIGHT, ANSI])
async def test_selected_text_stays_readable(theme_name: str) -> None:
    async with Stage(Transcript(), theme_name=theme_name).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, [Block("u", BlockKind.NOTICE, "some text")])
        plain = transcript.render_line(0)
        await pilot.mouse_down(Transcript, offset=(4, 0))
        await pilot.hover(Transcript, offset=(7, 0))
        await pilot.mouse_up(Transcript, offset=(7, 0))
        selected = next(segment for segment in transcript.render_line(0) if segment.text == "some")
        assert selected.style is not None
        before = next(segment.style for segment in plain if "some" in segment.text)
        assert selected.style.reverse or selected.style.bgcolor != (before and before.bgcolor)
        assert selected.style.reverse or selected.style.color != selected.style.bgcolor


async def test_an_updated_tool_call_changes_in_place() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(2))
        transcript.append(Block("x", BlockKind.TOOL, "make", title="Bash", state=BlockState.RUNNING))
        await pilot.pause()
        assert rows(transcript)[-1].startswith("  ◌ Bash  make · running")
        transcript.update("x", state=BlockState.FAILED, facts=("exit 2",))
        await pilot.pause()
        assert rows(transcript)[-1].startswith("  ✗ Bash  make · exit 2 · failed")


async def test_changes_in_a_batch_are_all_shown() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, [])
        with transcript.changes():
            for block in turns(3):
                transcript.append(block)
            transcript.update("t2", facts=("exit 0",))
        await pilot.pause()
        assert rows(transcript)[-1].startswith("  ✓ Bash  call 2 · exit 0")


async def test_removing_and_clearing() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(2))
        transcript.remove_block("u1")
        await pilot.pause()
        assert "prompt 1" not in shown(transcript)
        transcript.clear()
        await pilot.pause()
        assert shown(transcript).strip() == ""
        transcript.append(Block("new", BlockKind.USER, "hello"))
        await pilot.pause()
        assert rows(transcript)[0] == "▌ hello"


async def test_the_unseen_count_is_told() -> None:
    counts: list[int] = []

    class Listening(Stage):
        def on_transcript_unseen_changed(self, event: Transcript.UnseenChanged) -> None:
            counts.append(event.line_count)

    async with Listening(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(10))
        await pilot.press("home")
        transcript.append(Block("n", BlockKind.NOTICE, "new"))
        await pilot.pause()
        await pilot.press("end")
        await pilot.pause()
    assert counts == [1, 0] or counts == [2, 0]


@pytest.mark.parametrize("theme_name", [DARK, LIGHT, ANSI])
async def test_every_kind_paints_in_every_theme(theme_name: str) -> None:
    blocks = [
        Block(f"{kind}-{state}", kind, "**text** `code`", title="T", detail="detail", state=state, collapsed=False)
        for kind in BlockKind
        for state in BlockState
    ]
    async with Stage(Transcript(), theme_name=theme_name).run_test(size=(80, 24)) as pilot:
        transcript = await staged(pilot, blocks)
        while transcript.scroll_offset.y:
            await pilot.press("pageup")
            rows(transcript)


async def test_literal_brackets_and_control_characters_reach_the_screen_inert() -> None:
    text = "[/foo] [@click=app.quit]x[/] \x1b[31m"
    blocks = [Block(kind.value, kind, text, title=text, detail=text, collapsed=False) for kind in BlockKind]
    async with Stage(Transcript()).run_test(size=(120, 60)) as pilot:
        transcript = await staged(pilot, blocks)
        assert "[@click=app.quit]x[/] ␛[31m" in shown(transcript)
        assert "\x1b" not in shown(transcript)


async def test_two_thousand_turns_keep_few_blocks_rendered() -> None:
    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(2_000))
        assert len(transcript._model._rendered) < 60
        transcript.show_block("u1000")
        await pilot.pause()
        assert rows(transcript)[0] == "▌ prompt 1000"


async def test_what_is_kept_of_rows_that_were_read_has_a_limit() -> None:
    def alive() -> int:
        gc.collect()
        return sum(isinstance(held, Strip) for held in gc.get_objects())

    async with Stage(Transcript()).run_test(size=SIZE) as pilot:
        transcript = await staged(pilot, turns(120))
        seen: list[int] = []
        for _ in range(3):
            for _ in range(25):
                await pilot.press("pageup")
            seen.append(alive())
        assert transcript.scroll_offset.y > 0
    # Ten rows come in with each page: the first pages fill what is kept, the later ones replace it.
    assert seen[2] < 1.2 * seen[1]
