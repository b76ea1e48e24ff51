"""The screen's budgets, measured on the real screen in a real pseudo-terminal, in one table.

    python -m bench.screen [--runs 3]

Wall times suffer from whatever else the machine does; CPU times are those of the program alone and firm. The text
behind each figure is made up by `bench.screen_app`; the first paint is `bench.startup`'s.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import startup
from bench.raw_terminal import RawTerminal
from bench.transcript import Bench, session
from pyagent.ui.transcript import Transcript

ROOT = Path(__file__).resolve().parents[1]
MIDDLE_TURNS, MANY_TURNS = 2_000, 10_000
KEY_COUNT = 40
KEY_PAUSE_S = 0.15
"""Between two keys, as a person types."""
REST_S = 0.4
"""Nothing written for so long: at rest. The cursor blinks every half second."""
STREAM_S = 8.0
MIN_FRAMES_PER_S = 25
IDLE_S = 10.0
LETTERS = "жцшщъыьэюяѣѳѵљњџћђєїѕѫѭ"
"""Typed as keys: letters that stand nowhere in the made-up text, so that the echo can be told from it."""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure, its unit, and the budget it has to keep; `is_least` if the budget is a least value."""

    name: str
    value: float
    unit: str
    budget: float | None
    is_least: bool = False

    @property
    def is_kept(self) -> bool:
        if self.budget is None:
            return True
        return self.value >= self.budget if self.is_least else self.value <= self.budget

    def text(self) -> str:
        sign = "≥" if self.is_least else "≤"
        budget = f"{sign} {self.budget:g} {self.unit}" if self.budget is not None else ""
        return f"| {self.name} | {self.value:.1f} {self.unit} | {budget} | {'' if self.is_kept else 'missed'} |"


@contextmanager
def running(turns: int) -> Iterator[RawTerminal]:
    """The screen with a session of so many turns, loaded and at rest."""
    with tempfile.TemporaryDirectory() as folder:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "PYTHONPATH": str(ROOT),
        }
        argv = [sys.executable, "-m", "bench.screen_app", str(turns)]
        terminal = RawTerminal(argv, env, ROOT, columns=120, lines=40)
        try:
            terminal.wait_for(f"number {turns - 1}:" if turns else "resumed", 0, limit_s=180)
            terminal.settle(REST_S)
            yield terminal
        finally:
            terminal.close()


def key_ms(terminal: RawTerminal, count: int) -> tuple[list[float], float]:
    """From a key sent to its echo written, for each of some keys; and the program's CPU for one."""
    times: list[float] = []
    cpu_before_s = terminal.cpu_s()
    for number in range(count):
        letter = LETTERS[number % len(LETTERS)]
        offset = terminal.written
        sent_s = time.monotonic()
        terminal.send(letter)
        times.append((terminal.wait_for(letter, offset) - sent_s) * 1_000)
        time.sleep(KEY_PAUSE_S)
    return times, (terminal.cpu_s() - cpu_before_s) * 1_000 / count


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def cpu_ms(terminal: RawTerminal, action: Callable[[int], None], count: int) -> float:
    """CPU of one action and the frames after it, on average."""
    before_s = terminal.cpu_s()
    for number in range(count):
        action(number)
        terminal.settle(0.12)
    return (terminal.cpu_s() - before_s) * 1_000 / count


def stream(terminal: RawTerminal, tokens_per_s: int, seconds: float) -> int:
    """Start an answer at a rate; gives the offset to look for its end from."""
    offset = terminal.written
    terminal.send(f"\x1b[200~{tokens_per_s} {seconds}\x1b[201~")
    terminal.settle(0.2)
    terminal.send("\r")
    return offset


def frame_rows(terminal: RawTerminal, tokens_per_s: int) -> list[Row]:
    """How many frames come in a second, and what one costs."""
    offset = stream(terminal, tokens_per_s, STREAM_S)
    time.sleep(1.0)
    frames, from_s, cpu_s, starved_s = terminal.frame_count, time.monotonic(), terminal.cpu_s(), terminal.starved_s()
    time.sleep(STREAM_S - 2.5)
    passed_s, frames = time.monotonic() - from_s, terminal.frame_count - frames
    frame_ms = (terminal.cpu_s() - cpu_s) * 1_000 / max(1, frames)
    starved_percent = (terminal.starved_s() - starved_s) * 100 / passed_s
    terminal.wait_for("streamed-to-the-end", offset)
    terminal.settle(REST_S)
    return [
        Row(f"frames at {tokens_per_s:,} tokens/s", frames / passed_s, "/s", MIN_FRAMES_PER_S, is_least=True),
        Row(f"CPU of a frame at {tokens_per_s:,} tokens/s", frame_ms, "ms", 1_000 / MIN_FRAMES_PER_S),
        Row("of that time ready, but without a processor", starved_percent, "%", None),
    ]


def middle_rows() -> list[Row]:
    """What is measured over a session of usual length."""
    with running(MIDDLE_TURNS) as terminal:
        before_s = terminal.cpu_s()
        time.sleep(IDLE_S)
        idle_percent = (terminal.cpu_s() - before_s) * 100 / IDLE_S
        idle_keys, idle_cpu_ms = key_ms(terminal, KEY_COUNT)
        terminal.send("\x03")
        terminal.settle(REST_S)
        stream(terminal, 100, KEY_COUNT * KEY_PAUSE_S * 1.6)
        time.sleep(1.0)
        streaming_keys, _ = key_ms(terminal, KEY_COUNT)
        terminal.send("\x03")
        terminal.wait_for("streamed-to-the-end", 0)
        terminal.settle(REST_S)
        frames = frame_rows(terminal, 1_000)
    return [
        Row("key to screen, idle, p95", p95(idle_keys), "ms", 50),
        Row("key to screen, idle, median", statistics.median(idle_keys), "ms", None),
        Row("CPU of a key", idle_cpu_ms, "ms", None),
        Row(f"key to screen, 100 tokens/s over {MIDDLE_TURNS:,} turns, p95", p95(streaming_keys), "ms", 100),
        Row("the same, median", statistics.median(streaming_keys), "ms", None),
        *frames,
        Row("CPU at rest", idle_percent, "%", 1),
    ]


def long_rows() -> list[Row]:
    """What is measured over a session of great length."""
    with running(0) as terminal:
        empty_mb = terminal.rss_mb()
    with running(MANY_TURNS) as terminal:
        full_mb = terminal.rss_mb()
        resize_ms = cpu_ms(terminal, lambda number: terminal.resize(100 if number % 2 == 0 else 120, 40), 8)
        page_ms = cpu_ms(terminal, lambda _: terminal.send("\x1b[5~"), 30)
    return [
        Row(f"CPU of a resize, {MANY_TURNS:,} turns", resize_ms, "ms", 150),
        Row(f"CPU of half a page, {MANY_TURNS:,} turns", page_ms, "ms", 25),
        Row(f"memory of the program for {MANY_TURNS:,} turns, their records included", full_mb - empty_mb, "MB", None),
    ]


async def view_rows() -> list[Row]:
    """What can only be seen from inside: the widgets there are, and the memory the view adds to given blocks."""
    import tracemalloc

    app = Bench()
    blocks = session(MANY_TURNS)
    async with app.run_test(size=(120, 40)) as pilot:
        transcript = app.query_one(Transcript)
        tracemalloc.start()
        transcript.load(blocks)
        transcript.focus()
        await pilot.pause()
        for _ in range(200):
            await pilot.press("pageup")
        view_mb = tracemalloc.get_traced_memory()[0] / 1e6
        tracemalloc.stop()
        widgets = len(app.query("*"))
    return [
        Row(f"memory of the view for {MANY_TURNS:,} turns, 100 pages seen", view_mb, "MB", 40),
        Row("widgets mounted", widgets, "", 60),
    ]


def first_paint_rows(runs: int) -> list[Row]:
    rows = startup.measured(runs)
    return [
        Row("first frame after exec", statistics.median(rows["frame"]) * 1_000, "ms", startup.MAX_FRAME_S * 1_000),
        Row("typed key shown after exec", statistics.median(rows["echo"]) * 1_000, "ms", startup.MAX_ECHO_S * 1_000),
        Row("full screen against bare Textual", startup.ratio_to_bare(rows), "×", startup.MAX_RATIO),
    ]


def measured(runs: int) -> list[Row]:
    """Every figure; of several runs the median."""
    once = [*first_paint_rows(runs * 2 + 1), *asyncio.run(view_rows())]
    rounds = [[*middle_rows(), *long_rows()] for _ in range(runs)]
    merged = [
        Row(row.name, statistics.median(taken[at].value for taken in rounds), row.unit, row.budget, row.is_least)
        for at, row in enumerate(rounds[0])
    ]
    return [*once, *merged]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    arguments.add_argument("--runs", type=int, default=3)
    load_before = os.getloadavg()[0]
    rows = measured(arguments.parse_args().runs)
    print("| what | measured | budget | |\n| --- | --- | --- | --- |")
    print("\n".join(row.text() for row in rows))
    print(f"\nload average {load_before:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores")
    return 0 if all(row.is_kept for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
