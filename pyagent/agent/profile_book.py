"""Which request profile and which model a conversation's next request uses."""

from __future__ import annotations

from pyagent.agent.journal import Journal
from pyagent.agent.wire.catalogue import ModelInfo
from pyagent.agent.wire.profile import RequestProfile
from pyagent.log import ProfileRecorded


class ProfileBook:
    """The session's current request profile and model; a profile is recorded in the log when it is first used."""

    def __init__(self, journal: Journal, profile: RequestProfile, model: ModelInfo) -> None:
        self._journal = journal
        self.current = profile
        self.model = model
        self._main: tuple[RequestProfile, ModelInfo] | None = None

    def replace(self, profile: RequestProfile, model: ModelInfo) -> None:
        """Another profile from the next request on: a model switch, a learned fact, a boundary."""
        self.current, self.model = profile, model

    def stand_in(self, profile: RequestProfile, model: ModelInfo) -> None:
        """Another model answers in place of the chosen one, until `back_to_main`."""
        if self._main is None:
            self._main = (self.current, self.model)
        self.replace(profile, model)

    def back_to_main(self) -> None:
        """The chosen model answers again."""
        if self._main is not None:
            (self.current, self.model), self._main = self._main, None

    def recorded(self) -> RequestProfile:
        """The current profile; it stands in the log once this returns."""
        profile = self.current
        if profile.profile_id not in self._journal.state.profiles:
            self._journal.commit(ProfileRecorded(profile.profile_id, profile.to_json()))
        return profile
