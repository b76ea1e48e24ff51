"""The full screen with a scripted agent, as a program of its own for tests in a pseudo-terminal.

Some prompts make it misbehave; see `MISTAKES`.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyagent.choices import TerminalSettings
from pyagent.commands import Command, SubmitPrompt
from pyagent.events import (
    ConversationClosed,
    Event,
    PermissionNeeded,
    PermissionQuestion,
    TextDelta,
    TurnFailed,
    TurnFinished,
    TurnStarted,
)
from pyagent.ui.cli import EXIT_INTERRUPTED, build_invocation, dispatch, parse_arguments
from tests.ui.fake_agent import FakeAgent, opened
from tests.ui.records import Recorder, answer, prompt, text

_RECORDER = Recorder()


def _raise(where: str) -> None:
    raise RuntimeError(f"a mistake in {where}")


def _in_a_thread() -> Sequence[Event]:
    threading.Thread(target=_raise, args=["a thread"]).start()
    return _answered("a thread")


def _in_a_callback() -> Sequence[Event]:
    asyncio.get_running_loop().call_soon(_raise, "a callback")
    return []


def _read_address_0() -> Sequence[Event]:
    ctypes.string_at(0)
    return []


def _stray() -> Sequence[Event]:
    os.write(1, b"stray on 1\n")
    os.write(2, b"stray on 2\n")
    print("stray print")
    print("stray error", file=sys.stderr)
    return _answered("stray")


def _broken(value: Any) -> Any:
    """A value of a wrong type, to trip what reads it."""
    return value


MISTAKES: Mapping[str, Callable[[], Sequence[Event] | None]] = {
    "handler": lambda: _raise("a handler"),
    "worker": lambda: [PermissionNeeded("r", "t", _broken("no question"))],
    "pump": lambda: [TurnStarted("u"), TextDelta(_broken(b"no text"))],
    "callback": _in_a_callback,
    "agent": lambda: [TurnFailed("Bug", "pyagent made a mistake", "go on later"), ConversationClosed("s")],
    "thread": _in_a_thread,
    "stray": _stray,
    "abort": _read_address_0,
    "os._exit": lambda: os._exit(9),
    "kill -9": lambda: os.kill(os.getpid(), signal.SIGKILL),
}
"""What a prompt does instead of being answered."""


def _answered(words: str) -> Sequence[Event]:
    return [
        _RECORDER.commit(prompt(words)),
        TurnStarted("u"),
        _RECORDER.commit(answer(text(f"You said: {words}"))),
        TurnFinished("end_turn", 1, 0.1, words),
    ]


def _answers(command: Command) -> Sequence[Event]:
    match command:
        case SubmitPrompt(text=words) if words in MISTAKES:
            return MISTAKES[words]() or []
        case SubmitPrompt(text="hang"):
            return [_RECORDER.commit(prompt("hang")), TurnStarted("u"), TextDelta("working on it")]
        case SubmitPrompt(text="long"):
            rows = "\n\n".join(f"row {number} " + "x" * 150 for number in range(400))
            return [_RECORDER.commit(prompt("long")), TurnStarted("u"), TextDelta(rows), TextDelta("\n\nthe last row")]
        case SubmitPrompt(text="ask"):
            question = PermissionQuestion("Bash", "command", "make install")
            return [_RECORDER.commit(prompt("ask")), TurnStarted("u"), PermissionNeeded("r", "t", question)]
        case SubmitPrompt(text=words):
            return _answered(words)
        case _:
            return []


class _StuckAgent(FakeAgent):
    """Never closes, as an agent whose tool cannot be killed."""

    def close(self, timeout_s: float) -> None:
        threading.Event().wait()


if __name__ == "__main__":
    kind = _StuckAgent if os.environ.get("STUCK") else FakeAgent
    invocation = build_invocation(parse_arguments(sys.argv[1:]), os.environ)
    terminal = TerminalSettings(**json.loads(os.environ.get("TERMINAL_SETTINGS", "{}")))
    try:
        sys.exit(dispatch(invocation, kind([opened(terminal=terminal, cwd=os.getcwd())], _answers)))
    except KeyboardInterrupt:  # as `pyagent.ui.cli.run` does
        sys.exit(EXIT_INTERRUPTED)
