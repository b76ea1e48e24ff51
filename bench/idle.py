"""What the program costs while nobody does anything: share of a core, and bytes written, in a real pseudo-terminal.

    python -m bench.idle [seconds]

The budget is 1 % of a core: whoever leaves a session open all day must not see it in the battery.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.pty_harness import Terminal

MAX_PERCENT = 1.0
SETTLE_S = 6.0
"""Until the model's client, the tokenizer's table and the file index are loaded behind the first paint."""


def cpu_s(pid: int) -> float:
    """Processor time the process has used, in its own code and in the kernel, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(seconds: float, prompt: str, home: Path) -> tuple[float, float]:
    """Percent of a core, and bytes a second; after a prompt if one is given."""
    argv = [sys.executable, "-P", "-m", "pyagent", "--model", "offline"]
    with Terminal.spawn(argv, home=home, columns=120, lines=40) as terminal:
        terminal.wait_for("to compact")
        if prompt:
            terminal.type(f"{prompt}\r")
            terminal.wait_for(lambda screen: "offline model" in screen and "esc to interrupt" not in screen)
        time.sleep(SETTLE_S)
        before_s, before_bytes = cpu_s(terminal.pid), len(terminal.output)
        time.sleep(seconds)
        return (cpu_s(terminal.pid) - before_s) / seconds * 100, (len(terminal.output) - before_bytes) / seconds


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    worst = 0.0
    for name, prompt in (("after the start", ""), ("after a turn", "what can you do?")):
        with tempfile.TemporaryDirectory() as home:
            percent, bytes_per_s = measure(seconds, prompt, Path(home))
        print(f"{name}: {percent:.2f} % of a core, {bytes_per_s:.0f} bytes a second")
        worst = max(worst, percent)
    return 0 if worst <= MAX_PERCENT else 1


if __name__ == "__main__":
    sys.exit(main())
