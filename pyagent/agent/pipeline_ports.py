"""The pipeline's port to hooks: none configured, and the limit that holds for any that are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from pyagent.compaction.outcome import Trigger
from pyagent.compaction.ports import CompactionHooks, PreCompactAnswer
from pyagent.events import EventSink, Notice

HOOKS_LIMIT_S = 30.0
"""For all hooks of one moment together. They run while a person waits for an answer, and nothing they do is needed for
a compaction; a hook's own timeout may be far longer."""

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class NoHooks:
    """No hook is configured."""

    async def pre_compact(self, trigger: Trigger, instructions: str) -> PreCompactAnswer:
        return PreCompactAnswer()

    async def session_start(self) -> tuple[str, ...]:
        return ()

    async def post_compact(self, trigger: Trigger, summary: str) -> None:
        return None


class TimelyHooks:
    """Hooks that can neither hold up a compaction nor make it fail: one that hangs or breaks is left out, and said."""

    def __init__(self, hooks: CompactionHooks, emit: EventSink, *, limit_s: float = HOOKS_LIMIT_S) -> None:
        """`limit_s`: seconds for all hooks of one moment together."""
        self._hooks = hooks
        self._emit = emit
        self._limit_s = limit_s

    async def pre_compact(self, trigger: Trigger, instructions: str) -> PreCompactAnswer:
        return await self._within("PreCompact", self._hooks.pre_compact(trigger, instructions), PreCompactAnswer())

    async def session_start(self) -> tuple[str, ...]:
        return await self._within("SessionStart", self._hooks.session_start(), ())

    async def post_compact(self, trigger: Trigger, summary: str) -> None:
        await self._within("PostCompact", self._hooks.post_compact(trigger, summary), None)

    async def _within(self, event: str, running: Awaitable[_T], otherwise: _T) -> _T:
        try:
            async with asyncio.timeout(self._limit_s):
                return await running
        except TimeoutError:
            problem = f"did not end within {self._limit_s:g} s"
        except Exception as error:
            _log.exception("a %s hook failed", event)
            problem = f"failed: {error}"
        self._emit(Notice(f"A {event} hook {problem}; the compaction goes on without it.", "warning"))
        return otherwise
