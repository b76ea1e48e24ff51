"""Each fault of a server: nothing is lost, nothing half-said is run, and the next prompt is answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.faults import FAULTS, Outcome, run
from tests.e2e.make_fault_table import TABLE_PATH, row

ANSWERED = ("prompt", "answer (text)", "turn ended: end_turn")
FAILED = ("prompt", "turn ended: failed")

BROKEN_OFF = [
    name for name in FAULTS if name.startswith(("cut ", "stall", "reset")) or name in ("no message_stop", "garbage")
]


@pytest.fixture(params=FAULTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_a_fault_ends_as_the_documentation_says(name: str, tmp_path: Path) -> None:
    outcome = await run(FAULTS[name], tmp_path)
    assert outcome.next_prompt == "Fine."
    assert outcome.refusals == ()
    assert outcome.has_run is FAULTS[name].runs_tool
    check_more(name, outcome)
    documented = TABLE_PATH.read_text(encoding="utf-8").splitlines()
    assert row(name, outcome) in documented, "run: python -m tests.e2e.make_fault_table"


def check_more(name: str, outcome: Outcome) -> None:
    """What must hold of single faults, whatever the documentation says."""
    if name in BROKEN_OFF:
        assert outcome.on_disk == ANSWERED
        assert len(outcome.delays_s) == 1
    match name:
        case "529 five times":
            assert outcome.on_disk == ANSWERED
            assert outcome.delays_s == pytest.approx((0.5, 1, 2, 4, 8), rel=0.25)
        case "529 for ever":
            assert outcome.on_disk == FAILED
            assert len(outcome.delays_s) == 9
        case "429 for 3 s":
            assert outcome.delays_s == (3.0,)
        case "429 for an hour" | "429 spend limit" | "400 usage limit" | "401" | "404" | "refusal":
            assert outcome.delays_s == ()
            assert outcome.on_disk == FAILED
        case "unknown block":
            assert outcome.blocks_sent == ("hologram", "text")
        case "empty" | "empty twice" | "blank":
            assert not any(kept.startswith("answer") for kept in outcome.on_disk[:2])
        case "invalid JSON" | "truncated JSON" | "plausible cut" | "unknown tool":
            assert "result (error)" in outcome.on_disk
        case "pause_turn":
            assert outcome.blocks_sent == ("server_tool_use", "web_search_tool_result", "text")
        case _:
            pass


def test_the_documentation_knows_these_faults_and_no_others() -> None:
    lines = TABLE_PATH.read_text(encoding="utf-8").splitlines()
    titles = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")][1:]
    assert titles == [fault.title for fault in FAULTS.values()]
