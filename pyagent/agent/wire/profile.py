"""What stays the same from request to request: model, system text, tools and settings, under one content address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from pyagent.agent.wire.encode import digest, to_bytes
from pyagent.messages import JsonObject

RENDERER_VERSION = 1
"""Raised when the same view would render to other bytes: a profile recorded under another version never matches."""

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""Allows `thinking.block_binding`: what the server does with thinking whose prefix has changed."""

COMPACTION_BETA = "compact-2026-09-04"
"""Wanted by a request for the server's summary and by every later one that carries it."""

DIAGNOSTICS_BETA = "cache-diagnosis-2026-04-07"
"""Wanted by a request that asks why the prompt cache was missed."""

CacheTtl: TypeAlias = Literal["5m", "1h", "off"]

_BINDING_THINKING = ("adaptive", "between_tools")


@dataclass(frozen=True)
class RequestProfile:
    """The settings a conversation sends with every request.

    Built once and reused: a changed system text or tool list invalidates the prompt cache and, on models that bind
    thinking to its prefix, every thinking block of the conversation.
    """

    model: str
    system: str
    tools: tuple[JsonObject, ...] = ()
    max_tokens: int = 32_000
    """Largest answer to ask for, tokens."""
    thinking: JsonObject | None = None
    output_config: JsonObject | None = None
    betas: tuple[str, ...] = ()
    """Values for `anthropic-beta`, without the one `block_binding_drop` brings along."""
    cache_ttl: CacheTtl = "5m"
    block_binding_drop: bool = False
    """Ask the server to drop thinking whose prefix changed instead of refusing the request: a safety net."""
    context_management: JsonObject | None = None
    extra: JsonObject = field(default_factory=dict)
    """Further top-level fields, such as `metadata` or `speed`."""
    renderer_version: int = RENDERER_VERSION
    has_system_messages: bool = False
    """Notes behind the first response travel as `system` messages, which the model heeds without mistaking them for
    the person's words; off, they are text of the user's message. Bound to the profile: the bytes of what was sent
    never change."""

    @cached_property
    def profile_id(self) -> str:
        """The content address: equal profiles have equal ids."""
        return digest(to_bytes(self.to_json())).hex()

    @cached_property
    def base_digest(self) -> bytes:
        """Digest of what thinking is bound to before the first message: model, system and tools."""
        return digest(self.model.encode("utf-8", "replace"), self.system_bytes, self.tools_bytes)

    @cached_property
    def system_bytes(self) -> bytes:
        """The system text as one JSON string; empty if there is none."""
        return to_bytes(self.system) if self.system.strip() else b""

    @cached_property
    def tool_parts(self) -> tuple[bytes, ...]:
        """Each tool's declaration, rendered once."""
        return tuple(to_bytes(tool) for tool in self.tools)

    @cached_property
    def tools_bytes(self) -> bytes:
        return b",".join(self.tool_parts)

    @cached_property
    def prefix_bytes(self) -> bytes:
        """Tools and system, in the order the server caches them."""
        return self.tools_bytes + self.system_bytes

    @cached_property
    def all_betas(self) -> tuple[str, ...]:
        """The values of `anthropic-beta`, without duplicates, in a fixed order."""
        betas = [*self.betas, *([BINDING_BETA] if self._sends_binding else [])]
        return tuple(dict.fromkeys(betas))

    @property
    def wire_thinking(self) -> JsonObject | None:
        """The `thinking` field as sent."""
        if self.thinking is None or not self._sends_binding:
            return self.thinking
        return self.thinking | {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}

    @property
    def _sends_binding(self) -> bool:
        return self.block_binding_drop and self.thinking is not None and self.thinking.get("type") in _BINDING_THINKING

    @property
    def cache_ttl_s(self) -> int:
        """Lifetime of the cache entries asked for, seconds; 0 for none."""
        return {"5m": 300, "1h": 3_600, "off": 0}[self.cache_ttl]

    def with_changes(self, **changes: Any) -> RequestProfile:
        return replace(self, **changes)

    def to_json(self) -> JsonObject:
        """The body of a `ProfileRecorded`."""
        body = {f.name: getattr(self, f.name) for f in fields(self)}
        if not self.has_system_messages:
            # Left out, so that profiles recorded before there was such a field keep their address.
            del body["has_system_messages"]
        return body | {"tools": list(self.tools), "betas": list(self.betas)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> RequestProfile:
        """The profile of a recorded body; fields this version does not know are left out."""
        known = {f.name for f in fields(cls)}
        values = {name: value for name, value in body.items() if name in known}
        for name in ("tools", "betas"):
            values[name] = tuple(values.get(name, ()))
        return cls(**values)
