"""What a terminal shows at the end of a stream of bytes: no control sequences, progress bars in their last state."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

SCREEN_ROWS = 60
"""Lines that later output can still change by moving the cursor up: a tall terminal. Older ones are final."""
LINE_CHARS = 65_536
"""A line is held back up to this length; a longer one is final as it stands, so that memory stays bounded."""
SEQUENCE_CHARS = 65_536
"""An unfinished control sequence longer than this is dropped up to its terminator, wherever that comes."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TOKEN = re.compile(
    r"\x1b\[(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])"  # cursor moves, colours, modes
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|(?=\x1b(?!\\)|\Z))"  # titles, links, the clipboard
    r"|\x1b[ -/]*[0-Z\\^-~]"
    r"|(?P<control>[\x00-\x08\x0b-\x1f\x7f-\x9f])"
)
_COLOUR = re.compile("\x1b\\[[0-9;]*+m")
_WITHOUT_EFFECT = re.compile(
    r"\x1b(?:\[[0-?]*+[ -/]*+[@IL-Zabcdegi-km-~]"
    r"|[\]PX^_][^\x07\x1b]*+(?:\x07|\x1b\\|(?=\x1b(?!\\)|\Z))"
    r"|[ -/]*+[0-Z\\^-~])"
)
_LONE_WITHOUT_EFFECT = re.compile("[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
"""Of the tokens those that move nothing: taken out all at once, since coloured output has two or more a line. Each
expression begins with one character or is one class, which `re` finds quickly."""
_STRING = re.compile("\x1b[\\]PX^_]")
"""The next escape ends it, so no colour may be taken out before it. So does the end of the text: what was held back
there begins with an escape."""
_BROKEN = re.compile(r"\x1b(?:\[[0-?]*+)?+[ -/]*+(?=[\x00-\x1f\x7f-\x9f])")
"""A sequence another control breaks off: with that taken out, it would go on where it must not."""
_UNFINISHED = re.compile(r"(?:\x1b(?:[ -/]*|\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?)|\r)\Z")
_TERMINATOR = re.compile("\x07|\x1b\\\\")


class TerminalText:
    """Takes bytes as they come, hands out text that is final.

    `emit` gets lines no later byte can change; `completed` gets each line when its newline comes, for a live display
    that need not be exact. What still can change is kept to `SCREEN_ROWS` lines.
    """

    def __init__(self, emit: Callable[[str], None], completed: Callable[[str], None] = lambda text: None) -> None:
        self._emit, self._completed = emit, completed
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._is_dropping = False
        self._lines = [""]
        self._row = self._column = 0
        self._main_screen: tuple[list[str], int, int] | None = None

    @property
    def partial_line(self) -> str:
        """The last line, if no newline has ended it yet."""
        return self._lines[-1]

    def feed(self, data: bytes, *, is_last: bool = False) -> None:
        text = self._pending + self._decoder.decode(data, is_last)
        self._pending = ""
        if self._is_dropping:
            end = _TERMINATOR.search(text)
            if end is None:
                self._pending = text[-1:] if text.endswith("\x1b") else ""
                return
            text, self._is_dropping = text[end.end() :], False
        # It begins with one of the last two escapes, or is the last character.
        escape = text.rfind("\x1b", 0, max(0, text.rfind("\x1b")))
        start = escape if escape >= 0 else max(0, text.find("\x1b")) if "\x1b" in text else len(text) - 1
        unfinished = _UNFINISHED.search(text, max(0, start, len(text) - SEQUENCE_CHARS))
        if unfinished is not None:
            text = text[: unfinished.start()]
            self._pending = "" if is_last else unfinished[0]
            if len(self._pending) > SEQUENCE_CHARS // 2:
                self._pending, self._is_dropping = "", True
        self._take(text.replace("\r\n", "\n"))

    def flush_lines(self) -> None:
        """Make every finished line final now, for a reader who will not wait."""
        if self._main_screen is None and self._row == len(self._lines) - 1 and self._row:
            self._emit("\n".join(self._lines[:-1]) + "\n")
            self._lines, self._row = [self._lines[-1]], 0

    def finish(self) -> None:
        """The stream has ended: all that is left becomes final."""
        self.feed(b"", is_last=True)
        shown = self._lines
        if self._main_screen is not None:
            main = self._main_screen[0]
            # A full-screen program that was killed: its last frame is the only thing it has to say.
            shown = main if main != [""] else shown
        text = "\n".join(line.rstrip(" ") for line in shown)
        if text:
            self._emit(text)
        self._lines, self._row, self._column, self._main_screen = [""], 0, 0, None

    def _take(self, text: str) -> None:
        if _CONTROL.search(text) is None:
            self._write(text)
            return
        is_broken = "\x1b" in text and _BROKEN.search(text) is not None
        if not is_broken:
            if "\x1b" in text:
                if _STRING.search(text) is None:
                    text = _COLOUR.sub("", text)
                text = _WITHOUT_EFFECT.sub("", text)
            text = _LONE_WITHOUT_EFFECT.sub("", text)
        if is_broken or "\x1b" in text or "\b" in text:
            self._take_tokens(text)
        else:
            self._take_returns(text)

    def _take_returns(self, text: str) -> None:
        """Text with no control but carriage returns: progress bars rewrite one line a hundred thousand times."""
        first, newline, rest = text.partition("\n")
        self._write_folded(first)
        if not newline:
            return
        finished, newline, last = rest.rpartition("\n")
        if "\r" in finished:
            finished = "\n".join(_folded(line) for line in finished.split("\n"))
        self._write(f"\n{finished}{newline}")
        self._write_folded(last)

    def _write_folded(self, line: str) -> None:
        start, has_return, rest = line.partition("\r")
        self._write(start)
        if has_return:
            self._column = 0
            self._write(_folded(rest))
            self._column = len(rest) - (rest.rfind("\r") + 1)

    def _take_tokens(self, text: str) -> None:
        position = 0
        for control in _TOKEN.finditer(text):
            self._write(text[position : control.start()])
            position = control.end()
            if control["final"]:
                self._sequence(control["parameters"], control["final"])
            elif control["control"] == "\r":
                self._column = 0
            elif control["control"] == "\b":
                self._column = max(0, self._column - 1)
        self._write(text[position:])

    def _write(self, text: str) -> None:
        if not text:
            return
        if self._row == len(self._lines) - 1 and self._column == len(self._lines[-1]):
            self._append(text)
            return
        for position, piece in enumerate(text.split("\n")):
            if position:
                self._newline()
            if piece:
                line = self._lines[self._row].ljust(self._column)
                end = self._column + len(piece)
                self._lines[self._row] = line[: self._column] + piece + line[end:]
                self._column = end
        self._settle()

    def _append(self, text: str) -> None:
        first, newline, rest = text.partition("\n")
        self._lines[-1] += first
        if newline:
            self._completed(self._lines[-1] + newline + rest[: rest.rfind("\n") + 1])
            # Only the last rows are taken apart: output comes by the gigabyte.
            cut = len(rest)
            for _ in range(SCREEN_ROWS):
                cut = rest.rfind("\n", 0, cut)
                if cut < 0:
                    break
            if cut >= 0 and self._main_screen is None:
                self._emit("\n".join(self._lines) + "\n" + rest[: cut + 1])
                self._lines = rest[cut + 1 :].split("\n")
            else:
                self._lines += rest.split("\n")
        self._row, self._column = len(self._lines) - 1, len(self._lines[-1])
        self._settle()

    def _newline(self) -> None:
        self._column = 0
        self._row += 1
        if self._row == len(self._lines):
            self._completed(self._lines[-1] + "\n")
            self._lines.append("")

    def _settle(self) -> None:
        surplus = len(self._lines) - SCREEN_ROWS
        if surplus > 0:
            if self._main_screen is None:
                self._emit("\n".join(self._lines[:surplus]) + "\n")
            del self._lines[:surplus]
            self._row = max(0, self._row - surplus)
        if len(self._lines[-1]) > LINE_CHARS:
            if self._main_screen is None:
                self._emit("\n".join(self._lines))
            self._lines, self._row, self._column = [""], 0, 0

    def _sequence(self, parameters: str, final: str) -> None:
        if parameters.startswith("?"):
            if final in "hl" and {"47", "1047", "1049"} & set(parameters[1:].split(";")):
                self._switch_screen(to_alternate=final == "h")
            return
        numbers = [int(part) if part.isdigit() and len(part) < 6 else 0 for part in parameters.split(";")]
        count = max(1, numbers[0])
        match final:
            case "A" | "F":
                self._row = max(0, self._row - count)
                self._column = 0 if final == "F" else self._column
            case "B" | "E":
                self._row = min(len(self._lines) - 1, self._row + count)
                self._column = 0 if final == "E" else self._column
            case "C":
                self._column = min(self._column + count, LINE_CHARS)
            case "D":
                self._column = max(0, self._column - count)
            case "G":
                self._column = min(count - 1, LINE_CHARS)
            case "H" | "f":
                self._row = min(count - 1, SCREEN_ROWS - 1)
                self._lines += [""] * (self._row + 1 - len(self._lines))
                self._column = min(max(1, numbers[1]) - 1, LINE_CHARS) if len(numbers) > 1 else 0
            case "K":
                self._erase_in_line(numbers[0])
            case "J" if numbers[0] == 0:
                del self._lines[self._row + 1 :]
                self._erase_in_line(0)
            case "J" if numbers[0] >= 2:
                self._lines = [""] * (self._row + 1)
            case _:
                pass

    def _erase_in_line(self, mode: int) -> None:
        line = self._lines[self._row]
        match mode:
            case 0:
                line = line[: self._column]
            case 1:
                line = " " * min(self._column + 1, len(line)) + line[self._column + 1 :]
            case _:
                line = ""
        self._lines[self._row] = line

    def _switch_screen(self, *, to_alternate: bool) -> None:
        if to_alternate and self._main_screen is None:
            self._main_screen = (self._lines, self._row, self._column)
            self._lines, self._row, self._column = [""], 0, 0
        elif not to_alternate and self._main_screen is not None:
            self._lines, self._row, self._column = self._main_screen
            self._main_screen = None


def _folded(line: str) -> str:
    """A line as its carriage returns leave it: what comes later covers the beginning of what was there."""
    shown = ""
    for piece in reversed(line.split("\r")):
        if len(piece) > len(shown):
            shown += piece[len(shown) :]
    return shown
