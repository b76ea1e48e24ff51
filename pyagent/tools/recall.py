"""Recall: what was cleared or summarised stays reachable, by id or by a search."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import Field, model_validator

from pyagent.events import PermissionQuestion
from pyagent.log import AssistantEntry, Record, UserEntry
from pyagent.messages import ResultContent, TextBlock, ToolResultBlock, ToolUseBlock
from pyagent.tools.tool import ToolContext, ToolInput, ToolResult, description_beside
from pyagent.view import View

DEFAULT_LINES = 400
DEFAULT_MATCHES = 20
"""About 2,000 tokens of excerpts."""

EXCERPT_CHARS = 100
"""On each side of a match."""

RECALL = "Recall"
_MADE_BY_PYAGENT = frozenset({"summary", "attachment", "reminder", "continuation"})
"""Origins that only repeat what stands elsewhere."""


class RecallInput(ToolInput):
    id: str = ""
    query: str = ""
    offset: int = Field(0, ge=0)
    limit: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _names_one(self) -> RecallInput:
        if bool(self.id.strip()) == bool(self.query.strip()):
            raise ValueError("give either an id or a query")
        return self


class RecallTool:
    name = RECALL
    input_model = RecallInput
    is_read_only = True
    is_compactable = False
    result_cap_chars = 30_000

    @property
    def description(self) -> str:
        return description_beside(__file__)

    def summary(self, tool_input: RecallInput) -> str:
        return f"Recall {tool_input.id or tool_input.query}"

    def permission(self, tool_input: RecallInput, context: ToolContext) -> PermissionQuestion | None:
        return None

    async def run(self, tool_input: RecallInput, context: ToolContext) -> ToolResult:
        records, view = context.transcript.branch, context.transcript.view
        if tool_input.id:
            return _by_id(records, tool_input.id.strip(), tool_input.offset, tool_input.limit or DEFAULT_LINES)
        return await asyncio.to_thread(
            _search, records, view, tool_input.query.strip(), tool_input.offset, tool_input.limit or DEFAULT_MATCHES
        )


# ── by id ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _by_id(records: tuple[Record, ...], wanted: str, offset: int, limit: int) -> ToolResult:
    found = _found(records, wanted)
    if found is None:
        return ToolResult.error(f"There is no result or message with the id {wanted}. Search with `query` instead.")
    what, record, content = found
    text = "\n".join(part.text for part in content if isinstance(part, TextBlock))
    lines = text.splitlines()
    shown = lines[offset : offset + limit]
    if lines and not shown:
        return ToolResult.error(f"{what} has {len(lines)} lines; there are none from offset {offset} on.")
    end = offset + len(shown)
    head = f"{what}, {_moment(record)}, lines {min(offset + 1, end)}-{end} of {len(lines)}"
    if end < len(lines):
        head += f" (go on with offset {end})"
    rest = tuple(part for part in content if not isinstance(part, TextBlock)) if offset == 0 else ()
    return ToolResult((TextBlock("\n".join((head + ":", *shown))), *rest), display={"lines": len(shown)})


def _found(records: tuple[Record, ...], wanted: str) -> tuple[str, Record, tuple[ResultContent, ...]] | None:
    """(what it is, its record, its content) of the newest tool result or message with that id."""
    for record in reversed(records):
        entry = record.payload
        if isinstance(entry, UserEntry):
            for block in entry.content:
                if isinstance(block, ToolResultBlock) and block.tool_use_id == wanted:
                    use = _uses(records).get(wanted)
                    return f"Result of {_call_text(use) if use else 'a call'}", record, block.content
        if record.uuid == wanted and isinstance(entry, UserEntry | AssistantEntry):
            who = "Message of the user" if isinstance(entry, UserEntry) else "Your answer"
            return who, record, (TextBlock(entry.text),)
    return None


def _uses(records: tuple[Record, ...]) -> dict[str, ToolUseBlock]:
    return {
        block.id: block
        for record in records
        if isinstance(record.payload, AssistantEntry)
        for block in record.payload.blocks
        if isinstance(block, ToolUseBlock)
    }


def _call_text(use: ToolUseBlock) -> str:
    sent = json.dumps(use.input, ensure_ascii=False)
    return f"{use.name} {sent if len(sent) <= 200 else sent[:200] + '…'}"


def _moment(record: Record) -> str:
    return f"{record.at:%Y-%m-%d %H:%M} UTC"


# ── by search ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Piece:
    """A text that is out of the view."""

    record: Record
    kind: str
    id: str
    """With it, Recall gives back the whole."""
    text: str


def _search(records: tuple[Record, ...], view: View, query: str, offset: int, limit: int) -> ToolResult:
    pattern = re.compile(re.escape(query), re.IGNORECASE)
    pieces = list(_out_of_view(records, view))
    matches = [(piece, match) for piece in reversed(pieces) if (match := pattern.search(piece.text))]
    if not pieces:
        return ToolResult.of("Nothing was cleared or summarised so far: all that was said stands in your context.")
    if not matches:
        return ToolResult.of(f"No match for {query!r} in what was cleared or summarised ({len(pieces)} messages).")
    shown = matches[offset : offset + limit]
    if not shown:
        return ToolResult.error(f"There are {len(matches)} matches; there are none from offset {offset} on.")
    end = offset + len(shown)
    head = f"Matches {offset + 1}-{end} of {len(matches)}, newest first"
    head += f" (go on with offset {end}):" if end < len(matches) else ":"
    lines = [
        f"- {piece.kind}, {_moment(piece.record)}, id {piece.id}: {_excerpt(piece.text, match)}"
        for piece, match in shown
    ]
    return ToolResult.of("\n".join((head, *lines)), display={"lines": len(lines)})


def _out_of_view(records: tuple[Record, ...], view: View) -> Iterator[_Piece]:
    """What was said and is not, or not in full, in the view; oldest first."""
    names: dict[str, str] = {}
    for record in records:
        entry = record.payload
        position = view.position_of(record.uuid)
        overlay = view.items[position].overlay if position is not None else None
        is_gone = overlay is None or overlay.folded_text is not None
        match entry:
            case AssistantEntry():
                for block in entry.blocks:
                    if isinstance(block, ToolUseBlock):
                        names[block.id] = block.name
                        if is_gone and block.name != RECALL:
                            yield _Piece(record, f"call of {block.name}", block.id, _strings(block.input))
                if is_gone and entry.text.strip():
                    yield _Piece(record, "answer", record.uuid, entry.text)
            case UserEntry(origin=origin) if origin not in _MADE_BY_PYAGENT:
                for block in entry.content:
                    if not isinstance(block, ToolResultBlock) or names.get(block.tool_use_id) == RECALL:
                        continue
                    if is_gone or (overlay is not None and block.tool_use_id in overlay.cleared):
                        kind = f"result of {names.get(block.tool_use_id, 'a call')}"
                        yield _Piece(record, kind, block.tool_use_id, block.text)
                if is_gone and entry.text.strip():
                    yield _Piece(record, "user", record.uuid, entry.text)
            case _:
                pass


def _strings(value: Any) -> str:
    """All texts inside a call's input, one a line."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(filter(None, map(_strings, value.values())))
    if isinstance(value, list):
        return "\n".join(filter(None, map(_strings, value)))
    return ""


def _excerpt(text: str, match: re.Match[str]) -> str:
    start, end = max(0, match.start() - EXCERPT_CHARS), min(len(text), match.end() + EXCERPT_CHARS)
    words = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{words}{'…' if end < len(text) else ''}"
