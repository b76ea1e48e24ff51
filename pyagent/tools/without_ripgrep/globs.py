"""Globs as ripgrep reads them, as regular expressions over the bytes of a path."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


class GlobError(ValueError):
    """The glob cannot be used; the text is what ripgrep says of it."""


@dataclass(slots=True)
class _Alternatives:
    """One open brace: what stood before it, and the alternatives so far."""

    parts: list[list[str]] = field(default_factory=lambda: [[]])


_PREFIX, _SUFFIX, _BETWEEN = r"(?:/?|.*/)", r"/.*", r"(?:/|/.*/)"
"""What `**/`, `/**` and `/**/` stand for: any number of folders, none too except at the end."""


def compile_glob(glob: str, written: str = "") -> re.Pattern[bytes]:
    """`*` and `?` stop at `/`; `**` between slashes does not; braces nest; a backslash takes the next as it is.

    `written` is how it was given, for the message, if that differs.

    Raises:
        GlobError: it does not parse.
    """
    return re.compile(_Reader(glob, written or glob).regex().encode("latin-1"), re.DOTALL)


class _Reader:
    def __init__(self, glob: str, written: str) -> None:
        self._written = written
        # One character a byte: `?` and classes are about bytes, as in ripgrep.
        self._text = glob.encode("utf-8", "surrogateescape").decode("latin-1")
        self._at = 0
        self._open: list[_Alternatives] = [_Alternatives()]

    @property
    def _tokens(self) -> list[str]:
        return self._open[-1].parts[-1]

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _fail(self, why: str) -> GlobError:
        return GlobError(f"error parsing glob '{self._written}': {why}")

    def regex(self) -> str:
        while char := self._peek():
            self._at += 1
            match char:
                case "*":
                    self._star()
                case "?":
                    self._tokens.append("[^/]")
                case "[":
                    self._tokens.append(self._class())
                case "{":
                    self._open.append(_Alternatives())
                case "}":
                    self._close()
                case "," if len(self._open) > 1:
                    self._open[-1].parts.append([])
                case "\\":
                    if not (literal := self._peek()):
                        raise self._fail("dangling '\\'")
                    self._at += 1
                    self._tokens.append(re.escape(literal))
                case _:
                    self._tokens.append(re.escape(char))
        if len(self._open) > 1:
            raise self._fail("unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)")
        return ".*" if self._tokens == [_PREFIX] else "".join(self._tokens)

    def _close(self) -> None:
        if len(self._open) == 1:
            raise self._fail("unopened alternate group; missing '{' (maybe escape '}' with '[}]'?)")
        # An empty alternative does not count, as in ripgrep.
        parts = ["".join(part) for part in self._open.pop().parts if part]
        self._tokens.append(f"(?:{'|'.join(parts)})" if parts else "")

    def _star(self) -> None:
        previous = self._text[self._at - 2] if self._at > 1 else ""
        if self._peek() != "*":
            self._tokens.append("[^/]*")
            return
        self._at += 1
        if not self._tokens:
            if self._peek() in ("", "/"):
                self._at += 1
                self._tokens.append(_PREFIX)
            else:
                self._tokens.append("[^/]*")
            return
        if previous != "/" and not (len(self._open) > 1 and previous in (",", "{")):
            self._tokens.append("[^/]*")
            return
        following = self._peek()
        if not following or (following in (",", "}") and len(self._open) > 1):
            is_suffix = True
        elif following == "/":
            self._at += 1
            is_suffix = False
        else:
            self._tokens.append("[^/]*")
            return
        before = self._tokens.pop()
        if before in (_PREFIX, _SUFFIX):
            self._tokens.append(before)
        else:
            self._tokens.append(_SUFFIX if is_suffix else _BETWEEN)

    def _class(self) -> str:
        is_negated = self._peek() in ("!", "^")
        self._at += is_negated
        ranges: list[tuple[str, str]] = []
        is_first, is_in_range = True, False
        while True:
            if not (char := self._peek()):
                raise self._fail("unclosed character class; missing ']'")
            self._at += 1
            if char == "]" and not is_first:
                break
            if char == "-" and not is_first and not is_in_range:
                is_in_range = True
            elif is_in_range:
                start = ranges[-1][0]
                if start > char:
                    raise self._fail(f"invalid range; '{start}' > '{char}'")
                ranges[-1] = (start, char)
                is_in_range = False
            else:
                ranges.append((char, char))
            is_first = False
        if is_in_range:
            ranges.append(("-", "-"))
        body = "".join(f"{re.escape(a)}-{re.escape(b)}" for a, b in ranges)
        return f"[{'^' if is_negated else ''}{body}]"
