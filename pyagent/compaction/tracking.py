"""The state of the automatic layers between two calls: one value, passed in and returned, kept in the log.

Two breakers live here. The circuit opens after failures in a row, and lets one attempt through every few minutes. The
refill breaker stops compactions that work but help so little that the next one is due at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from pyagent.messages import JsonObject

MAX_CONSECUTIVE_AUTOCOMPACT_FAILURES = 3
"""A fault that strikes three times in a row will strike a fourth time; each attempt costs a whole context."""

HALF_OPEN_AFTER_S = 300.0
"""After this pause one attempt may show whether the fault has passed: an outage rarely outlasts a coffee."""

MAX_POOR_COMPACTIONS = 3
SAME_TRIGGER_SHARE = 0.10
"""A trigger this close is the same one: under the policy `economy` it moves a little with every call."""
MIN_FREE_SHARE = 0.15
"""Of the trigger. A compaction that leaves less is poor; after three poor ones in a row, a fourth is not attempted."""


@dataclass(frozen=True, slots=True)
class AutoCompactTracking:
    is_compacted: bool = False
    """Whether the conversation has been compacted in this session."""
    turn_counter: int = 0
    """Requests since the last compaction."""
    turn_id: str = ""
    """The transaction of the last compaction."""
    consecutive_failures: int = 0
    last_failure_at: datetime | None = None
    last_failure_reason: str = ""
    is_told: bool = False
    """Whether the user was told that the circuit is open."""
    poor_compactions: int = 0
    poor_trigger_tokens: int = 0
    """The trigger under which they were poor: another window is another chance."""
    calibration: JsonObject = field(default_factory=dict)

    @property
    def is_circuit_open(self) -> bool:
        return self.consecutive_failures >= MAX_CONSECUTIVE_AUTOCOMPACT_FAILURES

    @property
    def next_attempt_at(self) -> datetime | None:
        """When an open circuit lets an automatic attempt through again; None while it is closed."""
        if not self.is_circuit_open or self.last_failure_at is None:
            return None
        return self.last_failure_at + timedelta(seconds=HALF_OPEN_AFTER_S)

    def may_attempt(self, now: datetime) -> bool:
        """Whether an automatic compaction may call a model."""
        due = self.next_attempt_at
        return due is None or now >= due

    def is_refilling(self, trigger_tokens: int) -> bool:
        """Whether compactions keep helping too little at this trigger."""
        return self.poor_compactions >= MAX_POOR_COMPACTIONS and self._is_same_trigger(trigger_tokens)

    def _is_same_trigger(self, trigger_tokens: int) -> bool:
        return abs(self.poor_trigger_tokens - trigger_tokens) <= SAME_TRIGGER_SHARE * self.poor_trigger_tokens

    def failed(self, now: datetime, reason: str) -> AutoCompactTracking:
        return replace(
            self, consecutive_failures=self.consecutive_failures + 1, last_failure_at=now, last_failure_reason=reason
        )

    def told(self) -> AutoCompactTracking:
        return replace(self, is_told=True)

    def succeeded(
        self, turn_id: str, *, after_tokens: int, trigger_tokens: int, is_by_model: bool
    ) -> AutoCompactTracking:
        """After a compaction that left `after_tokens`. Only one that a model or its notes made closes the circuit."""
        is_poor = trigger_tokens - after_tokens < MIN_FREE_SHARE * trigger_tokens
        same_trigger = self._is_same_trigger(trigger_tokens)
        compacted = replace(
            self,
            is_compacted=True,
            turn_counter=0,
            turn_id=turn_id,
            poor_compactions=((self.poor_compactions if same_trigger else 0) + 1) if is_poor else 0,
            poor_trigger_tokens=trigger_tokens,
        )
        if not is_by_model:
            return compacted
        return replace(compacted, consecutive_failures=0, last_failure_at=None, last_failure_reason="", is_told=False)

    def after_request(self) -> AutoCompactTracking:
        """One more request was answered since the last compaction: for the conversation to say."""
        return replace(self, turn_counter=self.turn_counter + 1)

    def to_json(self) -> JsonObject:
        return {
            "compacted": self.is_compacted,
            "turn_counter": self.turn_counter,
            "turn_id": self.turn_id,
            "failures": self.consecutive_failures,
            "failed_at": None if self.last_failure_at is None else self.last_failure_at.isoformat(),
            "failure": self.last_failure_reason,
            "told": self.is_told,
            "poor": self.poor_compactions,
            "poor_trigger": self.poor_trigger_tokens,
            "calibration": self.calibration,
        }

    @classmethod
    def from_json(cls, raw: JsonObject) -> AutoCompactTracking:
        """From a session file; what is missing or of a wrong type reads as at the start."""

        def number(key: str) -> int:
            value = raw.get(key)
            return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0

        def text(key: str) -> str:
            value = raw.get(key)
            return value if isinstance(value, str) else ""

        def mapping(key: str) -> JsonObject:
            value = raw.get(key)
            return value if isinstance(value, dict) else {}

        try:
            failed_at = datetime.fromisoformat(text("failed_at"))
        except ValueError:
            failed_at = None
        if failed_at is not None and failed_at.tzinfo is None:
            failed_at = None
        return cls(
            is_compacted=raw.get("compacted") is True,
            turn_counter=number("turn_counter"),
            turn_id=text("turn_id"),
            consecutive_failures=number("failures"),
            last_failure_at=failed_at,
            last_failure_reason=text("failure"),
            is_told=raw.get("told") is True,
            poor_compactions=number("poor"),
            poor_trigger_tokens=number("poor_trigger"),
            calibration=mapping("calibration"),
        )
