"""The process that searches: no pattern, however slow, holds up the one that asked, and it can be ended at any time.

Its output and exit codes are ripgrep's: 0 found, 1 nothing, 2 with a message on stderr, 2 without one if some files
could not be read.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

from pyagent.tools.without_ripgrep.globs import GlobError
from pyagent.tools.without_ripgrep.patterns import PatternError, compile_pattern
from pyagent.tools.without_ripgrep.query import SearchQuery
from pyagent.tools.without_ripgrep.searcher import search_data
from pyagent.tools.without_ripgrep.walk import UnknownTypeError, Walk

MAX_FILE_BYTES = 512 * 1024 * 1024
"""Larger files are not read whole; they count as unreadable, which is said."""

_START = "import sys; sys.path.append(sys.argv.pop(1)); from pyagent.tools.without_ripgrep.worker import main; main()"


def worker_command(query: SearchQuery) -> list[str]:
    """To be run in the folder searched. Isolated: a `re.py` there must not become part of the search."""
    return [sys.executable, "-I", "-S", "-c", _START, str(Path(__file__).parents[3]), query.to_json()]


def main() -> None:
    try:
        sys.exit(search(SearchQuery.from_json(sys.argv[1]), os.getcwd(), sys.stdout.buffer))
    except (PatternError, GlobError, UnknownTypeError) as error:
        text = str(error)
        sys.stderr.buffer.write((text if text.startswith("rg: ") else f"rg: {text}").encode("utf-8", "replace"))
        sys.exit(2)


def search(query: SearchQuery, base: str, output: IO[bytes]) -> int:
    """The exit code.

    Raises:
        PatternError, GlobError, UnknownTypeError: the query cannot be used.
    """
    walk = Walk.below(
        base,
        is_hidden_shown=True,
        is_ignored_shown=query.is_ignored_shown,
        globs=query.globs,
        type_name=query.type_name,
    )
    pattern = compile_pattern(query.pattern, is_case_ignored=query.is_case_ignored, is_multiline=query.is_multiline)
    if query.is_only_matching and pattern.has_text_edge:
        raise PatternError(
            r"error: \A, \z and their like are not possible with -o without ripgrep; ^ and $ are: each line is a text"
        )
    is_found = has_unreadable = False
    for name in [query.only] if query.only else walk:
        try:
            with open(os.path.join(base, name), "rb") as file:
                if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES:
                    has_unreadable = True
                    continue
                data = file.read()
        except OSError:
            has_unreadable = True
            continue
        if found := search_data(b"./" + os.fsencode(name), data, pattern, query):
            is_found = True
            output.write(found)
            output.flush()
    if has_unreadable or walk.has_unreadable:
        return 2
    return 0 if is_found else 1
