"""A terminal emulator for tests: pyte for the cells, and what pyte lacks around it.

That is: the alternate screen, modes (mouse, bracketed paste, kitty keyboard, synchronised output), answers to the
queries applications send, and skipping sequences that pyte would print or misread.
"""

import codecs
import re
from collections import deque
from dataclasses import dataclass, field

import pyte

SCROLLBACK_LINES = 5_000

_SEQUENCE = re.compile(
    r"\x1b\[(?P<params>[0-?]*)(?P<middle>[ -/]*)(?P<final>[@-~])"
    r"|\x1b\](?P<osc>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1b[P_^X](?:[^\x1b]|\x1b(?!\\))*\x1b\\",
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[P_^X](?:[^\x1b]|\x1b(?!\\))*\x1b?)?$")

_ALTERNATE = frozenset({47, 1047, 1049})
_MOUSE = frozenset({1000, 1001, 1002, 1003, 1005, 1006, 1015, 1016})
_CURSOR, _FOCUS, _PASTE, _SYNCHRONISED = 25, 1004, 2004, 2026


@dataclass(slots=True)
class Modes:
    """What an application has switched on and has to switch off before it leaves."""

    private: set[int] = field(default_factory=set)
    """DEC private modes that are set, the cursor (25) apart."""
    is_cursor_visible: bool = True
    kitty_flags: list[int] = field(default_factory=list)
    """The stack of kitty keyboard flags."""
    modify_other_keys: int = 0
    title: str = ""
    saved_titles: list[str] = field(default_factory=list)

    @property
    def is_alternate_screen(self) -> bool:
        return bool(self.private & _ALTERNATE)

    @property
    def has_mouse(self) -> bool:
        return bool(self.private & _MOUSE)

    @property
    def has_bracketed_paste(self) -> bool:
        return _PASTE in self.private

    @property
    def reports_focus(self) -> bool:
        return _FOCUS in self.private

    def leftovers(self) -> list[str]:
        """What is still on that a shell would suffer from."""
        found = {
            "alternate screen": self.is_alternate_screen,
            "mouse": self.has_mouse,
            "bracketed paste": self.has_bracketed_paste,
            "focus reports": self.reports_focus,
            "synchronised output": _SYNCHRONISED in self.private,
            "hidden cursor": not self.is_cursor_visible,
            "kitty keyboard": any(self.kitty_flags),
            "modifyOtherKeys": self.modify_other_keys > 0,
            "window title": bool(self.saved_titles),
        }
        return [name for name, is_on in found.items() if is_on]


class _ScrollingScreen(pyte.Screen):
    """Keeps the lines that scroll out at the top; pyte's own history screen is several times slower."""

    def __init__(self, columns: int, lines: int) -> None:
        self.gone: deque[str] = deque(maxlen=SCROLLBACK_LINES)
        super().__init__(columns, lines)

    def index(self) -> None:
        top, bottom = self.margins or (0, self.lines - 1)
        if self.cursor.y == bottom and top == 0:
            row = self.buffer[0]
            self.gone.append("".join(row[x].data for x in range(self.columns)).rstrip())
        super().index()


class Emulator:
    """Takes the bytes an application writes; holds the screen and the answers due to it."""

    def __init__(self, columns: int, lines: int, *, has_kitty_keyboard: bool = False) -> None:
        self._main = _ScrollingScreen(columns, lines)
        self._alternate = pyte.Screen(columns, lines)
        self._streams = {False: pyte.Stream(self._main), True: pyte.Stream(self._alternate)}
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._pending = ""
        self._has_kitty_keyboard = has_kitty_keyboard
        self._replies = b""
        self.modes = Modes()

    @property
    def screen(self) -> pyte.Screen:
        """The screen that is shown."""
        return self._alternate if self.modes.is_alternate_screen else self._main

    @property
    def lines(self) -> list[str]:
        """The lines shown, without trailing blanks."""
        # pyte's own `display` fails on the half of a wide character that was written over.
        screen = self.screen
        rows = (screen.buffer[y] for y in range(screen.lines))
        return ["".join(row[x].data for x in range(screen.columns)).rstrip() for row in rows]

    @property
    def scrollback(self) -> list[str]:
        """Lines that left the main screen at its top, oldest first."""
        return list(self._main.gone)

    @property
    def is_settled(self) -> bool:
        """False within a synchronised update, when the cells may be half drawn."""
        return _SYNCHRONISED not in self.modes.private

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of both screens."""
        self._main.resize(lines, columns)
        self._alternate.resize(lines, columns)

    def take_replies(self) -> bytes:
        """The answers to the application's queries since the last call."""
        replies, self._replies = self._replies, b""
        return replies

    def feed(self, data: bytes) -> None:
        """Take output of the application; sequences may be split between calls."""
        text = self._pending + self._decode(data)
        unfinished = _UNFINISHED.search(text)
        self._pending = text[unfinished.start() :] if unfinished else ""
        text = text[: unfinished.start()] if unfinished else text
        at = 0
        for match in _SEQUENCE.finditer(text):
            self._draw(text[at : match.start()])
            at = match.end()
            if match["osc"] is not None:
                self._on_osc(match["osc"])
            elif match["final"] is not None:
                self._on_csi(match["params"], match["middle"], match["final"])
        self._draw(text[at:])

    def _draw(self, text: str) -> None:
        if text:
            self._streams[self.modes.is_alternate_screen].feed(text)

    def _reply(self, text: str) -> None:
        self._replies += text.encode()

    def _on_osc(self, body: str) -> None:
        code, _, rest = body.partition(";")
        if code in ("0", "2"):
            self.modes.title = rest
        elif code in ("10", "11") and rest == "?":
            colour = "ffff/ffff/ffff" if code == "10" else "0000/0000/0000"
            self._reply(f"\x1b]{code};rgb:{colour}\x1b\\")

    def _on_csi(self, params: str, middle: str, final: str) -> None:
        prefix = params[:1] if params[:1] in ("<", "=", ">", "?") else ""
        numbers = [int(part) for part in re.findall(r"\d+", params)]
        match prefix, middle, final:
            case "?", "", "h" | "l":
                self._set_private(numbers, is_on=final == "h")
            case "?", "$", "p":
                state = (1 if numbers[0] in self.modes.private else 2) if numbers[0] == _SYNCHRONISED else 0
                self._reply(f"\x1b[?{numbers[0]};{state}$y")
            case "?", "", "u":
                if self._has_kitty_keyboard:
                    self._reply(f"\x1b[?{self.modes.kitty_flags[-1] if self.modes.kitty_flags else 0}u")
            case ">", "", "u":
                self.modes.kitty_flags.append(numbers[0] if numbers else 0)
            case "<", "", "u":
                del self.modes.kitty_flags[-(numbers[0] if numbers else 1) :]
            case "=", "", "u":
                self.modes.kitty_flags[-1:] = [numbers[0] if numbers else 0]
            case ">", "", "m":
                self.modes.modify_other_keys = numbers[1] if len(numbers) > 1 and numbers[0] == 4 else 0
            case "", "", "c":
                self._reply("\x1b[?62;22c")
            case "", "", "n" if numbers == [5]:
                self._reply("\x1b[0n")
            case "", "", "n" if numbers == [6]:
                cursor = self.screen.cursor
                self._reply(f"\x1b[{cursor.y + 1};{cursor.x + 1}R")
            case "", "", "t" if numbers[:1] == [22]:
                self.modes.saved_titles.append(self.modes.title)
            case "", "", "t" if numbers[:1] == [23] and self.modes.saved_titles:
                self.modes.title = self.modes.saved_titles.pop()
            case "", "", "m":
                self._draw(f"\x1b[{_plain_colours(params)}m")
            case "", "", _ if final not in "tnc":
                self._draw(f"\x1b[{params}{final}")
            case _:
                pass

    def _set_private(self, numbers: list[int], *, is_on: bool) -> None:
        for number in numbers:
            if number == _CURSOR:
                self.modes.is_cursor_visible = is_on
            elif is_on:
                if number in _ALTERNATE and not self.modes.is_alternate_screen:
                    self._alternate.reset()
                self.modes.private.add(number)
            else:
                self.modes.private.discard(number)
            if number in (5, 6, 7):
                self._draw(f"\x1b[?{number}{'h' if is_on else 'l'}")


def _plain_colours(params: str) -> str:
    """SGR parameters with the colon forms, which pyte does not read, written in the older way."""
    parts = []
    for part in params.split(";"):
        fields = part.split(":")
        if len(fields) == 1:
            parts.append(part)
        elif fields[0] in ("38", "48") and len(fields) >= 5:
            parts.append(";".join([fields[0], fields[1], *fields[-3:]]))
        elif fields[0] in ("38", "48"):
            parts.append(";".join(fields))
        else:
            parts.append("24" if fields[1] == "0" else fields[0])
    return ";".join(parts)
