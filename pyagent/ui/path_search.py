"""Finding the few paths worth ranking among very many, fast enough for every key: by searching one long text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

POOL_SIZE = 1_000
"""Paths handed on to be ranked. Ranking one costs some 5 µs, so all of them take no longer than a frame."""


class PathSearch:
    """The paths of a project, ready to be searched. Made in a thread; searching 100,000 takes milliseconds."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self.paths = tuple(paths)
        # Each path stands behind a newline, so that it can be looked for at a path's beginning.
        folded = [path.replace("\n", " ").lower() for path in self.paths]
        self._text = "".join(f"\n{path}" for path in folded)
        self._starts: list[int] = []
        at = 0
        for path in folded:
            self._starts.append(at)
            at += len(path) + 1
        self._narrowed: tuple[str, tuple[int, ...]] = ("", ())
        """The last query whose matches are all known, and their numbers."""

    def matching(self, query: str) -> list[str]:
        """What may match a query: all that contains it at the beginning of a word, then anywhere, then its letters in
        order; `POOL_SIZE` at most."""
        if not query:
            return list(self.paths[:POOL_SIZE])
        wanted = query.lower().replace("\n", " ")
        known, numbers = self._narrowed
        if known and wanted.startswith(known):
            found = self._among(wanted, numbers)
            self._narrowed = (wanted, tuple(found))
        else:
            found = self._in_text(wanted)
            if len(found) < POOL_SIZE:
                self._narrowed = (wanted, tuple(found))
        return [self.paths[number] for number in found]

    def _among(self, wanted: str, numbers: Sequence[int]) -> list[int]:
        """Those of known paths that match a longer query."""
        letters = re.compile(_in_order(wanted))
        return [number for number in numbers if letters.match(self._text, self._starts[number], self._end(number))]

    def _end(self, number: int) -> int:
        return self._starts[number + 1] if number + 1 < len(self._starts) else len(self._text)

    def _in_text(self, wanted: str) -> list[int]:
        found: dict[int, None] = {}
        # A single letter stands in a path in no other way.
        lettered = self._lettered(wanted) if len(wanted) > 1 else iter(())
        for places in (*map(self._places, (f"\n{wanted}", f"/{wanted}", wanted)), lettered):
            for place in places:
                found[bisect_right(self._starts, place) - 1] = None
                if len(found) >= POOL_SIZE:
                    return list(found)
        return list(found)

    def _places(self, wanted: str) -> Iterator[int]:
        """Where the words stand, once a path."""
        at = self._text.find(wanted)
        while at >= 0:
            yield at
            line_end = self._text.find("\n", at + 1)
            if line_end < 0:
                return
            at = self._text.find(wanted, line_end)

    def _lettered(self, wanted: str) -> Iterator[int]:
        """Where the letters stand in order within one path."""
        return (match.start() for match in re.finditer(_in_order(wanted), self._text))


def _in_order(wanted: str) -> str:
    """A pattern for one path with these letters in order. Each is taken where it first comes and never looked for
    again, so that a search reads the text once."""
    parts = (f"[^\n{re.escape(char)}]*+{re.escape(char)}" for char in wanted)
    return "\n" + "".join(parts)
