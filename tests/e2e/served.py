"""The real program in a real terminal against a scripted server on a thread of its own."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.pty_harness import Terminal
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Answer, Request, Responder

MODEL = "claude-opus-5-5"
START_LIMIT_S = 60.0


@contextmanager
def serving(
    responder: Responder | Callable[[Request], Answer],
    *,
    window_tokens: int | None = None,
    kept_bodies_count: int | None = None,
) -> Iterator[FakeMessagesServer]:
    """A server while inside. Its failures are raised at the end, as those of a server in the test's own loop are."""
    ready, over = threading.Event(), threading.Event()
    started: list[FakeMessagesServer] = []

    async def serve() -> None:
        server = FakeMessagesServer(responder, window_tokens=window_tokens, kept_bodies_count=kept_bodies_count)
        async with server:
            started.append(server)
            ready.set()
            await asyncio.to_thread(over.wait)

    with ThreadPoolExecutor(1, "messages server") as thread:
        running = thread.submit(lambda: asyncio.run(serve()))
        running.add_done_callback(lambda done: ready.set())
        try:
            assert ready.wait(START_LIMIT_S), "the server did not start"
            if started:
                yield started[0]
        finally:
            over.set()
        running.result(START_LIMIT_S)


def pyagent_on(
    server: FakeMessagesServer,
    home: Path,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    columns: int = 100,
    lines: int = 30,
    before: Sequence[str] = (),
) -> Terminal:
    """The program against that server."""
    environ = {"ANTHROPIC_API_KEY": "a-key", "ANTHROPIC_BASE_URL": server.url, **(env or {})}
    argv = [*before, sys.executable, "-P", "-m", "pyagent", "--model", MODEL, *arguments]
    return Terminal.spawn(argv, home=home, env=environ, columns=columns, lines=lines)


def is_idle(screen: str) -> bool:
    """Whether the input line waits and nothing runs."""
    return "to compact" in screen and "esc to interrupt" not in screen
