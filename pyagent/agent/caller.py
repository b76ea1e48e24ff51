"""The one path every model call takes, whoever asks: the view is put right before it is sent, the request is checked,
what the server refuses is cured once a cause, what a broken stream used is billed, and a fallback model may answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from pyagent.agent.fallbacks import Fallbacks
from pyagent.agent.journal import Journal
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.wire.capabilities import CapabilityStore
from pyagent.agent.wire.client import ModelClient, ModelRequest
from pyagent.agent.wire.cost import cost_usd
from pyagent.agent.wire.failures import ApiFailure, BrokenStreamFailure, OverflowFailure
from pyagent.agent.wire.heal import Cure, LowerMaxTokens, SwitchOff, WriteRepair, find_cure
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import BYTES_PER_TOKEN
from pyagent.agent.wire.repair import MediaLimits, Repairer
from pyagent.agent.wire.retry import CallSink, CallWaits, call_model, never
from pyagent.agent.wire.stream import Response
from pyagent.agent.wire.validate import Validator
from pyagent.events import EventSink, Notice
from pyagent.log import CallCost, NoticeShown, Repair
from pyagent.messages import Usage
from pyagent.view import View

_log = logging.getLogger(__name__)


class CallSubject(Protocol):
    """What a call is about: a view, and the request made of it."""

    @property
    def view(self) -> View:
        """What the next attempt sends."""
        ...

    def mend(self, repair: Repair) -> None:
        """Put the view right; what `view` gives from now on has the repair applied."""
        ...

    def plan(self, profile: RequestProfile, max_tokens: int | None) -> RequestPlan:
        """The request for the view as it stands. `max_tokens`, if given, is the most the server lets it ask for."""
        ...

    def begun(self, plan: RequestPlan) -> None:
        """This request is posted now; another one follows after a cure, and where a fallback model takes over."""
        ...


@dataclass(frozen=True, slots=True)
class CallManner:
    """What a call may do while it tries to succeed."""

    source: str
    """The query source it is billed under."""
    sends_wire_events: bool = False
    may_wait_long: bool = False
    """A person may be asked to wait as long as the server wants."""
    may_fall_back: bool = False
    """A fallback model may answer, from then on until the next prompt."""
    may_answer_shorter: bool = False
    """Where prompt and answer together are too long, a shorter answer will do."""
    broken_stream_attempts: int | None = None
    """How many streams may break before the call has failed; None leaves it to the policy."""


@dataclass(slots=True)
class _Posting:
    """A call under way, with the request that was posted last."""

    subject: CallSubject
    manner: CallManner
    plan: RequestPlan


class ModelCaller:
    """Makes the calls of one conversation. `client` follows a model switch."""

    def __init__(
        self,
        client: ModelClient,
        *,
        journal: Journal,
        profiles: ProfileBook,
        store: CapabilityStore,
        endpoint: Callable[[], str],
        waits: CallWaits,
        emit: EventSink,
        fallbacks: Fallbacks | None = None,
    ) -> None:
        """`emit` takes what the person should hear of a cure."""
        self.client = client
        self._journal = journal
        self._profiles = profiles
        self._store = store
        self._endpoint = endpoint
        self._waits = waits
        self._emit = emit
        self._fallbacks = fallbacks or Fallbacks()
        self._repairer = Repairer()
        self._validator = Validator()

    async def call(self, subject: CallSubject, manner: CallManner, emit: CallSink = lambda event: None) -> Response:
        """The response to a subject's request.

        Raises:
            ApiFailure: the call cannot succeed, and nothing that was left to try helped.
        """
        cured: set[str] = set()
        max_tokens: int | None = None
        while True:
            posting = _Posting(subject, manner, self._plan(subject, max_tokens))
            try:
                return await self._post(posting, emit)
            except ApiFailure as refused:
                failure = self._by_evidence(refused, posting)
                cure = _cure(failure, posting, cured)
                if cure is None:
                    raise failure from refused.__cause__
                _log.warning("cured %s: %s", cure.cause, failure.facts.server_text)
                cured.add(cure.cause)
                max_tokens = self._apply(cure, posting) or max_tokens

    def _by_evidence(self, failure: ApiFailure, posting: _Posting) -> ApiFailure:
        """An overflow that was only guessed from a server's words is a refusal like others if the size denies it."""
        if not isinstance(failure, OverflowFailure) or not failure.overflow.is_guess:
            return failure
        model, plan = self._profiles.model, posting.plan
        prompt_tokens = plan.rendered.raw_tokens * model.token_factor + len(plan.profile.prefix_bytes) / BYTES_PER_TOKEN
        return failure if failure.overflow.agrees_with(prompt_tokens, model.window_tokens) else failure.as_refusal()

    def _plan(self, subject: CallSubject, max_tokens: int | None = None) -> RequestPlan:
        """A subject's request, from a view put right, and looked over before it is sent."""
        repair = self._repairer.find(subject.view, MediaLimits.for_window(self._profiles.model.window_tokens))
        if repair is not None:
            _log.warning("repaired the view: %s", repair.reason)
            subject.mend(repair)
        plan = subject.plan(self._profiles.recorded(), max_tokens)
        fault = self._validator.fault(plan.rendered, plan.marks, has_tail=bool(plan.tail) or plan.is_compacting)
        if fault is not None:
            _log.error("a request is sent although it looks invalid: %s", fault)
        return plan

    async def _post(self, posting: _Posting, emit: CallSink) -> Response:
        manner, waits = posting.manner, self._waits
        response = await call_model(
            self.client,
            self._request(posting),
            emit=emit,
            policy=waits.policy,
            sleep=waits.sleep,
            next_request=lambda failure: self._fall_back(failure, posting),
            agree_to_wait=waits.agree_to_wait if manner.may_wait_long else never,
            on_failure=lambda failure: self._bill_failure(failure, posting),
            sends_wire_events=manner.sends_wire_events,
            is_id_taken=lambda use_id: posting.subject.view.tool_use(use_id) is not None,
            broken_stream_attempts=manner.broken_stream_attempts,
        )
        if response.input_transformations:
            _log.warning("the server left thinking out: %s", response.input_transformations)
        return response

    def _request(self, posting: _Posting) -> ModelRequest:
        plan, waits = posting.plan, self._waits
        posting.subject.begun(plan)
        return ModelRequest(
            plan.body(),
            plan.profile.model,
            plan.betas,
            posting.manner.source,
            first_byte_timeout_s=waits.first_byte_timeout_s,
            idle_timeout_s=waits.idle_timeout_s,
            silence_shown_after_s=waits.silence_shown_after_s,
        )

    def _fall_back(self, failure: ApiFailure, posting: _Posting) -> ModelRequest | None:
        """The request to the next model that may stand in, from which on it answers until the next prompt."""
        if not posting.manner.may_fall_back:
            return None
        model = self._profiles.model
        # Rendered text counts in tokens of the local encoding.
        prompt_tokens = posting.plan.rendered.raw_tokens * model.token_factor
        stand_in = self._fallbacks.next(model.id, int(prompt_tokens))
        if stand_in is None:
            return None
        self._profiles.stand_in(*stand_in)
        reason = failure.message.rstrip(".")
        self._journal.commit(NoticeShown(f"{reason}: {stand_in[1].id} answers until your next prompt.", "warning"))
        posting.plan = self._plan(posting.subject)
        return self._request(posting)

    def _apply(self, cure: Cure, posting: _Posting) -> int | None:
        """Do what a cure says; returns the output limit for this call alone, if that is the cure."""
        sent = posting.plan.profile.model
        match cure:
            case WriteRepair(repair=repair):
                posting.subject.mend(repair)
            case SwitchOff(feature=feature, notice=notice):
                self._store.switch_off(self._endpoint(), sent, feature)
                self._relearn(sent, lambda profile: self._store.degraded(self._endpoint(), profile))
                self._emit(Notice(notice))
            case LowerMaxTokens(max_tokens=limit, is_model_limit=True):
                self._store.learn(self._endpoint(), sent, max_output_tokens=limit)
                self._relearn(sent, lambda profile: profile.with_changes(max_tokens=min(limit, profile.max_tokens)))
                model = self._profiles.model
                if model.id == sent:
                    self._profiles.replace(self._profiles.current, replace(model, max_output_tokens=limit))
            case LowerMaxTokens(max_tokens=limit):
                return limit
        return None

    def _relearn(self, model: str, change: Callable[[RequestProfile], RequestProfile]) -> None:
        """Change the current profile, unless another model has taken over since the request was made."""
        profile = self._profiles.current
        if profile.model == model:
            self._profiles.replace(change(profile), self._profiles.model)

    def _bill_failure(self, failure: ApiFailure, posting: _Posting) -> None:
        if isinstance(failure, BrokenStreamFailure) and failure.usage.is_reported:
            self.bill(posting.manner.source, failure.model or posting.plan.profile.model, failure.usage)

    def bill(self, source: str, model: str, usage: Usage) -> None:
        """Put what was used into the log."""
        self._journal.commit(CallCost(source, model, usage, cost_usd(model, usage, self._profiles.model)))


def _cure(failure: ApiFailure, posting: _Posting, cured: set[str]) -> Cure | None:
    """What may make the request that was posted last pass: after a fallback, that is not the first one."""
    if isinstance(failure, OverflowFailure) and not posting.manner.may_answer_shorter:
        return None
    plan = posting.plan
    profile = plan.profile if plan.max_tokens is None else plan.profile.with_changes(max_tokens=plan.max_tokens)
    return find_cure(failure, posting.subject.view, plan.rendered, profile, cured, extra=plan.extra_fields)
