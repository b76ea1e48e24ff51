"""The full screen with a scripted agent, as a program of its own for tests in a pseudo-terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from pyagent.events import Command, Event, RunCommand, SubmitPrompt, TextDelta, TurnFinished, TurnStarted
from pyagent.ui.cli import build_invocation, dispatch, parse_arguments
from tests.ui.fake_agent import FakeAgent, opened
from tests.ui.records import Recorder, answer, prompt, text

_RECORDER = Recorder()


def _answers(command: Command) -> Sequence[Event]:
    match command:
        case SubmitPrompt(text="hang"):
            return [_RECORDER.commit(prompt("hang")), TurnStarted("u"), TextDelta("working on it")]
        case SubmitPrompt(text=words):
            return [
                _RECORDER.commit(prompt(words)),
                TurnStarted("u"),
                _RECORDER.commit(answer(text(f"You said: {words}"))),
                TurnFinished("end_turn", 1, 0.1, words),
            ]
        case RunCommand(name="status"):
            os.write(2, b"stray library output\n")
            raise RuntimeError("a mistake in a handler")
        case _:
            return []


class _StuckAgent(FakeAgent):
    """Never closes, as an agent whose tool cannot be killed."""

    def close(self, timeout_s: float) -> None:
        import threading

        threading.Event().wait()


if __name__ == "__main__":
    kind = _StuckAgent if os.environ.get("STUCK") else FakeAgent
    invocation = build_invocation(parse_arguments(sys.argv[1:]), os.environ)
    sys.exit(dispatch(invocation, kind([opened()], _answers)))
