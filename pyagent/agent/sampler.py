"""Makes the main loop's model calls: repairs the view if it must, renders it, posts it, and keeps what is seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pyagent.agent.journal import Journal
from pyagent.agent.model_link import ModelLink
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.agent.wire.repair import find_repair
from pyagent.agent.wire.stream import Response
from pyagent.events import EventSink, RequestStarted, StreamDiscarded, TextDelta
from pyagent.log import AssistantEntry, CallCost, ProfileRecorded
from pyagent.messages import Usage


@dataclass(frozen=True, slots=True)
class _Call:
    """The call under way, for the entry its response becomes."""

    plan: RequestPlan
    started_at: datetime


class ProfileBook:
    """The session's current request profile, recorded in the log when it is first used."""

    def __init__(self, journal: Journal, profile: RequestProfile) -> None:
        self._journal = journal
        self.current = profile

    def replace(self, profile: RequestProfile) -> None:
        """Another profile from the next request on: a model switch, a learned fact, a boundary."""
        self.current = profile

    def recorded(self) -> RequestProfile:
        """The current profile; in the log once this returns."""
        profile = self.current
        if profile.profile_id not in self._journal.state.profiles:
            self._journal.commit(ProfileRecorded(profile.profile_id, profile.to_json()))
        return profile
