"""The first screen, drawn without Textual: the same cells in the same colours as Textual's own first frame.

A test holds the two against each other, cell by cell. Loaded before everything else, so it imports nothing slow.
"""

from __future__ import annotations

from pyagent.ui.instant_line import cells
from pyagent.ui.words import PLACEHOLDER, STARTING, short_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MIN_COLUMNS, MIN_LINES = 56, 10
"""Below this Textual wraps the placeholder or has no room for the conversation; its own first frame is soon enough."""

MAX_TEXT_ROWS = 10
"""A higher draft scrolls within the box."""
MAX_QUEUE_ROWS = 3
_TALL_LINES = 20
_LONGEST_PLACE_CELLS = 32

_FRAME_CELLS = 5
"""Of a row of the prompt: two borders, two blanks beside them and the cell kept free for the cursor at its end."""

COLOURS = {
    "dark": {
        "text": ("213;216;222", 252, 15),
        "muted": ("139;146;158", 246, 7),
        "faint": ("86;92;103", 240, 8),
        "accent": ("143;184;222", 110, 7),
        "placeholder": ("107;109;114", 242, 8),
        "background": ("21;23;27", 233, 0),
        "surface": ("29;32;38", 234, 0),
        "cursor": ("213;216;222", 252, 15),
        "under_cursor": ("21;23;27", 233, 0),
    },
    "light": {
        "text": ("42;45;51", 236, 8),
        "muted": ("103;108;117", 242, 8),
        "faint": ("169;173;180", 248, 7),
        "accent": ("36;98;143", 24, 8),
        "placeholder": ("156;157;158", 246, 7),
        "background": ("251;250;247", 231, 15),
        "surface": ("240;238;233", 230, 15),
        "cursor": ("104;106;109", 241, 8),
        "under_cursor": ("239;240;240", 254, 15),
    },
    "dark grey": {
        "text": ("216;216;216", 252, 15),
        "muted": ("145;145;145", 245, 7),
        "faint": ("92;92;92", 240, 8),
        "accent": ("178;178;178", 248, 7),
        "placeholder": ("109;109;109", 242, 8),
        "background": ("23;23;23", 233, 0),
        "surface": ("32;32;32", 234, 0),
        "cursor": ("216;216;216", 252, 15),
        "under_cursor": ("23;23;23", 233, 0),
    },
    "light grey": {
        "text": ("45;45;45", 235, 8),
        "muted": ("108;108;108", 242, 8),
        "faint": ("173;173;173", 248, 7),
        "accent": ("88;88;88", 240, 8),
        "placeholder": ("157;157;157", 246, 7),
        "background": ("250;250;250", 231, 15),
        "surface": ("238;238;238", 254, 15),
        "cursor": ("106;106;106", 241, 8),
        "under_cursor": ("240;240;240", 255, 15),
    },
}
"""The themes' colours as red;green;blue, among 256 and among 16, as Rich rounds them; grey is for NO_COLOR."""


class Inks:
    """Writes text in the theme's colours, as far as the terminal has them."""

    def __init__(self, environ: Mapping[str, str], theme: str = "") -> None:
        """`theme` is what the settings say.

        Raises:
            ValueError: there are no colours for it here.
        """
        background = environ.get("COLORFGBG", "").rpartition(";")[2]
        theme = theme.strip().lower().removesuffix("-daltonized")
        if theme == "ansi":
            raise ValueError("the terminal's own colours are left to Textual")
        if theme not in COLOURS:
            theme = "light" if background in ("7", "15") else "dark"
        self._colours = COLOURS[f"{theme} grey" if environ.get("NO_COLOR") else theme]
        if environ.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
            self._depth = 0
        elif environ.get("TERM", "").strip().lower().rpartition("-")[2] in ("256color", "kitty"):
            self._depth = 1
        else:
            self._depth = 2

    def paint(self, text: str, ink: str, ground: str = "background", weight: str = "") -> str:
        """The text with the escape sequences around it; `weight` is the code of an attribute."""
        codes = [weight] if weight else []
        return f"\x1b[{';'.join([*codes, self._code(ink, is_ground=False), self._code(ground, is_ground=True)])}m{text}"

    def _code(self, name: str, *, is_ground: bool) -> str:
        rgb, of_256, of_16 = self._colours[name]
        if self._depth == 0:
            return f"{48 if is_ground else 38};2;{rgb}"
        if self._depth == 1:
            return f"{48 if is_ground else 38};5;{of_256}"
        return str(of_16 + (30 if of_16 < 8 else 82) + (10 if is_ground else 0))


class Picture:
    """The first screen at one size. Rows count from 0."""

    def __init__(self, columns: int, lines: int, inks: Inks, *, title: str, model: str, folder: str) -> None:
        self.columns, self.lines = columns, lines
        self._inks, self._title, self._model, self._folder = inks, title, model, folder
        self._place = place(folder)

    def resized(self, columns: int, lines: int) -> Picture:
        """The same screen at another size."""
        return Picture(columns, lines, self._inks, title=self._title, model=self._model, folder=self._folder)

    def is_big_enough(self) -> bool:
        return self.columns >= MIN_COLUMNS and self.lines >= MIN_LINES

    def has_room(self, draft: str, queued: tuple[str, ...]) -> bool:
        """Whether the draft and the queue fit, with two rows of the conversation left."""
        height = len(self.rows(draft))
        return height <= MAX_TEXT_ROWS and self._top(height, len(queued)) >= 2

    def wraps(self, line: str) -> bool:
        """Whether a line of the draft takes several rows."""
        return len(self.rows(line)) > 1

    def rows(self, draft: str) -> list[str]:
        """The rows of the draft in the box."""
        width = max(1, self.columns - _FRAME_CELLS)
        return [row for line in draft.split("\n") for row in wrapped(line, width)]

    def whole(self, draft: str, queued: tuple[str, ...]) -> str:
        """Every row, each put in its place: nothing has to be cleared before."""
        rows = self.rows(draft)[-MAX_TEXT_ROWS:]
        conversation = [self._padded(f"  {self._title}", "accent", "1"), self._padded(f"  {STARTING}", "muted")]
        conversation += [self._padded("", "text")] * max(0, self._queue_top(len(rows), len(queued)) - 2)
        drawn = [
            *conversation[: self._queue_top(len(rows), len(queued))],
            *self._queue_rows(queued),
            self._padded("", "text"),  # where the spinner and hints will stand
            self._border("╭", "╮"),
            *(self._text_row(row, is_last=at == len(rows) - 1, is_empty=not draft) for at, row in enumerate(rows)),
            self._border("╰", "╯"),
            self._status_row(),
        ]
        return "".join(f"\x1b[{at + 1};1H{row}" for at, row in enumerate(drawn[-self.lines :])) + "\x1b[0m"

    def text_rows(self, draft: str) -> str:
        """The rows of the draft only, for when the box has kept its height."""
        rows = self.rows(draft)[-MAX_TEXT_ROWS:]
        first = self.lines - 2 - len(rows)
        return (
            "".join(
                f"\x1b[{first + at + 1};1H{self._text_row(row, is_last=at == len(rows) - 1, is_empty=not draft)}"
                for at, row in enumerate(rows)
            )
            + "\x1b[0m"
        )

    def _top(self, text_rows: int, queued_count: int) -> int:
        """Rows of the conversation, the blank one below it not counted."""
        return self._queue_top(text_rows, queued_count) - (1 if self.lines >= _TALL_LINES else 0)

    def _queue_top(self, text_rows: int, queued_count: int) -> int:
        return self.lines - text_rows - 4 - min(queued_count, MAX_QUEUE_ROWS)

    def _padded(self, text: str, ink: str, weight: str = "") -> str:
        shown = text[: self.columns]
        return (
            self._inks.paint(shown, ink, weight=weight)
            + "\x1b[0m"
            + self._inks.paint(" " * (self.columns - cells(shown)), "text")
        )

    def _border(self, left: str, right: str) -> str:
        return self._inks.paint(f"{left}{'─' * (self.columns - 2)}{right}", "accent")

    def _text_row(self, row: str, *, is_last: bool, is_empty: bool) -> str:
        paint = self._inks.paint
        room = self.columns - 4
        if is_empty:
            hint = PLACEHOLDER[:room]
            inner = paint(hint[:1], "under_cursor", "cursor") + paint(hint[1:].ljust(room - 1), "placeholder")
        elif is_last:
            blank = paint(" " * (room - cells(row) - 1), "text")
            inner = paint(row, "text") + paint(" ", "under_cursor", "cursor") + blank
        else:
            inner = paint(row + " " * (room - cells(row)), "text")
        return paint("│ ", "accent") + inner + paint(" ", "text") + paint("│", "accent")

    def _queue_rows(self, queued: tuple[str, ...]) -> list[str]:
        rows = []
        hidden = len(queued) - MAX_QUEUE_ROWS
        last_remark = f" · and {hidden} more" if hidden > 0 else " · sent once the session is open"
        for at, prompt in enumerate(queued[:MAX_QUEUE_ROWS]):
            remark = last_remark if at == min(len(queued), MAX_QUEUE_ROWS) - 1 else ""
            words = cropped(" ".join(prompt.split()), max(4, self.columns - 16 - len(remark)))
            left = self._inks.paint("  ◌ queued  ", "muted") + self._inks.paint(words, "text")
            blank = " " * (self.columns - 12 - cells(words) - len(remark))
            rows.append(left + self._inks.paint(remark, "muted") + self._inks.paint(blank, "text"))
        return rows

    def _status_row(self) -> str:
        parts = [("text", self._model)] if self._model else []
        if 1 + sum(cells(text) + 3 for _, text in parts) + cells(self._place) <= self.columns:
            parts.append(("muted", self._place))
        row, taken = self._inks.paint(" ", "muted", "surface"), 1
        for at, (ink, text) in enumerate(parts):
            row += self._inks.paint(" · ", "faint", "surface") if at else ""
            row += self._inks.paint(text, ink, "surface")
            taken += cells(text) + (3 if at else 0)
        return row + self._inks.paint(" " * (self.columns - taken), "muted", "surface")


def place(folder: str) -> str:
    """The folder as the status bar shows it."""
    shown = short_path(folder)
    return "…" + shown[-_LONGEST_PLACE_CELLS + 1 :] if cells(shown) > _LONGEST_PLACE_CELLS else shown


def cropped(text: str, room_cells: int) -> str:
    """The text, cut at its end with an ellipsis if it is too long."""
    if cells(text) <= room_cells:
        return text
    while text and cells(text) > room_cells - 1:
        text = text[:-1]
    return text + "…"


def wrapped(line: str, width_cells: int) -> list[str]:
    """The line cut into rows where Textual's text area cuts it: between words, and within one longer than a row."""
    breaks, taken = [0], 0
    for start, chunk in _chunks(line):
        size = cells(chunk)
        if taken + size <= width_cells:
            taken += size
        elif size > width_cells:
            at = start
            for piece in _folded(chunk, width_cells):
                if at:
                    breaks.append(at)
                at, taken = at + len(piece), cells(piece)
        elif start:
            breaks.append(start)
            taken = size
    return [line[a:b] for a, b in zip(breaks, [*breaks[1:], len(line)], strict=True)]


def _chunks(line: str) -> list[tuple[int, str]]:
    """Words with the blanks behind them, and blanks at the start by themselves; each with its place."""
    found, start = [], 0
    for at in range(1, len(line) + 1):
        if at == len(line) or (line[at - 1].isspace() and not line[at].isspace()):
            found.append((start, line[start:at]))
            start = at
    return found


def _folded(chunk: str, width_cells: int) -> list[str]:
    pieces, taken = [""], 0
    for char in chunk:
        size = cells(char)
        if taken + size > width_cells:
            pieces.append("")
            taken = 0
        pieces[-1] += char
        taken += size
    return pieces
