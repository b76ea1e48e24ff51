"""What must survive a compaction survives five in a row, whatever the summariser forgets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.fidelity import KINDS, play, table


@pytest.mark.parametrize("is_continued", [False, True], ids=["one process", "quit and --continue before each"])
async def test_five_compactions_lose_nothing_that_was_promised(tmp_path: Path, is_continued: bool) -> None:
    checks = await play(tmp_path, is_continued=is_continued)
    print("\n" + table(checks))
    assert [check.kind for check in checks] == list(KINDS)
    for number, check in enumerate(checks):
        assert not check.missing, f"compaction {number + 1} ({check.kind}) lost {check.missing}"
        assert check.calls == 1, f"compaction {number + 1} ({check.kind}) made {check.calls} summary calls"
        assert check.cached_share > 0.5, f"compaction {number + 1} ({check.kind}) read {check.cached_share:.0%} cached"
