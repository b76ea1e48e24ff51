"""Asks the server for a summary it signs: the whole conversation goes out once more, and one block comes back."""

from __future__ import annotations

from collections.abc import Callable

from pyagent.agent.journal import Clock
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.side_calls import SideCalls
from pyagent.agent.summarizer import ProgressMeter
from pyagent.agent.wire.capabilities import CapabilityStore
from pyagent.agent.wire.context_management import compaction_field, summary_block
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.compaction.full import MAX_COMPACT_STREAMING_RETRIES
from pyagent.compaction.ports import SignedSummary
from pyagent.events import EventSink
from pyagent.view import View

SOURCE = "compact"
"""Query source, for the bill."""

INSTRUCTIONS = (
    "Summarise the conversation so that the work can go on from the summary alone: the request, decisions and their "
    "reasons, files and code that matter, errors and how they were solved, what is done and what is next. Call no "
    "tools.\n\n{wish}"
)
"""In place of the server's own, where the person says what the summary should heed."""


class SummarySigner:
    """The `SigningServer` of a real conversation."""

    def __init__(
        self,
        calls: SideCalls,
        *,
        profiles: ProfileBook,
        renderer: Renderer,
        store: CapabilityStore,
        endpoint: Callable[[], str],
        emit: EventSink,
        clock: Clock,
    ) -> None:
        self._calls = calls
        self._profiles = profiles
        self._renderer = renderer
        self._store = store
        self._endpoint = endpoint
        self._emit = emit
        self._clock = clock

    def is_available(self) -> bool:
        model = self._profiles.model
        return model.has_server_compaction and self._store.is_on(self._endpoint(), model.id, "compaction")

    async def summarize(self, view: View, instructions: str) -> SignedSummary | None:
        field = compaction_field(INSTRUCTIONS.format(wish=instructions) if instructions else "")
        digest = ""

        def make(view: View, profile: RequestProfile, most_tokens: int | None) -> RequestPlan:
            nonlocal digest
            plan = RequestPlan.of(profile, self._renderer.render(view, profile)).compacting(field)
            digest = plan.prefix_digest
            return plan

        # No fallback model: it would have to sign for a prefix that is not its own.
        response = await self._calls.call(
            view,
            make,
            SOURCE,
            ProgressMeter(self._clock, self._emit),
            broken_stream_attempts=1 + MAX_COMPACT_STREAMING_RETRIES,
        )
        block = summary_block(response)
        if block is None:
            return None
        signed = {"block": block, "prefix_digest": digest}
        return SignedSummary(str(block["content"]), signed, response.usage, self._calls.price(response))
