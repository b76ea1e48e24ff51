"""Starts the agent on a thread of its own, so that a stalled screen never stops it and heavy imports never delay it."""

from __future__ import annotations

import asyncio
import logging
import threading

from pyagent.commands import Command, Shutdown
from pyagent.errors import PyagentError
from pyagent.events import ConversationClosed, EventSink, TurnFailed
from pyagent.launch import AgentHandle, LaunchOptions

_log = logging.getLogger(__name__)


class AgentThread:
    """The agent behind an `AgentHandle`: its thread, its event loop, and the commands that came before either."""

    def __init__(self, options: LaunchOptions, sink: EventSink) -> None:
        self._options = options
        self._emit = sink
        self._lock = threading.Lock()
        self._early: list[Command] = []
        self._deliver: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="agent", daemon=True)
        self._host_send = self._early.append

    def start(self) -> None:
        self._thread.start()

    def send(self, command: Command) -> None:
        with self._lock:
            if self._deliver is None:
                self._early.append(command)
            elif not self._deliver.is_closed():
                self._deliver.call_soon_threadsafe(self._host_send, command)

    def close(self, timeout_s: float) -> None:
        self.send(Shutdown())
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except PyagentError as error:
            self._emit(TurnFailed(error.kind, error.message, error.hint))
            self._emit(ConversationClosed(""))
        except Exception as error:
            _log.exception("the agent thread ended by a mistake of pyagent's")
            self._emit(
                TurnFailed(
                    type(error).__name__,
                    f"pyagent made a mistake and cannot go on: {type(error).__name__}: {error}",
                    "The session is saved; go on with: pyagent --continue",
                )
            )
            self._emit(ConversationClosed(""))

    async def _serve(self) -> None:
        # Imported here, on the agent's thread: pydantic, the tools and the rest must not delay the first paint.
        from pyagent.agent.assembly import Assembly
        from pyagent.agent.host import Host

        assembly = Assembly(self._options, self._emit)
        host = Host(assembly.open, emit=self._emit, can_ask=not self._options.is_headless)
        assembly.attach(host)
        with self._lock:
            self._host_send = host.send
            self._deliver = asyncio.get_running_loop()
            early, self._early = self._early, []
        for command in early:
            host.send(command)
        try:
            await host.run(assembly.first_opening)
        finally:
            await assembly.close()


def start_agent(options: LaunchOptions, sink: EventSink) -> AgentHandle:
    """Start an agent; `sink` is called on its thread and must return at once."""
    agent = AgentThread(options, sink)
    agent.start()
    return agent
