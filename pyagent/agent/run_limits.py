"""How far one prompt may go: API rounds, and dollars."""

from __future__ import annotations

from pyagent.state import ConversationState


class RunLimits:
    """Stands for one run of the program: what a resumed session cost before does not count. None: no limit."""

    def __init__(self, state: ConversationState, max_rounds: int | None, max_budget_usd: float | None) -> None:
        self._state = state
        self._max_rounds = max_rounds
        self._max_budget_usd = max_budget_usd
        self._spent_before_usd = state.cost_usd

    def stop_reason(self, api_rounds: int) -> str:
        if self._max_rounds is not None and api_rounds >= self._max_rounds:
            return "max_turns"
        if self._max_budget_usd is not None and self._spent_usd >= self._max_budget_usd:
            return "budget"
        return ""

    @property
    def _spent_usd(self) -> float:
        return self._state.cost_usd - self._spent_before_usd
