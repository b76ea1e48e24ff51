"""Shell patterns with `**` and braces as regular expressions over relative paths."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

MAX_ALTERNATIVES = 200
"""Braces multiply; a pattern beyond this is a mistake."""


class PatternError(ValueError):
    """The pattern cannot be used; the message is for the model."""


@dataclass(frozen=True)
class GlobPattern:
    """A pattern relative to the folder searched. Wildcards do not match a leading dot; a dot in the pattern does."""

    text: str

    @cached_property
    def alternatives(self) -> tuple[str, ...]:
        """The pattern with its braces multiplied out."""
        return tuple(dict.fromkeys(part.removeprefix("./") for part in expand_braces(self.text)))

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile("|".join(f"(?:{_regex_of(part)})" for part in self.alternatives), re.DOTALL)

    def matches(self, path: str) -> bool:
        return self._regex.fullmatch(path) is not None

    @cached_property
    def names_hidden(self) -> bool:
        return any(segment.startswith((".", "[.")) for part in self.alternatives for segment in part.split("/"))

    @cached_property
    def fixed_folder(self) -> str:
        """The folders all alternatives begin with in plain words: nothing outside them need be walked."""
        plain = [_plain_folders(part) for part in self.alternatives]
        common: list[str] = []
        for segments in zip(*plain, strict=False):
            if len(set(segments)) > 1:
                break
            common.append(segments[0])
        return "/".join(common)

    @cached_property
    def depth(self) -> int | None:
        """How many path segments a match has at most; None if `**` leaves it open."""
        if any("**" in part.split("/") for part in self.alternatives):
            return None
        return max(part.count("/") + 1 for part in self.alternatives)


def expand_braces(pattern: str) -> list[str]:
    """`a{b,c{d,e}}` → `ab`, `acd`, `ace`. A brace without a comma or without its partner stands for itself."""
    opening = pattern.find("{")
    while opening >= 0:
        depth, commas, closing = 0, [opening], -1
        for position in range(opening, len(pattern)):
            char = pattern[position]
            depth += (char == "{") - (char == "}")
            if char == "," and depth == 1:
                commas.append(position)
            if depth == 0:
                closing = position
                break
        if closing >= 0 and len(commas) > 1:
            bounds = [*commas, closing]
            middles = [pattern[a + 1 : b] for a, b in pairwise(bounds)]
            result = []
            for rest in expand_braces(pattern[closing + 1 :]):
                for middle in middles:
                    result += [pattern[:opening] + inner + rest for inner in expand_braces(middle)]
                    if len(result) > MAX_ALTERNATIVES:
                        raise PatternError(f"The braces of {pattern!r} give more than {MAX_ALTERNATIVES} patterns.")
            return result
        opening = pattern.find("{", opening + 1)
    return [pattern]


def _plain_folders(pattern: str) -> list[str]:
    folders = pattern.split("/")[:-1]
    count = next((i for i, folder in enumerate(folders) if set(folder) & set("*?[\\")), len(folders))
    return folders[:count]


def _regex_of(pattern: str) -> str:
    parts = []
    segments = pattern.split("/")
    for position, segment in enumerate(segments):
        is_last = position == len(segments) - 1
        if segment == "**":
            parts.append(r"(?!\.)[^/]+(?:/(?!\.)[^/]+)*" if is_last else r"(?:(?!\.)[^/]+/)*")
        else:
            parts.append(_segment_regex(segment) + ("" if is_last else "/"))
    return "".join(parts)


def _segment_regex(segment: str) -> str:
    result = "" if segment.startswith((".", "[.", "\\.")) or not segment or segment[0] not in "*?[" else r"(?!\.)"
    position = 0
    while position < len(segment):
        char = segment[position]
        position += 1
        if char == "*":
            while segment[position : position + 1] == "*":
                position += 1
            result += "[^/]*"
        elif char == "?":
            result += "[^/]"
        elif char == "\\" and position < len(segment):
            result += re.escape(segment[position])
            position += 1
        elif (
            char == "["
            and (
                closing := segment.find(
                    "]", position + 2 if segment[position : position + 1] in ("!", "^") else position + 1
                )
            )
            > 0
        ):
            body = segment[position:closing].replace("\\", r"\\").replace("[", r"\[")
            body = "^" + body[1:] if body[0] in "!^" else body
            result += f"(?!/)[{body}]"
            position = closing + 1
        else:
            result += re.escape(char)
    return result
