"""Tells when a server has said nothing for a while, and when that is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

SILENCE_SHOWN_AFTER_S = 10.0
"""The first party sends a ping every few seconds, so more than this is worth a word; less would be noise."""

SilenceSink: TypeAlias = Callable[[float, float], None]
"""(seconds of silence so far, seconds at which it is given up); 0 seconds of silence end it."""


@contextmanager
def told_of_silence(tell: SilenceSink | None, *, after_s: float, limit_s: float) -> Iterator[None]:
    """Within the block something is awaited that must come within `limit_s`; after `after_s` without it, tell."""
    if tell is None or limit_s <= after_s:
        yield
        return
    is_told = False

    def due() -> None:
        nonlocal is_told
        is_told = True
        tell(after_s, limit_s)

    handle = asyncio.get_running_loop().call_later(after_s, due)
    try:
        yield
    finally:
        handle.cancel()
        if is_told:
            tell(0.0, limit_s)
