"""The fake server's rules, cache and scripts without sockets: for tests of many requests, and for measuring.

What it refuses, signs, counts and bills is exactly what `FakeMessagesServer` does with the same bytes; only HTTP, SSE
framing and faults are left out.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from pyagent.agent.wire.client import ModelRequest
from pyagent.agent.wire.failures import failure_from_response
from tests.fakes.binding import Enforcement, check_bindings
from tests.fakes.cache import PromptCache
from tests.fakes.model_table import ModelTable
from tests.fakes.persona import first_party
from tests.fakes.recorded import Recorded
from tests.fakes.refusal import Refusal
from tests.fakes.rules import check_request, parse_body
from tests.fakes.script import Answer, Request
from tests.fakes.sse import Context, render
from tests.fakes.tokens import DEFAULT_BYTES_PER_TOKEN, TokenCounter


class DirectServer:
    """A `ModelServer` that is called instead of connected to."""

    def __init__(
        self,
        responder: Callable[[Request], Answer],
        *,
        window_tokens: int | None = None,
        binding: Enforcement = "by_model",
        clock: Callable[[], float] = time.monotonic,
        bytes_per_token: float = DEFAULT_BYTES_PER_TOKEN,
        keeps_bodies: bool = True,
        on_request: Callable[[ModelRequest], None] = lambda request: None,
    ) -> None:
        """`on_request` sees each request first."""
        self.responder = responder
        self.requests: list[Recorded] = []
        self.refused: list[str] = []
        self.dropped: list[dict[str, Any]] = []
        """Thinking blocks that were sent behind a prefix they were not sampled under."""
        self.cpu_s = 0.0
        """Processor time the server itself took."""
        self._binding: Enforcement = binding
        self._persona = first_party()
        self._models = ModelTable(window_tokens=window_tokens)
        self._counter = TokenCounter(bytes_per_token)
        self._cache = PromptCache(clock)
        self._keeps_bodies = keeps_bodies
        self._on_request = on_request
        self.issued_unknown: set[str] = set()
        self._serial = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[dict[str, Any]]:
        """The answer's events, or the refusal as the client would raise it."""
        self._on_request(request)
        started_s = time.process_time()
        try:
            events = self._answer(request)
        except Refusal as refusal:
            self.refused.append(refusal.message)
            raise failure_from_response(refusal.status, {}, refusal.body("req")) from refusal
        finally:
            self.cpu_s += time.process_time() - started_s
        for event in events:
            yield event

    def _answer(self, request: ModelRequest) -> list[dict[str, Any]]:
        headers: Mapping[str, str] = {
            "anthropic-version": "2026-10-21",
            "anthropic-beta": ",".join(request.betas),
        }
        record = Recorded("POST", "/v1/messages", headers, b"")
        self.requests.append(record)
        body = parse_body(request.body)
        record.body = body if self._keeps_bodies else {key: body[key] for key in ("model", "thinking") if key in body}
        model = check_request(
            body, headers, self._persona, self._models, counting=False, issued_unknown=self.issued_unknown
        )
        check = check_bindings(body, model, self._binding)
        self.dropped += check.dropped
        plan = self._cache.plan(body, model, self._counter, check.dropped_paths)
        record.input_tokens = plan.usage.total_tokens
        if record.input_tokens > model.window_tokens:
            raise Refusal(f"prompt is too long: {record.input_tokens} tokens > {model.window_tokens} maximum")
        answer = self.responder(Request(body, headers, len(self.requests) - 1, record.input_tokens))
        context = Context(
            body=body,
            model=model,
            persona=self._persona,
            counter=self._counter,
            chain=check.chain,
            cache_usage=plan.usage,
            message_id=self._next_id("msg"),
            next_tool_id=lambda: self._next_id("toolu"),
            transformations=None,
            applied_edits=None,
        )
        rendered = render(answer, context)
        self.issued_unknown.update(rendered.issued_unknown)
        self._cache.commit(plan)
        record.status, record.usage = 200, rendered.usage
        record.message = rendered.message if self._keeps_bodies else None
        return [event.data for event in rendered.events]

    async def model_info(self, model: str) -> dict[str, Any]:
        """What `GET /v1/models/{id}` says."""
        spec = self._models.find(model)
        return {} if spec is None else {**spec.info(), "id": model}

    def forget_cache(self) -> None:
        """Lose all cached prefixes."""
        self._cache.clear()

    async def warm_up(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing is open."""

    def _next_id(self, kind: str) -> str:
        self._serial += 1
        return f"{kind}_{self._serial:06d}"
