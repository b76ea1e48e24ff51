"""Claude Code sessions: listed, and read into records of our own. Their files are never written to.

One response stands there on several lines, a block each; parallel results hang off any of them; parents may be missing
or go round in circles. So the parent chain only says which branch is the newest: responses are put together by their
id, and results are found by the id of their call, wherever in the file they stand.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from pyagent import __version__
from pyagent.agent.session_store import HEAD_BYTES, TAIL_BYTES, SessionInfo, project_slug
from pyagent.errors import SessionError
from pyagent.log import (
    AssistantEntry,
    Boundary,
    ClearResults,
    NoticeShown,
    Payload,
    Record,
    SessionStarted,
    SettingChanged,
    UserEntry,
    UserOrigin,
)
from pyagent.messages import (
    Block,
    JsonObject,
    TextBlock,
    ToolResultBlock,
    UnknownBlock,
    Usage,
    parse_block,
    scrub_json,
    text_of,
)
from pyagent.record_lines import SCHEMA_VERSION

PREFIX = "claude:"
"""In front of a session's id where it could be one of pyagent's own."""

CLEARED_TEXT = "[Old tool result content cleared]"
SYNTHETIC_MODEL = "<synthetic>"
"""Model of lines that Claude Code wrote itself, such as an error's text: no model ever saw or said them."""

_CHAIN_TYPES = ("user", "assistant", "system", "attachment", "progress")
_TITLE_FIELDS = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""Type of a line that names the session → its field; a title that a person gave comes before others."""


@dataclass(frozen=True, slots=True)
class ImportedSession:
    records: tuple[Record, ...]
    session_id: str
    problems: tuple[str, ...]


def claude_folder(environ: Mapping[str, str], cwd: Path) -> Path:
    """Where Claude Code keeps the sessions of a working folder."""
    home = environ.get("CLAUDE_CONFIG_DIR") or Path(environ.get("HOME") or Path.home()) / ".claude"
    return Path(home) / "projects" / project_slug(cwd)


def claude_sessions(folder: Path) -> list[SessionInfo]:
    """The sessions of a folder, newest first, by reading the head and tail of each file."""
    infos = []
    for path in folder.glob("*.jsonl"):
        try:
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                head = file.read(HEAD_BYTES)
                file.seek(max(found.st_size - TAIL_BYTES, len(head)))
                tail = file.read(TAIL_BYTES)
        except OSError:
            continue
        lines = [*_objects(head), *_objects(tail)]
        if not any(_is_chain_line(line) for line in lines):
            continue
        prompts = (_typed_text(line) for line in lines if line.get("type") == "user")
        first = next((" ".join(text.split())[:200] for text in prompts if text), "")
        told = next((line for line in lines if line.get("cwd")), {})
        infos.append(
            SessionInfo(
                PREFIX + path.stem,
                path,
                _title(lines),
                first,
                datetime.fromtimestamp(found.st_mtime, UTC),
                found.st_size,
                str(told.get("gitBranch") or ""),
                str(told.get("cwd") or ""),
                0,
            )
        )
    return sorted(infos, key=lambda info: info.modified_at, reverse=True)


def find_claude_session(folder: Path, wanted: str) -> Path:
    """The file that `wanted` names: a path, an id or its start, or words of a title or first prompt.

    Raises:
        SessionError: there is none.
    """
    name = wanted.removeprefix(PREFIX)
    if name.endswith(".jsonl") and Path(name).expanduser().is_file():
        return Path(name).expanduser()
    sessions = claude_sessions(folder)
    needle = name.casefold()
    for info in sessions:
        if info.path.stem.casefold().startswith(needle):
            return info.path
    for info in sessions:
        if needle in f"{info.title}\n{info.first_prompt}".casefold():
            return info.path
    raise SessionError(f"No Claude Code session here matches {name!r}.", hint="List them with: pyagent import claude")


def read_claude_session(path: Path) -> ImportedSession:
    """The conversation of a session file, as records of a new session.

    Raises:
        SessionError: the file cannot be read, or is none of Claude Code's.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SessionError(f"The session cannot be read: {path}: {error.strerror}.") from error
    faults: list[str] = []
    lines = list(_objects(data, faults))
    chain = [line for line in lines if _is_chain_line(line)]
    if not chain:
        raise SessionError(
            f"{path} is no Claude Code session.",
            hint="Only its .jsonl files can be imported, and pyagent's own resumed.",
        )
    problems = []
    if faults:
        problems.append(f"{len(faults)} lines of the imported session are unreadable and are left out.")
    walk = _walk(chain)
    if walk.gap_count:
        problems.append(f"{walk.gap_count} messages of the imported session name a parent that is not there.")
    told: JsonObject = next((line for line in chain if line.get("cwd")), {})
    session_id = path.stem
    start = SessionStarted(
        SCHEMA_VERSION,
        session_id,
        str(told.get("cwd") or ""),
        __version__,
        str(told.get("gitBranch") or ""),
        session_id,
    )
    title = _title(lines)
    payloads: list[_Dated] = [_Dated(start, _moment(walk.path[0] if walk.path else {}), "")]
    if title:
        payloads.append(_Dated(SettingChanged("title", title), payloads[0].at, ""))
    payloads += _Conversion(chain, walk.path).payloads()
    return ImportedSession(tuple(_records(payloads)), session_id, tuple(problems))


# ── reading lines ────────────────────────────────────────────────────────────────────────────────────────────────────


def _objects(data: bytes, faults: list[str] | None = None) -> Iterator[JsonObject]:
    """The JSON objects of all lines; two on one line are two."""
    decoder = json.JSONDecoder()
    for line in data.split(b"\n"):
        text = line.decode("utf-8", "replace").strip()
        position = 0
        while position < len(text):
            try:
                value, position = decoder.raw_decode(text, position)
            except (ValueError, RecursionError):
                if faults is not None:
                    faults.append(text[position : position + 40])
                break
            if isinstance(value, dict):
                yield scrub_json(value)
            while position < len(text) and text[position].isspace():
                position += 1


def _is_chain_line(line: JsonObject) -> bool:
    return line.get("type") in _CHAIN_TYPES and isinstance(line.get("uuid"), str) and "seq" not in line


def _is_main(line: JsonObject) -> bool:
    """Whether it belongs to the conversation itself and not to a subagent's or a team's."""
    return not line.get("isSidechain") and not line.get("teamName")


def _title(lines: Iterable[JsonObject]) -> str:
    found: dict[str, str] = {}
    for line in lines:
        kind = str(line.get("type"))
        value = line.get(_TITLE_FIELDS.get(kind, ""))
        if isinstance(value, str) and value.strip():
            found[kind] = " ".join(value.split())
    return next((found[kind] for kind in reversed(_TITLE_FIELDS) if kind in found), "")


def _content(line: JsonObject) -> list[JsonObject]:
    """The content blocks of a line's message; a plain string is one text block."""
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _typed_text(line: JsonObject) -> str:
    """What a person typed on this line; empty if nobody did."""
    if line.get("isMeta") or line.get("isCompactSummary") or not _is_main(line):
        return ""
    texts = [str(block.get("text") or "") for block in _content(line) if block.get("type") == "text"]
    return "\n".join(text for text in texts if text and not text.startswith("<"))


def _moment(line: JsonObject) -> datetime:
    try:
        at = datetime.fromisoformat(str(line.get("timestamp")))
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


# ── the newest branch ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Walk:
    path: list[JsonObject]
    gap_count: int
    """Parents that are not in the file, or would lead round in a circle."""


def _walk(chain: list[JsonObject]) -> _Walk:
    """From the newest main line back to the first. Where a parent is missing, the line before it in the file stands
    in: never is less shown than the file holds."""
    first_at: dict[str, int] = {}
    for position, line in enumerate(chain):
        first_at.setdefault(line["uuid"], position)
    leaf = next(
        (
            position
            for position in range(len(chain) - 1, -1, -1)
            if _is_main(chain[position])
            and not chain[position].get("isMeta")
            and chain[position]["type"] in ("user", "assistant")
        ),
        None,
    )
    path: list[JsonObject] = []
    seen: set[int] = set()
    gap_count = 0
    at = leaf
    while at is not None:
        seen.add(at)
        line = chain[at]
        path.append(line)
        parent = line.get("parentUuid") or line.get("logicalParentUuid")
        found = first_at.get(parent) if isinstance(parent, str) else None
        is_root = parent is None and line.get("subtype") != "compact_boundary"
        if found is None or found in seen:
            if not is_root:
                gap_count += 1
            found = None if is_root and not _is_continued(chain, at) else _main_before(chain, at, seen)
        at = found
    path.reverse()
    return _Walk(path, gap_count)


def _is_continued(chain: list[JsonObject], position: int) -> bool:
    """Whether a line without a parent stands behind others all the same (parents were never written)."""
    return not any(line.get("parentUuid") for line in chain[:position])


def _main_before(chain: list[JsonObject], position: int, seen: set[int]) -> int | None:
    return next((p for p in range(position - 1, -1, -1) if p not in seen and _is_main(chain[p])), None)


# ── conversion ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Dated:
    payload: Payload
    at: datetime
    uuid: str
    tx: str = ""


def _records(payloads: Iterable[_Dated]) -> Iterator[Record]:
    used: set[str] = set()
    for seq, dated in enumerate(payloads):
        uuid = dated.uuid if dated.uuid and dated.uuid not in used else f"import-{seq}"
        used.add(uuid)
        yield Record(seq, uuid, dated.at, dated.payload, dated.tx)


@dataclass(slots=True)
class _Conversion:
    """Turns the lines of a branch into payloads."""

    chain: list[JsonObject]
    path: list[JsonObject]
    _parts: dict[str, list[JsonObject]] = field(default_factory=dict)
    _results: dict[str, tuple[ToolResultBlock, JsonObject]] = field(default_factory=dict)
    _done: set[str] = field(default_factory=set)
    _boundary: JsonObject | None = None

    def payloads(self) -> Iterator[_Dated]:
        self._index()
        numbers = count()
        for line in self.path:
            match line["type"]:
                case "assistant":
                    yield from self._response(line)
                case "user" if line.get("isCompactSummary"):
                    yield from self._compaction(line, next(numbers))
                case "user":
                    yield from self._user(line)
                case "system":
                    yield from self._system(line)
                case _:
                    pass

    def _index(self) -> None:
        """Where the parts of each response and the result of each call stand. The first result of a call counts."""
        seen: set[str] = set()
        for line in self.chain:
            if line["uuid"] in seen or not _is_main(line):
                continue
            seen.add(line["uuid"])
            if line["type"] == "assistant":
                self._parts.setdefault(_message_id(line), []).append(line)
            elif line["type"] == "user":
                for block in _blocks(line):
                    if isinstance(block, ToolResultBlock):
                        self._results.setdefault(block.tool_use_id, (block, line))

    def _response(self, line: JsonObject) -> Iterator[_Dated]:
        message_id = _message_id(line)
        if message_id in self._done:
            return
        self._done.add(message_id)
        parts = self._parts.get(message_id, [line])
        message = parts[-1].get("message")
        message = message if isinstance(message, dict) else {}
        content: list[JsonObject] = []
        for part in parts:
            content += [block for block in _content(part) if block not in content]
        if message.get("model") == SYNTHETIC_MODEL or line.get("isApiErrorMessage"):
            text = " ".join(str(block.get("text") or "") for block in content).strip()
            if text:
                yield _Dated(NoticeShown(text, "warning"), _moment(line), line["uuid"])
            return
        content = [b for b in content if b.get("type") != "text" or str(b.get("text") or "").strip()]
        if not content:
            return
        entry = AssistantEntry(
            message_id,
            str(message.get("model") or ""),
            tuple(content),
            message.get("stop_reason") if isinstance(message.get("stop_reason"), str) else None,
            # Its usage was that of another program's prompt and tools, and is paid for: it counts for nothing here.
            Usage(),
            prefix_digest="",
            profile_id="",
            cost_usd=0.0,
        )
        yield _Dated(entry, _moment(line), line["uuid"])
        results = [
            self._results[str(block.get("id"))]
            for block in content
            if block.get("type") == "tool_use" and str(block.get("id")) in self._results
        ]
        if results:
            at = max(_moment(found) for _, found in results)
            blocks = tuple(block for block, _ in results)
            yield _Dated(UserEntry(blocks, origin="tool_results"), at, results[0][1]["uuid"])

    def _user(self, line: JsonObject) -> Iterator[_Dated]:
        blocks = tuple(block for block in _blocks(line) if not isinstance(block, ToolResultBlock))
        if not any(not isinstance(block, TextBlock) or block.text.strip() for block in blocks):
            return
        origin: UserOrigin = "reminder" if line.get("isMeta") else "prompt"
        yield _Dated(UserEntry(blocks, origin=origin), _moment(line), line["uuid"])

    def _system(self, line: JsonObject) -> Iterator[_Dated]:
        match line.get("subtype"):
            case "compact_boundary":
                self._boundary = line
            case "microcompact_boundary":
                told = line.get("microcompactMetadata")
                ids = told.get("compactedToolIds") if isinstance(told, dict) else None
                known = [use_id for use_id in ids if use_id in self._results] if isinstance(ids, list) else []
                if known:
                    op = ClearResults(dict.fromkeys(known, CLEARED_TEXT), "cleared before the import")
                    yield _Dated(op, _moment(line), line["uuid"])
            case _:
                pass

    def _compaction(self, line: JsonObject, number: int) -> Iterator[_Dated]:
        """A summary with the boundary that came before it, as one transaction."""
        told = (self._boundary or {}).get("compactMetadata")
        told = told if isinstance(told, dict) else {}
        tx = f"import-tx-{number}"
        summary = UserEntry(tuple(_blocks(line)), origin="summary")
        if not text_of(summary.content).strip():
            return
        boundary = Boundary(
            layout=(line["uuid"],),
            trigger="auto" if told.get("trigger") == "auto" else "manual",
            layer="full",
            pre_tokens=_whole(told.get("preTokens")),
            post_tokens=0,
            messages_summarized=0,
            summary_uuid=line["uuid"],
        )
        yield _Dated(summary, _moment(line), line["uuid"], tx)
        yield _Dated(boundary, _moment(line), f"{line['uuid']}-boundary", tx)
        self._boundary = None


def _message_id(line: JsonObject) -> str:
    message = line.get("message")
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, str) and found else str(line["uuid"])


def _blocks(line: JsonObject) -> list[Block]:
    """The typed blocks of a user line; what no request may hold becomes a text that says so."""
    blocks: list[Block] = []
    for raw in _content(line):
        block = _parsed(raw)
        if isinstance(block, UnknownBlock):
            block = TextBlock(f"[A block of type {raw.get('type')!r} could not be imported]")
        blocks.append(block)
    return blocks


def _parsed(raw: JsonObject) -> Block:
    try:
        return parse_block(raw)
    except (KeyError, TypeError, ValueError):
        return UnknownBlock(raw)


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
