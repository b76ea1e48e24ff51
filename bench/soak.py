"""Half an hour of use in a few minutes: thousands of events in a real terminal, and what becomes of the memory.

    python -m bench.soak [--events 10000] [--seed 1]

The real program runs against a scripted server. Events are prompts, streamed answers, tool calls, approvals,
compactions, resizes, scrolls, searches and dialogs, drawn at random from a seed. Memory is sampled at each tenth; it
grows with what the session holds, so the growth is given per event, and must stay below a limit over the last half.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from bench.raw_terminal import RawTerminal
from tests.e2e.program import SUMMARY
from tests.e2e.served import MODEL, serving
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Answer, Request, reply, thinking, tool_use

EVENT_COUNT = 10_000
MAX_GROWTH_KB = 4.0
"""Per event, over the last half: the session's own text is some 0.5 kB an event, held as records and as blocks."""
ROOT = Path(__file__).resolve().parents[1]
_PARAGRAPH = "Some **words** of an answer with `code` in it, 漢字 and 👍🏽, and more of them so that rows wrap. "
_CODE = (
    "\n\n```python\ndef answer(n: int) -> int:\n    return n + 42\n```\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2"
)

DIALOGS = (("/help", "Keys and commands"), ("/model", "Model"), ("/theme", "Theme"))
"""A command, and what stands on the dialog it opens."""

TURN_LIMIT_S = 60.0
LOST_S = 8.0
"""After so long without an effect, what was typed has gone astray."""
ESCAPE_S = 0.3
"""Until a lone escape character is taken for the key, on a busy machine."""


class Model:
    """Plays the other side; its choices come from the same kind of chance."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.finished_count = 0
        """Turns whose last answer was given."""
        self.summary_count = 0
        self.tool_count = 0
        self.asks = False
        """Whether the last answer calls a tool that needs a yes."""

    def __call__(self, request: Request) -> Answer:
        if "<summary>" in request.last_text:
            self.summary_count += 1
            return reply(SUMMARY, delta_chars=40)
        if "<notes>" in request.last_text:
            return reply("<notes>\nwork goes on\n</notes>")
        draw = self._chance.random()
        if not request.tool_results and draw < 0.45:
            self.tool_count += 1
            self.asks = draw < 0.08
            command = f"touch made-{self.tool_count}" if self.asks else f"seq 1 {self._chance.randint(2, 200)}"
            return reply(
                thinking("Let me see. " * 5), "Looking.", tool_use("Bash", {"command": command}), delta_chars=30
            )
        self.asks = False
        self.finished_count += 1
        text = _PARAGRAPH * self._chance.randint(1, 8) + (_CODE if draw > 0.6 else "")
        return reply(f"{text}\n\nAnswer {self.finished_count}.", delta_chars=24, tokens_per_s=4_000)


class Person:
    """Does things to the program and counts them."""

    def __init__(self, terminal: RawTerminal, model: Model, server: FakeMessagesServer, seed: int) -> None:
        self.events: Counter[str] = Counter()
        self.lost_count = 0
        """Lines that had to be sent again."""
        self._terminal, self._model, self._server = terminal, model, server
        self._chance = random.Random(seed + 1)
        self._actions: list[tuple[float, Callable[[], None]]] = [
            (12, self.turn),
            (10, self.resize),
            (18, self.scroll),
            (3, self.read),
            (3, self.dialog),
            (1, self.type_and_clear),
        ]

    def step(self) -> None:
        """One action; every three hundred events or so the conversation is compacted."""
        if self.events.total() // 300 > self.events["compaction"]:
            self.compact()
            return
        weights, actions = zip(*self._actions, strict=True)
        self._chance.choices(actions, weights)[0]()

    def enter(self, text: str) -> None:
        """Paste and send a line. One that was lost behind a late Esc is sent again, and counted apart."""
        offset = self._terminal.written
        self._terminal.send(f"\x1b[200~{text}\x1b[201~")
        try:
            self._terminal.wait_for(text, offset, limit_s=LOST_S)
        except TimeoutError:
            self._recover(text)
            return
        # An Enter right behind a burst would count as part of it.
        self._terminal.settle(0.15)
        self._terminal.send("\r")

    def _recover(self, text: str) -> None:
        self.lost_count += 1
        self._terminal.send("\x1b")
        time.sleep(2 * ESCAPE_S)
        self.enter(text)

    def turn(self) -> None:
        before, tools = self._model.finished_count, self._model.tool_count
        start = self._terminal.written
        self.enter(f"prompt {self.events['prompt']}: please go on with the work")
        self.events["prompt"] += 1
        asked, deadline_s = len(self._server.message_requests), time.monotonic() + TURN_LIMIT_S
        while self._model.finished_count == before:
            if self._model.asks and b"Yes, once" in self._terminal.since(start):
                self._terminal.send(self._chance.choice("yyn"))
                self.events["approval"] += 1
                self._terminal.settle(0.3)
                start = self._terminal.written
            has_begun = len(self._server.message_requests) > asked or self._model.finished_count > before
            if not has_begun and time.monotonic() > deadline_s - TURN_LIMIT_S + LOST_S:
                deadline_s = time.monotonic() + TURN_LIMIT_S
                self._recover("go on, please")
            elif time.monotonic() > deadline_s:
                raise TimeoutError(f"a turn did not end; last written: {self._terminal.since(start)[-2_000:]!r}")
            if self._model.asks:
                # A dialog waits until no key was pressed for a while.
                self._terminal.settle(0.1, 0.3)
            else:
                self._terminal.send("\x1b[5~")
                self._terminal.settle(0.05, 0.2)
        self.events["answer"] += 1
        self.events["tool"] += self._model.tool_count - tools
        self._terminal.settle(0.15)

    def resize(self) -> None:
        for _ in range(self._chance.randint(1, 3)):
            self._terminal.resize(self._chance.randint(10, 160), self._chance.randint(4, 50))
            self.events["resize"] += 1
            self._terminal.settle(0.03)
        self._terminal.resize(100, 30)
        self._terminal.settle(0.05)

    def scroll(self) -> None:
        keys = ("\x1b[5~", "\x1b[6~", "\x1b[1;5H", "\x1b[1;5F", "\x1b[<64;10;5M", "\x1b[<65;10;5M")
        for _ in range(self._chance.randint(8, 14)):
            self._terminal.send(self._chance.choices(keys, (6, 6, 1, 3, 3, 3))[0])
            self.events["scroll"] += 1
            self._terminal.settle(0.01)

    def read(self) -> None:
        """The transcript's own view: jumping and searching in it."""
        offset = self._terminal.written
        self._terminal.send("\x0f")
        try:
            self._terminal.wait_for("Transcript", offset, limit_s=LOST_S)
        except TimeoutError:
            self.lost_count += 1
            return
        for key in (*"{{}{", "/", *"answer", "\r", *"nNn", "\x0f"):
            self._terminal.send(key)
            self._terminal.settle(0.02)
        self.events["view"] += 1
        self.events["search"] += 1

    def dialog(self) -> None:
        command, title = self._chance.choice(DIALOGS)
        offset = self._terminal.written
        self.enter(command)
        try:
            self._terminal.wait_for(title, offset, limit_s=LOST_S)
        except TimeoutError:
            self.lost_count += 1
        self._terminal.settle(0.1)
        self._terminal.send("\x1b")
        # Right before other keys it would be the beginning of an escape sequence.
        time.sleep(ESCAPE_S)
        self._terminal.settle(0.1)
        self.events["dialog"] += 1

    def type_and_clear(self) -> None:
        for char in "a draft with @ and / in it":
            self._terminal.send(char)
            self._terminal.settle(0.005)
        self._terminal.send("\x03")
        self._terminal.settle(0.05)
        self.events["draft"] += 1

    def compact(self) -> None:
        self.turn()
        before = self._model.summary_count
        self.enter("/compact")
        deadline_s = time.monotonic() + 60
        while self._model.summary_count == before and time.monotonic() < deadline_s:
            self._terminal.settle(0.1, 0.3)
        self.events["compaction"] += 1
        self._terminal.settle(0.4)


def soak(event_count: int, seed: int) -> int:
    """Run, print a line each tenth, and return the exit code."""
    model = Model(seed)
    with tempfile.TemporaryDirectory() as folder, serving(model, kept_bodies_count=2) as server:
        home = Path(folder)
        env = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "PYTHONPATH": str(ROOT),
            "ANTHROPIC_API_KEY": "a-key",
            "ANTHROPIC_BASE_URL": server.url,
        }
        argv = [sys.executable, "-m", "pyagent", "--model", MODEL, "--allowedTools", "Bash(seq:*)"]
        terminal = RawTerminal(argv, env, home, columns=100, lines=30)
        try:
            return _run(terminal, Person(terminal, model, server, seed), home, event_count)
        finally:
            terminal.close()


def _run(terminal: RawTerminal, person: Person, home: Path, event_count: int) -> int:
    terminal.wait_for("to compact", 0)
    terminal.settle(0.4)
    samples: list[tuple[int, float]] = []
    started_s = time.monotonic()
    print(f"{'events':>7} {'min':>6} {'RSS MB':>7} {'CPU s':>6}  what", flush=True)
    for tenth in range(11):
        while person.events.total() < event_count * tenth // 10:
            person.step()
        count = person.events.total()
        samples.append((count, terminal.rss_mb()))
        kinds = " ".join(f"{kind}:{number}" for kind, number in sorted(person.events.items()))
        minutes = (time.monotonic() - started_s) / 60
        print(f"{count:>7} {minutes:>6.1f} {samples[-1][1]:>7.1f} {terminal.cpu_s():>6.1f}  {kinds}", flush=True)
    (half, half_mb), (last, last_mb) = samples[5], samples[10]
    growth_kb = (last_mb - half_mb) * 1_024 / (last - half)
    person.enter("/exit")
    exit_code = terminal.wait_for_exit()
    log = home / ".pyagent" / "logs" / "pyagent.log"
    traces = log.read_text().count("Traceback") if log.exists() else 0
    print(f"growth over the last half: {growth_kb:.2f} kB an event (limit {MAX_GROWTH_KB:g})")
    print(f"exit code {exit_code}, {traces} tracebacks in the log, {person.lost_count} lines sent again")
    return 0 if growth_kb <= MAX_GROWTH_KB and exit_code == 0 and not traces else 1


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    arguments.add_argument("--events", type=int, default=EVENT_COUNT)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    return soak(given.events, given.seed)


if __name__ == "__main__":
    sys.exit(main())
