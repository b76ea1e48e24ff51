"""Kills an agent with SIGKILL before, within and after writes to its session file, resumes, and prints what came of it.
Then two processes race for one session and within one project.

    python -m bench.crash_matrix [step]

`step` 1 (the default is 3) crashes at every write. Each row must say that nothing was lost.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.agent.crash_harness import MOMENTS, crash, write_count
from tests.agent.race_harness import race

RACE_ROUNDS = 200


def main() -> int:
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    faults = crashes = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = write_count(folder / "whole")
        print(f"{count} writes; crash at every {step}. of them")
        print(f"{'write':>5} {'moment':8} {'records':>7} {'compaction':10} {'torn line told':14} outcome")
        for kill_at in range(1, count + 1, step):
            for moment in MOMENTS:
                outcome = crash(folder / f"{kill_at}-{moment}", kill_at, moment)
                crashes += 1
                faults += bool(outcome.fault)
                told = "yes" if outcome.was_reported else "-"
                print(
                    f"{kill_at:5} {moment:8} {outcome.record_count:7} {outcome.compaction:10} {told:14} "
                    f"{outcome.fault or 'nothing lost, goes on'}",
                    flush=True,
                )
        print(f"{crashes} crashes, {faults} with a loss")
        raced = race(folder / "race", RACE_ROUNDS)
        print(f"{raced.rounds} rounds of two processes at once, won {' and '.join(map(str, raced.wins))} times")
        print(f"those who came too late were told: {' / '.join(sorted(raced.refusals))}")
        for fault in raced.faults or ("nothing lost, nothing mixed",):
            print(fault)
    return 1 if faults or raced.faults else 0


if __name__ == "__main__":
    sys.exit(main())
