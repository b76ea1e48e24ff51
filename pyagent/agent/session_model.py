"""The model one conversation talks to: as it was chosen, as its server describes it, and as `/model` switches it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from pyagent.agent.journal import Journal
from pyagent.agent.model_access import ModelAccess, ModelDesk
from pyagent.agent.model_choice import ModelChoice
from pyagent.agent.profile_book import ProfileBook
from pyagent.settings import Settings


class SessionModel:
    """Holds how the model is reached now. For one event loop."""

    def __init__(
        self,
        access: ModelAccess,
        *,
        desk: ModelDesk,
        settings: Settings,
        profiles: ProfileBook,
        journal: Journal,
        described: Callable[[], None],
        switched: Callable[[ModelAccess], None],
    ) -> None:
        """`described` is told when the server's own figures took the place of the catalogue's, `switched` when another
        model answers from now on."""
        self.access = access
        self._desk = desk
        self._profiles = profiles
        self._journal = journal
        self._described = described
        self._switched = switched
        self.choice = ModelChoice(
            desk,
            settings,
            profiles=profiles,
            access=lambda: self.access,
            effort=journal.state.settings.get("effort") or settings.effort,
        )
        self._asking: asyncio.Task[None] | None = None

    def endpoint(self) -> str:
        """Where it is reached."""
        return self.access.endpoint

    def takes_diagnostics(self) -> bool:
        """Whether its server says why a cache was missed."""
        model = self._profiles.current.model
        return self.access.is_first_party and self._desk.store.is_on(self.access.endpoint, model, "diagnostics")

    async def settle(self) -> None:
        """Before the first request: what the server says of the model replaces what the catalogue says."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_endpoint(self.access))
        await asyncio.shield(self._asking)

    async def _ask_endpoint(self, access: ModelAccess) -> None:
        info = await self._desk.ask_endpoint(access)
        if info == access.info or access is not self.access:
            return
        self.access = replace(access, info=info)
        current = self._profiles.current
        is_used = current.profile_id in self._journal.state.profiles
        profile = current if is_used else self.choice.profile(self.access, current)
        self._profiles.replace(profile, info)
        self._described()

    def switch(self, name: str) -> str:
        """Go on with another model; returns its id.

        Raises:
            PyagentError: it cannot be reached from here.
        """
        access = self._desk.access(name)
        self._profiles.back_to_main()
        profile = self.choice.profile(access, self._profiles.current)
        self.access = access
        self._asking = None
        self._profiles.replace(profile, access.info)
        self._switched(access)
        return access.info.id

    def learn_window(self, window_tokens: int, is_named: bool) -> None:
        """Believe the server about its window: for good if it named the figure, else for this session."""
        model = self._profiles.model
        if window_tokens >= model.window_tokens:
            return
        if is_named and not self.access.is_offline:
            self._desk.store.learn(self.access.endpoint, model.id, window_tokens=window_tokens)
        self._profiles.replace(self._profiles.current, replace(model, window_tokens=window_tokens))

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
