"""Notices when the prompt cache was lost although nothing announced it, and says what changed.

Before a request its parts are fingerprinted and compared with those of the request before; after the response the
tokens read from the cache are compared with what that request had left there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyagent.agent.wire.body import sent_thinking
from pyagent.agent.wire.catalogue import ModelInfo
from pyagent.agent.wire.cost import WRITE_1H_FACTOR, WRITE_5M_FACTOR, price_of
from pyagent.agent.wire.encode import digest, to_bytes
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import RenderedConversation
from pyagent.messages import Usage

LOST_SHARE = 0.05
LOST_TOKENS = 2_000
"""A break is a read that fell short by more than both: less is rounding and the server's own framing."""
TOKENS_PER_PRICE = 1_000_000

_SERVER_CAUSES: Mapping[str, str] = {
    "model_changed": "the server saw another model",
    "system_changed": "the server saw another system text",
    "tools_changed": "the server saw other tools",
    "messages_changed": "the server saw other messages",
}
"""What the server's own diagnosis says; its other answers mean that it cannot tell."""


@dataclass(frozen=True, slots=True)
class CacheBreak:
    """The cache held less than it should have. `extra_usd` is None where the price is unknown."""

    causes: tuple[str, ...]
    expected_tokens: int
    read_tokens: int
    extra_usd: float | None

    @property
    def lost_tokens(self) -> int:
        return self.expected_tokens - self.read_tokens


@dataclass(frozen=True, slots=True)
class _Prints:
    model: str
    thinks: bool
    system: bytes
    tools: tuple[tuple[str, bytes], ...]
    settings: bytes
    messages: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class CacheWatch:
    """What the last request left in the cache. A value: each step gives the next one.

    `started_at_s` counts seconds on any steady clock.
    """

    prints: _Prints | None = None
    cached_tokens: int = 0
    """Prompt tokens the last request read or wrote."""
    started_at_s: float = 0.0
    ttl_s: int = 0
    causes: tuple[str, ...] = ()
    """What differed between the last two requests."""
    expected_tokens: int = 0
    """What the request under way should read."""

    def requested(
        self,
        profile: RequestProfile,
        rendered: RenderedConversation,
        *,
        now_s: float,
        is_announced: bool,
    ) -> CacheWatch:
        """The watch once this request is on its way. `is_announced`: an edit of history, a boundary or a switch the
        user asked for came before it, so a loss is no surprise."""
        prints = _prints(profile, rendered)
        is_cold = now_s - self.started_at_s > self.ttl_s
        # Manual thinking pauses after a compaction in mid-task and comes back with the next prompt: the price of that
        # compaction, which was told.
        is_announced = is_announced or (self.prints is not None and self.prints.thinks != prints.thinks)
        expects = self.prints is not None and not is_announced and not is_cold
        return replace(
            self,
            prints=prints,
            causes=_causes(self.prints, prints) if self.prints is not None else (),
            expected_tokens=self.cached_tokens if expects else 0,
            started_at_s=now_s,
            ttl_s=profile.cache_ttl_s,
        )

    def answered(
        self, usage: Usage, info: ModelInfo, diagnostics: Mapping[str, Any] | None = None
    ) -> tuple[CacheWatch, CacheBreak | None]:
        """The watch after the response, and the break it shows, if any. `diagnostics` is the server's own word."""
        read = usage.cache_read_input_tokens
        lost = self.expected_tokens - read
        found = None
        if lost > LOST_TOKENS and lost > LOST_SHARE * self.expected_tokens:
            causes = (*self.causes, *_server_causes(diagnostics)) or ("the server no longer held it",)
            found = CacheBreak(causes, self.expected_tokens, read, _extra_usd(lost, usage, info, self.ttl_s))
        cached = read + usage.cache_creation_input_tokens
        return replace(self, cached_tokens=cached, expected_tokens=0, causes=()), found


def _server_causes(diagnostics: Mapping[str, Any] | None) -> tuple[str, ...]:
    reason = diagnostics.get("cache_miss_reason") if diagnostics else None
    cause = _SERVER_CAUSES.get(str(reason.get("type"))) if isinstance(reason, Mapping) else None
    return (cause,) if cause else ()


def _prints(profile: RequestProfile, rendered: RenderedConversation) -> _Prints:
    settings = [profile.wire_thinking, profile.output_config, profile.extra, list(profile.all_betas)]
    tools = zip(profile.tools, profile.tool_parts, strict=True)
    return _Prints(
        profile.model,
        sent_thinking(profile, rendered) is not None,
        digest(profile.system_bytes),
        tuple((str(tool.get("name", "")), digest(part)) for tool, part in tools),
        digest(to_bytes([*settings, profile.cache_ttl])),
        tuple(message.digest for message in rendered.messages),
    )


def _causes(before: _Prints, after: _Prints) -> tuple[str, ...]:
    causes: list[str] = []
    if before.model != after.model:
        causes.append(f"the model changed from {before.model} to {after.model}")
    if before.system != after.system:
        causes.append("the system text changed")
    causes += _tool_causes(dict(before.tools), dict(after.tools))
    if not causes and before.tools != after.tools:
        causes.append("the order of the tools changed")
    if before.settings != after.settings:
        causes.append("thinking, effort or another setting changed")
    if not causes:
        common = min(len(before.messages), len(after.messages))
        # The last message may have grown by what was appended since, which costs nothing.
        changed = next((at for at in range(common - 1) if before.messages[at] != after.messages[at]), None)
        if changed is not None:
            causes.append(f"message {changed + 1} of {len(after.messages)} changed")
        elif len(after.messages) < len(before.messages):
            causes.append("messages were taken away")
    return tuple(causes)


def _tool_causes(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    causes = [f"the tool {name} was added" for name in after if name not in before]
    causes += [f"the tool {name} was removed" for name in before if name not in after]
    causes += [f"the tool {name} changed" for name in after if name in before and before[name] != after[name]]
    return causes


def _extra_usd(lost_tokens: int, usage: Usage, info: ModelInfo, ttl_s: int) -> float | None:
    """What writing the lost part again cost above reading it."""
    price = price_of(info, usage.prompt_tokens)
    if price is None or price.cache_read_usd is None:
        return None
    write = price.input_usd * (WRITE_1H_FACTOR if ttl_s > 300 else WRITE_5M_FACTOR)
    return lost_tokens * (write - price.cache_read_usd) / TOKENS_PER_PRICE
