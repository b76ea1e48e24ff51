"""`/btw`: a question answered beside the conversation. It reads the cached prefix and leaves no entry."""

from __future__ import annotations

import asyncio
from importlib.resources import files

from pyagent.agent.journal import Journal
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.side_calls import PlanMaker, SideCalls
from pyagent.agent.summarizer import thinking_tokens
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.errors import PyagentError, UsageError
from pyagent.events import EventSink, Report
from pyagent.messages import TextBlock, ToolUseBlock, parse_block, scrub_surrogates
from pyagent.pages import AnswerPage
from pyagent.view import View

SOURCE = "btw"
"""The query source its calls are billed under."""

MAX_ANSWER_TOKENS = 2_000
"""A side question wants a paragraph; more belongs into the conversation."""


class SideQuestion:
    """The handler of `/btw`."""

    def __init__(
        self, calls: SideCalls, *, journal: Journal, profiles: ProfileBook, renderer: Renderer, emit: EventSink
    ) -> None:
        self._calls = calls
        self._journal = journal
        self._profiles = profiles
        self._renderer = renderer
        self._emit = emit
        self._lock = asyncio.Lock()

    async def ask(self, argument: str) -> None:
        """Ask the model, and tell its answer. One question at a time.

        Raises:
            UsageError: no question was given.
            PyagentError: there is no answer.
        """
        question = scrub_surrogates(argument.strip())
        if not question:
            raise UsageError("Say what you want to know.", hint="For example: /btw what does this flag do?")
        async with self._lock:
            response = await self._calls.call(self._journal.state.view, self._plan_for(question), SOURCE)
        blocks = [parse_block(raw) for raw in response.content]
        answer = "\n\n".join(block.text for block in blocks if isinstance(block, TextBlock)).strip()
        wanted = dict.fromkeys(block.name for block in blocks if isinstance(block, ToolUseBlock))
        if wanted:
            # What it said is then but the announcement of a call that is not made.
            remark = f"For an answer it would have to use {', '.join(wanted)}. Ask it in the conversation."
            answer = f"{answer}\n\n{remark}".strip()
        if not answer:
            raise PyagentError("The model gave no answer to the side question.", hint="Ask it in the conversation.")
        usage = response.usage
        share = usage.cache_read_input_tokens / usage.prompt_tokens if usage.prompt_tokens else 0.0
        page = AnswerPage(question, answer, self._calls.price(response), share)
        data = {"question": question, "answer": answer, "cost_usd": page.usd}
        self._emit(Report("On the side", data=data, page=page))

    def _plan_for(self, question: str) -> PlanMaker:
        instruction = (files("pyagent.agent") / "prompts" / "side_question.md").read_text("utf-8").strip()

        def make(view: View, profile: RequestProfile, most_tokens: int | None) -> RequestPlan:
            limit = self._profiles.model.max_output_tokens if most_tokens is None else most_tokens
            max_tokens = min(MAX_ANSWER_TOKENS + thinking_tokens(profile), limit)
            plan = RequestPlan.of(profile, self._renderer.render(view, profile))
            return plan.fork(f"{instruction}\n\n{question}", max_tokens=max_tokens)

        return make
