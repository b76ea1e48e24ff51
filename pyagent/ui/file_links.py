"""Makes the names of files that exist into links, so that a terminal opens them on a click."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from pyagent.ui.lines import Line, Span

_NAME = re.compile(r"(?<![\w/.~-])((?:~|\.{1,2})?/?[\w@+%.-]+(?:/[\w@+%.-]+)*)(?::(\d+))?(?::\d+)?")
"""A path, with or without a line and column: `src/app.py:12:3`, `../notes.md`, `/etc/hosts`, `Makefile:3`."""

_LONGEST_ROW_CHARS = 500
"""Longer rows are not for clicking, and looking each word up on the disk would hold the screen up."""


def with_file_links(line: Line, folder: Path) -> Line:
    """The line with the names of files below `folder` linked to them. Links that are there stay."""
    if len(line.text) > _LONGEST_ROW_CHARS:
        return line
    spans: list[Span] = []
    for span in line.spans:
        spans += [span] if span.href else _linked(span, folder)
    return replace(line, spans=tuple(spans))


def _linked(span: Span, folder: Path) -> list[Span]:
    pieces: list[Span] = []
    done = 0
    for match in _NAME.finditer(span.text):
        name, line_number = match[1].rstrip("."), match[2] or ""
        href = _address(name, str(folder), line_number) if _looks_like_a_file(name, line_number) else ""
        if href:
            end = match.end() if name == match[1] else match.start() + len(name)
            if match.start() > done:
                pieces.append(span._replace(text=span.text[done : match.start()]))
            pieces.append(span._replace(text=span.text[match.start() : end], href=href))
            done = end
    if not pieces or done < len(span.text):
        pieces.append(span._replace(text=span.text[done:]))
    return pieces


def _looks_like_a_file(name: str, line_number: str) -> bool:
    """Whether it is worth a look at the disk: an ordinary word is not, even where a file is called so."""
    return bool(line_number) or "/" in name.strip("/") or "." in name.strip(".")


@lru_cache(maxsize=4_000)
def _address(name: str, folder: str, line_number: str) -> str:
    path = os.path.normpath(os.path.join(folder, os.path.expanduser(name)))
    # Nothing outside the folder is looked for: a name can lead to a network share that answers after a minute.
    if not path.startswith(folder.rstrip("/") + "/") or not os.path.isfile(path):
        return ""
    return f"file://{os.uname().nodename}{quote(path)}" + (f"#{line_number}" if line_number else "")
