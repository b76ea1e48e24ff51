"""One scripted session of 300 calls under each policy of the context pipeline, against the strict fake server.

Run from the repository's root: `python bench/policies.py [--windows 200000,60000] [--calls 300] [--only NAME,…]`.
The real agent runs its real tools; the server refuses, caches and bills as the Messages API does; time is set by the
script (20 s a call, and a pause of 90 minutes after every hundred), so that caches go cold where a person's would.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import itertools

from pyagent.agent.wire.catalogue import model_info  # the repository's root must be on the path first
from pyagent.compaction.economy import SUMMARY_OUTPUT_TOKENS, CachePrices, best_trigger, cost_per_call
from pyagent.compaction.thresholds import thresholds_for
from pyagent.events import TurnFailed
from pyagent.log import Boundary
from pyagent.settings import CompactionSettings
from tests.agent.background import Worker
from tests.agent.support import SteadyClock, launch_options, running_agent, state_on_disk
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.recorded import Price
from tests.fakes.script import Answer, Request, ToolRounds

MODEL = "claude-sonnet-5-5"
CALLS_PER_PROMPT = 6
SECONDS_PER_CALL = 20
CALLS_BETWEEN_PAUSES = 100
PAUSE_MINUTES = 90
SUMMARY = "<analysis>.</analysis>\n<summary>\n" + "\n".join(
    f"## {n}. Section\n" + "The parser was changed in src/parser.py and the tests pass again.\n" * 18
    for n in range(1, 10)
) + "</summary>"  # fmt: skip
NOTES = "<notes>\n# Task\n" + "Change the parser in src/parser.py and keep the tests green.\n" * 110 + "</notes>"

OFF = "0"
POLICIES: Mapping[str, Mapping[str, str]] = {
    "reactive only": {
        "PYAGENT_REACTIVE_ONLY": "1", "PYAGENT_SESSION_MEMORY": OFF, "PYAGENT_TIME_BASED_MICROCOMPACT": OFF,
    },
    "defaults": {},
    "notes off": {"PYAGENT_SESSION_MEMORY": OFF},
    "microcompact off": {"PYAGENT_TIME_BASED_MICROCOMPACT": OFF},
    "API-native on": {"PYAGENT_API_CONTEXT_MANAGEMENT": "1"},
    "economy": {"PYAGENT_COMPACTION_POLICY": "economy"},
    "economy, notes off": {"PYAGENT_COMPACTION_POLICY": "economy", "PYAGENT_SESSION_MEMORY": OFF},
    "collapse on": {"PYAGENT_CONTEXT_COLLAPSE": "1"},
    "snip on": {"PYAGENT_HISTORY_SNIP": "1"},
}  # fmt: skip
SEARCHING_POLICIES = ("defaults", "snip on")
"""What is run again on a session in which every other call is a search that was made before: else nothing repeats."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one run came to."""

    requests: int
    refused: int
    sent_tokens: int
    read_share: float
    summaries: int
    background: int
    boundaries: int
    usd: float
    kept_tokens: int
    added_tokens: float


LINE = "def parse(tokens, depth): return tokens[depth:] if depth else tokens"


def session(*, repeats_searches: bool) -> ToolRounds:
    """What the model does between two answers: commands whose output is new, or with the same search before each."""
    bash = ("Bash", {"command": f"yes '{LINE}' | head -n 130 # {{round}}"})
    search = ("Grep", {"pattern": "def parse", "output_mode": "content"})
    calls = [search, bash] if repeats_searches else [bash]
    return ToolRounds(calls, rounds=CALLS_PER_PROMPT - 1)


async def run(
    environ: Mapping[str, str], window_tokens: int, calls: int, folder: Path, *, repeats_searches: bool = False
) -> Row:
    clock = SteadyClock()
    work = session(repeats_searches=repeats_searches)
    main_calls = 0

    def answer(request: Request) -> Answer:
        nonlocal main_calls
        main_calls += 1
        clock.pass_time(seconds=SECONDS_PER_CALL)
        return work(request)

    worker = Worker(answer, summary=SUMMARY, notes=NOTES)
    async with FakeMessagesServer(
        worker, window_tokens=window_tokens, clock=clock.seconds, kept_bodies_count=4
    ) as server:
        options = launch_options(folder, server.url, environ=dict(environ), model=MODEL)
        (options.cwd / "parser.py").write_text(f"{LINE}\n" * 90)
        refused = 0
        pauses = 0
        async with running_agent(options, clock=clock) as agent:
            prompts = 0
            while main_calls < calls:
                prompts += 1
                ended = await agent.prompt(
                    f"Step {prompts}: go on with the parser. Keep src/parser.py under 400 lines."
                )
                if isinstance(ended, TurnFailed):
                    print(f"  a turn failed: {ended.message}", file=sys.stderr)
                if main_calls // CALLS_BETWEEN_PAUSES > pauses:
                    pauses += 1
                    clock.pass_time(minutes=PAUSE_MINUTES)
        for request in server.message_requests:
            refused += request.is_refusal
        kinds = dict(worker.counts)
        price = model_info(MODEL).price
        assert price is not None
        prices = {MODEL: Price.of(price.input_usd, price.output_usd, price.cache_read_usd or 0.0)}
        usages = [request.usage for request in server.message_requests if request.usage]
        sent = sum(request.input_tokens for request in server.message_requests if request.usage)
        read = sum(usage.get("cache_read_input_tokens", 0) for usage in usages)
        usd = server.bill(prices)
    boundaries = [r.payload for r in state_on_disk(options).records if isinstance(r.payload, Boundary)]
    sizes = [r.input_tokens for r in server.message_requests if r.usage]
    growth = [after - before for before, after in itertools.pairwise(sizes) if 0 < after - before < 20_000]
    return Row(
        requests=len(server.message_requests),
        refused=refused,
        sent_tokens=sent,
        read_share=read / max(sent, 1),
        summaries=kinds["summary"],
        background=kinds["notes"],
        boundaries=len(boundaries),
        usd=usd,
        kept_tokens=sum(b.post_tokens for b in boundaries) // max(len(boundaries), 1),
        added_tokens=sum(growth) / max(len(growth), 1),
    )


def print_thresholds() -> None:
    print(f"{'window':>10} {'effective':>10} {'warning':>10} {'error':>10} {'trigger':>10} {'blocking':>10}  share")
    for window in (8_000, 32_000, 100_000, 200_000, 1_000_000):
        lines = thresholds_for(window, 64_000, CompactionSettings())
        print(
            f"{window:>10,} {lines.effective_window:>10,} {lines.warning:>10,} {lines.error:>10,} "
            f"{lines.trigger:>10,} {lines.blocking:>10,}  {lines.trigger / window:.1%}"
        )


def print_formula(row: Row, window_tokens: int, calls: int) -> None:
    """What the formula of `compaction.economy` gives for the session just run."""
    price = model_info(MODEL).price
    if price is None or not price.cache_read_usd or not row.kept_tokens:
        return
    prices = CachePrices(
        price.cache_read_usd / price.input_usd,
        1.25,
        summary_tokens=SUMMARY_OUTPUT_TOKENS * price.output_usd / price.input_usd,
    )
    trigger = thresholds_for(window_tokens, 64_000, CompactionSettings()).trigger
    best = best_trigger(row.added_tokens, row.kept_tokens, prices)
    for name, at in (("trigger", trigger), ("T*", best)):
        usd = cost_per_call(at, row.added_tokens, row.kept_tokens, prices) * calls * price.input_usd / 1_000_000
        print(f"  by the formula at {name} = {at:,}: ${usd:.2f} (a = {row.added_tokens:,.0f}, K = {row.kept_tokens:,})")


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", default="200000,60000")
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    only = [name.strip() for name in args.only.split(",") if name.strip()]
    print_thresholds()
    for window in (int(text) for text in args.windows.split(",")):
        print(f"\nwindow {window:,}, {args.calls} calls, {MODEL}")
        print(HEADINGS)
        for name in POLICIES:
            if only and name not in only:
                continue
            row = await measured(name, window, args.calls)
            if name == "defaults":
                print_formula(row, window, args.calls)
        print("every other call a search made before:")
        for name in SEARCHING_POLICIES:
            await measured(name, window, args.calls, repeats_searches=True)
    return 0


HEADINGS = (
    f"{'policy':<19} {'requests':>8} {'refused':>7} {'sent':>12} {'read':>6} {'summaries':>9} {'notes':>5} "
    f"{'compactions':>11} {'bill $':>8}"
)


async def measured(name: str, window_tokens: int, calls: int, *, repeats_searches: bool = False) -> Row:
    """The figures of one policy, printed as a row."""
    with tempfile.TemporaryDirectory() as folder:
        row = await run(POLICIES[name], window_tokens, calls, Path(folder), repeats_searches=repeats_searches)
    print(
        f"{name:<19} {row.requests:>8} {row.refused:>7} {row.sent_tokens:>12,} {row.read_share:>6.1%} "
        f"{row.summaries:>9} {row.background:>5} {row.boundaries:>11} {row.usd:>8.3f}",
        flush=True,
    )
    return row


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
