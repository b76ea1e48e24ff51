"""Model calls beside the main loop's (summaries, notes, drafts): each is billed, whatever becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from pyagent.agent.caller import CallManner, ModelCaller
from pyagent.agent.journal import Journal
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.wire.cost import cost_usd
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.retry import CallEvent, CallSink
from pyagent.agent.wire.stream import Response
from pyagent.events import RequestStarted, WireEvent
from pyagent.log import Repair
from pyagent.messages import JsonObject, Usage
from pyagent.view import View

PlanMaker: TypeAlias = Callable[[View, RequestProfile, int | None], RequestPlan]
"""The request of a view under a profile, and the most output tokens the server lets it ask for, if that is known."""


class SideCalls:
    """Makes calls that leave no entry."""

    def __init__(self, caller: ModelCaller, *, journal: Journal, profiles: ProfileBook) -> None:
        self._caller = caller
        self._journal = journal
        self._profiles = profiles

    async def call(
        self,
        view: View,
        make: PlanMaker,
        source: str,
        emit: CallSink = lambda event: None,
        *,
        is_awaited: bool = False,
        broken_stream_attempts: int | None = None,
    ) -> Response:
        """The response to what `make` makes of a view. `source` is the query source it is billed under.

        `is_awaited`: nothing else happens meanwhile, so that a repair of the conversation's own view is written, and
        a fallback model may answer. `broken_stream_attempts` is the manner's (`CallManner`).

        Raises:
            ApiFailure: the call cannot succeed; what a broken stream has used is billed.
            asyncio.CancelledError: what the server had reported by then is billed.
        """
        fork = _Fork(view, make, self._journal if is_awaited else None)
        manner = CallManner(
            source,
            sends_wire_events=True,
            may_fall_back=is_awaited,
            broken_stream_attempts=broken_stream_attempts,
        )
        watch = _UsageWatch(emit)
        try:
            response = await self._caller.call(fork, manner, watch)
        except asyncio.CancelledError:
            usage = Usage.from_wire(watch.usage)
            if usage.is_reported:
                self._caller.bill(source, fork.model, usage)
            raise
        self._caller.bill(source, response.model or fork.model, response.usage)
        return response

    def price(self, response: Response) -> float | None:
        """Dollars; None where the price is not known."""
        return cost_usd(response.model or self._profiles.model.id, response.usage, self._profiles.model)


class _Fork:
    """The `CallSubject` of a call beside the main loop's."""

    def __init__(self, view: View, make: PlanMaker, journal: Journal | None) -> None:
        """`journal` takes repairs, as long as the view is the conversation's own."""
        self.view = view
        self.model = ""
        self._make = make
        self._journal = journal

    def mend(self, repair: Repair) -> None:
        if self._journal is not None and self.view is self._journal.state.view:
            self._journal.commit(repair)
            self.view = self._journal.state.view
        else:
            self.view = self.view.with_op(repair)

    def plan(self, profile: RequestProfile, max_tokens: int | None) -> RequestPlan:
        return self._make(self.view, profile, max_tokens)

    def begun(self, plan: RequestPlan) -> None:
        self.model = plan.profile.model


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
