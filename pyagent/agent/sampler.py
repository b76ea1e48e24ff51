"""The main loop's model calls: what they send, what was seen of the answer, and the entry it becomes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from pyagent.agent.caller import CallManner, ModelCaller
from pyagent.agent.journal import Journal
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.wire.cache_break import CacheBreak, CacheWatch
from pyagent.agent.wire.cost import cost_usd
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.agent.wire.retry import CallEvent
from pyagent.agent.wire.stream import Response
from pyagent.events import EventSink, RequestStarted, StreamDiscarded, TextDelta
from pyagent.log import AssistantEntry, NoticeShown, Repair
from pyagent.messages import JsonObject, Usage
from pyagent.view import View

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Call:
    """The call under way, for the entry its response becomes."""

    plan: RequestPlan
    started_at: datetime


class MainSampler:
    """The `Sampler` of a real conversation, and the `CallSubject` of its calls."""

    def __init__(
        self,
        caller: ModelCaller,
        *,
        journal: Journal,
        profiles: ProfileBook,
        renderer: Renderer,
        emit: EventSink,
        source: str,
        sends_wire_events: bool,
        sends_diagnostics: Callable[[], bool],
        reports_cache_breaks: bool,
        extra_fields: Callable[[], JsonObject] = dict,
    ) -> None:
        """`sends_diagnostics`: whether the server is asked why the cache was missed; only the first party answers.

        `extra_fields` gives what goes into the next request's body beside the profile.
        """
        self._caller = caller
        self._journal = journal
        self._profiles = profiles
        self._renderer = renderer
        self._emit = emit
        self._manner = CallManner(
            source,
            sends_wire_events=sends_wire_events,
            may_wait_long=True,
            may_fall_back=True,
            may_answer_shorter=True,
        )
        self._sends_diagnostics = sends_diagnostics
        self._reports_cache_breaks = reports_cache_breaks
        self._extra_fields = extra_fields
        self._last_message_id: str | None = None
        self._call: _Call | None = None
        self._seen: list[str] = []
        self._watch_state = CacheWatch()
        self._last_epoch, self._last_profile_id = -1, ""
        self.cache_breaks: list[CacheBreak] = []

    async def sample(self) -> Response:
        response = await self._caller.call(self, self._manner, self._watch)
        self._last_message_id = response.message_id or None
        self._watch_state, found = self._watch_state.answered(
            response.usage, self._profiles.model, response.diagnostics
        )
        if found is not None and self._reports_cache_breaks:
            self._journal.commit(NoticeShown(_break_text(found), "warning"))
            self.cache_breaks.append(found)
        return response

    # ── what its calls are about ─────────────────────────────────────────────────────────────────────────────────

    @property
    def view(self) -> View:
        return self._journal.state.view

    def mend(self, repair: Repair) -> None:
        """In the log, so that no later request needs it again; no tool runs now."""
        self._journal.commit(repair)

    def plan(self, profile: RequestProfile, max_tokens: int | None) -> RequestPlan:
        plan = RequestPlan.of(profile, self._renderer.render(self.view, profile))
        return replace(plan, max_tokens=max_tokens, extra_fields=self._diagnostics() | self._extra_fields())

    def _diagnostics(self) -> JsonObject:
        return {"diagnostics": {"previous_message_id": self._last_message_id}} if self._sends_diagnostics() else {}

    def begun(self, plan: RequestPlan) -> None:
        """The request under way from here on; what was seen of an answer was another's."""
        profile = plan.profile
        self._call = _Call(plan, self._journal.clock())
        self._seen.clear()
        epoch = self.view.epoch
        self._watch_state = self._watch_state.requested(
            profile,
            plan.rendered,
            now_s=self._call.started_at.timestamp(),
            is_announced=epoch != self._last_epoch or profile.profile_id != self._last_profile_id,
        )
        self._last_epoch, self._last_profile_id = epoch, profile.profile_id

    # ── what becomes of the answer ───────────────────────────────────────────────────────────────────────────────

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


def _break_text(found: CacheBreak) -> str:
    price = "" if found.extra_usd is None else f", about ${found.extra_usd:.4f} more"
    return (
        f"The prompt cache was lost unexpectedly: {found.lost_tokens:,} tokens were sent anew{price} "
        f"({'; '.join(found.causes)})."
    )
