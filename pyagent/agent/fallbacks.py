"""The models that stand in, until the next prompt, for one that is overloaded or out of reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pyagent.agent.wire.catalogue import ModelInfo
from pyagent.agent.wire.profile import RequestProfile

StandIn: TypeAlias = tuple[RequestProfile, ModelInfo]


class Fallbacks:
    """Fallback models in the order given; each is tried once a prompt."""

    def __init__(self, names: Sequence[str] = (), make: Callable[[str], StandIn | None] = lambda name: None) -> None:
        """`make` gives the profile and facts of a model, None for one that cannot stand in."""
        self._names = tuple(names)
        self._make = make
        self._tried: set[str] = set()

    def next(self, failed_model: str, prompt_tokens: int) -> StandIn | None:
        """The next model to try after `failed_model`, one whose window holds the prompt; None if there is none left."""
        self._tried.add(failed_model)
        for name in self._names:
            stand_in = self._make(name)
            if stand_in is None or stand_in[1].id in self._tried:
                continue
            self._tried.add(stand_in[1].id)
            if stand_in[1].window_tokens > prompt_tokens:
                return stand_in
        return None

    def new_prompt(self) -> None:
        """All models count as untried again."""
        self._tried.clear()
