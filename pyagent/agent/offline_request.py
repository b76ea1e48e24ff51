"""A request as the offline model sees it: what was asked last, and which calls were made since with what results.

Everything is read from the request's JSON; whatever has another form than the API's is passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyagent.messages import JsonObject, scrub_json

_NOT_TYPED = (
    "This session continues from an earlier conversation",
    "This session is being continued",
    "What the user said in the summarised part",
    "The whole conversation is in ",
    "The newest messages follow",
    "Go on with the task",
    "The conversation goes on from here",
    "[Interrupted by the user",
    "[Request interrupted by user",
)
"""How texts of a user message begin that pyagent wrote itself."""

_WRAPPED = re.compile(r"<([a-z][\w-]*)>.*</\1>", re.DOTALL)
_SUMMARY_INTRODUCTIONS = _NOT_TYPED[:2]
_QUOTED_PROMPT = re.compile(r"<user_message>\n(.*?)\n</user_message>", re.DOTALL)


_RESTORED_CHARS = 5_000
"""A restored file is named in the first line or two of its text."""
_RESTORED = re.compile(
    r"(?:Content|Beginning) of ([^\n]+?)(?:, read again after the compaction| \(lines 1 to )[^\n]*:\n(.*)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call and its result; `result` is None while there is none."""

    name: str
    input: JsonObject
    result: str | None = None
    is_error: bool = False

    @property
    def path(self) -> str:
        return str(self.input.get("file_path") or self.input.get("path") or "")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A prompt, the calls made for it, and what was answered."""

    prompt: str
    calls: tuple[Call, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class OfflineRequest:
    model: str
    max_tokens: int
    tools: frozenset[str]
    exchanges: tuple[Exchange, ...]
    """Oldest first; the last one is what is asked now."""
    earlier_summary: str = ""
    """The summary that stands at the conversation's start, if it was compacted before."""
    earlier_prompts: tuple[str, ...] = ()
    """Prompts from before that summary."""
    restored: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Files that a compaction put back: path → its numbered lines."""
    parts: tuple[str, ...] = field(default=(), repr=False)
    """The texts a token count is made of: system and tools, then one for each message."""
    has_answered: bool = False

    @property
    def prompt(self) -> str:
        return self.exchanges[-1].prompt if self.exchanges else ""

    @property
    def calls(self) -> tuple[Call, ...]:
        return self.exchanges[-1].calls if self.exchanges else ()


def parse_request(body: bytes) -> OfflineRequest:
    """The request in the bytes. Never raises: what cannot be read is an empty conversation."""
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError):
        raw = {}
    raw = scrub_json(raw) if isinstance(raw, dict) else {}
    messages = [message for message in _list(raw.get("messages")) if isinstance(message, dict)]
    tools = [tool for tool in _list(raw.get("tools")) if isinstance(tool, dict)]
    max_tokens = raw.get("max_tokens")
    reader = _Reader()
    for message in messages:
        reader.add(message)
    head = _dump([raw.get("system") or "", tools])
    return OfflineRequest(
        model=raw["model"] if isinstance(raw.get("model"), str) else "offline",
        max_tokens=max_tokens if isinstance(max_tokens, int) and max_tokens > 0 else 4_096,
        tools=frozenset(str(tool.get("name")) for tool in tools),
        exchanges=reader.finish(),
        earlier_summary=reader.summary,
        earlier_prompts=tuple(reader.earlier_prompts),
        restored=reader.restored,
        parts=(head, *(_text_for_count(message) for message in messages)),
        has_answered=any(message.get("role") == "assistant" for message in messages),
    )


class _Reader:
    """Folds messages into exchanges."""

    def __init__(self) -> None:
        self.summary = ""
        self.earlier_prompts: list[str] = []
        self.restored: dict[str, str] = {}
        self._done: list[Exchange] = []
        self._prompt: str | None = None
        self._calls: dict[str, Call] = {}
        self._answer = ""

    def add(self, message: JsonObject) -> None:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _list(content)
        blocks = [block for block in blocks if isinstance(block, dict)]
        match message.get("role"):
            case "assistant":
                self._assistant(blocks)
            case "user":
                self._user(blocks)
            case _:
                pass

    def finish(self) -> tuple[Exchange, ...]:
        if self._prompt is None and self.earlier_prompts:
            # The conversation was compacted in the middle of a turn: the last prompt stands in the summary.
            self._prompt = self.earlier_prompts.pop()
        self._close()
        return tuple(self._done)

    def _close(self) -> None:
        if self._prompt is not None:
            self._done.append(Exchange(self._prompt, tuple(self._calls.values()), self._answer))
        self._calls, self._answer, self._prompt = {}, "", None

    def _assistant(self, blocks: list[JsonObject]) -> None:
        texts = [str(block.get("text") or "") for block in blocks if block.get("type") == "text"]
        if texts:
            self._answer = "\n".join(texts)
        for block in blocks:
            if block.get("type") == "tool_use":
                given = block.get("input")
                call_id = str(block.get("id"))
                self._calls[call_id] = Call(str(block.get("name")), given if isinstance(given, dict) else {})

    def _user(self, blocks: list[JsonObject]) -> None:
        typed: list[str] = []
        for block in blocks:
            if block.get("type") == "tool_result":
                call = self._calls.get(str(block.get("tool_use_id")))
                if call is not None:
                    result = _result_text(block.get("content"))
                    done = Call(call.name, call.input, result, bool(block.get("is_error")))
                    self._calls[str(block.get("tool_use_id"))] = done
            elif block.get("type") == "text":
                text = str(block.get("text") or "").strip()
                if found := _RESTORED.search(text[:_RESTORED_CHARS]):
                    self.restored[found[1]] = text[found.start(2) :]
                if text.startswith(_SUMMARY_INTRODUCTIONS):
                    self._close()
                    self._done.clear()
                    self.summary = text
                self.earlier_prompts += _QUOTED_PROMPT.findall(text) if text.startswith(_NOT_TYPED) else []
                if text and not is_wrapper(text):
                    typed.append(text)
        if typed:
            self._close()
            self._prompt = typed[-1]


def is_wrapper(text: str) -> bool:
    """Whether a text in a user message was put there by pyagent: inside tags, or a note in its own words."""
    text = text.strip()
    return text.startswith(_NOT_TYPED) or _WRAPPED.fullmatch(text) is not None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _result_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = [block for block in _list(content) if isinstance(block, dict)]
    return "\n".join(str(part.get("text") or f"[{part.get('type')}]") for part in parts)


def _text_for_count(message: JsonObject) -> str:
    """The message as text; an image counts by a fixed size, not by its base64."""

    def small(value: Any) -> Any:
        if isinstance(value, dict):
            if value.get("type") in ("image", "document") and isinstance(value.get("source"), dict):
                return "image " * IMAGE_TOKENS
            return {key: small(item) for key, item in value.items() if key != "cache_control"}
        return [small(item) for item in value] if isinstance(value, list) else value

    content = message.get("content")
    return content if isinstance(content, str) else _dump(small(content))


IMAGE_TOKENS = 1_500
"""What an image of about a megapixel costs on the real API."""
