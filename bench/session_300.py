"""Three hundred tool rounds through the assembled agent: what is refused, read from the cache, billed and computed.

    python bench/session_300.py [--rounds 300] [--window 200000] [--model MODEL]…

The server is the strict fake, called without sockets; its own processor time is left out. `unannounced` counts
requests that read less than the marked prefix of the request before although nothing was compacted between them and
thinking was not switched (models that only know manual thinking pause it after a compaction in mid-task).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pyagent.events import CompactionFinished, TurnFinished
from tests.agent.support import launch_options, running_agent
from tests.fakes.direct import DirectServer
from tests.fakes.recorded import Price, Recorded, bill
from tests.fakes.script import Answer, Request, Thinking, ToolUse, notes_asked_for, reply

MODELS = ("claude-sonnet-4-5", "claude-sonnet-5-5")
PRICES = {"claude-sonnet-4-5": Price.of(3, 15, 0.30), "claude-sonnet-5-5": Price.of(2, 10, 0.10)}
SUMMARY = (
    "<analysis>draft</analysis>\n<summary>\n"
    + "\n".join(f"{number}. Section {number}\n" + "What there is to say of it. " * 40 for number in range(1, 10))
    + "\n</summary>"
)
"""About 10 KB, as real summaries are."""

ROUNDS_A_PROMPT = 25
MIN_RESULT_BYTES, MAX_RESULT_BYTES = 4_000, 12_000
STEP_ROUNDS = 100
"""Processor time is told for each stretch of so many rounds: it must not grow with the session."""


class Worker:
    """Plays a model at work: reads files of 4 to 12 KB, thinks, says a word, and ends each prompt with an answer."""

    def __init__(self, rounds: int, file_count: int, on_step: Callable[[], None]) -> None:
        self._rounds, self._file_count, self._on_step = rounds, file_count, on_step
        self._random = random.Random(300)
        self.round_count = self.summary_count = self.notes_count = 0

    def __call__(self, request: Request) -> Answer:
        notes = notes_asked_for(request)
        if notes is not None:
            self.notes_count += 1
            return reply(Thinking("What is new?"), f"<notes>\n{notes}\n{'Something was done. ' * 40}\n</notes>")
        if "<summary>" in request.last_text:
            self.summary_count += 1
            return reply(Thinking("What matters?"), SUMMARY)
        self.round_count += 1
        if self.round_count % STEP_ROUNDS == 0:
            self._on_step()
        thought = Thinking("Considering the next step. " * self._random.randint(1, 12))
        if self.round_count % ROUNDS_A_PROMPT == 0 or self.round_count >= self._rounds:
            return reply(thought, "That part is done.")
        number = self._random.randrange(self._file_count)
        return reply(thought, "Reading on.", ToolUse("Read", {"file_path": f"file{number}.py"}))


@dataclass(frozen=True, slots=True)
class CacheShare:
    """How much of the prompts was read from the cache, and how often less than could have been."""

    read: float
    between: float
    """The same of requests that did not follow a compaction."""
    unannounced: int


@dataclass(frozen=True, slots=True)
class Figures:
    model: str
    rounds: int
    requests: int
    refused: int
    dropped_thinking: int
    share: CacheShare
    boundaries: int
    summaries: int
    notes: int
    bill_usd: float
    cpu_s: tuple[float, ...]
    """For each stretch of `STEP_ROUNDS` rounds."""


async def measure(model: str, rounds: int, window_tokens: int, folder: Path) -> Figures:
    steps: list[float] = []

    def own_cpu_s() -> float:
        return time.process_time() - server.cpu_s

    worker = Worker(rounds, rounds, lambda: steps.append(own_cpu_s()))
    sources: list[str] = []
    server = DirectServer(
        worker,
        window_tokens=window_tokens,
        binding="all",
        keeps_bodies=False,
        on_request=lambda request: sources.append(request.source),
    )
    options = launch_options(folder, "http://127.0.0.1:1", model=model)
    write_files(options.cwd, rounds)
    async with running_agent(options, server) as agent:
        steps.append(own_cpu_s())
        while worker.round_count < rounds:
            ended = await agent.prompt("Go on with the next part.")
            if not isinstance(ended, TurnFinished):
                raise RuntimeError(f"a turn failed: {ended}")
        steps.append(own_cpu_s())
        boundaries = len(agent.all_of(CompactionFinished))
    return Figures(
        model=model,
        rounds=worker.round_count,
        requests=len(server.requests),
        refused=len(server.refused),
        dropped_thinking=len(server.dropped),
        # Notes are written from a snapshot while the main loop goes on, so theirs are not compared with its requests.
        share=cache_share([one for one, source in zip(server.requests, sources, strict=True) if source == "sdk"]),
        boundaries=boundaries,
        summaries=worker.summary_count,
        notes=worker.notes_count,
        bill_usd=bill(server.requests, PRICES),
        cpu_s=tuple(after - before for before, after in pairwise(steps) if after > before + 0.01),
    )


def write_files(folder: Path, count: int) -> None:
    sizes = random.Random(4_12)
    for number in range(count):
        lines, size = [], sizes.randint(MIN_RESULT_BYTES, MAX_RESULT_BYTES)
        while size > 0:
            line = f"    value_{sizes.randrange(10_000)} = compute(item, step={sizes.randrange(100)})  # as before"
            lines.append(line)
            size -= len(line) + 8
        (folder / f"file{number}.py").write_text("\n".join(lines) + "\n")


def cache_share(requests: list[Recorded]) -> CacheShare:
    prompt = read = between_prompt = between_read = unannounced = 0
    previous: Recorded | None = None
    for request in requests:
        if not request.usage:
            continue
        usage = request.usage
        prompt += request.input_tokens
        read += usage["cache_read_input_tokens"]
        is_after_compaction = previous is not None and request.input_tokens < 0.8 * previous.input_tokens
        if previous is not None and not is_after_compaction:
            between_prompt += request.input_tokens
            between_read += usage["cache_read_input_tokens"]
            marked = previous.usage["cache_read_input_tokens"] + previous.usage["cache_creation_input_tokens"]
            is_switch = request.body.get("thinking") != previous.body.get("thinking")
            unannounced += usage["cache_read_input_tokens"] < marked and not is_switch
        previous = request
    return CacheShare(read / max(prompt, 1), between_read / max(between_prompt, 1), unannounced)


def table(rows: list[Figures]) -> str:
    head = (
        "| model | rounds | requests | refused | thinking dropped | unannounced | read | between compactions"
        " | compactions | summaries | notes | bill | own CPU per 100 rounds |"
    )
    lines = [head, "|" + "---|" * 13]
    for row in rows:
        cpu = " ".join(f"{seconds:.1f}" for seconds in row.cpu_s)
        cells: list[object] = [row.model, row.rounds, row.requests, row.refused, row.dropped_thinking]
        cells += [row.share.unannounced, f"{row.share.read:.1%}", f"{row.share.between:.1%}"]
        cells += [row.boundaries, row.summaries, row.notes, f"${row.bill_usd:.2f}", f"{cpu} s"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--window", type=int, default=200_000, help="tokens")
    parser.add_argument("--model", action="append", choices=MODELS)
    options = parser.parse_args()
    rows = []
    for model in options.model or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(asyncio.run(measure(model, options.rounds, options.window, Path(folder))))
    print(table(rows))


if __name__ == "__main__":
    main()
