"""What each server was found to take, remembered on disk: try, and where a field is refused, leave it out from then on.

One file under pyagent's home for all servers. Losing it costs a few refused requests, so a file that cannot be read
counts as empty and one that cannot be written is no error.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pyagent.agent.wire.catalogue import ModelInfo, model_info, with_endpoint_facts
from pyagent.agent.wire.profile import RequestProfile
from pyagent.messages import JsonObject

Feature: TypeAlias = Literal[
    "count_tokens",
    "models",
    "betas",
    "context_management",
    "compaction",
    "diagnostics",
    "output_config",
    "thinking",
    "block_binding",
    "cache_control",
    "cache_1h",
    "system_messages",
]
"""What can be switched off for a server."""
FEATURES: tuple[str, ...] = get_args(Feature)

RETRY_AFTER_S = 7 * 24 * 3_600
"""A refused feature is tried again after a week: servers are updated."""
ENDPOINT_FACTS_TTL_S = 24 * 3_600
"""How long the models endpoint's word is believed without asking again."""
FACTS_FILE = "server-facts.json"


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What was learned of one model on one server. Moments are seconds since the epoch."""

    off: Mapping[str, float] = field(default_factory=dict)
    """feature → when it was refused."""
    window_tokens: int | None = None
    """Learned from a refusal that named it."""
    max_output_tokens: int | None = None
    endpoint: JsonObject = field(default_factory=dict)
    """What `GET /v1/models/{id}` said."""
    endpoint_read_at_s: float = 0.0

    def is_on(self, feature: Feature, now_s: float) -> bool:
        refused_at_s = self.off.get(feature)
        return refused_at_s is None or now_s - refused_at_s >= RETRY_AFTER_S

    def without(self, feature: Feature, now_s: float) -> ServerFacts:
        return replace(self, off={**self.off, feature: now_s})

    def wants_endpoint(self, now_s: float) -> bool:
        """Whether the models endpoint should be asked (again)."""
        return self.is_on("models", now_s) and now_s - self.endpoint_read_at_s >= ENDPOINT_FACTS_TTL_S

    def applied_to(self, info: ModelInfo) -> ModelInfo:
        """The catalogue's entry under what this server says and what it was found to do."""
        if self.endpoint:
            info = with_endpoint_facts(info, self.endpoint)
        if self.window_tokens:
            # A window that was refused is believed over one that was promised.
            info = replace(
                info, window_tokens=min(self.window_tokens, info.window_tokens) if info.is_known else self.window_tokens
            )
        if self.max_output_tokens:
            info = replace(info, max_output_tokens=min(self.max_output_tokens, info.max_output_tokens))
        return info


def degrade(profile: RequestProfile, facts: ServerFacts, now_s: float) -> RequestProfile:
    """The profile without what this server refuses."""
    changes: dict[str, Any] = {}
    if not facts.is_on("betas", now_s):
        changes |= {"betas": (), "context_management": None, "block_binding_drop": False}
    for feature in ("context_management", "output_config", "thinking"):
        if not facts.is_on(feature, now_s):
            changes[feature] = None
    if not facts.is_on("block_binding", now_s):
        changes["block_binding_drop"] = False
    if not facts.is_on("cache_control", now_s):
        changes["cache_ttl"] = "off"
    elif not facts.is_on("cache_1h", now_s) and profile.cache_ttl == "1h":
        changes["cache_ttl"] = "5m"
    if not facts.is_on("diagnostics", now_s) and "diagnostics" in profile.extra:
        changes["extra"] = {name: value for name, value in profile.extra.items() if name != "diagnostics"}
    if not facts.is_on("system_messages", now_s):
        changes["has_system_messages"] = False
    if facts.max_output_tokens is not None and profile.max_tokens > facts.max_output_tokens:
        changes["max_tokens"] = facts.max_output_tokens
    return profile.with_changes(**changes) if changes else profile


class CapabilityStore:
    """The facts of all servers, read once and written through. `clock` gives seconds since the epoch."""

    def __init__(self, home: Path, clock: Callable[[], float]) -> None:
        self._path = home / FACTS_FILE
        self._clock = clock
        self._facts: dict[str, ServerFacts] | None = None

    def facts(self, base_url: str, model: str) -> ServerFacts:
        return self._loaded().get(_key(base_url, model), ServerFacts())

    def info(self, base_url: str, model: str) -> ModelInfo:
        """The best that is known of a model on a server."""
        return self.facts(base_url, model).applied_to(model_info(model))

    def degraded(self, base_url: str, profile: RequestProfile) -> RequestProfile:
        return degrade(profile, self.facts(base_url, profile.model), self._clock())

    def is_on(self, base_url: str, model: str, feature: Feature) -> bool:
        return self.facts(base_url, model).is_on(feature, self._clock())

    def switch_off(self, base_url: str, model: str, feature: Feature) -> bool:
        """Remember that the server refuses a feature; False if that was known."""
        facts = self.facts(base_url, model)
        now_s = self._clock()
        if not facts.is_on(feature, now_s):
            return False
        self._put(base_url, model, facts.without(feature, now_s))
        return True

    def learn(
        self, base_url: str, model: str, *, window_tokens: int | None = None, max_output_tokens: int | None = None
    ) -> None:
        """Remember limits a refusal named."""
        facts = self.facts(base_url, model)
        self._put(
            base_url,
            model,
            replace(
                facts,
                window_tokens=window_tokens or facts.window_tokens,
                max_output_tokens=max_output_tokens or facts.max_output_tokens,
            ),
        )

    def wants_endpoint(self, base_url: str, model: str) -> bool:
        return self.facts(base_url, model).wants_endpoint(self._clock())

    def put_endpoint(self, base_url: str, model: str, raw: JsonObject) -> None:
        """Remember what the models endpoint said of a model."""
        facts = self.facts(base_url, model)
        self._put(base_url, model, replace(facts, endpoint=raw, endpoint_read_at_s=self._clock()))

    def _put(self, base_url: str, model: str, facts: ServerFacts) -> None:
        # Other processes write the same file: what they learned meanwhile is kept.
        everything = _read(self._path) | {_key(base_url, model): facts}
        self._facts = everything
        with contextlib.suppress(OSError):
            _write(self._path, everything)

    def _loaded(self) -> dict[str, ServerFacts]:
        if self._facts is None:
            self._facts = _read(self._path)
        return self._facts


def _key(base_url: str, model: str) -> str:
    return f"{base_url.rstrip('/')} {model}"


def _read(path: Path) -> dict[str, ServerFacts]:
    try:
        raw = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(raw, dict):
        return {}
    return {key: _facts_from(value) for key, value in raw.items() if isinstance(value, dict)}


def _facts_from(raw: Mapping[str, Any]) -> ServerFacts:
    off, endpoint, read_at_s = raw.get("off"), raw.get("endpoint"), raw.get("endpoint_read_at_s")
    return ServerFacts(
        {k: float(v) for k, v in off.items() if isinstance(v, int | float)} if isinstance(off, dict) else {},
        _positive(raw.get("window_tokens")),
        _positive(raw.get("max_output_tokens")),
        endpoint if isinstance(endpoint, dict) else {},
        float(read_at_s) if isinstance(read_at_s, int | float) else 0.0,
    )


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _write(path: Path, everything: Mapping[str, ServerFacts]) -> None:
    raw = {
        key: {
            "off": dict(facts.off),
            "window_tokens": facts.window_tokens,
            "max_output_tokens": facts.max_output_tokens,
            "endpoint": facts.endpoint,
            "endpoint_read_at_s": facts.endpoint_read_at_s,
        }
        for key, facts in everything.items()
    }
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(raw, file, indent=1)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
