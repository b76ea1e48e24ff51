"""Carries events from the agent's thread to the screen: in batches, at most 30 a second, fewer when the screen lags."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue

from pyagent.events import Event, TextDelta, ThinkingDelta, ToolProgress

FRAME_S = 1 / 30
"""Time between batches. More frames than 30 a second are not seen, and each costs a paint."""

SLOW_FRAME_S = 1 / 10
"""Time between batches while the screen's loop lags, so that keys keep getting through."""

STILL_FRAME_S = 0.5
"""Time between batches for a person who wants little motion: text comes in paragraphs rather than by words."""

LAG_LIMIT_S = 0.05
"""A batch that comes this much too late shows that the loop lags."""

MAX_BATCH = 500
"""Events delivered at once. A resumed session of 50,000 records would otherwise block keys for a second."""


class EventPump:
    """`put` may be called from any thread and never waits; `deliver` is called on the loop given to `attach`."""

    def __init__(self, deliver: Callable[[list[Event]], None]) -> None:
        self._deliver = deliver
        self._queue: SimpleQueue[Event] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context: Context | None = None
        self._is_woken = False
        self._timer: asyncio.TimerHandle | None = None
        self._last_s = 0.0
        self._due_s = 0.0
        self._fast_frame_s, self._slow_frame_s = FRAME_S, SLOW_FRAME_S
        self._frame_s = FRAME_S

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Deliver on this loop from now on, in the calling context."""
        self._context = copy_context()
        self._loop = loop
        self._wake()

    def detach(self) -> None:
        """Deliver no more."""
        self._loop = None
        if self._timer is not None:
            self._timer.cancel()

    def slow_down(self) -> None:
        """Deliver at most twice a second from now on."""
        self._fast_frame_s = self._slow_frame_s = self._frame_s = STILL_FRAME_S

    def put(self, event: Event) -> None:
        """Take in an event."""
        self._queue.put(event)
        loop = self._loop
        if loop is not None and not self._is_woken:
            self._is_woken = True
            try:
                loop.call_soon_threadsafe(self._wake, context=self._context)
            except RuntimeError:
                self._loop = None  # The loop closed in this very moment: nobody is left to see the event.

    def _wake(self) -> None:
        loop = self._loop
        if loop is None or (self._timer is not None and not self._timer.cancelled()):
            return
        self._due_s = max(loop.time(), self._last_s + self._frame_s)
        self._timer = loop.call_at(self._due_s, self._drain, context=self._context)

    def _drain(self) -> None:
        loop = self._loop
        self._timer = None
        if loop is None:
            return
        self._last_s = loop.time()
        is_late = self._last_s - self._due_s > LAG_LIMIT_S
        self._frame_s = self._slow_frame_s if is_late else self._fast_frame_s
        self._is_woken = False
        batch: list[Event] = []
        try:
            while len(batch) < MAX_BATCH:
                batch.append(self._queue.get_nowait())
        except Empty:
            pass
        if batch:
            self._deliver(coalesced(batch))
        if len(batch) == MAX_BATCH:
            self._is_woken = True
            self._wake()


def coalesced(events: Iterable[Event]) -> list[Event]:
    """The events with neighbouring pieces of the same text joined."""
    joined: list[Event] = []
    pieces: list[str] = []

    def close() -> None:
        if len(pieces) > 1:
            text = "".join(pieces)
            match joined[-1]:
                case TextDelta():
                    joined[-1] = TextDelta(text)
                case ThinkingDelta():
                    joined[-1] = ThinkingDelta(text)
                case ToolProgress(tool_use_id=use_id):
                    joined[-1] = ToolProgress(use_id, text)
                case _:
                    pass
        pieces.clear()

    for event in events:
        if isinstance(event, TextDelta | ThinkingDelta | ToolProgress):
            if pieces and _is_continued(joined[-1], event):
                pieces.append(event.text)
                continue
            close()
            pieces.append(event.text)
        else:
            close()
        joined.append(event)
    close()
    return joined


def _is_continued(last: Event, event: TextDelta | ThinkingDelta | ToolProgress) -> bool:
    if isinstance(last, ToolProgress) and isinstance(event, ToolProgress):
        return last.tool_use_id == event.tool_use_id
    return type(last) is type(event)
