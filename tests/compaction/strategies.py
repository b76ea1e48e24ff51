"""Random conversations: parallel calls, split responses, thinking, images, unknown blocks, orphans, broken turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from pyagent.log import Boundary, FileSeen, UserEntry
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

PNG: JsonObject = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}

sizes = st.one_of(st.integers(1, 30), st.integers(30, 1_500))
odd_texts = st.sampled_from(
    (
        "",
        " \n",
        "😀 ok",
        "only change parse.py, never the tests",
        "\ud83d",
        "<|endoftext|>",
        "a/b/c.py:12 E404",
        "</summary>",
    )
)


@dataclass(frozen=True)
class Call:
    name: str
    given: dict[str, Any]
    size: int
    kind: str
    """`text`, `error`, `empty`, `image`, `document`, `missing` (never answered) or `odd`."""


@st.composite
def calls(draw: st.DrawFn) -> Call:
    name = draw(st.sampled_from(("Read", "Read", "Bash", "Grep", "Edit", "Write", "Memory", "mcp__x__y")))
    path = draw(st.sampled_from(PATHS))
    given: dict[str, Any] = {
        "Read": {"file_path": path},
        "Edit": {"file_path": path, "old_string": "a", "new_string": "b"},
        "Write": {"file_path": path, "content": "x"},
        "Bash": {"command": draw(st.sampled_from(("make test", "ls", "pytest -q tests/core")))},
        "Grep": {"pattern": "parse"},
    }.get(name, {"key": "value"})
    kind = draw(st.sampled_from(("text",) * 8 + ("error", "empty", "image", "document", "missing", "odd")))
    return Call(name, given, draw(sizes), kind)


def content_of(call: Call) -> tuple[ResultContent, ...]:
    match call.kind:
        case "empty":
            return ()
        case "image":
            return (TextBlock("a screenshot"), ImageBlock(PNG, 800, 600))
        case "document":
            return (DocumentBlock({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}, "d", 3),)
        case "odd":
            return (TextBlock("\ud83d half a character"),)
        case _:
            return (TextBlock(words(call.size)),)


@st.composite
def talks(draw: st.DrawFn, max_turns: int = 8, min_turns: int = 0) -> Talk:
    """A conversation that ends anywhere between two steps of the turn loop."""
    talk = Talk()
    turns = draw(st.integers(min_turns, max_turns))
    for turn in range(turns):
        _prompt(draw, talk, turn)
        for _ in range(draw(st.integers(0, 4))):
            _tool_round(draw, talk)
        ending = draw(st.sampled_from(("answer", "answer", "answer", "odd", "thinking", "interrupted", "orphan")))
        if ending in ("answer", "thinking"):
            thinking = [{"type": "thinking", "thinking": "hm " * 20, "signature": "s"}] if ending == "thinking" else []
            talk.assistant([*thinking, {"type": "text", "text": words(draw(sizes))}], usage=_usage(draw, talk))
        elif ending == "odd":
            talk.assistant([{"type": "text", "text": draw(odd_texts)}, {"type": "new_kind", "payload": [1, 2]}])
        elif ending == "orphan":
            talk.results(ToolResultBlock(talk.new_id("nowhere"), (TextBlock("late"),)))
        if draw(st.integers(0, 9)) == 0:
            talk.wait(hours=draw(st.integers(1, 20)))
    if draw(st.booleans()):
        _prompt(draw, talk, turns)
    return talk


def _prompt(draw: st.DrawFn, talk: Talk, turn: int) -> None:
    blocks: list[Block] = [TextBlock(f"request {turn}: " + (draw(odd_texts) or words(draw(sizes))))]
    if draw(st.integers(0, 7)) == 0:
        blocks.append(ImageBlock(PNG, draw(st.integers(0, 3_000)), draw(st.integers(0, 3_000))))
    if draw(st.integers(0, 7)) == 0:
        talk.write(UserEntry((TextBlock("the date has changed"),), origin="reminder"))
    talk.write(UserEntry(tuple(blocks)))


def _tool_round(draw: st.DrawFn, talk: Talk) -> None:
    batch = draw(st.lists(calls(), min_size=1, max_size=3))
    ids = [talk.new_id("toolu") for _ in batch]
    uses: list[JsonObject] = [
        {"type": "tool_use", "id": use_id, "name": call.name, "input": call.given}
        for use_id, call in zip(ids, batch, strict=True)
    ]
    opening: list[JsonObject] = draw(
        st.sampled_from(
            (
                [],
                [{"type": "text", "text": "Let me look."}],
                [{"type": "thinking", "thinking": "", "signature": "sig"}],
                [{"type": "redacted_thinking", "data": "xx"}, {"type": "text", "text": "\n\n"}],
            )
        )
    )
    usage = _usage(draw, talk)
    if draw(st.booleans()):
        talk.assistant([*opening, *uses], stop_reason="tool_use", usage=usage)
        answered = [_result(use_id, call) for use_id, call in zip(ids, batch, strict=True) if call.kind != "missing"]
        if draw(st.booleans()):
            for block in answered:
                talk.results(block)
        elif answered:
            talk.results(*answered)
        _note_files(talk, ids, batch)
        return
    # One response split over several entries, a result after each: as other clients write it.
    message_id = talk.new_id("msg")
    for number, (use, use_id, call) in enumerate(zip(uses, ids, batch, strict=True)):
        talk.assistant([*opening, use] if number == 0 else [use], message_id=message_id, usage=usage)
        if call.kind != "missing":
            talk.results(_result(use_id, call))
    _note_files(talk, ids, batch)


def _result(use_id: str, call: Call) -> ToolResultBlock:
    return ToolResultBlock(use_id, content_of(call), is_error=call.kind == "error")


def _note_files(talk: Talk, ids: list[str], batch: list[Call]) -> None:
    for use_id, call in zip(ids, batch, strict=True):
        if call.name in ("Read", "Edit", "Write") and call.kind == "text":
            how: Any = {"Read": "read", "Edit": "edit", "Write": "write"}[call.name]
            talk.write(FileSeen(call.given["file_path"], "sha", use_id, how))


def _usage(draw: st.DrawFn, talk: Talk) -> Usage:
    """None, one near the truth, or a report that cannot be true."""
    kind = draw(st.sampled_from(("none", "near", "near", "double")))
    if kind == "none":
        return Usage()
    near = 2_000 + sum(len(str(item.entry.content)) // 3 for item in talk.view.items[-40:])
    return with_usage(near * (2 if kind == "double" else 1), cached=near // 2)


# ── what must hold of any view ───────────────────────────────────────────────────────────────────────────────────


def pairing_faults(view: View) -> set[str]:
    """Uses and results without their other half, or answered twice."""
    uses: dict[str, int] = {}
    results: dict[str, int] = {}
    faults: set[str] = set()
    for position, item in enumerate(view.items):
        for block in item.blocks():
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
