"""Writes docs/faults.md: what a person sees of each fault of a server, and what is on disk afterwards.

python -m tests.e2e.make_fault_table
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.faults import FAULTS, Outcome, run

TABLE_PATH = Path(__file__).resolve().parents[2] / "docs" / "faults.md"

HEAD = """# When the server fails

What a person sees of each fault, and what the session file holds afterwards. Made by
`python -m tests.e2e.make_fault_table` from the runs that are also tests (`tests/e2e/test_faults.py`): each fault
happens to a prompt, and the next prompt is answered as if nothing had been. A broken-off answer is never kept, and a
tool call of it never run.

| fault | what the person sees | what is on disk | next prompt |
|---|---|---|---|
"""


def row(name: str, outcome: Outcome) -> str:
    """One line of the table."""
    cells = (FAULTS[name].title, "; ".join(outcome.seen), "; ".join(outcome.on_disk), outcome.next_prompt)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(outcomes: Mapping[str, Outcome]) -> str:
    """The whole document."""
    return HEAD + "".join(f"{row(name, outcome)}\n" for name, outcome in outcomes.items())


async def outcomes_of_all() -> dict[str, Outcome]:
    outcomes = {}
    for name, fault in FAULTS.items():
        with tempfile.TemporaryDirectory() as folder:
            outcomes[name] = await run(fault, Path(folder))
    return outcomes


def main() -> None:
    TABLE_PATH.parent.mkdir(exist_ok=True)
    TABLE_PATH.write_text(table(asyncio.run(outcomes_of_all())), encoding="utf-8")
    print(f"{TABLE_PATH}: {len(FAULTS)} faults")


if __name__ == "__main__":
    main()
