"""What a pass of the pipeline costs when nothing is to do, by the length of the conversation.

Run from the repository's root: `python bench/pipeline.py`. Prints CPU milliseconds; exits 1 over the budget.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.compaction.builder import Talk, with_usage  # the repository's root must be on the path first
from tests.compaction.fakes import Bench

SIZES = (100, 500, 1_000, 5_000, 10_000)
BUDGET_MS = 3.0
"""Median at 5,000 entries: a tenth of a frame, spent before each request."""
BUDGET_ENTRIES = 5_000
REPEATS = 30


def conversation(entries: int) -> Talk:
    talk = Talk()
    while len(talk.view) < entries:
        talk.task("go on", rounds=3, tokens=20)
        talk.answer("so far", usage=with_usage(1_000 + 40 * len(talk.view)))
    return talk


def measure(entries: int) -> tuple[float, float]:
    """Milliseconds of CPU of the first pass and the median of the following, each with one more entry."""
    bench = Bench(conversation(entries), window_tokens=10_000_000)
    times: list[float] = []
    loop = asyncio.new_event_loop()
    for number in range(REPEATS + 1):
        bench.talk.prompt("one more") if number % 2 else bench.talk.answer("yes")
        context = bench.context()
        began = time.process_time()
        loop.run_until_complete(bench.pipeline.before_request(context))
        times.append((time.process_time() - began) * 1_000)
    loop.close()
    return times[0], statistics.median(times[1:])


def main() -> int:
    print(f"{'entries':>8} {'first ms':>9} {'then ms':>9}")
    is_over = False
    for entries in SIZES:
        first_ms, median_ms = measure(entries)
        print(f"{entries:>8,} {first_ms:>9.2f} {median_ms:>9.2f}")
        is_over |= entries == BUDGET_ENTRIES and median_ms > BUDGET_MS
    return int(is_over)


if __name__ == "__main__":
    raise SystemExit(main())
