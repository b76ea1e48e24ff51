"""The names `type` may have, and the globs of each."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def type_globs() -> dict[str, tuple[str, ...]]:
    """Source: the facts `rg --type-list` of ripgrep 15.2 prints, one type a line as it prints them."""
    table = {}
    for line in (files("pyagent.data") / "file_types.txt").read_text(encoding="utf-8").splitlines():
        name, _, globs = line.partition(": ")
        table[name] = tuple(globs.split(", "))
    return table
