"""Names below a folder, off the loop and within a time limit."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

from pyagent.tools.without_ripgrep.walk import Walk


async def walk_files(
    base: Path, is_hidden_shown: bool, is_ignored_shown: bool, timeout_s: float
) -> tuple[list[str], bool]:
    """Files below `base`, relative; and whether time ran out."""
    stop = threading.Event()
    walk = Walk.below(str(base), is_hidden_shown=is_hidden_shown, is_ignored_shown=is_ignored_shown)

    def collect() -> tuple[list[str], bool]:
        deadline, found = time.monotonic() + timeout_s, []
        for name in walk:
            found.append(name)
            if stop.is_set() or time.monotonic() > deadline:
                return found, True
        return found, False

    try:
        return await asyncio.to_thread(collect)
    finally:
        stop.set()
