"""Content blocks, usage, and how they stand on the wire.

Assistant content is kept as the raw JSON objects received (`AssistantEntry.content` in `pyagent.log`), since
re-serialising it through own classes could change a signed block; `parse_block` gives a typed look at one.
Content made on this side (prompts, tool results, attachments) is typed from the start.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

JsonObject: TypeAlias = dict[str, Any]

_SURROGATE = re.compile("[\ud800-\udfff]")


def scrub_surrogates(text: str) -> str:
    """Replace each lone surrogate by U+FFFD; paired ones (two escapes of one emoji) become the character.

    The API refuses a body that holds a lone surrogate, and Python cannot encode one.
    """
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def scrub_json(value: Any) -> Any:
    """`scrub_surrogates` for every string (keys too) inside a JSON value."""
    if isinstance(value, str):
        return scrub_surrogates(value)
    if isinstance(value, list):
        return [scrub_json(item) for item in value]
    if isinstance(value, dict):
        return {scrub_surrogates(key): scrub_json(item) for key, item in value.items()}
    return value


@dataclass(frozen=True, slots=True)
class TextBlock:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    thinking: str
    signature: str


@dataclass(frozen=True, slots=True)
class RedactedThinkingBlock:
    data: str


@dataclass(frozen=True, slots=True)
class ToolUseBlock:
    id: str
    name: str
    input: JsonObject


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """An image; `source` is the wire's source object. Pixels are 0 where the size is unknown."""

    source: JsonObject
    width_px: int = 0
    height_px: int = 0


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    """A document (PDF or text); `page_count` is 0 where it is unknown."""

    source: JsonObject
    title: str = ""
    page_count: int = 0


@dataclass(frozen=True, slots=True)
class UnknownBlock:
    """A block of a type this version does not know: kept and echoed as it came."""

    raw: JsonObject


ResultContent: TypeAlias = TextBlock | ImageBlock | DocumentBlock | UnknownBlock


@dataclass(frozen=True, slots=True)
class ToolResultBlock:
    tool_use_id: str
    content: tuple[ResultContent, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text parts, joined by newlines; images and documents are left out."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextBlock))


Block: TypeAlias = (
    TextBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ImageBlock
    | DocumentBlock
    | UnknownBlock
)


def parse_block(raw: JsonObject) -> Block:
    """The typed block for a wire object; anything unexpected becomes an `UnknownBlock`, never an error."""
    try:
        return _parse_known(raw)
    except (KeyError, TypeError, AttributeError):
        return UnknownBlock(raw)


def _parse_known(raw: JsonObject) -> Block:
    match raw.get("type"):
        case "text" if isinstance(raw["text"], str):
            return TextBlock(raw["text"])
        case "thinking" if isinstance(raw["thinking"], str):
            return ThinkingBlock(raw["thinking"], raw.get("signature") or "")
        case "redacted_thinking":
            return RedactedThinkingBlock(raw["data"])
        case "tool_use" if isinstance(raw["input"], dict):
            return ToolUseBlock(raw["id"], raw["name"], raw["input"])
        case "tool_result":
            return ToolResultBlock(raw["tool_use_id"], _parse_result(raw.get("content")), bool(raw.get("is_error")))
        case "image":
            width_px, height_px = raw.get("pixels") or (0, 0)
            return ImageBlock(raw["source"], width_px, height_px)
        case "document":
            return DocumentBlock(raw["source"], raw.get("title") or "", raw.get("page_count") or 0)
        case _:
            return UnknownBlock(raw)


def _parse_result(content: str | list[JsonObject] | None) -> tuple[ResultContent, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextBlock(content),) if content else ()
    parts: list[ResultContent] = []
    for raw in content:
        block = parse_block(raw)
        parts.append(
            block if isinstance(block, TextBlock | ImageBlock | DocumentBlock | UnknownBlock) else UnknownBlock(raw)
        )
    return tuple(parts)


def block_to_wire(block: Block) -> JsonObject:
    """The object the Messages API takes for this block."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ThinkingBlock():
            return {"type": "thinking", "thinking": block.thinking, "signature": block.signature}
        case RedactedThinkingBlock():
            return {"type": "redacted_thinking", "data": block.data}
        case ToolUseBlock():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
        case ToolResultBlock():
            wire: JsonObject = {"type": "tool_result", "tool_use_id": block.tool_use_id}
            if block.content:
                wire["content"] = [block_to_wire(part) for part in block.content]
            if block.is_error:
                wire["is_error"] = True
            return wire
        case ImageBlock():
            return {"type": "image", "source": block.source}
        case DocumentBlock():
            document: JsonObject = {"type": "document", "source": block.source}
            if block.title:
                document["title"] = block.title
            return document
        case UnknownBlock():
            return block.raw
        case _:
            assert_never(block)


def block_to_record(block: Block) -> JsonObject:
    """The wire object plus what only the log keeps (an image's pixels, a document's pages); `parse_block` reads it."""
    match block:
        case ImageBlock(width_px=width_px, height_px=height_px) if width_px and height_px:
            return block_to_wire(block) | {"pixels": [width_px, height_px]}
        case DocumentBlock(page_count=page_count) if page_count:
            return block_to_wire(block) | {"page_count": page_count}
        case ToolResultBlock():
            record = block_to_wire(block)
            if block.content:
                record["content"] = [block_to_record(part) for part in block.content]
            return record
        case _:
            return block_to_wire(block)


UNKNOWN_IMAGE_TOKENS = 2_000
"""For an image whose size is not known: more than most screenshots cost."""

MAX_IMAGE_TOKENS = 4_784
"""No image costs more: the server scales larger ones down."""

IMAGE_PATCH_PX = 28
"""Width and height in pixels of the square that one token of an image covers."""


def image_tokens(width_px: int, height_px: int) -> int:
    """What an image costs, in tokens. Its bytes have nothing to do with it."""
    if width_px <= 0 or height_px <= 0:
        return UNKNOWN_IMAGE_TOKENS
    patches = math.ceil(width_px / IMAGE_PATCH_PX) * math.ceil(height_px / IMAGE_PATCH_PX)
    return min(patches, MAX_IMAGE_TOKENS)


def text_of(blocks: Iterable[Block]) -> str:
    """All text blocks, joined by newlines."""
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one API response as the server reported them. `raw` keeps what is not named here."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_1h_tokens: int = 0
    thinking_tokens: int = 0
    raw: JsonObject = field(default_factory=dict)

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any] | None) -> Usage:
        """Missing or null counters (as compatible servers send them) read as 0."""

        def number(source: Mapping[str, Any], key: str) -> int:
            value = source.get(key)
            return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0

        raw = raw or {}
        split = raw.get("cache_creation") or {}
        details = raw.get("output_tokens_details") or {}
        return cls(
            input_tokens=number(raw, "input_tokens"),
            output_tokens=number(raw, "output_tokens"),
            cache_creation_input_tokens=number(raw, "cache_creation_input_tokens"),
            cache_read_input_tokens=number(raw, "cache_read_input_tokens"),
            cache_creation_1h_tokens=number(split, "ephemeral_1h_input_tokens") if isinstance(split, dict) else 0,
            thinking_tokens=number(details, "thinking_tokens") if isinstance(details, dict) else 0,
            raw=dict(raw),
        )

    @property
    def prompt_tokens(self) -> int:
        """Everything the request sent: fresh, written to and read from the cache."""
        return self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens

    @property
    def context_tokens(self) -> int:
        """What stands in the window after the response: the prompt and the output.

        With several sampling passes the top-level counters add the passes up, so the last pass that
        produced a message counts instead.
        """
        iterations = self.raw.get("iterations")
        if isinstance(iterations, list):
            passes = [
                Usage.from_wire(item)
                for item in iterations
                if isinstance(item, dict) and item.get("type") in ("message", "fallback_message")
            ]
            if passes:
                return passes[-1].prompt_tokens + passes[-1].output_tokens
        return self.prompt_tokens + self.output_tokens

    @property
    def is_reported(self) -> bool:
        """Whether the server reported anything at all."""
        return self.context_tokens > 0
