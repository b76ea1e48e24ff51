"""What is typed before the real prompt is up: plain text is edited here, every other key is kept for the real one.

Loaded before everything else of pyagent, so it imports nothing that takes time.
"""

from __future__ import annotations

import codecs

TYPE_CHECKING = False
"""As in `typing`, whose import would cost as much as the whole first screen."""
if TYPE_CHECKING:
    from collections.abc import Callable

BURST_GAP_S = 0.005
"""Keys closer than this were not typed: the fastest key repeat is 15 ms."""
BURST_SETTLE_S = 0.03
"""How long an Enter in a burst waits to see whether the burst goes on."""

ESCAPE_DELAY_S = 0.1
"""An escape character followed by nothing for so long was the Esc key, not the start of a sequence."""

CHIP_CHARS = 800
CHIP_LINES = 10
"""Pastes beyond either of these are shown by the real prompt as a chip, so they are left to it."""

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")

PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"

ESC_KEY = "\x1b[27u"
"""The Esc key in a spelling that does not depend on what follows when."""

INTERRUPT, LEAVE, SUSPEND, REDRAW = "interrupt", "leave", "suspend", "redraw"
"""What a key asks of the program rather than of the text."""


class TypedAhead:
    """What was typed before the hand-over, in the order in which it has to be taken up."""

    __slots__ = ("cuts", "draft", "last_key_s", "pending", "queued", "reports", "rest")

    def __init__(
        self,
        queued: tuple[str, ...] = (),
        draft: str = "",
        rest: tuple[tuple[float, str], ...] = (),
        pending: bytes = b"",
        cuts: tuple[str, ...] = (),
        reports: str = "",
        last_key_s: float = float("-inf"),
    ) -> None:
        self.queued = queued
        """Prompts that were sent with Enter."""
        self.draft = draft
        """The text that stands in the prompt, the cursor at its end."""
        self.rest = rest
        """Input from the first key on that only the real prompt understands, with its times (monotonic seconds)."""
        self.pending = pending
        """The first bytes of a character whose others have not come yet."""
        self.cuts = cuts
        """What was removed with Ctrl+U and Ctrl+W, oldest first."""
        self.reports = reports
        """What the terminal answered to the real driver, which began to ask before it was given the keys."""
        self.last_key_s = last_key_s
        """When the last key came (monotonic seconds)."""

    @property
    def all_input(self) -> tuple[tuple[float, str], ...]:
        """What is left for the real reading of the keyboard."""
        return ((self.last_key_s, self.reports), *self.rest) if self.reports else self.rest


class TypedLine:
    """Edits one draft from the terminal's bytes.

    `has_room` tells whether a draft and these queued prompts can be shown, `wraps` whether a line takes several rows.
    """

    def __init__(
        self,
        has_room: Callable[[str, tuple[str, ...]], bool],
        wraps: Callable[[str], bool],
        *,
        can_send: bool = True,
        has_own_keys: bool = False,
    ) -> None:
        """Without `can_send`, Enter is no key at all: what comes up asks for something else first. With `has_own_keys`
        only characters are understood here: any other key may have been given another meaning."""
        self.draft = ""
        self.queued: tuple[str, ...] = ()
        self.acts = True
        """Whether Ctrl+C, Ctrl+D and Ctrl+Z are acted upon here. Once the real driver has begun, they are kept like
        other keys, and what the terminal reports is an answer to it."""
        self._has_room, self._wraps, self._can_send, self._has_own_keys = has_room, wraps, can_send, has_own_keys
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest: list[tuple[float, str]] = []
        self._sequence, self._sequence_s = "", 0.0
        self._paste: str | None = None
        self._last_key_s = float("-inf")
        self._has_newline = False
        self._enter_s: float | None = None
        self._cuts: tuple[str, ...] = ()
        self._reports = ""
        self._wish = ""

    # What is asked from outside

    def feed(self, data: bytes, at_s: float) -> str:
        """Take bytes that came at this moment. Gives what they ask of the program, or nothing."""
        self._wish = ""
        self._give_up_sequence(at_s)
        for char in self._decoder.decode(data):
            self._take(char, at_s)
            if self._wish in (INTERRUPT, LEAVE):
                break
        return self._wish

    def feed_before_raw(self, data: bytes, at_s: float) -> str:
        """Take what the terminal driver had gathered as lines: it had made a newline of Enter and a zero of Ctrl+D."""
        return self.feed(data.replace(b"\n", b"\r").replace(b"\0", b"\x04"), at_s)

    def settle(self, now_s: float) -> bool:
        """Send a draft whose Enter no key followed; whether there was one. To be called when nothing more comes."""
        if self._enter_s is None or now_s - self._enter_s < BURST_SETTLE_S:
            return False
        self._enter_s = None
        self._send()
        return True

    @property
    def is_settled(self) -> bool:
        """Whether no Enter waits to be told from the newline of a paste."""
        return self._enter_s is None

    @property
    def last_key_s(self) -> float:
        return self._last_key_s

    def take_over(self, now_s: float) -> TypedAhead:
        """Everything typed so far; this object is done with."""
        self._give_up_sequence(now_s)
        if self._enter_s is not None:
            self._rest.append((self._enter_s, "\r"))
        begun = self._sequence if self._paste is None else PASTE_START + self._paste
        if begun:
            self._rest.append((self._sequence_s, begun))
        pending = self._decoder.getstate()[0]
        return TypedAhead(
            self.queued, self.draft, tuple(self._rest), pending, self._cuts, self._reports, self._last_key_s
        )

    # From characters to keys

    def _take(self, char: str, at_s: float) -> None:
        if self._paste is not None:
            self._paste += char
            if char == "~" and self._paste.endswith(PASTE_END):
                pasted, self._paste = self._paste[: -len(PASTE_END)], None
                self._pasted(pasted, at_s)
        elif self._sequence:
            self._take_in_sequence(char, at_s)
        elif char == "\x1b":
            self._sequence, self._sequence_s = char, at_s
        else:
            self._key(char, at_s)

    def _take_in_sequence(self, char: str, at_s: float) -> None:
        if char == "\x1b" and self._sequence == "\x1b":
            self._end_as_key(ESC_KEY)
            self._sequence, self._sequence_s = char, at_s
            return
        self._sequence += char
        if not is_complete(self._sequence):
            return
        sequence, self._sequence = self._sequence, ""
        if sequence == PASTE_START:
            self._paste, self._sequence_s = "", at_s
        elif is_report(sequence):
            self._reports += "" if self.acts else sequence
        else:
            self._resolve_enter(at_s)
            self._keep(sequence, at_s)

    def _give_up_sequence(self, now_s: float) -> None:
        """What was begun long ago was no sequence, but the Esc key or a key with Alt."""
        if self._sequence and now_s - self._sequence_s > ESCAPE_DELAY_S:
            self._end_as_key(ESC_KEY if self._sequence == "\x1b" else self._sequence)

    def _end_as_key(self, key: str) -> None:
        self._sequence = ""
        self._resolve_enter(self._sequence_s)
        self._keep(key, self._sequence_s)

    # From keys to text

    def _keep(self, text: str, at_s: float) -> None:
        self._last_key_s = at_s
        self._rest.append((at_s, text))

    def _key(self, char: str, at_s: float) -> None:
        if (self.acts and self._acted(char)) or (char == "\r" and not self._can_send):
            return
        is_burst = self._resolve_enter(at_s)
        self._last_key_s = at_s
        if self._rest or not self._edited(char, at_s, is_burst):
            self._keep(char, at_s)

    def _acted(self, char: str) -> bool:
        match char:
            case "\x03":
                self._wish = INTERRUPT
            case "\x04" if not (self.draft or self.queued or self._rest):
                self._wish = LEAVE
            case "\x1a":
                self._wish = SUSPEND
            case "\x0c" if not self._rest:
                self._wish = REDRAW
            case _:
                return False
        return True

    def _resolve_enter(self, at_s: float) -> bool:
        """Decide about an Enter that waits, now that another key came; whether this key belongs to a burst."""
        is_burst = at_s - self._last_key_s < BURST_GAP_S
        if not is_burst:
            self._has_newline = False
        if self._enter_s is not None:
            enter_s, self._enter_s = self._enter_s, None
            if not is_burst:
                self._send()
            else:
                self._has_newline = True
                if not self._put("\n"):
                    self._keep("\n", enter_s)
        return is_burst

    def _edited(self, char: str, at_s: float, is_burst: bool) -> bool:
        """Do what the real prompt would do; whether that is known here."""
        if self._has_own_keys and not is_plain(char):
            return False
        match char:
            case "\r":
                return self._enter(at_s, is_burst)
            case "\n":
                return self._put("\n")
            case "\x7f" | "\x08":
                self.draft = self.draft[:-1]
                return True
            case "\x15":
                return self._cut_line()
            case "\x17":
                self._cut_from(word_start(self.draft))
                return True
            case "?" | "!" | "#":
                return bool(self.draft) and self._put(char)  # At the start these may be commands of their own.
            case _:
                return is_plain(char) and self._put(char)

    def _put(self, text: str) -> bool:
        if not self._has_room(self.draft + text, self.queued):
            return False
        self.draft += text
        return True

    def _enter(self, at_s: float, is_burst: bool) -> bool:
        if self.draft.startswith("/") or "@" in self.draft:
            return False  # The menu of commands or files may be open and have its own idea of Enter.
        if self.draft.endswith("\\"):
            self.draft = self.draft[:-1] + "\n"
        elif is_burst and self._has_newline:
            return self._put("\n")
        elif is_burst:
            self._enter_s = at_s
        else:
            self._send()
        return True

    def _send(self) -> None:
        if self.draft.rstrip():
            self.queued, self.draft = (*self.queued, self.draft), ""

    def _cut_line(self) -> bool:
        line = self.draft.rpartition("\n")[2]
        if self._wraps(line):
            return False  # The real one cuts to the start of the row.
        self._cut_from(len(self.draft) - len(line))
        return True

    def _cut_from(self, start: int) -> None:
        if start < len(self.draft):
            self.draft, self._cuts = self.draft[:start], (*self._cuts, self.draft[start:])

    def _pasted(self, text: str, at_s: float) -> None:
        if self._enter_s is not None:
            self._enter_s = None
            self._send()
        shown = text.replace("\r\n", "\n").replace("\r", "\n")
        is_small = len(shown) <= CHIP_CHARS and shown.count("\n") < CHIP_LINES
        # The path of an image is taken in by another name.
        may_be_path = "/" in shown or any(suffix in shown.lower() for suffix in PICTURE_SUFFIXES)
        is_simple = is_small and not may_be_path and all(char == "\n" or is_plain(char) for char in shown)
        if self._rest or not is_simple or not self._put(shown):
            self._keep(f"{PASTE_START}{text}{PASTE_END}", at_s)
        self._last_key_s = at_s


def is_complete(sequence: str) -> bool:
    """Whether an escape sequence has all its characters."""
    if len(sequence) < 2:
        return False
    kind, last = sequence[1], sequence[-1]
    if kind == "[":
        if sequence.startswith("\x1b[M"):
            return len(sequence) == 6  # A mouse report of the oldest kind: three more characters.
        return len(sequence) > 2 and ("@" <= last <= "~" or last < " ")
    if kind == "O":
        return len(sequence) == 3
    if kind in "]P_^X":
        return last == "\x07" or sequence.endswith("\x1b\\")
    return True


def is_report(sequence: str) -> bool:
    """Whether the terminal sent this by itself: an answer to a query, the focus, the mouse. Nobody typed it."""
    kind, last = sequence[1], sequence[-1]
    if kind in "]P_^X":
        return len(sequence) > 2
    if kind != "[":
        return False
    if sequence[2] in "?<=>M" or last in "IOytnc":
        return True
    return last == "R" and ";" in sequence and not sequence.startswith("\x1b[1;")


def word_start(text: str) -> int:
    """Where Ctrl+W cuts: the start of the last word or of the last run of other signs, blanks behind it included."""
    line = text.rpartition("\n")[2]
    first = len(text) - len(line)
    if text and not line:
        return len(text) - 1
    at = len(line.rstrip()) - 1
    while at > 0 and _is_word(line[at - 1]) == _is_word(line[at]):
        at -= 1
    return first + max(0, at)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


_SURE = (
    (0x00A1, 0x00AC),  # Latin, Greek, Cyrillic
    (0x00AE, 0x02FF),
    (0x0370, 0x0482),
    (0x048A, 0x058F),
    (0x1E00, 0x1FFF),
    (0x2010, 0x2027),  # punctuation and currencies
    (0x2030, 0x205E),
    (0x20A0, 0x20CF),
    (0x2190, 0x21FF),  # arrows
    (0x2E80, 0x3029),  # Chinese, Japanese, Korean
    (0x3030, 0x3098),
    (0x309B, 0x3163),
    (0x3165, 0x4DBF),
    (0x4E00, 0xA4CF),
    (0xAC00, 0xD7A3),
    (0xF900, 0xFAFF),
    (0xFE30, 0xFE4F),
    (0xFF01, 0xFF9F),
)
"""First and last of the characters whose width depends neither on what stands beside them nor on the terminal."""


def is_plain(char: str) -> bool:
    """Whether the character takes one or two cells of its own, whatever stands beside it."""
    return " " <= char <= "~" or (char >= "\xa1" and cell_count(char) > 0)


def cell_count(char: str) -> int:
    """Cells a character takes; 0 if that is unsure or depends on its neighbours."""
    if " " <= char <= "~":
        return 1
    import unicodedata  # A second library file to load, for those who type more than ASCII.

    code = ord(char)
    if not char.isprintable() or unicodedata.category(char)[0] == "M" or not any(a <= code <= z for a, z in _SURE):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cells(text: str) -> int:
    """Cells a text of plain characters takes."""
    return len(text) if text.isascii() else sum(map(cell_count, text))
