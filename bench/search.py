"""Grep and Glob on a tree of 100,000 files against ripgrep itself, and the head of a 10 GB file in constant memory.

    python bench/search.py [--files 100000] [--runs 7]

The ratio is the median of Grep's wall time to that of `rg` with the same pattern as a bare command, run in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pyagent.settings import Settings
from pyagent.state import ConversationState
from pyagent.tools.registry import default_tools
from pyagent.tools.ripgrep import ripgrep_path
from pyagent.tools.shell import ShellSession
from pyagent.tools.tool import AnyTool, ToolContext, ToolResult

FILES_A_FOLDER = 250
BIG_FILE_BYTES = 10 * 1024**3


def make_tree(root: Path, files: int) -> None:
    """A git work tree of small source-like files; one in a thousand holds the needle."""
    (root / ".git").mkdir()
    for number in range(files):
        folder = root / f"d{number // FILES_A_FOLDER:04}"
        if number % FILES_A_FOLDER == 0:
            folder.mkdir()
        needle = "needle_here = 1\n" if number % 1_000 == 0 else ""
        (folder / f"f{number}.py").write_text(f"def f{number}():\n    return {number}\n{needle}" + "# filler\n" * 20)


def bare_seconds(ripgrep: str, root: Path) -> float:
    """Wall time of ripgrep as a bare command."""
    started = time.perf_counter()
    command = [ripgrep, "--files-with-matches", "needle_here", "."]
    subprocess.run(command, cwd=root, capture_output=True, check=True)
    return time.perf_counter() - started


class Bench:
    """Runs tools in a folder."""

    def __init__(self, root: Path) -> None:
        self.tools: dict[str, AnyTool] = default_tools(Settings())
        self.context = ToolContext(
            "toolu_bench", root, (root,), ConversationState(), root / "results", len, lambda text: None, ShellSession()
        )

    async def call(self, name: str, **fields: object) -> ToolResult:
        tool = self.tools[name]
        return await tool.run(tool.input_model.model_validate(fields), self.context)


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    ripgrep = ripgrep_path()
    assert ripgrep is not None, "no ripgrep here"
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        make_tree(root, options.files)
        bench = Bench(root)
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(options.runs + 1):
            theirs.append(bare_seconds(ripgrep, root))
            started = time.perf_counter()
            result = await bench.call("Grep", pattern="needle_here")
            ours.append(time.perf_counter() - started)
            assert not result.is_error, result.text
        # The first round fills the page cache for both.
        grep_s, rg_s = statistics.median(ours[1:]), statistics.median(theirs[1:])
        print(f"| what | {options.files:,} files |\n|---|---|")
        print(f"| rg, median of {options.runs} | {rg_s * 1000:.0f} ms |")
        print(f"| Grep, median of {options.runs} | {grep_s * 1000:.0f} ms |")
        print(f"| ratio | {grep_s / rg_s:.2f} |")
        started = time.perf_counter()
        await bench.call("Glob", pattern="**/f9*.py")
        print(f"| Glob `**/f9*.py` | {(time.perf_counter() - started) * 1000:.0f} ms |")
        big = root / "big.log"
        with big.open("wb") as file:
            file.write(b"a line of a log\n" * 100_000)
            file.truncate(BIG_FILE_BYTES)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        result = await bench.call("Read", file_path=str(big), limit=100)
        took_ms = (time.perf_counter() - started) * 1000
        grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"| head of a 10 GB file: time, growth of peak memory | {took_ms:.0f} ms, {grown_mb:.0f} MB |")
        assert not result.is_error, result.text


if __name__ == "__main__":
    asyncio.run(main())
