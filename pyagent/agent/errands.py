"""Small jobs for a person that run beside a turn: they neither wait for it nor hold it up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from pyagent.agent.conversation import CommandHandler
from pyagent.errors import PyagentError
from pyagent.events import EventSink, Notice

_log = logging.getLogger(__name__)

Errand: TypeAlias = Callable[[str], Coroutine[Any, Any, None]]


class Errands:
    """Runs the work of commands that only look, and tells of what goes wrong. For one event loop."""

    def __init__(self, emit: EventSink) -> None:
        self._emit = emit
        self._running: set[asyncio.Task[None]] = set()

    def handler(self, work: Errand) -> CommandHandler:
        """A command handler that starts the work and returns at once."""

        def handle(argument: str) -> asyncio.Task[None]:
            task = asyncio.get_running_loop().create_task(self._run(work, argument))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            return task

        return handle

    def stop(self) -> bool:
        """Interrupt what runs; whether there was anything."""
        running = [task for task in self._running if task.cancel()]
        if running:
            self._emit(Notice("Interrupted."))
        return bool(running)

    async def _run(self, work: Errand, argument: str) -> None:
        try:
            await work(argument)
        except PyagentError as error:
            self._emit(Notice(error.message, "error", error.hint))
        except Exception as error:
            _log.exception("a command ended by a mistake of pyagent's")
            self._emit(Notice(f"pyagent made a mistake: {type(error).__name__}: {error}", "error"))

    async def close(self) -> None:
        """End what still runs."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
