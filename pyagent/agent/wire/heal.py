"""What to do about a request that was refused: a decision, in data, at most once for each cause.

The caller applies it (a repair goes into the log, a feature is switched off in the store, a limit is learned) and sends
again. A cause that comes back after its cure is the user's to see.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from pyagent.agent.wire.capabilities import Feature
from pyagent.agent.wire.failures import ApiFailure, MediaFailure, OverflowFailure
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import RenderedConversation
from pyagent.agent.wire.repair import find_repair, media_repair, thinking_repair
from pyagent.log import Repair
from pyagent.view import View


@dataclass(frozen=True, slots=True)
class WriteRepair:
    """Commit this op; the next rendering leaves out or answers what was refused."""

    repair: Repair
    cause: str


@dataclass(frozen=True, slots=True)
class SwitchOff:
    """The server does not take this feature: remember it and send without."""

    feature: Feature
    cause: str
    notice: str
    """One line for the person."""


@dataclass(frozen=True, slots=True)
class LowerMaxTokens:
    """Ask for at most this many output tokens. `is_model_limit` says it holds for the model, not for this prompt."""

    max_tokens: int
    cause: str
    is_model_limit: bool


Cure: TypeAlias = WriteRepair | SwitchOff | LowerMaxTokens

MIN_OUTPUT_TOKENS = 1_024
"""An answer shorter than this helps nobody: compaction makes room instead."""

_BOUND_ELSEWHERE = re.compile(r"bound to a different (?:conversation|model|organization|account)", re.I)
_THINKING_FAULT = re.compile(
    r"invalid `?signature`? in `?(?:redacted_)?thinking`?|"
    r"thinking`? (?:or `?redacted_thinking`? )?blocks? .*cannot be modified|expected `?thinking`?|"
    r"cannot contain `?thinking`?|final block in an assistant message cannot be `?thinking",
    re.I | re.S,
)
_PAIRING_FAULT = re.compile(
    r"`?tool_use`? ids? (?:were|was) found without|unexpected `?tool_use_id`? found|must have a single result|"
    r"`?tool_use`? ids must be unique|tool_use`?\.(?:name|id)\b|tool_result`?\.tool_use_id|"
    r"tool use with id .* was found without",
    re.I,
)
_SUMMARY_FAULT = re.compile(r"compaction_block|compaction_tool_changes|`?compaction`? blocks?", re.I)
_MAX_TOKENS_CAP = re.compile(r"max_tokens:\s*(\d+)\s*>\s*(\d+)", re.I)
_OTHER_CAP = re.compile(
    r"max_tokens[^.]{0,60}(?:at most|less than or equal to|must be <=?|maximum(?: of| is)?|range of \[1,)\s*(\d+)", re.I
)
_REFUSED_FIELD = re.compile(
    r"extra inputs are not permitted|unknown (?:field|parameter|argument|name)|unrecognized|unsupported (?:field|"
    r"parameter)|unexpected (?:field|keyword|property)|not supported|additional properties|does not support|"
    r"unexpected value\(s\)|input should be 'user' or 'assistant'",
    re.I,
)
_FEATURE_NAMES: tuple[tuple[re.Pattern[str], Feature], ...] = (
    (re.compile(r"block_binding|thinking-binding", re.I), "block_binding"),
    (re.compile(r"diagnostics|cache-diagnosis", re.I), "diagnostics"),
    (re.compile(r"anthropic-beta|beta header|unexpected value\(s\)", re.I), "betas"),
    (re.compile(r"context_management|clear_tool_uses|clear_thinking", re.I), "context_management"),
    (re.compile(r"compaction", re.I), "compaction"),
    (re.compile(r"output_config|effort", re.I), "output_config"),
    (re.compile(r"cache_control[^\n]{0,20}ttl|ttl", re.I), "cache_1h"),
    (re.compile(r"cache_control", re.I), "cache_control"),
    (re.compile(r"role\b.{0,40}(?:system|'user' or 'assistant')|`system` message", re.I | re.S), "system_messages"),
    (re.compile(r"thinking", re.I), "thinking"),
)
"""(what the text names, the feature it means), the narrower first."""
_FEATURE_WORDS: dict[Feature, str] = {
    "betas": "beta features",
    "context_management": "context management",
    "compaction": "server-side compaction",
    "diagnostics": "cache diagnostics",
    "output_config": "an effort setting",
    "thinking": "this thinking setting",
    "block_binding": "control of bound thinking",
    "cache_control": "prompt caching",
    "cache_1h": "one-hour caching",
    "system_messages": "system messages within a conversation",
    "count_tokens": "token counting",
    "models": "a list of models",
}


def find_cure(
    failure: ApiFailure,
    view: View,
    rendered: RenderedConversation,
    profile: RequestProfile,
    tried: Collection[str] = (),
    *,
    extra: Collection[str] = (),
) -> Cure | None:
    """What may make the refused request pass, or None. `tried` are the causes already cured once in this turn,
    `extra` the names of fields the request carried beside its profile's."""
    cure = _cure(failure, view, rendered, profile, extra)
    return None if cure is None or cure.cause in tried else cure


def _cure(
    failure: ApiFailure,
    view: View,
    rendered: RenderedConversation,
    profile: RequestProfile,
    extra: Collection[str],
) -> Cure | None:
    text = failure.facts.server_text
    if isinstance(failure, OverflowFailure):
        return _smaller_output(failure, profile)
    if failure.facts.is_spend_limit or failure.status not in (400, 422):
        return None
    if isinstance(failure, MediaFailure):
        return _without_media(failure, view, rendered)
    if rendered.starts_with_summary and _SUMMARY_FAULT.search(f"{failure.facts.error_code} {text}"):
        uuid = rendered.messages[0].parts[0].uuid
        return WriteRepair(Repair("the server refused its own summary", dropped_thinking=(uuid,)), "summary")
    if _BOUND_ELSEWHERE.search(text) or _THINKING_FAULT.search(text):
        return _repair(thinking_repair(view, "the server refused the thinking sent back"), "thinking")
    if _PAIRING_FAULT.search(text):
        return _repair(find_repair(view), "pairing")
    cap = _MAX_TOKENS_CAP.search(text) or _OTHER_CAP.search(text)
    if cap:
        limit = int(cap[cap.lastindex or 1])
        return LowerMaxTokens(limit, "max_tokens", is_model_limit=True) if 0 < limit < profile.max_tokens else None
    return _without_feature(text, profile, extra)


def _repair(repair: Repair | None, cause: str) -> WriteRepair | None:
    return None if repair is None else WriteRepair(repair, cause)


def _smaller_output(failure: OverflowFailure, profile: RequestProfile) -> LowerMaxTokens | None:
    """Where only prompt and answer together are too long, a shorter answer fits."""
    overflow = failure.overflow
    if not overflow.fits_with_fewer_output_tokens or overflow.prompt_tokens is None or overflow.limit_tokens is None:
        return None
    room = overflow.limit_tokens - overflow.prompt_tokens
    if room < MIN_OUTPUT_TOKENS or room >= profile.max_tokens:
        return None
    return LowerMaxTokens(room, "output room", is_model_limit=False)


def _without_media(failure: MediaFailure, view: View, rendered: RenderedConversation) -> WriteRepair | None:
    """Take out what the server named; if it named nothing, every image and document but those of the last message."""
    places: list[tuple[str, int]] = []
    for path in failure.fault.paths:
        numbers = [int(part) for part in path.split(".") if part.isdecimal()]
        part = rendered.part_at(numbers[0], numbers[1]) if len(numbers) >= 2 else None
        if part is not None and part.uuid:
            places.append((part.uuid, part.index))
    cause = "media"
    if not places:
        cause = "all media"
        places = [
            (part.uuid, part.index)
            for message in rendered.messages
            for part in message.parts
            if part.kind in ("image", "document") or (part.kind == "tool_result" and b'"type":"image"' in part.data)
        ]
    return _repair(media_repair(view, places, "the server refused it"), cause)


def _without_feature(text: str, profile: RequestProfile, extra: Collection[str]) -> SwitchOff | None:
    if not _REFUSED_FIELD.search(text):
        return None
    for pattern, feature in _FEATURE_NAMES:
        if pattern.search(text) and (feature in extra or _uses(profile, feature)):
            notice = f"This server does not take {_FEATURE_WORDS[feature]}; going on without."
            return SwitchOff(feature, f"feature {feature}", notice)
    return None


def _uses(profile: RequestProfile, feature: Feature) -> bool:
    """Whether a profile sends the feature at all: what is not sent cannot be what was refused."""
    match feature:
        case "block_binding":
            return profile.block_binding_drop
        case "betas":
            return bool(profile.all_betas)
        case "context_management":
            return profile.context_management is not None
        case "output_config":
            return profile.output_config is not None
        case "thinking":
            return profile.thinking is not None
        case "cache_control":
            return profile.cache_ttl != "off"
        case "cache_1h":
            return profile.cache_ttl == "1h"
        case "system_messages":
            return profile.has_system_messages
        case "diagnostics":
            return "diagnostics" in profile.extra
        case "compaction" | "count_tokens" | "models":
            return False
