"""A strict stand-in for the Messages API: refuses what the real one refuses, bills what it bills, fails on demand.

    async with FakeMessagesServer(Script(["Hello."])) as server:
        client = AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0)

From synchronous tests: `with running_in_thread(FakeMessagesServer(...)) as server`. By hand:
`python -m tests.fakes.messages_server --script echo`.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from tests.fakes.binding import BindingCheck, Enforcement, check_bindings
from tests.fakes.cache import CachePlan, CacheUsage, PromptCache
from tests.fakes.clearing import cleared_view
from tests.fakes.fields import BINDING_BETA
from tests.fakes.http1 import Connection, HttpRequest
from tests.fakes.model_table import ModelSpec, ModelTable
from tests.fakes.persona import Persona, first_party
from tests.fakes.recorded import Price, Recorded, bill, divergence
from tests.fakes.refusal import Refusal, error_body
from tests.fakes.rules import betas_of, check_credentials, check_request, check_version, parse_body
from tests.fakes.script import Answer, Cut, ErrorEvent, Fault, Inject, Request, Responder, Stall
from tests.fakes.sse import Context, Event, Rendered, render
from tests.fakes.tokens import DEFAULT_BYTES_PER_TOKEN, TokenCounter

Json = dict[str, Any]

HTML_413 = (
    "<html><head><title>413 Request Entity Too Large</title></head><body><center><h1>413</h1></center></body></html>"
)
WAIT_LIMIT_S = 60.0
"""How long the waiting helpers wait before a test is declared stuck."""


class FakeMessagesServer:
    """The server. Everything it saw is in `requests`."""

    def __init__(
        self,
        responder: Responder | Callable[[Request], Answer],
        *,
        persona: Persona | None = None,
        window_tokens: int | None = None,
        windows: Mapping[str, int] | None = None,
        max_output_tokens: int | None = None,
        bytes_per_token: float = DEFAULT_BYTES_PER_TOKEN,
        binding: Enforcement = "by_model",
        clock: Callable[[], float] = time.monotonic,
        api_key: str | None = None,
        port: int = 0,
        id_prefix: str = "fake",
        kept_bodies_count: int | None = None,
    ) -> None:
        """`kept_bodies_count` limits how many of the latest requests keep their bodies: a thousand long ones take GBs.

        `id_prefix` tells the ids of servers apart that continue the same conversation.
        """
        self.responder = responder
        self.persona = persona or first_party()
        self.models = ModelTable(
            windows=windows,
            window_tokens=window_tokens,
            max_output_tokens=max_output_tokens,
            any_id=self.persona.any_model,
        )
        self.counter = TokenCounter(bytes_per_token)
        self.cache = PromptCache(clock)
        self.requests: list[Recorded] = []
        self.failures: list[BaseException] = []
        """Exceptions of the responder or of the server itself."""
        self.stalled_count = 0
        """Replies silent at this moment."""
        self._binding: Enforcement = binding
        self._api_key, self._port, self._id_prefix = api_key, port, id_prefix
        self._kept_bodies_count = kept_bodies_count
        self._serial = 0
        self._accepted_count = 0
        self._issued_unknown: set[str] = set()
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._release = asyncio.Event()
        self._changed = threading.Condition()
        self._waiters: set[asyncio.Event] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    # Life

    async def __aenter__(self) -> "FakeMessagesServer":
        self._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._on_connect, "127.0.0.1", self._port, limit=1 << 20)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
        if kind is None:
            self.raise_failures()

    async def aclose(self) -> None:
        """Stop listening and end every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    def raise_failures(self) -> None:
        """Raise if the responder or the server itself failed on some request."""
        if self.failures:
            raise AssertionError(f"the fake server failed: {self.failures[0]!r}") from self.failures[0]

    @property
    def url(self) -> str:
        """Base URL for a client."""
        return f"http://127.0.0.1:{self._port}"

    # What tests look at

    @property
    def message_requests(self) -> list[Recorded]:
        """The POST /v1/messages requests, refused ones included."""
        return [request for request in self.requests if request.path == "/v1/messages"]

    @property
    def refusals(self) -> list[Recorded]:
        """Requests that broke a rule."""
        return [request for request in self.requests if request.is_refusal]

    def bill(self, prices: Mapping[str, Price]) -> float:
        """Dollars for everything billed so far."""
        return bill(self.requests, prices)

    def assert_finished(self) -> None:
        """Raise if anything was refused, failed, or is left of the script."""
        self.raise_failures()
        if self.refusals:
            texts = [text for request in self.refusals for text in request.errors]
            raise AssertionError(f"{len(texts)} requests were refused: {texts}")
        finished = getattr(self.responder, "assert_finished", None)
        if finished is not None:
            finished()

    # What tests do to it

    def release(self) -> None:
        """End every present stall; later ones hold again."""
        if self._loop is None:
            return
        self._loop.call_soon_threadsafe(self._release_now)

    def _release_now(self) -> None:
        self._release.set()
        self._release = asyncio.Event()

    async def wait_until(self, condition: Callable[[], bool], *, timeout_s: float = WAIT_LIMIT_S) -> None:
        """Wait, on the server's own loop, until the condition holds after some change on the server.

        Raises:
            TimeoutError: it did not within `timeout_s`.
        """
        changed = asyncio.Event()
        self._waiters.add(changed)
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    await changed.wait()
                    changed.clear()
        finally:
            self._waiters.discard(changed)

    def wait_until_from_thread(self, condition: Callable[[], bool], *, timeout_s: float = WAIT_LIMIT_S) -> None:
        """Like `wait_until`, for a test on another thread."""
        with self._changed:
            if not self._changed.wait_for(condition, timeout_s):
                raise TimeoutError("the server did not reach the awaited state")

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
        for waiter in self._waiters:
            waiter.set()

    # Connections

    async def _on_connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = Connection(reader, writer)
        try:
            while request := await connection.read_request(self.persona.limit_bytes):
                await self._answer(connection, request)
                await connection.end_waiting()
                if connection.is_hung_up:
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        except Exception as error:
            self.failures.append(error)
        finally:
            self._tasks.discard(task)
            with contextlib.suppress(asyncio.CancelledError):
                await connection.close()
            self._notify()

    async def _answer(self, connection: Connection, request: HttpRequest) -> None:
        record = Recorded(request.method, request.path, request.headers, request.raw)
        self.requests.append(record)
        headers = {"request-id": self._next_id("req")}
        try:
            check_credentials(request.headers, self.persona, self._api_key)
            check_version(request.headers, self.persona)
            if request.size_bytes > self.persona.limit_bytes:
                raise Refusal("Request exceeds the maximum size", status=413, type="request_too_large")
            await self._route(connection, request, record, headers)
        except Refusal as refusal:
            record.status, record.is_refusal = refusal.status, True
            record.errors.append(refusal.message)
            if refusal.status == 413 and self.persona.html_413:
                await connection.send(413, HTML_413.encode(), {**headers, "content-type": "text/html"})
            else:
                await connection.send_json(refusal.status, refusal.body(headers["request-id"]), headers)
        except ConnectionError:
            record.is_abandoned = True
            raise
        finally:
            if self._kept_bodies_count is not None and len(self.requests) > self._kept_bodies_count:
                self.requests[-1 - self._kept_bodies_count].forget_body()
            self._notify()

    async def _route(
        self, connection: Connection, request: HttpRequest, record: Recorded, headers: Mapping[str, str]
    ) -> None:
        persona = self.persona
        match request.method, request.path.removeprefix("/v1/").split("/"):
            case "POST", ["messages"]:
                await self._create(connection, request, record, headers)
            case "POST", ["messages", "count_tokens"] if persona.has_count_tokens:
                model, check = self._check(request, record, counting=True)
                view = self._view(record.body, model, check)
                counted: Json = {"input_tokens": view.plan.usage.total_tokens}
                if record.body.get("context_management") is not None:
                    counted["context_management"] = {"original_input_tokens": view.original_tokens}
                await self._send_json(connection, record, counted, headers)
            case "GET", ["models"] if persona.has_models:
                data = [spec.info() for spec in self.models.all()]
                page = {"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}
                await self._send_json(connection, record, page, headers)
            case "GET", ["models", model_id] if persona.has_models:
                spec = self.models.find(model_id)
                if spec is None:
                    raise Refusal(f"model: {model_id}", status=404, type="not_found_error")
                await self._send_json(connection, record, {**spec.info(), "id": model_id}, headers)
            case _:
                raise Refusal(f"Not found: {request.path}", status=404, type="not_found_error")

    async def _send_json(
        self, connection: Connection, record: Recorded, body: Json, headers: Mapping[str, str]
    ) -> None:
        record.status = 200
        await connection.send_json(200, body, headers)
        record.is_complete = True

    # Messages

    def _check(self, request: HttpRequest, record: Recorded, *, counting: bool) -> tuple[ModelSpec, BindingCheck]:
        record.body = parse_body(request.raw)
        model = check_request(
            record.body,
            request.headers,
            self.persona,
            self.models,
            counting=counting,
            issued_unknown=self._issued_unknown,
        )
        enforcement: Enforcement = self._binding
        if not self.persona.is_first_party:
            return model, BindingCheck.unchecked(record.body)
        check = check_bindings(record.body, model, enforcement)
        record.transformations = check.dropped
        return model, check

    def _view(self, body: Json, model: ModelSpec, check: BindingCheck) -> "_View":
        dropped = check.dropped_paths
        original = self.cache.plan(body, model, self.counter, dropped)
        if not self.persona.has_cache:
            original = CachePlan(CacheUsage(fresh_tokens=original.usage.total_tokens))
        tokens = original.usage.total_tokens
        if not self.persona.is_first_party or not (body.get("context_management") or {}).get("edits"):
            return _View(original, tokens, None)
        view = cleared_view(body, tokens, model, self.counter, dropped)
        plan = self.cache.plan(view.body, model, self.counter, view.dropped) if view.applied else original
        return _View(plan, tokens, view.applied)

    async def _create(
        self, connection: Connection, request: HttpRequest, record: Recorded, headers: Mapping[str, str]
    ) -> None:
        model, check = self._check(request, record, counting=False)
        body = record.body
        view = self._view(body, model, check)
        plan = view.plan
        record.input_tokens = plan.usage.total_tokens
        self._check_window(record, model)
        answer = self._choose(request, record)
        if answer.http_error is not None:
            await self._send_error(connection, record, answer, headers)
            return
        context = Context(
            body=body,
            model=model,
            persona=self.persona,
            counter=self.counter,
            chain=check.chain,
            cache_usage=plan.usage,
            message_id=self._next_id("msg"),
            next_tool_id=lambda: self._next_id("toolu"),
            transformations=check.dropped if BINDING_BETA in betas_of(request.headers) else None,
            applied_edits=view.applied_edits,
        )
        rendered = render(self._with_diagnosis(answer, record), context)
        self._issued_unknown.update(rendered.issued_unknown)
        record.message = rendered.message
        reply_headers = {**headers, **answer.headers}
        if not await self._stall_at(connection, record, answer.faults, lambda fault: fault.at.kind == "headers"):
            return
        if any(isinstance(fault, Cut) and fault.at.kind == "headers" for fault in answer.faults):
            await connection.cut("reset")
            return
        record.status, record.usage = 200, rendered.usage
        if self.persona.has_cache:
            self.cache.commit(plan)
        self._notify()
        if body.get("stream"):
            await self._stream(connection, record, answer, rendered, reply_headers)
        else:
            await self._send_json(connection, record, rendered.message, reply_headers)

    def _check_window(self, record: Recorded, model: ModelSpec) -> None:
        window, tokens, persona = model.window_tokens, record.input_tokens, self.persona
        if tokens > window:
            text = persona.overflow_text.format(input=tokens, window=window)
            raise Refusal(text, status=persona.overflow_status, type=persona.overflow_type)
        max_tokens = record.body.get("max_tokens", 0)
        if persona.is_first_party and not model.ends_at_the_window and tokens + max_tokens > window:
            raise Refusal(
                f"input length and `max_tokens` exceed context limit: {tokens} + {max_tokens} > {window},"
                " decrease input length or `max_tokens` and try again"
            )

    def _choose(self, request: HttpRequest, record: Recorded) -> Answer:
        if record.body.get("max_tokens") == 0:
            return Answer(stop_reason="max_tokens")
        index, self._accepted_count = self._accepted_count, self._accepted_count + 1
        try:
            return self.responder(Request(record.body, request.headers, index, record.input_tokens))
        except Exception as error:
            # A 400, so that the client does not try again; the exit of the server raises it.
            self.failures.append(error)
            raise Refusal(f"the responder of the fake server failed: {error}", type="fake_server_error") from error

    def _with_diagnosis(self, answer: Answer, record: Recorded) -> Answer:
        """The answer with `diagnostics`, if the request asks why the cache was missed."""
        asked = record.body.get("diagnostics") or {}
        if not asked.get("previous_message_id"):
            return answer
        earlier = (request for request in self.requests if request.message is not None)
        known = next((one for one in earlier if one.message_id == asked["previous_message_id"] and one.body), None)
        reason: Json | None = {"type": "previous_message_not_found"}
        if known is not None:
            change = divergence(known.body, record.body)
            reason = {"type": change.kind, "cache_missed_input_tokens": record.input_tokens} if change else None
        diagnosis = None if reason is None else {"cache_miss_reason": reason}
        return replace(answer, extra={"diagnostics": diagnosis, **answer.extra})

    async def _send_error(
        self, connection: Connection, record: Recorded, answer: Answer, headers: Mapping[str, str]
    ) -> None:
        error = answer.http_error
        assert error is not None
        record.errors.append(error.message)
        if not await self._stall_at(connection, record, answer.faults, lambda fault: fault.at.kind == "headers"):
            return
        record.status = error.status
        merged = {**headers, **error.headers}
        if error.html is not None:
            await connection.send(error.status, error.html.encode(), {**merged, "content-type": "text/html"})
        else:
            body = error_body(error.type, error.message, headers["request-id"], error.details)
            await connection.send_json(error.status, body, merged)

    async def _stream(
        self, connection: Connection, record: Recorded, answer: Answer, rendered: Rendered, headers: Mapping[str, str]
    ) -> None:
        await connection.start_stream(headers)
        faults = [(rendered.index_of(fault.at), fault) for fault in answer.faults if fault.at.kind != "headers"]
        for at in range(len(rendered.events) + 1):
            for where, fault in faults:
                if where == at and not await self._apply(connection, record, fault):
                    return
            if at < len(rendered.events):
                await self._send_event(connection, rendered.events[at], answer.tokens_per_s)
                if connection.is_hung_up:
                    record.is_abandoned = True
                    return
        await connection.end_stream()
        record.is_complete = not any(not isinstance(fault, Stall) for _, fault in faults)

    async def _send_event(self, connection: Connection, event: Event, tokens_per_s: float) -> None:
        if tokens_per_s > 0 and event.tokens:
            await connection.wait_for(None, event.tokens / tokens_per_s)
        await connection.send_chunk(event.encode())
        # Lets the server notice a client that hung up in the midst of an unpaced stream.
        await asyncio.sleep(0)

    async def _apply(self, connection: Connection, record: Recorded, fault: Fault) -> bool:
        """Do what a fault says; False if the reply ends with it."""
        match fault:
            case Inject(raw=raw):
                await connection.send_chunk(raw)
                return True
            case Stall():
                return await self._stall_at(connection, record, (fault,), lambda fault: True)
            case ErrorEvent(type=type, message=message):
                record.errors.append(message)
                body = error_body(type, message, self._next_id("req"))
                await connection.send_chunk(Event("error", body).encode())
                await connection.end_stream()
                return False
            case Cut(how=how):
                await connection.cut(how)
                return False

    async def _stall_at(
        self,
        connection: Connection,
        record: Recorded,
        faults: tuple[Fault, ...],
        applies: Callable[[Fault], bool],
    ) -> bool:
        """Hold until released if a stall applies; False if the client hung up meanwhile."""
        if not any(isinstance(fault, Stall) and applies(fault) for fault in faults):
            return True
        self.stalled_count += 1
        self._notify()
        try:
            is_there = await connection.wait_for(self._release)
        finally:
            self.stalled_count -= 1
        record.is_abandoned = not is_there
        self._notify()
        return is_there

    def _next_id(self, kind: str) -> str:
        self._serial += 1
        return f"{kind}_{self._id_prefix}{self._serial:06d}"


@dataclass(frozen=True, slots=True)
class _View:
    """A request's input as the model sees it."""

    plan: CachePlan
    original_tokens: int
    """Before server-side edits."""
    applied_edits: list[Json] | None


@contextlib.contextmanager
def running_in_thread(server: FakeMessagesServer) -> Iterator[FakeMessagesServer]:
    """Run the server on a loop of its own, for tests that have none."""
    started = threading.Event()
    stop: list[Callable[[], object]] = []

    async def serve() -> None:
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(stopping.set))
        await server.__aenter__()
        started.set()
        await stopping.wait()
        await server.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="fake-messages-server", daemon=True)
    thread.start()
    if not started.wait(WAIT_LIMIT_S):
        raise TimeoutError("the fake server did not start")
    try:
        yield server
    finally:
        stop[0]()
        thread.join(WAIT_LIMIT_S)
    server.raise_failures()


if __name__ == "__main__":
    from tests.fakes.command_line import main

    main()
