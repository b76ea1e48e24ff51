"""The models the fake server knows: what each accepts, its window and its cache minimum."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

ONE_MILLION_TOKENS = 1_000_000
SMALL_WINDOW_TOKENS = 200_000
DEFAULT_CACHE_MINIMUM_TOKENS = 1_024
"""Assumed where no published minimum exists (the 5.x point releases)."""

EFFORTS = ("low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model. `generation` is (major, minor): (5, 5) for an Opus 5.5."""

    id: str
    line: str
    generation: tuple[int, int]
    window_tokens: int = ONE_MILLION_TOKENS
    max_output_tokens: int = 128_000
    cache_minimum_tokens: int = DEFAULT_CACHE_MINIMUM_TOKENS
    foreign: bool = False
    """True for a model of a compatible server: no rule depends on its generation."""

    @property
    def thinking_types(self) -> frozenset[str]:
        """The values of `thinking.type` it accepts."""
        if self.foreign:
            return frozenset({"adaptive", "enabled", "disabled"})
        kinds = set()
        if self.generation >= (4, 6):
            kinds.add("adaptive")
        if self.generation <= (4, 6):
            kinds.add("enabled")
        if (self.line, self.generation) == ("sonnet", (5, 5)):
            kinds.add("between_tools")
        elif not (self.line in ("fable", "mythos") or (self.line, self.generation) == ("opus", (5, 5))):
            kinds.add("disabled")
        return frozenset(kinds)

    @property
    def has_point_release_rules(self) -> bool:
        """True from the 5.1 generation on: thinking is bound to its prefix."""
        return not self.foreign and self.generation >= (5, 1)

    @property
    def accepts_forced_tool_choice(self) -> bool:
        """False where `tool_choice` of type "any" or "tool" is a 400."""
        if self.foreign:
            return True
        if self.line in ("fable", "mythos"):
            return self.generation < (5, 1)
        return not (self.line in ("opus", "sonnet") and self.generation >= (5, 5))

    @property
    def accepts_prefill(self) -> bool:
        """False where a conversation must not end with an assistant message."""
        return self.foreign or self.generation < (4, 6)

    @property
    def accepts_system_messages(self) -> bool:
        """True where `role: "system"` may stand inside `messages`."""
        if self.foreign:
            return False
        if self.line in ("fable", "mythos"):
            return True
        return self.generation >= ((4, 8) if self.line == "opus" else (5, 5))

    @property
    def ends_at_the_window(self) -> bool:
        """True where input + max_tokens beyond the window is accepted and cut at the window."""
        return not self.foreign and self.generation >= (4, 5)

    @property
    def default_display(self) -> str:
        """`thinking.display` when the request names none."""
        return "omitted" if not self.foreign and self.generation >= (4, 7) else "summarized"

    @property
    def thinks_by_default(self) -> bool:
        """True where an omitted `thinking` field means on."""
        return not self.foreign and self.generation >= (5, 0)

    @property
    def image_cap(self) -> tuple[int, int]:
        """The most tokens one image costs, and the longest edge in pixels it is scaled to."""
        return (4_784, 2_576) if not self.foreign and self.generation >= (4, 7) else (1_568, 1_568)

    def info(self) -> dict[str, Any]:
        """The body of `GET /v1/models/{id}`."""
        yes, no = {"supported": True}, {"supported": False}
        kinds = self.thinking_types
        recent = yes if self.generation >= (4, 6) else no
        return {
            "type": "model",
            "id": self.id,
            "display_name": self.id.replace("-", " ").title(),
            "created_at": "2026-01-01T00:00:00Z",
            "lifecycle": "active",
            "line": self.line,
            "max_input_tokens": self.window_tokens,
            "max_tokens": self.max_output_tokens,
            "capabilities": {
                "batch": yes,
                "citations": yes,
                "code_execution": yes,
                "image_input": yes,
                "pdf_input": yes,
                "structured_outputs": yes,
                "server_tools": {"supported": True},
                "effort": {"supported": True, **dict.fromkeys(EFFORTS, yes)},
                "thinking": {
                    "supported": True,
                    "types": {
                        kind: (yes if kind in kinds else no)
                        for kind in ("adaptive", "enabled", "disabled", "between_tools")
                    },
                },
                "context_management": {
                    "supported": True,
                    "clear_thinking_20251015": yes,
                    "clear_tool_uses_20250919": yes,
                    "compact_20260112": recent,
                },
                "compaction": {**recent, "summarize": recent},
            },
        }


def _old(model_id: str, line: str, generation: tuple[int, int], minimum: int) -> ModelSpec:
    return ModelSpec(model_id, line, generation, SMALL_WINDOW_TOKENS, 64_000, minimum)


MODELS: tuple[ModelSpec, ...] = (
    ModelSpec("claude-fable-5-2", "fable", (5, 2)),
    ModelSpec("claude-mythos-5-2", "mythos", (5, 2)),
    ModelSpec("claude-fable-5-1", "fable", (5, 1)),
    ModelSpec("claude-mythos-5-1", "mythos", (5, 1)),
    ModelSpec("claude-fable-5", "fable", (5, 0), cache_minimum_tokens=512),
    ModelSpec("claude-mythos-5", "mythos", (5, 0), cache_minimum_tokens=512),
    ModelSpec("claude-opus-5-5", "opus", (5, 5)),
    ModelSpec("claude-opus-5", "opus", (5, 0), cache_minimum_tokens=512),
    ModelSpec("claude-opus-4-8", "opus", (4, 8)),
    ModelSpec("claude-opus-4-7", "opus", (4, 7), cache_minimum_tokens=2_048),
    ModelSpec("claude-opus-4-6", "opus", (4, 6), cache_minimum_tokens=4_096),
    _old("claude-opus-4-5", "opus", (4, 5), 4_096),
    _old("claude-opus-4-1", "opus", (4, 1), 1_024),
    ModelSpec("claude-sonnet-5-5", "sonnet", (5, 5)),
    ModelSpec("claude-sonnet-5", "sonnet", (5, 0)),
    ModelSpec("claude-sonnet-4-6", "sonnet", (4, 6)),
    _old("claude-sonnet-4-5", "sonnet", (4, 5), 1_024),
    ModelSpec("claude-haiku-5-5", "haiku", (5, 5)),
    _old("claude-haiku-4-5", "haiku", (4, 5), 4_096),
)

_DATE_SUFFIX = re.compile(r"-20\d{6}$")


class ModelTable:
    """Looks models up by id, with a dated id meaning its family; windows may be overridden."""

    def __init__(
        self,
        *,
        windows: Mapping[str, int] | None = None,
        window_tokens: int | None = None,
        max_output_tokens: int | None = None,
        extra: Iterable[ModelSpec] = (),
        any_id: bool = False,
    ) -> None:
        self._specs: dict[str, ModelSpec] = {}
        self._any_id = any_id
        self._any_window_tokens = window_tokens or SMALL_WINDOW_TOKENS
        for spec in (*MODELS, *extra):
            window = (windows or {}).get(spec.id, window_tokens or spec.window_tokens)
            cap = max_output_tokens or spec.max_output_tokens
            self._specs[spec.id] = replace(spec, window_tokens=window, max_output_tokens=cap)

    def find(self, model_id: str) -> ModelSpec | None:
        """The model, or None where the API would answer 404."""
        if spec := self._specs.get(_DATE_SUFFIX.sub("", model_id)):
            return replace(spec, foreign=True) if self._any_id else spec
        if self._any_id and model_id:
            return ModelSpec(model_id, "other", (0, 0), self._any_window_tokens, 1_000_000, foreign=True)
        return None

    def all(self) -> tuple[ModelSpec, ...]:
        """Every model, as `GET /v1/models` lists them."""
        return tuple(self._specs.values())
