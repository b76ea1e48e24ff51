"""What is known of each model: window, limits, prices, and how it takes thinking.

The models endpoint knows more than this table and is asked first (`pyagent.agent.wire.capabilities`); prices, cache
minimum and preserved thinking are in no endpoint.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from pyagent.errors import UsageError
from pyagent.messages import JsonObject

Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[str, ...] = get_args(Effort)

LARGE_WINDOW_TOKENS = 1_000_000
SMALL_WINDOW_TOKENS = 200_000
UNKNOWN_WINDOW_TOKENS = 200_000
"""For a Claude model this version does not know: an early compaction is cheaper than a refusal."""
COMPATIBLE_WINDOW_TOKENS = 32_000
"""For other servers' models, until the server or the user says otherwise: a common size for local ones."""
COMPATIBLE_OUTPUT_TOKENS = 8_000

THINKING_BUDGET_TOKENS: Mapping[str, int] = {
    "low": 4_000,
    "medium": 10_000,
    "high": 16_000,
    "xhigh": 24_000,
    "max": 31_000,
}
"""For models that take a budget and no effort."""
DEFAULT_BUDGET_TOKENS = 10_000
MIN_BUDGET_TOKENS = 1_024
"""The API takes no smaller budget."""


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens. A cache write costs 1.25 × input for 5 minutes, 2 × for an hour."""

    input_usd: float
    output_usd: float
    cache_read_usd: float | None
    """None where it was never published."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model. Sizes in tokens."""

    id: str
    window_tokens: int
    max_output_tokens: int
    price: Price | None = None
    long_prompt_price: Price | None = None
    """Holds for all tokens of a request whose prompt is above `long_prompt_tokens`."""
    long_prompt_tokens: int = 0
    cache_minimum_tokens: int = 1_024
    """A shorter prefix is never cached."""
    thinking_types: tuple[str, ...] = ()
    """Values of `thinking.type` it accepts."""
    takes_effort: bool = False
    thinks_by_default: bool = False
    """Whether leaving `thinking` out means on."""
    has_preserved_thinking: bool = False
    """Its thinking is bound to everything before it; see `RequestProfile.block_binding_drop`."""
    takes_system_messages: bool = False
    takes_forced_tool_choice: bool = True
    context_edits: tuple[str, ...] = ()
    """Server-side edits it is known to support."""
    has_server_compaction: bool = False
    token_factor: float = 1.6
    """Its tokens per o200k token, before a session has calibrated itself."""
    is_known: bool = True
    retires_at: str = ""

    @property
    def is_cheap(self) -> bool:
        return "haiku" in self.id


_EDITS = ("clear_thinking_20251015", "clear_tool_uses_20250919")


def _claude(
    model_id: str,
    price: Price,
    thinking: tuple[str, ...],
    *,
    generation: tuple[int, int],
    cache_minimum_tokens: int = 1_024,
    **more: Any,
) -> ModelInfo:
    line = model_id.split("-")[1]
    is_small = generation <= (4, 5)
    is_point_release = generation >= (5, 1)
    if line in ("fable", "mythos"):
        takes_system = True
    else:
        takes_system = generation >= ((4, 8) if line == "opus" else (5, 5))
    return ModelInfo(
        model_id,
        SMALL_WINDOW_TOKENS if is_small else LARGE_WINDOW_TOKENS,
        64_000 if is_small else 128_000,
        price,
        cache_minimum_tokens=cache_minimum_tokens,
        thinking_types=thinking,
        takes_effort=not is_small,
        thinks_by_default=generation >= (5, 0),
        has_preserved_thinking=is_point_release,
        takes_system_messages=takes_system,
        takes_forced_tool_choice=not (is_point_release and line != "haiku"),
        context_edits=(*_EDITS, *(() if is_small else ("compact_20260112",))),
        has_server_compaction=not is_small,
        token_factor=1.25 if generation <= (4, 6) else 1.6,
        **more,
    )


_ADAPTIVE, _SWITCHABLE, _MANUAL = ("adaptive",), ("adaptive", "disabled"), ("enabled", "disabled")
_OPUS_4, _SONNET_4 = Price(5, 25, 0.50), Price(3, 15, 0.30)

_TABLE: tuple[ModelInfo, ...] = (
    _claude("claude-fable-5-2", Price(8, 40, None), _ADAPTIVE, generation=(5, 2)),
    _claude("claude-mythos-5-2", Price(8, 40, None), _ADAPTIVE, generation=(5, 2)),
    _claude("claude-fable-5-1", Price(10, 50, 0.25), _ADAPTIVE, generation=(5, 1)),
    _claude("claude-mythos-5-1", Price(10, 50, 0.25), _ADAPTIVE, generation=(5, 1)),
    _claude("claude-fable-5", Price(10, 50, 1.0), _ADAPTIVE, generation=(5, 0), cache_minimum_tokens=512),
    _claude("claude-mythos-5", Price(10, 50, 1.0), _ADAPTIVE, generation=(5, 0), cache_minimum_tokens=512),
    _claude("claude-opus-5-5", Price(4, 20, 0.20), _ADAPTIVE, generation=(5, 5)),
    _claude("claude-opus-5", _OPUS_4, _SWITCHABLE, generation=(5, 0), cache_minimum_tokens=512),
    _claude("claude-opus-4-8", _OPUS_4, _SWITCHABLE, generation=(4, 8)),
    _claude("claude-opus-4-7", _OPUS_4, _SWITCHABLE, generation=(4, 7), cache_minimum_tokens=2_048),
    _claude(
        "claude-opus-4-6", _OPUS_4, ("adaptive", "enabled", "disabled"), generation=(4, 6), cache_minimum_tokens=4_096
    ),
    _claude(
        "claude-opus-4-5", _OPUS_4, _MANUAL, generation=(4, 5), cache_minimum_tokens=4_096, retires_at="2027-01-22"
    ),
    _claude("claude-sonnet-5-5", Price(2, 10, 0.10), ("adaptive", "between_tools"), generation=(5, 5)),
    _claude("claude-sonnet-5", Price(2, 10, 0.20), _SWITCHABLE, generation=(5, 0)),
    _claude("claude-sonnet-4-6", _SONNET_4, ("adaptive", "enabled", "disabled"), generation=(4, 6)),
    _claude("claude-sonnet-4-5", _SONNET_4, _MANUAL, generation=(4, 5), retires_at="2026-11-30"),
    _claude(
        "claude-haiku-5-5",
        Price(0.10, 0.50, 0.01),
        _SWITCHABLE,
        generation=(5, 5),
        long_prompt_price=Price(0.50, 2.50, 0.05),
        long_prompt_tokens=100_000,
    ),
    _claude("claude-haiku-4-5", Price(1, 5, 0.10), _MANUAL, generation=(4, 5), cache_minimum_tokens=4_096),
    replace(
        _claude("claude-mythos-preview", Price(0, 0, None), ("adaptive", "enabled"), generation=(4, 6)), price=None
    ),
)
_BY_ID = {info.id: info for info in _TABLE}

ALIASES: Mapping[str, str] = {
    "opus": "claude-opus-5-5",
    "sonnet": "claude-sonnet-5-5",
    "haiku": "claude-haiku-5-5",
    "fable": "claude-fable-5-2",
}
DEFAULT_MODEL = "claude-sonnet-5-5"
_DATE = re.compile(r"-20\d{6}$")
_CLAUDE = re.compile(r"(?:^|[./:-])claude[-.]", re.I)


def model_ids() -> tuple[str, ...]:
    """The models of the table, newest line first."""
    return tuple(_BY_ID)


def known_model(model: str) -> ModelInfo | None:
    """The table's entry; a dated id means its model, a provider's prefix (`anthropic/…`) is looked through."""
    bare = _DATE.sub("", model.rsplit("/", 1)[-1])
    info = _BY_ID.get(bare)
    return None if info is None else replace(info, id=model)


def model_info(model: str) -> ModelInfo:
    """The table's entry, or careful assumptions for a model that is not in it."""
    info = known_model(model)
    if info is not None:
        return info
    if _CLAUDE.search(model):
        return ModelInfo(
            model,
            UNKNOWN_WINDOW_TOKENS,
            64_000,
            thinking_types=("adaptive",),
            takes_effort=False,
            thinks_by_default=True,
            has_preserved_thinking=True,
            is_known=False,
        )
    return ModelInfo(model, COMPATIBLE_WINDOW_TOKENS, COMPATIBLE_OUTPUT_TOKENS, token_factor=1.1, is_known=False)


def resolve_model(name: str, *, is_first_party: bool, listed: Iterable[str] = ()) -> str:
    """The model id for what a person typed: an alias, an id, or, on other servers, any name.

    `listed` are ids the server itself names.

    Raises:
        UsageError: the first-party API has no such model.
    """
    name = name.strip()
    if not name:
        return DEFAULT_MODEL
    alias = ALIASES.get(name.lower())
    if alias is not None:
        return alias
    listed = tuple(listed)
    if not is_first_party or known_model(name) is not None or name in listed:
        return name
    choices = [*ALIASES, *_BY_ID, *listed]
    near = difflib.get_close_matches(name.lower(), choices, n=3, cutoff=0.5) or list(ALIASES)
    raise UsageError(f"There is no model {name!r}.", hint=f"Did you mean {', '.join(dict.fromkeys(near))}?")


@dataclass(frozen=True, slots=True)
class ThinkingConfig:
    """The two request fields that say how much a model thinks."""

    thinking: JsonObject | None
    output_config: JsonObject | None


def thinking_for(info: ModelInfo, setting: str = "") -> ThinkingConfig:
    """How to ask this model for `setting`: an effort, `off`, or "" for its default.

    Where a model cannot be told to stop thinking, `off` is the least it offers.

    Raises:
        UsageError: no such setting.
    """
    setting = setting.strip().lower()
    if setting not in ("", "off", *EFFORTS):
        raise UsageError(f"There is no effort {setting!r}.", hint=f"Use off, {', '.join(EFFORTS)}.")
    kinds = info.thinking_types
    effort = {"effort": setting} if setting in EFFORTS and info.takes_effort else None
    if setting == "off":
        return _least_thinking(info)
    if "adaptive" in kinds:
        # Without a display the newer models say nothing between tool calls.
        return ThinkingConfig({"type": "adaptive", "display": "summarized"}, effort)
    if "enabled" in kinds:
        budget = THINKING_BUDGET_TOKENS.get(setting, DEFAULT_BUDGET_TOKENS)
        budget = max(min(budget, info.max_output_tokens // 2), MIN_BUDGET_TOKENS)
        return ThinkingConfig({"type": "enabled", "budget_tokens": budget}, effort)
    return ThinkingConfig(None, effort)


def _least_thinking(info: ModelInfo) -> ThinkingConfig:
    if "between_tools" in info.thinking_types:
        return ThinkingConfig({"type": "between_tools", "display": "summarized"}, None)
    if not info.thinks_by_default:
        return ThinkingConfig(None, None)
    if "disabled" in info.thinking_types:
        return ThinkingConfig({"type": "disabled"}, None)
    if "adaptive" in info.thinking_types:
        effort = {"effort": "low"} if info.takes_effort else None
        return ThinkingConfig({"type": "adaptive", "display": "summarized"}, effort)
    return ThinkingConfig(None, None)


def with_endpoint_facts(info: ModelInfo, raw: Mapping[str, Any]) -> ModelInfo:
    """The entry with what `GET /v1/models/{id}` says put over it; null and unknown fields change nothing."""
    changes: dict[str, Any] = {}
    for field_name, key in (("window_tokens", "max_input_tokens"), ("max_output_tokens", "max_tokens")):
        value = raw.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            changes[field_name] = value
    if isinstance(raw.get("retires_at"), str):
        changes["retires_at"] = raw["retires_at"]
    capabilities = raw.get("capabilities")
    capabilities = capabilities if isinstance(capabilities, dict) else {}
    kinds = _supported(capabilities, "thinking", "types")
    if kinds is not None:
        changes["thinking_types"] = tuple(kind for kind, is_on in kinds.items() if is_on)
    efforts = _supported(capabilities, "effort")
    if efforts is not None:
        changes["takes_effort"] = any(is_on for name, is_on in efforts.items() if name in EFFORTS)
    edits = _supported(capabilities, "context_management")
    if edits is not None:
        changes["context_edits"] = tuple(name for name, is_on in edits.items() if is_on)
    compaction = _supported(capabilities, "compaction")
    if compaction is not None and "summarize" in compaction:
        changes["has_server_compaction"] = compaction["summarize"]
    return replace(info, is_known=True, **changes) if changes else info


def _supported(capabilities: Mapping[str, Any], *path: str) -> dict[str, bool] | None:
    """name → supported, for the sub-capabilities at a path; None where the server says nothing of it."""
    node: Any = capabilities
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    if not isinstance(node, dict):
        return None
    found = {name: bool(value.get("supported")) for name, value in node.items() if isinstance(value, dict)}
    return found or None
