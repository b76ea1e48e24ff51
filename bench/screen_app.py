"""The full screen with a made-up session of any length behind it; a prompt of `RATE SECONDS` streams at that rate.

    python -m bench.screen_app TURNS

Everything of the screen is the real thing; only the agent's thread is made up: it emits the events a real one would.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue

from bench.transcript import ANSWER
from pyagent.commands import Command, Shutdown, SubmitPrompt
from pyagent.events import (
    ConversationClosed,
    Event,
    EventSink,
    RecordCommitted,
    ReplayFinished,
    RequestStarted,
    TextDelta,
    TurnFinished,
    TurnStarted,
)
from pyagent.launch import LaunchOptions
from pyagent.ui.cli import build_invocation, dispatch, parse_arguments
from tests.ui.fake_agent import opened
from tests.ui.records import Recorder, answer, prompt, text, tool_ran, tool_result, tool_use

STREAMED = (
    "Some **words** of an answer with `code` in it, and more of them.\n\n- an item\n- another\n\n```py\nx = 1\n```\n\n"
)
CHARS_PER_TOKEN = 4
CHUNK_S = 0.01
"""Between two pieces: a server sends some hundred a second."""
OUTPUT = "\n".join(f"output line {row}" for row in range(8))


def session(recorder: Recorder, turns: int) -> Iterator[Event]:
    """Turns of a prompt, a call with 8 lines of output, and an answer of some 15 rows."""
    for n in range(turns):
        yield from (
            recorder.commit(prompt(f"Prompt number {n}: please change the thing.")),
            recorder.commit(answer(tool_use(f"t{n}", "Bash", command="make check"), stop_reason="tool_use")),
            recorder.commit(tool_result(f"t{n}", OUTPUT)),
            recorder.commit(tool_ran(f"t{n}", "make check", 0.4)),
            recorder.commit(answer(text(ANSWER.format(n=n)))),
        )


class MadeUpAgent:
    """Both the starter and the handle."""

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self._recorder = Recorder()
        self._commands: SimpleQueue[Command] = SimpleQueue()

    def __call__(self, options: LaunchOptions, sink: EventSink) -> MadeUpAgent:
        self._sink = sink
        threading.Thread(target=self._work, name="agent", daemon=True).start()
        return self

    def send(self, command: Command) -> None:
        self._commands.put(command)

    def close(self, timeout_s: float) -> None:
        """There is nothing to end."""

    def _work(self) -> None:
        self._sink(opened(is_resumed=True))
        for event in session(self._recorder, self._turns):
            self._sink(RecordCommitted(event.record, is_replay=True) if isinstance(event, RecordCommitted) else event)
        self._sink(ReplayFinished())
        while True:
            match self._commands.get():
                case Shutdown():
                    self._sink(ConversationClosed("s"))
                    return
                case SubmitPrompt(text=words):
                    rate, seconds = map(float, words.split())
                    self._stream(rate, seconds)
                case _:
                    pass

    def _stream(self, tokens_per_s: float, seconds: float) -> None:
        self._sink(self._recorder.commit(prompt("go on")))
        self._sink(TurnStarted("u"))
        self._sink(RequestStarted("repl_main_thread"))
        whole = ""
        started_s = time.monotonic()
        while (passed_s := time.monotonic() - started_s) < seconds:
            due_chars = int(passed_s * tokens_per_s * CHARS_PER_TOKEN)
            at = len(whole)
            if due_chars > at:
                source = STREAMED * ((due_chars - at) // len(STREAMED) + 2)
                piece = source[at % len(STREAMED) :][: due_chars - at]
                whole += piece
                self._sink(TextDelta(piece))
            time.sleep(CHUNK_S)
        whole += "\n\nstreamed-to-the-end"
        self._sink(TextDelta("\n\nstreamed-to-the-end"))
        self._sink(self._recorder.commit(answer(text(whole))))
        self._sink(TurnFinished("end_turn", 1, seconds, whole))


def main() -> int:
    return dispatch(build_invocation(parse_arguments([]), os.environ), MadeUpAgent(int(sys.argv[1])))


if __name__ == "__main__":
    sys.exit(main())
