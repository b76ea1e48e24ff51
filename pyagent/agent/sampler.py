"""Makes the main loop's model calls: renders the view, posts it, and keeps hold of what was seen of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyagent.agent.journal import Journal
from pyagent.agent.wire.catalogue import ModelInfo
from pyagent.agent.wire.client import ModelClient, ModelRequest
from pyagent.agent.wire.cost import cost_usd
from pyagent.agent.wire.failures import ApiFailure, BrokenStreamFailure
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.agent.wire.retry import CallEvent, call_model
from pyagent.agent.wire.stream import Response
from pyagent.events import EventSink, RequestStarted, StreamDiscarded, TextDelta
from pyagent.log import AssistantEntry, CallCost, ProfileRecorded
from pyagent.messages import Usage


class ProfileBook:
    """The session's current request profile and model; a profile is recorded in the log when it is first used."""

    def __init__(self, journal: Journal, profile: RequestProfile, model: ModelInfo) -> None:
        self._journal = journal
        self.current = profile
        self.model = model

    def replace(self, profile: RequestProfile, model: ModelInfo) -> None:
        """Another profile from the next request on: a model switch, a learned fact, a boundary."""
        self.current, self.model = profile, model

    def recorded(self) -> RequestProfile:
        """The current profile; it stands in the log once this returns."""
        profile = self.current
        if profile.profile_id not in self._journal.state.profiles:
            self._journal.commit(ProfileRecorded(profile.profile_id, profile.to_json()))
        return profile


@dataclass(frozen=True, slots=True)
class _Call:
    """The call under way, for the entry its response becomes."""

    plan: RequestPlan
    started_at: datetime


class MainSampler:
    """The `Sampler` of a real conversation."""

    def __init__(
        self,
        client: ModelClient,
        *,
        journal: Journal,
        profiles: ProfileBook,
        renderer: Renderer,
        emit: EventSink,
        source: str,
        sends_wire_events: bool,
    ) -> None:
        self.client = client
        self._journal = journal
        self._profiles = profiles
        self._renderer = renderer
        self._emit = emit
        self._source = source
        self._sends_wire_events = sends_wire_events
        self._call: _Call | None = None
        self._seen: list[str] = []

    async def sample(self) -> Response:
        profile = self._profiles.recorded()
        plan = RequestPlan.of(profile, self._renderer.render(self._journal.state.view, profile))
        self._call = _Call(plan, self._journal.clock())
        self._seen.clear()
        return await call_model(
            self.client,
            ModelRequest(plan.body(), profile.model, profile.all_betas, self._source),
            emit=self._watch,
            on_failure=self._bill_failure,
            sends_wire_events=self._sends_wire_events,
            is_id_taken=lambda use_id: self._journal.state.view.tool_use(use_id) is not None,
        )

    def entry_for(self, response: Response) -> AssistantEntry:
        assert self._call is not None
        profile = self._call.plan.profile
        model = response.model or profile.model
        self._seen.clear()
        return AssistantEntry(
            message_id=response.message_id,
            model=model,
            content=response.content,
            stop_reason=response.stop_reason,
            usage=response.usage,
            prefix_digest=self._call.plan.prefix_digest,
            profile_id=profile.profile_id,
            request_started_at=self._call.started_at,
            cache_ttl_s=profile.cache_ttl_s if response.usage.prompt_tokens > response.usage.input_tokens else 0,
            cost_usd=cost_usd(model, response.usage, self._profiles.model),
        )

    def partial_entry(self) -> AssistantEntry | None:
        said = "".join(self._seen)
        self._seen.clear()
        if not said.strip() or self._call is None:
            return None
        profile = self._call.plan.profile
        content = ({"type": "text", "text": said},)
        return AssistantEntry("", profile.model, content, "interrupted", Usage(), "", profile.profile_id)

    def _watch(self, event: CallEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._seen.append(text)
            case RequestStarted() | StreamDiscarded():
                self._seen.clear()
            case _:
                pass
        self._emit(event)

    def _bill_failure(self, failure: ApiFailure) -> None:
        if isinstance(failure, BrokenStreamFailure) and failure.usage.is_reported:
            model = failure.model or self._profiles.model.id
            self._journal.commit(
                CallCost(self._source, model, failure.usage, cost_usd(model, failure.usage, self._profiles.model))
            )
