"""Serves the fake Messages API by hand: `python -m tests.fakes.messages_server --script echo`."""

import argparse
import asyncio
import signal
from collections.abc import Callable, Mapping

from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.persona import PERSONAS, Persona
from tests.fakes.script import Answer, Request, ToolRounds, echo
from tests.fakes.tokens import DEFAULT_BYTES_PER_TOKEN

SCRIPTS: Mapping[str, Callable[[], Callable[[Request], Answer]]] = {
    "echo": lambda: echo,
    "tools": lambda: ToolRounds([("Bash", {"command": "ls -la"})], rounds=3, note="Looking around.", delta_chars=12),
}
"""Scripts the command line offers."""


async def _serve_forever(server: FakeMessagesServer) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with server:
        print(server.url, flush=True)
        await stopping.wait()


def main(arguments: list[str] | None = None) -> None:
    """Serve until interrupted; the first line of output is the base URL."""
    parser = argparse.ArgumentParser(description="Serve a fake Messages API on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free port")
    parser.add_argument("--script", choices=sorted(SCRIPTS), default="echo")
    parser.add_argument("--persona", choices=sorted(PERSONAS), default="first_party")
    parser.add_argument("--window", type=int, default=None, help="context window in tokens, for all models")
    parser.add_argument("--bytes-per-token", type=float, default=DEFAULT_BYTES_PER_TOKEN)
    parser.add_argument("--binding", choices=("all", "by_model", "on_request", "off"), default="by_model")
    options = parser.parse_args(arguments)
    personas: Mapping[str, Callable[[], Persona]] = PERSONAS
    server = FakeMessagesServer(
        SCRIPTS[options.script](),
        persona=personas[options.persona](),
        window_tokens=options.window,
        bytes_per_token=options.bytes_per_token,
        binding=options.binding,
        port=options.port,
    )
    asyncio.run(_serve_forever(server))
