"""Every row is as wide as the screen, in cells, whatever text is in it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from pyagent.events import Question, QuestionOption
from pyagent.ui.block_view import block_lines
from pyagent.ui.blocks import Block, BlockKind, BlockState
from pyagent.ui.busy import busy_line
from pyagent.ui.completion import Candidate, candidate_line
from pyagent.ui.dialogs.approval import ApprovalRequest, ApprovalScreen, request_lines
from pyagent.ui.dialogs.help import HelpSection, help_layout
from pyagent.ui.dialogs.picker import PickerItem, PickerScreen
from pyagent.ui.dialogs.question import QuestionScreen
from pyagent.ui.dialogs.transcript_view import key_line
from pyagent.ui.diff import diff_lines
from pyagent.ui.fuzzy import FuzzyMatch
from pyagent.ui.gauge import GaugeModel, StatusModel
from pyagent.ui.lines import Line, inert
from pyagent.ui.markdown import markdown_lines
from pyagent.ui.prompt import Prompt
from pyagent.ui.statusbar import StatusBar, status_line
from pyagent.ui.strips import line_strip, painted
from pyagent.ui.theme import DARK, palette
from pyagent.ui.transcript import Transcript
from tests.ui.nasty import NASTY, NASTY_TEXTS
from tests.ui.screens import Stage

WIDTHS = st.sampled_from([1, 2, 3, 5, 8, 13, 20, 37, 60, 80, 120])
COLOURS = palette(DARK)
ACTING = set(map(chr, [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]))
"""Characters that move the cursor, ring, or turn the text around."""
SELECTED = [(0, 3, Style(reverse=True)), (2, -1, Style(bold=True))]


def assert_fills(line: Line, width_cells: int) -> None:
    strip = line_strip(line, COLOURS, width_cells, Style())
    for shown in (strip, painted(strip, SELECTED)):
        assert shown.cell_length == width_cells, line
        assert sum(cell_len(segment.text) for segment in shown) == width_cells, line
        assert not set(shown.text) & ACTING, line


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(BlockKind), st.sampled_from(BlockState), NASTY_TEXTS, NASTY_TEXTS, WIDTHS)
def test_every_row_of_every_block_fills_the_width(
    kind: BlockKind, state: BlockState, text: str, other: str, width_cells: int
) -> None:
    diff = diff_lines(text, other)
    block = Block("b", kind, text, other, f"{text}\n{other}", state, False, (text, other), diff)
    for line in block_lines(block, width_cells):
        assert_fills(line, width_cells)
        assert width_cells < 20 or cell_len(line.text) <= width_cells, line


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(NASTY), st.sampled_from(NASTY), st.sampled_from([20, 37, 60, 120]))
def test_rows_of_markdown_keep_to_the_width(text: str, other: str, width_cells: int) -> None:
    source = (
        f"# {text}\n\n- {other}\n  - {text}\n\n> {text}\n\n```\n{other}\n```\n\n|a|{text}|\n|-|-|\n|{other}|{text}|\n"
    )
    for line in markdown_lines(source, width_cells):
        assert not set(line.text) & ACTING, line
        assert cell_len(line.text) <= width_cells, line


@given(NASTY_TEXTS, NASTY_TEXTS, WIDTHS)
def test_the_bars_fill_the_width(text: str, other: str, width_cells: int) -> None:
    status = StatusModel(model=text, mode=other, cwd=text, branch=other, activity=other, gauge=GaugeModel(5_000, 9_000))
    for line in (
        status_line(status, width_cells),
        busy_line(text, 3.0, 1_200, width_cells),
        key_line(text, width_cells),
    ):
        assert_fills(line, width_cells)


@given(NASTY_TEXTS, NASTY_TEXTS, WIDTHS)
def test_rows_of_the_menu_fill_the_width(text: str, other: str, width_cells: int) -> None:
    match = FuzzyMatch(1, (0, 1, 4))
    assert_fills(candidate_line(Candidate(text, other), match, width_cells, 12, is_chosen=True), width_cells)


@given(NASTY_TEXTS, st.lists(NASTY_TEXTS, min_size=2, max_size=3), st.sampled_from([20, 37, 60, 120]))
def test_rows_of_the_dialogs_fill_the_width(text: str, options: list[str], width_cells: int) -> None:
    request = ApprovalRequest(text, text, options[0], diff=diff_lines(text, options[1]))
    for line in request_lines(request, width_cells):
        assert_fills(line, width_cells)
    for line in help_layout([HelpSection(text, tuple((option, text) for option in options))])(width_cells):
        assert_fills(line, width_cells)


async def test_columns_of_dialogs_and_menus_stay_true_on_the_whole_screen() -> None:
    """Each row the compositor puts together, frames and scrollbars included, has the screen's width."""
    items = [PickerItem(str(number), text, text) for number, text in enumerate(NASTY)]
    questions = (Question(NASTY[2], "\n".join(NASTY[:4]), tuple(QuestionOption(t, t) for t in NASTY[2:6])),)
    request = ApprovalRequest("Bash", "\n".join(NASTY), NASTY[4])
    async with Stage(Transcript(), Prompt(), StatusBar()).run_test(size=(61, 30)) as pilot:
        pilot.app.query_one(Prompt).set_text("\n".join(map(inert, NASTY[:10])))
        transcript = pilot.app.query_one(Transcript)
        transcript.load(
            Block(f"{kind}{number}", kind, text, text, text, collapsed=False)
            for number, text in enumerate(NASTY)
            for kind in BlockKind
        )
        for screen in (None, PickerScreen("p", items), QuestionScreen(questions), ApprovalScreen(request)):
            if screen is not None:
                pilot.app.push_screen(screen)
            await pilot.pause()
            for strip in pilot.app.screen._compositor.render_strips():
                assert sum(cell_len(segment.text) for segment in strip) == 61
                assert not set(strip.text) & ACTING
