"""From a view to the messages of a request.

Each item is rendered once. A view that only grew costs its new items; any other view reuses the items whose key it
shares. Beside the bytes runs a digest of everything sent so far: thinking goes out only behind the very prefix it was
sampled under, so clearing, compaction, undo, a model switch and a resume need no rules of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Literal, TypeAlias

from pyagent.agent.wire.encode import digest, to_bytes
from pyagent.agent.wire.normalise import (
    CONTINUE_TEXT,
    OPENING_TEXT,
    THINKING_TYPES,
    NormalBlock,
    answer_blocks,
    assistant_blocks,
    may_keep_thinking,
    user_blocks,
)
from pyagent.agent.wire.profile import RequestProfile
from pyagent.log import AssistantEntry, UserEntry
from pyagent.messages import UNKNOWN_IMAGE_TOKENS, image_tokens
from pyagent.view import Overlay, View, ViewItem

ItemKey: TypeAlias = tuple[str, tuple[int, ...]]
Role: TypeAlias = Literal["user", "assistant", "system"]
Estimate: TypeAlias = Callable[[bytes], int]
"""Raw tokens of a block's JSON bytes."""

BYTES_PER_TOKEN = 2.3
"""The coarse measure of the newer tokenizer, for use while no encoding is loaded."""


KEPT_UNUSED_BYTES = 1_000_000
"""Rendered items kept that the newest view does not show: those of a small conversation, for an undo."""


def bytes_estimate(data: bytes) -> int:
    return math.ceil(len(data) / BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """One content block as sent, without a cache mark."""

    data: bytes
    kind: str
    """The block's type."""
    uuid: str = ""
    """The entry it comes from; "" for text that is in no entry."""
    index: int = -1
    """Its place in the entry's content; -1 for blocks that are in no entry."""
    tool_id: str = ""
    """Of a tool_use or tool_result."""
    raw_tokens: int = 0

    @property
    def is_thinking(self) -> bool:
        return self.kind in THINKING_TYPES


@dataclass(frozen=True, slots=True)
class RenderedMessage:
    """One API message. `digest` covers everything up to and including it."""

    role: Role
    parts: tuple[RenderedPart, ...]
    data: bytes
    digest: bytes
    raw_tokens: int
    keys: tuple[ItemKey, ...]
    """The view items it is made of."""
    is_paused: bool = False
    """An assistant message the server broke off to go on with in the next response."""


@dataclass(frozen=True, slots=True)
class RenderedConversation:
    """A view as the messages of a request."""

    messages: tuple[RenderedMessage, ...]
    base_digest: bytes
    """What thinking is bound to before the first message; see `RequestProfile.base_digest`."""

    @property
    def prefix_digest(self) -> str:
        """The digest to record with a response to exactly these messages."""
        rolling = self.messages[-1].digest if self.messages else self.base_digest
        return _digest_text(self.base_digest, rolling)

    @property
    def raw_tokens(self) -> int:
        return sum(message.raw_tokens for message in self.messages)

    @property
    def starts_with_summary(self) -> bool:
        """Whether a summary signed by the server stands for what came before."""
        return bool(self.messages) and self.messages[0].parts[0].kind == "compaction"

    def upto(self, count: int) -> RenderedConversation:
        """The first `count` messages."""
        return RenderedConversation(self.messages[:count], self.base_digest)

    def part_at(self, message: int, block: int) -> RenderedPart | None:
        """The block an error path such as `messages.3.content.0` names."""
        if 0 <= message < len(self.messages) and 0 <= block < len(self.messages[message].parts):
            return self.messages[message].parts[block]
        return None


@dataclass(frozen=True, slots=True)
class _CachedItem:
    overlay: Overlay
    parts: tuple[RenderedPart, ...]
    answers: tuple[RenderedPart, ...]
    may_think: bool
    is_aside: bool = False
    """A note of pyagent's, which may travel as a `system` message."""

    @property
    def size_bytes(self) -> int:
        return sum(len(part.data) for part in (*self.parts, *self.answers))


class Renderer:
    """Renders the views of one conversation."""

    KEPT_BUILDERS_COUNT = 3
    """Main loop, a view under consideration, a fork: each goes on where it was."""

    def __init__(self, estimate: Estimate = bytes_estimate) -> None:
        self._estimate = estimate
        self._items: dict[ItemKey, _CachedItem] = {}
        self._builders: list[_Builder] = []

    def render(self, view: View, profile: RequestProfile) -> RenderedConversation:
        """The view as API messages: first and last a user's, roles alternating, thinking only behind its prefix."""
        builder = self._builder_for(view.items, profile)
        for item in view.items[len(builder.items) :]:
            builder.add(item, self._cached(item))
        return RenderedConversation(builder.messages(), profile.base_digest)

    def prefix_digest(self, view: View, profile: RequestProfile) -> str:
        """The digest a new response to this view is sampled under."""
        return self.render(view, profile).prefix_digest

    def keep_only(self, view: View) -> None:
        """Forget what was rendered of all items but this view's."""
        wanted = {item.key for item in view.items}
        self._items = {key: cached for key, cached in self._items.items() if key in wanted}
        self._builders = [builder for builder in self._builders if all(item.key in wanted for item in builder.items)]

    def _builder_for(self, items: tuple[ViewItem, ...], profile: RequestProfile) -> _Builder:
        best: _Builder | None = None
        for builder in self._builders:
            if builder.is_prefix_of(items, profile) and (best is None or len(builder.items) > len(best.items)):
                best = builder
        if best is None:
            best = _Builder(profile, self._text_part)
            self._forget_unused(items)
        else:
            self._builders.remove(best)
        self._builders = [best, *self._builders][: self.KEPT_BUILDERS_COUNT]
        return best

    def _forget_unused(self, items: tuple[ViewItem, ...]) -> None:
        """Let go of what no view shows any more, once that is much: an undo would have to render it anew."""
        wanted = {item.key for item in items}
        unused_bytes = sum(cached.size_bytes for key, cached in self._items.items() if key not in wanted)
        if unused_bytes > KEPT_UNUSED_BYTES:
            self._items = {key: cached for key, cached in self._items.items() if key in wanted}

    def _cached(self, item: ViewItem) -> _CachedItem:
        cached = self._items.get(item.key)
        # The overlay is compared too: a view that only tries an op out numbers it like the next record.
        if cached is not None and (cached.overlay is item.overlay or cached.overlay == item.overlay):
            return cached
        if item.is_user:
            blocks = user_blocks(item)
            parts = self._parts(blocks, item.uuid)
            cached = _CachedItem(item.overlay, parts, (), may_think=False, is_aside=_is_aside(item, parts))
        else:
            blocks = assistant_blocks(item)
            answers = self._parts(answer_blocks(item), item.uuid)
            cached = _CachedItem(
                item.overlay, self._parts(blocks, item.uuid), answers, may_think=may_keep_thinking(item, blocks)
            )
        self._items[item.key] = cached
        return cached

    def _parts(self, blocks: Sequence[NormalBlock], uuid: str) -> tuple[RenderedPart, ...]:
        return tuple(self._part(block, uuid) for block in blocks)

    def _part(self, block: NormalBlock, uuid: str) -> RenderedPart:
        data = to_bytes(block.wire)
        return RenderedPart(data, block.kind, uuid, block.index, block.tool_id, self._tokens(block, data))

    def _text_part(self, text: str) -> RenderedPart:
        return self._part(NormalBlock({"type": "text", "text": text}, -1), "")

    def _tokens(self, block: NormalBlock, data: bytes) -> int:
        if block.kind == "image":
            return image_tokens(*block.pixels)
        content = block.wire.get("content")
        if block.kind == "tool_result" and isinstance(content, list):
            media = [part for part in content if part.get("type") in ("image", "document")]
            if media:
                text = to_bytes([part for part in content if part not in media])
                return self._estimate(text) + UNKNOWN_IMAGE_TOKENS * len(media)
        if block.kind == "document":
            return UNKNOWN_IMAGE_TOKENS
        if block.kind in THINKING_TYPES:
            return self._estimate(str(block.wire.get("thinking", "")).encode("utf-8", "replace"))
        return self._estimate(data)


class _Builder:
    """The messages of a view that grows at its end."""

    def __init__(self, profile: RequestProfile, text_part: Callable[[str], RenderedPart]) -> None:
        self.items: list[ViewItem] = []
        self._base_digest = profile.base_digest
        self._has_system_messages = profile.has_system_messages
        self._text_part = text_part
        self._settled: list[RenderedMessage] = []
        self._rolling = self._base_digest
        self._role: Literal["user", "assistant"] = "user"
        self._parts: list[RenderedPart] = []
        self._keys: list[ItemKey] = []
        self._asides: list[RenderedPart] = []
        """Notes that came since the last response, for a `system` message behind the user's."""
        self._aside_keys: list[ItemKey] = []
        self._is_paused = False

    def is_prefix_of(self, items: tuple[ViewItem, ...], profile: RequestProfile) -> bool:
        return (
            self._base_digest == profile.base_digest
            and self._has_system_messages == profile.has_system_messages
            and len(self.items) <= len(items)
            and all(map(is_, self.items, items))
        )

    def add(self, item: ViewItem, cached: _CachedItem) -> None:
        self.items.append(item)
        if item.is_user:
            if cached.parts and not self._add_signed(item, cached):
                self._open("user")
                # Before the first response notes are part of the user's message: none may come first.
                is_apart = cached.is_aside and self._has_system_messages and bool(self._settled)
                parts, keys = (self._asides, self._aside_keys) if is_apart else (self._parts, self._keys)
                parts += cached.parts
                keys.append(item.key)
            return
        plain = tuple(part for part in cached.parts if not part.is_thinking)
        if not plain:
            return
        self._add_response(item, cached, plain)

    def _add_signed(self, item: ViewItem, cached: _CachedItem) -> bool:
        """Add a summary as the block its server signed: first of all, and under the profile it was made under. False
        where only its text means something."""
        entry = item.entry
        if not isinstance(entry, UserEntry) or not entry.signed or item.overlay.ops or self._settled or self._parts:
            return False
        base, _, rolling = str(entry.signed.get("prefix_digest", "")).partition(".")
        if base != self._base_digest.hex() or not rolling:
            return False
        self._role = "assistant"
        block = to_bytes(entry.signed["block"])
        self._parts.append(RenderedPart(block, "compaction", item.uuid, 0, raw_tokens=cached.parts[0].raw_tokens))
        self._keys.append(item.key)
        # It stands for exactly the prefix it was made from.
        self._rolling = bytes.fromhex(rolling)
        return True

    def _add_response(self, item: ViewItem, cached: _CachedItem, plain: tuple[RenderedPart, ...]) -> None:
        entry = item.entry
        assert isinstance(entry, AssistantEntry)
        if not self._settled and not self._parts:
            self._parts.append(self._text_part(OPENING_TEXT))
        self._open("assistant")
        is_same_prefix = entry.prefix_digest == _digest_text(self._base_digest, self._rolling)
        parts = cached.parts if cached.may_think and is_same_prefix else plain
        self._parts += parts
        self._keys.append(item.key)
        # Without a server's tool there is nothing the server could go on with, and it wants a user's word.
        self._is_paused = entry.stop_reason == "pause_turn" and any(part.kind == "server_tool_use" for part in plain)
        self._rolling = digest(self._rolling, b"assistant", *(part.data for part in parts))
        if cached.answers:
            self._open("user")
            self._parts += cached.answers

    def messages(self) -> tuple[RenderedMessage, ...]:
        pending = self._pending()
        if not pending or pending[-1].role != "assistant" or pending[-1].is_paused:
            return (*self._settled, *pending)
        part = self._text_part(CONTINUE_TEXT)
        return (*self._settled, *pending, _message("user", [part], (), _user_digest(self._rolling, [part])))

    def _open(self, role: Literal["user", "assistant"]) -> None:
        """Go on with a message of this role, closing one of the other."""
        if role == self._role:
            return
        for message in self._pending():
            self._settled.append(message)
            self._rolling = message.digest
        self._role, self._parts, self._keys, self._is_paused = role, [], [], False
        self._asides, self._aside_keys = [], []

    def _pending(self) -> tuple[RenderedMessage, ...]:
        """The message under construction, and the notes behind it."""
        if self._role == "assistant":
            keys = tuple(self._keys)
            return (_message("assistant", self._parts, keys, self._rolling, is_paused=self._is_paused),)
        # Results stand first: the API takes text only after the last of them.
        parts = sorted(self._parts, key=lambda part: part.kind != "tool_result")
        asides, keys = self._asides, tuple(self._keys)
        if not parts:
            # A `system` message must follow a user's, so alone they are one.
            parts, asides, keys = asides, [], tuple(self._aside_keys)
        if not parts:
            return ()
        message = _message("user", parts, keys, _user_digest(self._rolling, parts))
        if not asides:
            return (message,)
        rolling = digest(message.digest, b"system", *(part.data for part in asides))
        return (message, _message("system", asides, tuple(self._aside_keys), rolling))


def _is_aside(item: ViewItem, parts: Sequence[RenderedPart]) -> bool:
    """Whether an item is a note of pyagent's in plain text. What is quoted from files must not speak with the system's
    voice: only memory, which is there to instruct, may."""
    entry = item.record.payload
    if item.overlay.folded_text is not None or not isinstance(entry, UserEntry):
        return False
    is_note = entry.origin == "reminder" or (
        entry.origin == "attachment" and entry.label.startswith(("memory:", "plan", "tasks"))
    )
    return is_note and all(part.kind == "text" for part in parts)


def _message(
    role: Role,
    parts: Sequence[RenderedPart],
    keys: tuple[ItemKey, ...],
    rolling: bytes,
    *,
    is_paused: bool = False,
) -> RenderedMessage:
    data = message_bytes(role, [part.data for part in parts])
    tokens = sum(part.raw_tokens for part in parts)
    return RenderedMessage(role, tuple(parts), data, rolling, tokens, keys, is_paused)


def message_bytes(role: str, blocks: Sequence[bytes]) -> bytes:
    return b'{"role":"' + role.encode() + b'","content":[' + b",".join(blocks) + b"]}"


def _user_digest(rolling: bytes, parts: Sequence[RenderedPart]) -> bytes:
    return digest(rolling, b"user", *(part.data for part in parts))


def _digest_text(base: bytes, rolling: bytes) -> str:
    """As recorded: the profile's part first, so that a summary's record tells which profile it was made under."""
    return f"{base.hex()}.{rolling.hex()}"
