"""Makes the main loop's model calls: repairs the view if it must, renders it, posts it, cures what can be cured, and
keeps hold of what was seen of the answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from pyagent.agent.fallbacks import Fallbacks
from pyagent.agent.journal import Journal
from pyagent.agent.wire.cache_break import CacheBreak, CacheWatch
from pyagent.agent.wire.capabilities import CapabilityStore
from pyagent.agent.wire.catalogue import ModelInfo
from pyagent.agent.wire.client import ModelClient, ModelRequest
from pyagent.agent.wire.cost import cost_usd
from pyagent.agent.wire.failures import ApiFailure, BrokenStreamFailure
from pyagent.agent.wire.heal import Cure, LowerMaxTokens, SwitchOff, WriteRepair, find_cure
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.agent.wire.repair import MediaLimits, Repairer
from pyagent.agent.wire.retry import CallEvent, CallWaits, call_model
from pyagent.agent.wire.stream import Response
from pyagent.agent.wire.validate import Validator
from pyagent.events import EventSink, Notice, RequestStarted, StreamDiscarded, TextDelta
from pyagent.log import AssistantEntry, CallCost, NoticeShown, ProfileRecorded
from pyagent.messages import JsonObject, Usage

_log = logging.getLogger(__name__)


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
        store: CapabilityStore,
        base_url: str,
        reports_cache_breaks: bool,
        waits: CallWaits,
        fallbacks: Fallbacks | None = None,
        sends_diagnostics: bool = False,
        extra_fields: Callable[[], JsonObject] = dict,
    ) -> None:
        """`sends_diagnostics`: ask the server why the cache was missed, which only the first party answers.

        `extra_fields` gives what goes into the next request's body beside the profile.
        """
        self.client = client
        self._journal = journal
        self._profiles = profiles
        self._renderer = renderer
        self._emit = emit
        self._source = source
        self._sends_wire_events = sends_wire_events
        self._store = store
        self._base_url = base_url
        self._reports_cache_breaks = reports_cache_breaks
        self._waits = waits
        self._fallbacks = fallbacks or Fallbacks()
        self._sends_diagnostics = sends_diagnostics
        self._extra_fields = extra_fields
        self._last_message_id: str | None = None
        self._repairer = Repairer()
        self._call: _Call | None = None
        self._seen: list[str] = []
        self._validator = Validator()
        self._watch_state = CacheWatch()
        self._last_epoch, self._last_profile_id = -1, ""
        self.cache_breaks: list[CacheBreak] = []

    async def sample(self) -> Response:
        cured: set[str] = set()
        max_tokens: int | None = None
        while True:
            self._repair_view()
            try:
                return await self._post(self._plan(max_tokens))
            except ApiFailure as failure:
                # A fallback may have been asked last.
                assert self._call is not None
                plan = self._call.plan
                cure = find_cure(
                    failure, self._journal.state.view, plan.rendered, plan.profile, cured, extra=plan.extra_fields
                )
                if cure is None:
                    raise
                _log.warning("cured %s: %s", cure.cause, failure.facts.server_text)
                cured.add(cure.cause)
                max_tokens = self._apply(cure) or max_tokens

    def _plan(self, max_tokens: int | None = None) -> RequestPlan:
        profile = self._profiles.recorded()
        plan = RequestPlan.of(profile, self._renderer.render(self._journal.state.view, profile))
        return replace(plan, max_tokens=max_tokens, extra_fields=self._diagnostics(profile) | self._extra_fields())

    def _diagnostics(self, profile: RequestProfile) -> JsonObject:
        if not self._sends_diagnostics or not self._store.is_on(self._base_url, profile.model, "diagnostics"):
            return {}
        return {"diagnostics": {"previous_message_id": self._last_message_id}}

    def _begin(self, plan: RequestPlan) -> ModelRequest:
        """The request for a plan, which is the one under way from here on."""
        profile = plan.profile
        fault = self._validator.fault(plan.rendered, plan.marks)
        if fault is not None:
            _log.error("a request is sent although it looks invalid: %s", fault)
        self._call = _Call(plan, self._journal.clock())
        self._seen.clear()
        epoch = self._journal.state.view.epoch
        self._watch_state = self._watch_state.requested(
            profile,
            plan.rendered,
            now_s=self._call.started_at.timestamp(),
            is_announced=epoch != self._last_epoch or profile.profile_id != self._last_profile_id,
        )
        self._last_epoch, self._last_profile_id = epoch, profile.profile_id
        return ModelRequest(
            plan.body(),
            profile.model,
            plan.betas,
            self._source,
            first_byte_timeout_s=self._waits.first_byte_timeout_s,
            idle_timeout_s=self._waits.idle_timeout_s,
            silence_shown_after_s=self._waits.silence_shown_after_s,
        )

    async def _post(self, plan: RequestPlan) -> Response:
        response = await call_model(
            self.client,
            self._begin(plan),
            emit=self._watch,
            policy=self._waits.policy,
            sleep=self._waits.sleep,
            next_request=self._fall_back,
            agree_to_wait=self._waits.agree_to_wait,
            on_failure=self._bill_failure,
            sends_wire_events=self._sends_wire_events,
            is_id_taken=lambda use_id: self._journal.state.view.tool_use(use_id) is not None,
        )
        self._last_message_id = response.message_id or None
        if response.input_transformations:
            _log.warning("the server left thinking out: %s", response.input_transformations)
        self._watch_state, found = self._watch_state.answered(
            response.usage, self._profiles.model, response.diagnostics
        )
        if found is not None and self._reports_cache_breaks:
            self._journal.commit(NoticeShown(_break_text(found), "warning"))
            self.cache_breaks.append(found)
        return response

    def _fall_back(self, failure: ApiFailure) -> ModelRequest | None:
        """The request to the next model that may stand in, from which on it answers until the next prompt."""
        model = self._profiles.model
        # Rendered text counts in tokens of the local encoding.
        prompt_tokens = self._call.plan.rendered.raw_tokens * model.token_factor if self._call is not None else 0
        stand_in = self._fallbacks.next(model.id, int(prompt_tokens))
        if stand_in is None:
            return None
        self._profiles.stand_in(*stand_in)
        reason = failure.message.rstrip(".")
        self._journal.commit(NoticeShown(f"{reason}: {stand_in[1].id} answers until your next prompt.", "warning"))
        return self._begin(self._plan())

    def _repair_view(self) -> None:
        """Write what must be put right before the view can be sent; no tool runs now."""
        limits = MediaLimits.for_window(self._profiles.model.window_tokens)
        repair = self._repairer.find(self._journal.state.view, limits)
        if repair is not None:
            _log.warning("repaired the view: %s", repair.reason)
            self._journal.commit(repair)

    def _apply(self, cure: Cure) -> int | None:
        """Do what a cure says; returns the output limit for this request alone, if that is the cure."""
        profile, model = self._profiles.current, self._profiles.model
        match cure:
            case WriteRepair(repair=repair):
                self._journal.commit(repair)
            case SwitchOff(feature=feature, notice=notice):
                self._store.switch_off(self._base_url, model.id, feature)
                self._profiles.replace(self._store.degraded(self._base_url, profile), model)
                self._emit(Notice(notice))
            case LowerMaxTokens(max_tokens=max_tokens, is_model_limit=True):
                self._store.learn(self._base_url, model.id, max_output_tokens=max_tokens)
                self._profiles.replace(
                    profile.with_changes(max_tokens=max_tokens), replace(model, max_output_tokens=max_tokens)
                )
            case LowerMaxTokens(max_tokens=max_tokens):
                return max_tokens
        return None

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


def _break_text(found: CacheBreak) -> str:
    price = "" if found.extra_usd is None else f", about ${found.extra_usd:.4f} more"
    return (
        f"The prompt cache was lost unexpectedly: {found.lost_tokens:,} tokens were sent anew{price} "
        f"({'; '.join(found.causes)})."
    )
