"""Ways of saying things that texts of every part share."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """The count with its noun in the right number: `1 match`, `1,200 matches`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "es" if noun.endswith(("ch", "sh", "s")) else "s")


def be(count: int) -> str:
    """`was` or `were`, behind a count."""
    return "was" if count == 1 else "were"
