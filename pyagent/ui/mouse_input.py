"""Reads mouse reports that are broken or of an older kind, so that none of them ends up as typed text.

A slow link cuts reports in two, an editor's built-in terminal makes malformed ones, and tmux forgets on a reattach that
it was asked for the modern kind (SGR) and sends raw bytes, which need not even be UTF-8.
"""

from __future__ import annotations

import re

HELD_LIMIT_CHARS = 64
"""A report has at most some 20; what goes on longer is none."""

_WHOLE = re.compile(r"(?:\x1b?\[)?<\d{1,9};-?\d{1,9};-?\d{1,9}[Mm]|\x1b\[M")
_MALFORMED = re.compile(r"\x1b\[<[-\d;]*(?:(?=[\x00-\x1f])|[^-\d;\x00-\x1f])")
_CUT = re.compile(r"\x1b\[(?:<[-\d;]*|M[^\x00-\x1f]{0,2})\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")

_RELEASE, _MOTION, _WHEEL = 3, 32, 64
_RAW_BYTES = 3
_RAW_OFFSET = 32
"""What the older kind adds to each of its three bytes to make them printable."""


_NOTHING = "\x1b[<0M"
"""What the parser behind takes for a report of nothing."""


class MouseFilter:
    """Passes keys and good reports on. For text decoded with `surrogateescape`, pastes taken out."""

    def __init__(self) -> None:
        self.has_lost_sgr = False
        """Raw reports have come after modern ones: the terminal has to be asked again. Whoever asks sets it back."""
        self._has_seen_sgr = False
        self._passed = ""
        """The end of what was passed on, if a report may begin there."""
        self._held = ""

    @property
    def is_waiting(self) -> bool:
        """Whether what comes next may belong to what came before."""
        return bool(self._held or self._passed)

    @property
    def is_holding(self) -> bool:
        """Whether a report has begun beyond doubt."""
        return bool(self._held)

    def give_up(self) -> None:
        """Nothing more came: what is held is no report and no text either."""
        self._held = self._passed = ""

    def feed(self, text: str) -> str:
        """The input with old reports rewritten and broken ones gone; a report that was cut waits for its end."""
        seen, skip = self._passed + self._held + text, len(self._passed)
        parts: list[str] = []
        at = 0
        while match := _next_report(seen, at):
            report, end = match.group(), match.end()
            if report == "\x1b[M":
                raw, end = _raw_bytes(seen, end)
                if len(raw) < _RAW_BYTES and end == len(seen):
                    break
                report = self._rewritten(raw) if len(raw) == _RAW_BYTES else ""
            elif report.startswith("\x1b[<") and _WHOLE.fullmatch(report):
                self._has_seen_sgr = True
            else:
                report = ""
            # The parser has the beginning already, and must not take it for the Escape key.
            parts += [seen[at : match.start()], report or (_NOTHING if match.start() < skip else "")]
            at = end
        rest = seen[at:]
        cut = _CUT.search(rest)
        begin = len(rest) if cut is None else cut.start()
        passed_on = "".join([*parts, rest[:begin]])
        self._held = rest[begin:]
        if at + begin == 0 < skip:
            self._held = self._held[skip:]
        else:
            self._passed = next((end for end in ("\x1b[", "\x1b") if passed_on.endswith(end)), "")
        if len(self._held) > HELD_LIMIT_CHARS:
            self.give_up()
        return _SURROGATE.sub("\ufffd", passed_on[skip:])

    def _rewritten(self, raw: bytes) -> str:
        """A raw report in the modern form."""
        self.has_lost_sgr = self.has_lost_sgr or self._has_seen_sgr
        self._has_seen_sgr = False
        buttons, x, y = (byte - _RAW_OFFSET for byte in raw)
        if min(buttons, x, y) < 0:
            return ""
        is_release = buttons & _RELEASE == _RELEASE and not buttons & (_MOTION | _WHEEL)
        return f"\x1b[<{buttons - _RELEASE};{x};{y}m" if is_release else f"\x1b[<{buttons};{x};{y}M"


def _next_report(seen: str, at: int) -> re.Match[str] | None:
    found = [match for match in (_WHOLE.search(seen, at), _MALFORMED.search(seen, at)) if match is not None]
    return min(found, key=lambda match: match.start(), default=None)


def _raw_bytes(seen: str, at: int) -> tuple[bytes, int]:
    """Three bytes from here on, and where they end; fewer if there are no more, or a control character ends them."""
    raw = b""
    while len(raw) < _RAW_BYTES and at < len(seen) and seen[at] >= " ":
        raw += seen[at].encode("utf-8", "surrogateescape")
        at += 1
    return raw[:_RAW_BYTES], at
