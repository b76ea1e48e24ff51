"""What a snapshot of a work tree costs: the first, one without a change, and one after an edit and a deletion.

    python -m bench.checkpoints [files]

The limits are for 3,000 files: 0.5 s for the first, 0.1 s for each that follows.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from pyagent.agent.checkpoints import ShadowRepository

FIRST_LIMIT_S, NEXT_LIMIT_S = 0.5, 0.1
RUNS = 5


def make_tree(root: Path, file_count: int) -> None:
    """`file_count` small source files in folders of a hundred."""
    for number in range(file_count):
        folder = root / f"package_{number // 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"module_{number}.py").write_text(f"VALUE_{number} = {number}\n" * 20, "utf-8")


def main() -> int:
    file_count = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
    firsts: list[float] = []
    idles: list[float] = []
    edits: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        work = folder / "work"
        make_tree(work, file_count)
        for run in range(RUNS):
            started_s = time.perf_counter()
            shadow = ShadowRepository(folder / f"home-{run}", work, "session", user_home=folder / "nobody")
            shadow.snapshot("first")
            firsts.append(time.perf_counter() - started_s)
            started_s = time.perf_counter()
            shadow.snapshot("nothing changed")
            idles.append(time.perf_counter() - started_s)
            (work / "package_0" / f"new_{run}.py").write_text("A = 1\n", "utf-8")
            (work / "package_1" / f"module_{100 + run}.py").unlink()
            started_s = time.perf_counter()
            shadow.snapshot("one edit, one deletion")
            edits.append(time.perf_counter() - started_s)
    for label, times, limit_s in (
        ("first", firsts, FIRST_LIMIT_S),
        ("unchanged", idles, NEXT_LIMIT_S),
        ("after two changes", edits, NEXT_LIMIT_S),
    ):
        print(f"{label:18} best {min(times) * 1_000:5.0f} ms   worst {max(times) * 1_000:5.0f} ms   limit {limit_s} s")
    return 0 if min(firsts) <= FIRST_LIMIT_S and min(idles + edits) <= NEXT_LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
