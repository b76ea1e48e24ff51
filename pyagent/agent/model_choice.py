"""What a person chose beside the model itself: how much it thinks, and which models stand in for it."""

from __future__ import annotations

from collections.abc import Callable

from pyagent.agent.fallbacks import Fallbacks, StandIn
from pyagent.agent.model_access import ModelAccess, ModelDesk, profile_for
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.wire.catalogue import ModelInfo, thinking_for
from pyagent.agent.wire.profile import RequestProfile
from pyagent.errors import PyagentError
from pyagent.settings import Settings, with_value

USUAL_EFFORT = "high"
"""What thinking that is switched on again gets if nothing was chosen before: what the API takes by default."""


class ModelChoice:
    """Effort and fallbacks of one conversation. Both change only between two prompts: within a tool loop the server
    would refuse some changes and forget its cache at every one."""

    def __init__(
        self,
        desk: ModelDesk,
        settings: Settings,
        *,
        profiles: ProfileBook,
        access: Callable[[], ModelAccess],
        effort: str,
    ) -> None:
        self._desk = desk
        self._settings = settings
        self._profiles = profiles
        self._access = access
        self._effort = effort
        self._effort_before = ""
        self._is_effort_new = False
        self.fallbacks = Fallbacks(settings.fallback_models, self._stand_in)

    def problems(self) -> tuple[str, ...]:
        """One sentence for each fallback model that cannot be used."""
        found: list[str] = []
        for name in self._settings.fallback_models if not self._access().is_offline else ():
            try:
                if self._desk.access(name).is_offline:
                    found.append("The offline model cannot stand in for another; it is left out as a fallback.")
            except PyagentError as error:
                found.append(f"The fallback model {name} is left out: {error.message}")
        return tuple(found)

    def profile(self, access: ModelAccess, like: RequestProfile) -> RequestProfile:
        """The profile for a model, with the system text and tools of another."""
        settings = with_value(self._settings, "effort", self._effort)
        profile = profile_for(access, settings, system=like.system, tools=like.tools)
        return self._desk.store.degraded(access.endpoint, profile)

    def choose_effort(self, effort: str) -> str:
        """Set how much the model thinks from the next prompt on; returns the setting's name.

        Raises:
            UsageError: there is no such effort.
        """
        effort = effort.strip().lower()
        thinking_for(self._access().info, effort)
        self._effort, self._is_effort_new = effort, True
        return effort

    def other_thinking(self) -> str:
        """The effort that switches thinking off, or on again as it was before."""
        if self._effort == "off":
            return self._effort_before or USUAL_EFFORT
        self._effort_before = self._effort
        return "off"

    def new_prompt(self) -> None:
        """A prompt begins: the chosen model answers again, with the effort chosen last."""
        self._profiles.back_to_main()
        self.fallbacks.new_prompt()
        if self._is_effort_new:
            self._is_effort_new = False
            access, current = self._access(), self._profiles.current
            changed = with_effort(current, access.info, self._effort)
            self._profiles.replace(self._desk.store.degraded(access.endpoint, changed), self._profiles.model)

    def _stand_in(self, name: str) -> StandIn | None:
        try:
            access = self._desk.access(name)
        except PyagentError:
            return None
        if access.is_offline or self._access().is_offline:
            return None
        return self.profile(access, self._profiles.current), access.info


def with_effort(profile: RequestProfile, info: ModelInfo, effort: str) -> RequestProfile:
    """The profile with another effort and nothing else changed.

    Raises:
        UsageError: there is no such effort.
    """
    config = thinking_for(info, effort)
    return profile.with_changes(thinking=config.thinking, output_config=config.output_config)
