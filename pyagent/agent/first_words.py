"""What a conversation says once it serves its mailbox: its figures, and, where going on would cost, a question."""

from __future__ import annotations

from collections.abc import Callable

from pyagent.agent.cold_start import ASK_FROM_TOKENS, CLEAR, COMPACT, GO_ON, ColdStart, clearable, cold_start_question
from pyagent.agent.context_keeper import PipelineKeeper
from pyagent.agent.journal import Journal
from pyagent.agent.session_model import SessionModel
from pyagent.agent.token_anchor import TokenAnchor
from pyagent.commands import Command, RunCommand
from pyagent.tools.tool import Asker


class FirstWords:
    """Tells and asks once."""

    def __init__(
        self,
        *,
        journal: Journal,
        keeper: PipelineKeeper,
        model: SessionModel,
        anchor: TokenAnchor,
        ask: Callable[[], Asker],
        send: Callable[[Command], None],
        is_cache_ttl_1h: bool,
        is_read_only: bool,
        is_headless: bool,
    ) -> None:
        self._journal = journal
        self._keeper = keeper
        self._model = model
        self._anchor = anchor
        self._ask = ask
        self._send = send
        self._is_cache_ttl_1h = is_cache_ttl_1h
        self._is_read_only = is_read_only
        self._is_headless = is_headless

    async def say(self) -> None:
        """The gauge and the bill as they stand, first from the coarse measure and then from the encoding."""
        self._keeper.tell_figures()
        await self._keeper.encoding_ready()
        if self._is_read_only:
            self._keeper.tell_gauge()
            return
        await self._model.settle()
        self._keeper.tell_gauge()
        self._anchor.refresh(self._model.access)
        await self._ask_about_cold_cache()

    async def _ask_about_cold_cache(self) -> None:
        """A long session whose cache is cold: what each way to go on costs, before anything is sent."""
        view, now_at = self._journal.state.view, self._journal.clock()
        used_tokens = self._keeper.gauge().used_tokens
        is_cold = view.last_assistant is not None and self._keeper.cache_expires_in_s() is None
        if self._is_headless or not is_cold or used_tokens <= ASK_FROM_TOKENS:
            return
        clearable_tokens, is_by_itself = clearable(self._keeper.context(), self._keeper.sizer)
        start = ColdStart(used_tokens, clearable_tokens, is_by_itself, view.idle_s(now_at), self._is_cache_ttl_1h)
        given = await self._ask()("", (cold_start_question(start, self._model.access.info),))
        match given.answers:
            case ((choice,),) if choice == COMPACT:
                self._send(RunCommand("compact"))
            case ((choice,),) if choice == CLEAR:
                self._send(RunCommand("clear-results"))
            case ((choice,),) if choice == GO_ON:
                self._keeper.keeps_old_results = True
            case _:
                pass
