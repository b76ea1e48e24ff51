"""Model calls beside the main loop's (summaries, notes, drafts): each is billed, whatever becomes of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from pyagent.agent.journal import Journal
from pyagent.agent.sampler import ProfileBook
from pyagent.agent.wire.client import ModelClient, ModelRequest
from pyagent.agent.wire.cost import cost_usd
from pyagent.agent.wire.failures import ApiFailure, BrokenStreamFailure
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.retry import CallEvent, CallSink, CallWaits, call_model
from pyagent.agent.wire.stream import Response
from pyagent.events import RequestStarted, WireEvent
from pyagent.log import CallCost
from pyagent.messages import JsonObject, Usage


class SideCalls:
    """Makes calls that leave no entry. `client` follows a model switch."""

    def __init__(self, client: ModelClient, *, journal: Journal, profiles: ProfileBook, waits: CallWaits) -> None:
        self.client = client
        self._journal = journal
        self._profiles = profiles
        self._waits = waits

    async def call(self, plan: RequestPlan, source: str, emit: CallSink = lambda event: None) -> Response:
        """The response. `source` is the query source it is billed under.

        Raises:
            ApiFailure: the call cannot succeed; what a broken stream has used is billed.
            asyncio.CancelledError: what the server had reported by then is billed.
        """
        profile = plan.profile
        watch = _UsageWatch(emit)
        try:
            response = await call_model(
                self.client,
                ModelRequest(
                    plan.body(),
                    profile.model,
                    plan.betas,
                    source,
                    first_byte_timeout_s=self._waits.first_byte_timeout_s,
                    idle_timeout_s=self._waits.idle_timeout_s,
                    silence_shown_after_s=self._waits.silence_shown_after_s,
                ),
                emit=watch,
                policy=self._waits.policy,
                sleep=self._waits.sleep,
                on_failure=lambda failure: self._bill_failure(failure, source),
                sends_wire_events=True,
            )
        except asyncio.CancelledError:
            usage = Usage.from_wire(watch.usage)
            if usage.is_reported:
                self._bill(source, profile.model, usage)
            raise
        self._bill(source, response.model or profile.model, response.usage)
        return response

    def price(self, response: Response) -> float | None:
        """Dollars; None where the price is not known."""
        return cost_usd(response.model or self._profiles.model.id, response.usage, self._profiles.model)

    def _bill(self, source: str, model: str, usage: Usage) -> None:
        self._journal.commit(CallCost(source, model, usage, cost_usd(model, usage, self._profiles.model)))

    def _bill_failure(self, failure: ApiFailure, source: str) -> None:
        if isinstance(failure, BrokenStreamFailure) and failure.usage.is_reported:
            self._bill(source, failure.model or self._profiles.model.id, failure.usage)


@dataclass(slots=True)
class _UsageWatch:
    """Keeps the usage reported so far, for the bill of a call that is cancelled."""

    emit: CallSink
    usage: JsonObject = field(default_factory=dict)

    def __call__(self, event: CallEvent) -> None:
        if not isinstance(event, WireEvent):
            if isinstance(event, RequestStarted):
                # What an attempt before this one used was billed when it failed.
                self.usage = {}
            self.emit(event)
            return
        message = event.event.get("message")
        for holder in (event.event, message if isinstance(message, dict) else {}):
            if isinstance(holder.get("usage"), dict):
                self.usage |= {name: value for name, value in holder["usage"].items() if value is not None}
