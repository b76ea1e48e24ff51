"""Ports of the pipeline where nothing stands behind them: a session without hooks."""

from __future__ import annotations

from pyagent.compaction.outcome import Trigger
from pyagent.compaction.ports import PreCompactAnswer


class NoHooks:
    """No hook is configured."""

    async def pre_compact(self, trigger: Trigger, instructions: str) -> PreCompactAnswer:
        return PreCompactAnswer()

    async def session_start(self) -> tuple[str, ...]:
        return ()
