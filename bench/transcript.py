"""What the transcript costs at growing lengths: CPU of loading, streaming, paging and resizing, headless.

    python -m bench.transcript [TURNS ...]

Headless runs leave out writing to the terminal (a few ms a frame), so figures compare with each other and with the
budgets for CPU: a page <= 25 ms, a resize <= 150 ms at 10,000 turns, a streamed chunk flat over all lengths.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from pyagent.ui.blocks import Block, BlockKind, BlockState
from pyagent.ui.gauge import GaugeModel, StatusModel
from pyagent.ui.prompt import Prompt
from pyagent.ui.statusbar import StatusBar
from pyagent.ui.theme import DARK, THEMES
from pyagent.ui.transcript import Transcript

SIZES = (200, 2_000, 10_000)
_CHUNK = "some **words** of an answer with `code` in it, and more of them. "
ANSWER = """## Heading {n}

A paragraph of some length with **strong** words and `code`, which wraps once or twice in a window of usual width.

- first item
- second item
- third item

```python
def answer(n: int) -> int:
    return n + {n}
```

A last paragraph.
"""


class Bench(App[None]):
    """The transcript with its usual neighbours."""

    ENABLE_COMMAND_PALETTE = False

    def compose(self) -> ComposeResult:
        yield Transcript()
        yield Prompt()
        yield StatusBar()

    def on_mount(self) -> None:
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = DARK


@dataclass(frozen=True, slots=True)
class Figures:
    """CPU in milliseconds (medians), memory in MB."""

    turns: int
    load_ms: float
    chunk_ms: float
    status_ms: float
    page_ms: float
    resize_ms: float
    grown_mb: float


def session(turns: int) -> list[Block]:
    """Turns of a prompt, an answer of some 15 rows and a tool call with 8 lines of output."""
    blocks: list[Block] = []
    for n in range(turns):
        blocks.append(Block(f"u{n}", BlockKind.USER, f"Prompt number {n}: please change the thing."))
        blocks.append(Block(f"a{n}", BlockKind.ASSISTANT, ANSWER.format(n=n)))
        output = "\n".join(f"output line {row} of call {n}" for row in range(8))
        blocks.append(
            Block(
                f"t{n}", BlockKind.TOOL, "make check", title="Bash", state=BlockState.OK, detail=output, collapsed=False
            )
        )
    return blocks


async def cpu_ms(pilot: Pilot[None], action: Callable[[], Awaitable[object] | None], repeats: int) -> float:
    """Median CPU of an action and the frame after it."""
    figures: list[float] = []
    for _ in range(repeats):
        start = time.process_time()
        pending = action()
        if pending is not None:
            await pending
        await pilot.pause()
        figures.append((time.process_time() - start) * 1_000)
    return statistics.median(figures)


async def measure(turns: int) -> Figures:
    """All figures at one length."""
    blocks = session(turns)
    gc.collect()
    memory_before_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    app = Bench()
    async with app.run_test(size=(120, 40)) as pilot:
        transcript, status = app.query_one(Transcript), app.query_one(StatusBar)
        transcript.focus()
        await pilot.pause()
        load_ms = await cpu_ms(pilot, lambda: transcript.load(blocks), 1)
        transcript.append(Block("live", BlockKind.ASSISTANT, state=BlockState.STREAMING))
        chunk_ms = await cpu_ms(pilot, lambda: transcript.append_text("live", _CHUNK), 60)
        used = iter(range(1_000_000))
        status_ms = await cpu_ms(
            pilot, lambda: status.show(StatusModel(model="m", gauge=GaugeModel(next(used) * 1_000, 200_000))), 20
        )
        page_ms = await cpu_ms(pilot, lambda: transcript.action_half_page(-1), 30)
        sizes = iter([(100, 40), (120, 40)] * 5)
        resize_ms = await cpu_ms(pilot, lambda: pilot.resize_terminal(*next(sizes)), 6)
    grown_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024 - memory_before_mb
    return Figures(turns, load_ms, chunk_ms, status_ms, page_ms, resize_ms, grown_mb)


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    arguments.add_argument("turns", nargs="*", type=int, default=list(SIZES))
    print(f"{'turns':>7} {'load':>8} {'chunk':>8} {'status':>8} {'page':>8} {'resize':>8}   view MB")
    for turns in arguments.parse_args().turns:
        f = asyncio.run(measure(turns))
        print(
            f"{f.turns:>7} {f.load_ms:>8.1f} {f.chunk_ms:>8.1f} {f.status_ms:>8.1f} {f.page_ms:>8.1f} "
            f"{f.resize_ms:>8.1f} {f.grown_mb:>9.1f}"
        )


if __name__ == "__main__":
    main()
