"""Asks the server how many tokens the context holds, where no response's usage says so: after a resume on another
tokenizer, behind a compaction, after a switch of models."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol, runtime_checkable

from pyagent.agent.context_keeper import PipelineKeeper
from pyagent.agent.journal import Journal
from pyagent.agent.model_access import ModelAccess
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.wire.body import count_body
from pyagent.agent.wire.capabilities import CapabilityStore
from pyagent.agent.wire.failures import ApiFailure
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.render import Renderer
from pyagent.agent.wire.repair import find_repair
from pyagent.events import EventSink, Notice

_NO_SUCH_ENDPOINT = (404, 405, 501)

_log = logging.getLogger(__name__)


@runtime_checkable
class CountsTokens(Protocol):
    async def count_tokens(self, body: bytes, betas: tuple[str, ...] = ()) -> int:
        """The server's count. Raises ApiFailure."""
        ...


class TokenAnchor:
    """Never waited for: a prompt goes out on the estimate if the count is not there yet."""

    def __init__(
        self,
        keeper: PipelineKeeper,
        *,
        journal: Journal,
        profiles: ProfileBook,
        store: CapabilityStore,
        emit: EventSink,
    ) -> None:
        self._keeper = keeper
        self._journal = journal
        self._profiles = profiles
        self._store = store
        self._emit = emit
        self._task: asyncio.Task[None] | None = None

    def refresh(self, access: ModelAccess) -> None:
        """Have the context counted, if only an estimate is known of it."""
        model = self._profiles.model.id
        if access.is_offline or not isinstance(access.client, CountsTokens):
            return
        if not len(self._journal.state.view) or not self._store.is_on(access.endpoint, model, "count_tokens"):
            return
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.create_task(self._measure(access.client, access.endpoint))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _measure(self, server: CountsTokens, endpoint: str) -> None:
        await self._keeper.encoding_ready()
        if not self._keeper.gauge().is_estimate:
            return
        view, profile = self._journal.state.view, self._profiles.current
        repair = find_repair(view)
        # A renderer of its own: the main loop's goes on from what it last sent.
        rendered = Renderer().render(view if repair is None else view.with_op(repair), profile)
        plan = RequestPlan.of(profile, rendered)
        try:
            tokens = await server.count_tokens(count_body(profile, rendered), plan.betas)
        except ApiFailure as failure:
            _log.info("the context could not be counted: %s", failure.message)
            if failure.status in _NO_SUCH_ENDPOINT and self._store.switch_off(endpoint, profile.model, "count_tokens"):
                self._emit(Notice("This server does not count tokens; going on with estimates."))
            return
        if self._profiles.current is profile:
            self._keeper.measured(view, tokens)
