"""Regular expressions in the syntax of ripgrep's engine (Rust's `regex`), given to Python's `re` with the same meaning.

Each construct is read and written anew, so that nothing means one thing there and another here: `a*+` repeats twice
there and is possessive here, `\\w`, `\\s` and case differ, a class may hold classes and `&&`. What cannot be given the
same meaning is refused in words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pyagent.tools.without_ripgrep import characters
from pyagent.tools.without_ripgrep.characters import Ranges
from pyagent.tools.without_ripgrep.pattern_tree import (
    Chars,
    Choice,
    Look,
    Node,
    Repeat,
    Sequence,
    size,
    touches_newline,
    written,
)

_PUNCTUATION = frozenset("\\.+*?()|[]{}^$#&-~ !\"%',/:;<=>@_`")
_CONTROL = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_MAX_REPEAT = 2**32 - 1
_MAX_SIZE = 400_000
"""Of all repetitions written out, in steps: about where ripgrep's engine says "exceeds size limit"."""

_PCRE_HINT = (
    "\n\nThis search runs without ripgrep, and its engine has no such thing. Write the pattern without it, "
    "or search with Bash."
)


class PatternError(ValueError):
    """The pattern cannot be used; the text says why, in ripgrep's form."""


@dataclass(frozen=True, slots=True)
class _Flags:
    i: bool = False
    m: bool = True
    s: bool = False
    U: bool = False
    x: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern ready for use on text decoded as UTF-8 with `surrogateescape`."""

    ascii_regex: re.Pattern[str]
    """For text that is all ASCII: small classes, quick."""
    _whole: str
    may_match_newline: bool
    """ripgrep then looks at the whole text at once, and counts matches, not lines."""
    has_text_edge: bool
    """`\\A` or `\\z` somewhere."""

    def regex_for(self, text: str) -> re.Pattern[str]:
        return self.ascii_regex if text.isascii() else re.compile(self._whole)


def compile_pattern(pattern: str, *, is_case_ignored: bool, is_multiline: bool) -> Pattern:
    """Multiline: the dot and classes match newlines too; otherwise nothing does.

    Raises:
        PatternError: it does not parse, or has no equal here.
    """
    reader = _Reader(pattern, _Flags(i=is_case_ignored, s=is_multiline), is_multiline)
    node = reader.read()
    may_match_newline = is_multiline and touches_newline(node)
    try:
        return Pattern(
            re.compile(written(node, is_ascii=True), re.ASCII),
            written(node, is_ascii=False),
            may_match_newline,
            reader.has_text_edge,
        )
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"rg: the pattern cannot be used without ripgrep: {error}") from error


class _Reader:
    def __init__(self, pattern: str, flags: _Flags, is_multiline: bool) -> None:
        # As ripgrep wraps it: a stray `)` closes this, and a comment may swallow its end.
        self._text, self._at = f"(?:{pattern})", 0
        self._flags, self._is_multiline = flags, is_multiline
        self._names: set[str] = set()
        self.has_text_edge = False
        self._refusal: PatternError | None = None
        """Said once all of it has been read: a mistake in the syntax comes first."""

    def read(self) -> Node:
        node = self._choice()
        if self._peek():
            raise self._fail("unopened group", self._at)
        if size(node) > _MAX_SIZE:
            raise PatternError("rg: Compiled regex exceeds size limit.")
        if self._refusal is not None:
            raise self._refusal
        return node

    def _peek(self, count: int = 1) -> str:
        return self._text[self._at : self._at + count]

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _fail(self, why: str, start: int | None = None, hint: str = "") -> PatternError:
        begin = self._at if start is None else start
        marks = " " * begin + "^" * max(1, self._at - begin)
        return PatternError(f"rg: regex parse error:\n    {self._text}\n    {marks}\nerror: {why}{hint}")

    def _skip_blanks(self) -> None:
        while self._flags.x and (char := self._peek()) and (char.isspace() or char == "#"):
            end = self._text.find("\n", self._at) if char == "#" else self._at
            self._at = len(self._text) if end < 0 else end + 1

    def _choice(self) -> Node:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while True:
            self._skip_blanks()
            char = self._peek()
            if char in ("", "|", ")"):
                return Sequence(tuple(items))
            if char in ("*", "+", "?", "{"):
                start = self._at
                if not items:
                    self._at += 1
                    raise self._fail("repetition operator missing expression", start)
                items.append(self._repeat(items.pop()))
            elif char == "(":
                item = self._group()
                if item is not None:
                    items.append(item)
                elif self._peek() in ("*", "+", "?", "{") and self._peek():
                    # Flags of their own are nothing to repeat.
                    start = self._at
                    self._at += 1
                    raise self._fail("repetition operator missing expression", start)
            else:
                items.append(self._single())

    def _repeat(self, item: Node) -> Node:
        start = self._at
        least: int
        most: int | None
        if self._take("*"):
            least, most = 0, None
        elif self._take("+"):
            least, most = 1, None
        elif self._take("?"):
            least, most = 0, 1
        else:
            least, most = self._bounds(start)
        is_greedy = self._take("?") is self._flags.U
        return Repeat(item, least, most, is_greedy)

    def _bounds(self, start: int) -> tuple[int, int | None]:
        self._at += 1
        least = self._number(start)
        most: int | None = least
        if self._take(","):
            self._skip_spaces()
            most = None if self._peek() == "}" else self._number(start)
        if not self._take("}"):
            raise self._fail("unclosed counted repetition", start)
        if most is not None and most < least:
            raise self._fail("invalid repetition count range, the start must be <= the end", start)
        return least, most

    def _skip_spaces(self) -> None:
        while self._peek() and self._peek().isspace():
            self._at += 1

    def _number(self, start: int) -> int:
        self._skip_spaces()
        begin = self._at
        while self._peek() and self._peek() in "0123456789":
            self._at += 1
        digits = self._text[begin : self._at]
        self._skip_spaces()
        if not digits:
            if not self._peek():
                raise self._fail("unclosed counted repetition", start)
            raise self._fail("repetition quantifier expects a valid decimal", begin)
        if int(digits) > _MAX_REPEAT:
            raise self._fail("decimal literal invalid", begin)
        return int(digits)

    def _group(self) -> Node | None:
        """A group, or None for flags set for the rest of the group they stand in."""
        start = self._at
        self._at += 1
        outer = self._flags
        self._skip_blanks()
        if self._peek(3) in ("?<=", "?<!") or self._peek(2) in ("?=", "?!"):
            self._at += 3 if self._peek(2) == "?<" else 2
            raise self._fail(
                "look-around, including look-ahead and look-behind, is not supported", start, hint=_PCRE_HINT
            )
        if self._take("?P<") or self._take("?<"):
            self._name(start)
        elif self._take("?"):
            if not self._peek():
                raise self._fail("unclosed group", start)
            inner = self._read_flags(start)
            if self._take(")"):
                self._flags = inner
                return None
            self._at += 1
            self._flags = inner
        node = self._choice()
        if not self._take(")"):
            self._at = start + 1
            raise self._fail("unclosed group", start)
        self._flags = outer
        return node

    def _name(self, start: int) -> None:
        end = self._text.find(">", self._at)
        name = self._text[self._at : end] if end >= 0 else ""
        if end < 0:
            raise self._fail("unclosed capture group name", start)
        if not name:
            raise self._fail("empty capture group name", start)
        if re.fullmatch(r"[^\W\d][\w.\[\]]*", name) is None:
            raise self._fail("invalid capture group character")
        if name in self._names:
            raise self._fail("duplicate capture group name")
        self._names.add(name)
        self._at = end + 1

    def _read_flags(self, start: int) -> _Flags:
        flags, is_on, is_last_minus = self._flags, True, False
        seen: set[str] = set()
        while (char := self._peek()) and char not in ":)":
            self._at += 1
            if char == "-":
                if not is_on:
                    raise self._fail("flag negation operator repeated", self._at - 1)
                is_on, is_last_minus = False, True
                continue
            is_last_minus = False
            if char in seen:
                raise self._fail("duplicate flag", self._at - 1)
            seen.add(char)
            if char in "imsUx":
                flags = replace(flags, **{char: is_on})
            elif char == "R" or (char == "u" and not is_on):
                self._refusal = self._refusal or self._fail(
                    "this flag is known to ripgrep only, which is not installed", self._at - 1
                )
            elif char != "u":
                raise self._fail("unrecognized flag", self._at - 1)
        if not char:
            raise self._fail("unclosed group", start)
        if is_last_minus:
            raise self._fail("dangling flag negation operator", self._at - 1)
        if char == ")" and not seen:
            raise self._fail("repetition operator missing expression", start + 1)
        return flags

    def _chars(self, ranges: Ranges) -> Chars:
        """A class as it stands under the flags: never a newline unless lines may be crossed."""
        ranges = characters.any_case(ranges) if self._flags.i else ranges
        if not self._is_multiline:
            if ranges == characters.NEWLINE:
                self._refusal = self._refusal or PatternError(
                    'rg: the literal "\\n" is not allowed in a regex\n\n'
                    "Consider enabling multiline mode with the multiline parameter.\n"
                    "When multiline mode is enabled, new line characters can be matched."
                )
            ranges = characters.difference(ranges, characters.NEWLINE)
        if ranges == ((0, 0),):
            self._refusal = self._refusal or PatternError(
                'rg: pattern contains "\\0" but it is impossible to match\n\n'
                "Binary detection is on and matching a NUL byte is impossible."
            )
        return Chars(ranges)

    def _single(self) -> Node:
        char = self._peek()
        self._at += 1
        match char:
            case ".":
                return self._chars(
                    characters.ALL if self._flags.s else characters.difference(characters.ALL, characters.NEWLINE)
                )
            case "^" | "$":
                return self._anchor(char if self._flags.m else "A" if char == "^" else "z")
            case "[":
                return self._chars(self._class())
            case "\\":
                return self._escape()
            case _:
                return self._chars(((ord(char), ord(char)),))

    def _anchor(self, kind: str) -> Look:
        """Each line is a text of its own unless lines may be crossed."""
        self.has_text_edge |= kind in "Az"
        return Look(kind if self._is_multiline else {"A": "^", "z": "$"}.get(kind, kind))

    def _escape(self) -> Node:
        start = self._at - 1
        char = self._peek()
        self._at += 1
        match char:
            case "":
                self._at -= 1
                raise self._fail("incomplete escape sequence, reached end of pattern prematurely", start)
            case "A" | "z":
                return self._anchor(char)
            case "b" if self._peek() == "{":
                for name, kind in (("start-half", "bs"), ("end-half", "be"), ("start", "<"), ("end", ">")):
                    if self._take("{" + name + "}"):
                        return Look(kind)
                return Look("b")
            case "b" | "B" | "<" | ">":
                return Look(char)
            case _:
                self._at -= 1
                return self._chars(self._escaped_ranges(start))

    def _escaped_ranges(self, start: int) -> Ranges:
        char = self._peek()
        self._at += 1
        if not char:
            self._at -= 1
            raise self._fail("incomplete escape sequence, reached end of pattern prematurely", start)
        if char in "dDsSwW":
            ranges = {"d": characters.digits, "w": characters.word}.get(char.lower(), lambda: characters.SPACE)()
            return characters.negated(ranges) if char.isupper() else ranges
        if char in "pP":
            return self._property(start, is_negated=char == "P")
        if char in _CONTROL:
            return ((_CONTROL[char], _CONTROL[char]),)
        if char in "xuU":
            code = self._hex({"x": 2, "u": 4, "U": 8}[char], start)
            return ((code, code),)
        if char in _PUNCTUATION:
            return ((ord(char), ord(char)),)
        if char in "0123456789":
            raise self._fail("backreferences are not supported", start, hint=_PCRE_HINT)
        raise self._fail("unrecognized escape sequence", start)

    def _hex(self, count: int, start: int) -> int:
        if self._take("{"):
            end = self._text.find("}", self._at)
            digits = self._text[self._at : end] if end >= 0 else ""
            if end < 0:
                raise self._fail("incomplete escape sequence, reached end of pattern prematurely", start)
            if not digits:
                raise self._fail("hexadecimal literal empty", start)
            self._at = end + 1
        else:
            digits = self._peek(count)
            if len(digits) < count:
                raise self._fail("incomplete escape sequence, reached end of pattern prematurely", start)
            self._at += count
        if re.fullmatch("[0-9a-fA-F]+", digits) is None:
            raise self._fail("invalid hexadecimal digit", start)
        code = int(digits, 16)
        if code > characters.LAST or 0xD800 <= code <= 0xDFFF:
            raise self._fail("hexadecimal literal is not a Unicode scalar value", start)
        return code

    def _property(self, start: int, is_negated: bool) -> Ranges:
        if self._take("{"):
            end = self._text.find("}", self._at)
            if end < 0:
                raise self._fail("incomplete escape sequence, reached end of pattern prematurely", start)
            name = self._text[self._at : end]
            self._at = end + 1
        else:
            name = self._peek()
            self._at += 1
        sign = re.search("!=", name) or re.search("[:=]", name)
        if sign is not None:
            is_negated ^= sign[0] == "!="
            key, value = name[: sign.start()], name[sign.end() :]
            name = value if key.strip().lower().replace("_", "") in ("gc", "generalcategory") else "?"
        ranges = characters.property_ranges(name)
        if ranges is None:
            raise self._fail(
                "Unicode property not found",
                start,
                hint="\n\nThis search runs without ripgrep and knows general categories only, such as \\p{Lu}.",
            )
        return characters.negated(ranges) if is_negated else ranges

    def _class(self) -> Ranges:
        """What stands between brackets, the opening one read. `&&`, `--`, `~~` bind looser than neighbours."""
        start = self._at - 1
        is_negated = self._take("^")
        self._skip_blanks()
        items: Ranges = ()
        while self._peek() == "-":
            # Leading dashes are dashes, also where they would be an operator.
            items = characters.union(items, self._class_item(start))
        if not items and self._peek() == "]":
            items = self._class_item(start)
        left: Ranges | None = None
        operator = ""
        while True:
            self._skip_blanks()
            if not self._peek():
                self._at = start + 1
                raise self._fail("unclosed character class", start)
            if self._take("]"):
                break
            if self._peek(2) in ("&&", "--", "~~"):
                left = _combined(left, operator, items)
                operator, items = self._peek(2), ()
                self._at += 2
                continue
            items = characters.union(items, self._class_item(start))
        ranges = _combined(left, operator, items)
        if self._flags.i:
            ranges = characters.any_case(ranges)
        return characters.negated(ranges) if is_negated else ranges

    def _class_item(self, class_start: int) -> Ranges:
        start = self._at
        if self._peek() == "[":
            if self._peek(2) == "[:" and (named := re.compile(r"\[:(\^?)(\w+):\]").match(self._text, self._at)):
                ranges = characters.ASCII_CLASSES.get(named[2])
                if ranges is not None:
                    self._at = named.end()
                    return self._folded(characters.negated(ranges) if named[1] else ranges)
            self._at += 1
            return self._class()
        first = self._class_atom()
        self._skip_blanks()
        if self._peek() != "-" or self._peek(2) in ("-]", "--"):
            return self._folded(first)
        self._at += 1
        self._skip_blanks()
        if not self._peek():
            self._at = class_start + 1
            raise self._fail("unclosed character class", class_start)
        last = self._class_atom()
        if len(first) != 1 or first[0][0] != first[0][1] or len(last) != 1 or last[0][0] != last[0][1]:
            raise self._fail("invalid range boundary, must be a literal", start)
        if first[0][0] > last[0][0]:
            raise self._fail("invalid character class range, the start must be <= the end", start)
        return self._folded(characters.intersection(((first[0][0], last[0][0]),), characters.ALL))

    def _class_atom(self) -> Ranges:
        start = self._at
        char = self._peek()
        self._at += 1
        if char == "\\":
            if self._peek() and self._peek() in "AzbB<>":
                self._at += 1
                raise self._fail("invalid escape sequence found in character class", start)
            return self._escaped_ranges(start)
        return ((ord(char), ord(char)),)

    def _folded(self, ranges: Ranges) -> Ranges:
        return characters.any_case(ranges) if self._flags.i else ranges


def _combined(left: Ranges | None, operator: str, right: Ranges) -> Ranges:
    if left is None:
        return right
    if operator == "&&":
        return characters.intersection(left, right)
    if operator == "--":
        return characters.difference(left, right)
    return characters.difference(characters.union(left, right), characters.intersection(left, right))
