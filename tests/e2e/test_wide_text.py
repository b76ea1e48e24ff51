"""Columns on a terminal that counts cells by code point: joined and combining characters must shift nothing."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.served import is_idle, pyagent_on, serving
from tests.fakes.script import Script, reply
from tests.ui.nasty import NASTY

SHORT = [text for text in NASTY if 0 < len(text) < 40 and "\r" not in text and "|" not in text and "\ud800" not in text]
COLUMNS = 72


def test_frames_tables_and_bars_keep_their_columns(tmp_path: Path) -> None:
    rows = "".join(f"| {text} | ¦ |\n" for text in SHORT)
    answer = f"| text | mark |\n|---|---|\n{rows}\n" + "\n\n".join(SHORT) + "\n\nThe end."
    with (
        serving(Script([reply(answer, delta_chars=7)])) as server,
        pyagent_on(server, tmp_path, columns=COLUMNS, lines=90) as terminal,
    ):
        terminal.wait_for(is_idle)
        terminal.paste("\n".join(SHORT[:8]) + "\nas it is")
        terminal.wait_for("as it is")
        framed = [row for row in terminal.cells if row[0] == "│"]
        assert len(framed) == 9
        assert all(row[-1] == "│" for row in framed), framed
        terminal.press("enter")
        terminal.wait_for(lambda screen: "The end." in screen and is_idle(screen))
        marks = [row.index("¦") for row in terminal.cells if "¦" in row]
        bars = [row.index("│") for row in terminal.cells if "¦" in row]
        assert len(marks) == len(SHORT)
        assert len(set(marks)) == 1
        assert len(set(bars)) == 1
        widths = {sum(1 for cell in row if cell != "") for row in terminal.cells}
        assert max(widths) <= COLUMNS
