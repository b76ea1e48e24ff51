"""Notices a model that goes round in circles: the same call with the same result, time after time.

A value: `after` gives the next one. It lives for one turn, so what a person asks for again is no loop.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyagent.messages import JsonObject, ResultContent, block_to_wire

REPEATS_TOLD = 3
"""Times in a row after which the model is told: twice may be a check, three times brings nothing new."""

REPEATS_STOPPED = 6
"""Times in a row after which the turn stops: the model was told and went on all the same."""

COMMENT_FIELDS = ("description",)
"""Input fields that say something about a call without changing what it does."""


@dataclass(frozen=True, slots=True)
class LoopGuard:
    """What was called last, and how often in a row it came out the same."""

    fingerprint: str = ""
    count: int = 0
    summary: str = ""
    """The call as the screen names it."""

    @property
    def should_tell(self) -> bool:
        return self.count == REPEATS_TOLD

    @property
    def should_stop(self) -> bool:
        return self.count >= REPEATS_STOPPED

    def after(
        self, name: str, tool_input: JsonObject, content: Sequence[ResultContent], is_error: bool, summary: str
    ) -> LoopGuard:
        """The guard once this call has this result. A guard that stops the turn stays as it is."""
        if self.should_stop:
            return self
        fingerprint = _fingerprint(name, tool_input, content, is_error)
        count = self.count + 1 if fingerprint == self.fingerprint else 1
        return LoopGuard(fingerprint, count, summary)


def reminder_text(name: str) -> str:
    """What the model is told with the third result."""
    return (
        f"<system-reminder>\nThis was the same {name} call with the same result {REPEATS_TOLD} times in a row. "
        "Repeating it brings nothing new: try another way, wait longer before you look again, or tell the user what "
        "stands in the way.\n</system-reminder>"
    )


def _fingerprint(name: str, tool_input: JsonObject, content: Sequence[ResultContent], is_error: bool) -> str:
    meant = {key: value for key, value in tool_input.items() if key not in COMMENT_FIELDS}
    parts = [name, meant, is_error, [block_to_wire(part) for part in content]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
