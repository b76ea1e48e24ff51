"""Random conversations: parallel calls, split responses, thinking, images, unknown blocks, orphans, broken turns.

Each is built from a seed by an ordinary random generator, and hypothesis draws only the seed and the number of turns:
drawing every block through hypothesis cost four fifths of the time of an example.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Protocol

from hypothesis import strategies as st

from pyagent.log import AssistantEntry, Boundary, FileSeen, Payload, UserEntry
from pyagent.messages import (
    Block,
    DocumentBlock,
    ImageBlock,
    JsonObject,
    ResultContent,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from pyagent.view import View
from tests.compaction.builder import Talk, with_usage, words

PATHS = ("/p/app.py", "/p/core/parse.py", "/p/README.md", "/p/data.json")

PNG: JsonObject = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAGQAAABkCAIAAAD/gAID"}
PDF: JsonObject = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}

ODD_TEXTS = (
    "",
    " \n",
    "😀 ok",
    "only change parse.py, never the tests",
    "\ud83d",
    "<|endoftext|>",
    "a/b/c.py:12 E404",
    "</summary>",
)
TOOLS = ("Read", "Read", "Bash", "Grep", "Edit", "Write", "Memory", "mcp__x__y")
KINDS = ("text",) * 8 + ("error", "empty", "image", "document", "missing", "odd")
ENDINGS = ("answer", "answer", "answer", "odd", "thinking", "interrupted", "orphan")
UNKNOWN_KIND = "new_kind"

seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Call:
    name: str
    given: dict[str, Any]
    size: int
    kind: str
    """`text`, `error`, `empty`, `image`, `document`, `missing` (never answered) or `odd`."""


class Pen(Protocol):
    """Who writes what is said: a session of pyagent's own, or another client whose file was imported."""

    def write(self, payload: Payload) -> object: ...

    def thinking(self, shown: str) -> list[JsonObject]:
        """Thinking for the response that comes next: a block, or none."""
        ...


class ForeignPen:
    """Writes as an import does: no digest, nothing measured, thinking signed by somebody else."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    def write(self, payload: Payload) -> object:
        return self._talk.write(payload)

    def thinking(self, shown: str) -> list[JsonObject]:
        return [{"type": "thinking", "thinking": shown, "signature": "sig"}]


class Speaker:
    """Goes on with a conversation, turn by turn."""

    def __init__(self, chance: random.Random, talk: Talk, pen: Pen, *, splits_responses: bool) -> None:
        self.chance = chance
        self.talk = talk
        self.pen = pen
        self.splits_responses = splits_responses
        """One response over several entries, a result after each: as other clients write it."""
        self.turns = 0
        self.is_broken = False
        """Whether a call was left without a result, or a result without a call, since a reader last set this back."""

    def turn(self) -> None:
        """A prompt, some rounds, and an end of any kind."""
        chance = self.chance
        self.prompt()
        for _ in range(chance.randrange(5)):
            self.round()
        match chance.choice(ENDINGS):
            case "answer":
                self.respond([_text(words(self._size()))])
            case "thinking":
                self.respond([*self.pen.thinking("hm " * 20), _text(words(self._size()))])
            case "odd":
                self.respond([_text(chance.choice(ODD_TEXTS)), {"type": UNKNOWN_KIND, "payload": [1, 2]}])
            case "orphan":
                self.is_broken = True
                late = ToolResultBlock(self.talk.new_id("nowhere"), (TextBlock("late"),))
                self.pen.write(UserEntry((late,), origin="tool_results"))
            case _:
                pass
        if chance.randrange(10) == 0:
            self.talk.wait(hours=chance.randint(1, 20))

    def prompt(self) -> None:
        chance = self.chance
        blocks: list[Block] = [TextBlock(f"request {self.turns}: " + (self._odd_text() or words(self._size())))]
        self.turns += 1
        if chance.randrange(8) == 0:
            blocks.append(ImageBlock(PNG, chance.randint(0, 3_000), chance.randint(0, 3_000)))
        if chance.randrange(8) == 0:
            self.pen.write(UserEntry((TextBlock("the date has changed"),), origin="reminder"))
        self.pen.write(UserEntry(tuple(blocks)))

    def round(self) -> None:
        chance = self.chance
        batch = [self._call() for _ in range(chance.randint(1, 3))]
        ids = [self.talk.new_id("toolu") for _ in batch]
        uses: list[JsonObject] = [
            {"type": "tool_use", "id": use_id, "name": call.name, "input": call.given}
            for use_id, call in zip(ids, batch, strict=True)
        ]
        results = [
            ToolResultBlock(use_id, _content_of(call), is_error=call.kind == "error")
            for use_id, call in zip(ids, batch, strict=True)
            if call.kind != "missing"
        ]
        self.is_broken = self.is_broken or len(results) < len(uses)
        opening = self._opening()
        if self.splits_responses and chance.random() < 0.5:
            message_id, usage = self.talk.new_id("msg"), self._usage()
            for number, use in enumerate(uses):
                self.respond([*opening, use] if number == 0 else [use], message_id=message_id, usage=usage)
                self._answer([result for result in results if result.tool_use_id == use["id"]])
        else:
            self.respond([*opening, *uses], stop_reason="tool_use")
            if chance.random() < 0.5:
                for result in results:
                    self._answer([result])
            else:
                self._answer(results)
        for use_id, call in zip(ids, batch, strict=True):
            if call.name in ("Read", "Edit", "Write") and call.kind == "text":
                how: Any = {"Read": "read", "Edit": "edit", "Write": "write"}[call.name]
                self.pen.write(FileSeen(call.given["file_path"], "sha", use_id, how))

    def respond(
        self,
        content: list[JsonObject],
        *,
        message_id: str = "",
        stop_reason: str = "end_turn",
        usage: Usage | None = None,
    ) -> AssistantEntry:
        usage = self._usage() if usage is None else usage
        entry = self.talk.response(content, message_id=message_id, stop_reason=stop_reason, usage=usage)
        self.pen.write(entry)
        return entry

    def _answer(self, results: list[ToolResultBlock]) -> None:
        if results:
            self.pen.write(UserEntry(tuple(results), origin="tool_results"))

    def _opening(self) -> list[JsonObject]:
        match self.chance.randrange(8):
            case 0 | 1:
                return [_text("Let me look.")]
            case 2:
                return self.pen.thinking("")
            case 3:
                return [*self.pen.thinking("which file?"), _text("\n\n")]
            case _:
                return []

    def _odd_text(self) -> str:
        return self.chance.choice(ODD_TEXTS)

    def _size(self) -> int:
        return self.chance.randint(*self.chance.choice(((1, 30), (30, 1_500))))

    def _call(self) -> Call:
        chance = self.chance
        name, path = chance.choice(TOOLS), chance.choice(PATHS)
        given: dict[str, Any] = {
            "Read": {"file_path": path},
            "Edit": {"file_path": path, "old_string": "a", "new_string": "b"},
            "Write": {"file_path": path, "content": "x"},
            "Bash": {"command": chance.choice(("make test", "ls", "pytest -q tests/core"))},
            "Grep": {"pattern": "parse"},
        }.get(name, {"key": "value"})
        return Call(name, given, self._size(), chance.choice(KINDS))

    def _usage(self) -> Usage:
        """None, one near the truth, or a report that cannot be true."""
        kind = self.chance.choice(("none", "near", "near", "double"))
        if kind == "none":
            return Usage()
        near = 2_000 + sum(_chars(item.entry) // 3 for item in self.talk.view.items[-40:])
        return with_usage(near * (2 if kind == "double" else 1), cached=near // 2)


def random_talk(seed: int, turns: int) -> Talk:
    """A conversation of another client that ends anywhere between two steps of the turn loop."""
    talk = Talk()
    speaker = Speaker(random.Random(seed), talk, ForeignPen(talk), splits_responses=True)
    for _ in range(turns):
        speaker.turn()
    if seed % 2:
        speaker.prompt()
    return talk


def talks(max_turns: int = 8, min_turns: int = 0) -> st.SearchStrategy[Talk]:
    return st.builds(random_talk, seeds, st.integers(min_turns, max_turns))


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _content_of(call: Call) -> tuple[ResultContent, ...]:
    match call.kind:
        case "empty":
            return ()
        case "image":
            return (TextBlock("a screenshot"), ImageBlock(PNG, 800, 600))
        case "document":
            return (DocumentBlock(PDF, "d", 3),)
        case "odd":
            return (TextBlock("\ud83d half a character"),)
        case _:
            return (TextBlock(words(call.size)),)


def _chars(entry: UserEntry | AssistantEntry) -> int:
    if isinstance(entry, AssistantEntry):
        return 40 * len(entry.content) + sum(len(str(raw.get("text", ""))) for raw in entry.content)
    return len(entry.text) + sum(
        len(part.text)
        for block in entry.content
        if isinstance(block, ToolResultBlock)
        for part in block.content
        if isinstance(part, TextBlock)
    )


# ── what must hold of any view ───────────────────────────────────────────────────────────────────────────────────


def pairing_faults(view: View) -> set[str]:
    """Uses and results without their other half, or answered twice."""
    uses: dict[str, int] = {}
    results: dict[str, int] = {}
    faults: set[str] = set()
    for position, item in enumerate(view.items):
        for block in (*item.blocks(), *item.answer_blocks()):
            if isinstance(block, ToolUseBlock):
                uses[block.id] = position
            elif isinstance(block, ToolResultBlock):
                if block.tool_use_id in results:
                    faults.add(f"{block.tool_use_id} twice")
                results[block.tool_use_id] = position
    faults |= {f"{use_id} unanswered" for use_id in uses if use_id not in results}
    faults |= {f"{use_id} without use" for use_id in results if use_id not in uses}
    faults |= {f"{use_id} early" for use_id in results if use_id in uses and results[use_id] < uses[use_id]}
    return faults


def response_runs(view: View) -> dict[str, int]:
    """message id → how many of its entries stand in the view."""
    runs: dict[str, int] = {}
    for item in view.items:
        if not item.is_user:
            message_id = getattr(item.entry, "message_id", "")
            runs[message_id] = runs.get(message_id, 0) + 1
    return runs


def last_boundary(talk: Talk) -> Boundary:
    payload = talk.state.boundaries[-1].payload
    assert isinstance(payload, Boundary)
    return payload
