"""What a look at the installation found: one line each, with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["ok", "warn", "fail", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`fail`: pyagent does not work, or not as it was told to. `warn`: something is missing or worth a look."""

    verdict: Verdict
    subject: str
    text: str
    fix: str = ""
