from __future__ import annotations

from rich.color import ColorSystem
from rich.text import Text

from pyagent.ui.blocks import Block, BlockKind, BlockState
from pyagent.ui.diff import diff_lines
from pyagent.ui.theme import ANSI, palette
from pyagent.ui.transcript_text import newest_rows, source_text, terminal_row

BLOCKS = [
    Block("u", BlockKind.USER, "do it\nnow"),
    Block("i", BlockKind.IMAGE, "640×480", title="image"),
    Block("k", BlockKind.THINKING, "hm"),
    Block("t", BlockKind.TOOL, "seq 50", "Bash", "\n".join(map(str, range(50))), BlockState.OK, facts=("50 lines",)),
    Block("e", BlockKind.TOOL, "a.py", "Edit", state=BlockState.OK, diff=diff_lines("x = 1\n", "x = 2\n")),
    Block("b", BlockKind.BOUNDARY, "167k → 24k tokens", detail="The summary.", facts=("summary",)),
    Block("a", BlockKind.ASSISTANT, "All **done**.\x1b[2J"),
]


def test_the_source_holds_everything_in_full_and_inert() -> None:
    text = source_text(BLOCKS)
    assert text.startswith(
        "> do it\n> now\n\n[image  640×480]\n\n(thinking)\n    hm\n\nBash  seq 50 · 50 lines\n    0\n"
    )
    assert "\n    49\n\nEdit  a.py\n    -x = 1\n    +x = 2\n\n167k → 24k tokens · summary\n    The summary.\n" in text
    assert text.endswith("\n\nAll **done**.␛[2J\n")


def test_rows_for_the_scrollback_are_unfolded_and_uncut() -> None:
    rows, left_out_count = newest_rows(BLOCKS, 60)
    texts = [row.text for row in rows]
    assert left_out_count == 0
    assert "    │ 49" in texts
    assert "  The summary." in texts
    assert "  All done.␛[2J" in texts


def test_of_a_long_session_the_newest_rows_are_taken() -> None:
    rows, left_out_count = newest_rows(BLOCKS * 100, 60, 200)
    assert len(rows) == 200
    assert rows[-1].text == "  All done.␛[2J"
    assert left_out_count > 600


def test_a_row_for_the_terminal_is_its_text_in_colour_and_without_colour_where_that_is_wished() -> None:
    rows, _ = newest_rows(BLOCKS, 60)
    for row in rows:
        coloured = terminal_row(row, palette(ANSI), ColorSystem.TRUECOLOR, has_colour=True)
        plain = terminal_row(row, palette(ANSI), ColorSystem.TRUECOLOR, has_colour=False)
        assert Text.from_ansi(coloured).plain == Text.from_ansi(plain).plain == row.text
        assert "\x1b[3" not in plain.replace("\x1b[3m", "")
