"""The way to the server: the only module that knows the `anthropic` package and its HTTP library.

Both are imported in a thread when the first call is made, never before the first paint. The SDK's own retries are off
(`pyagent.agent.wire.retry` shows its countdown and can be cancelled), its typed layer is passed by (it would serialise
the whole conversation again), and its event filter too (it hides pings, which tell a slow answer from a dead one).
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlsplit

from pyagent.agent.wire.failures import (
    ApiFailure,
    BrokenStreamFailure,
    CredentialsFailure,
    FailureFacts,
    RefusedFailure,
    connection_failure,
    failure_from_response,
    missing_credentials,
    readable_text,
)
from pyagent.agent.wire.overflow import MAX_BODY_BYTES
from pyagent.agent.wire.silence import SILENCE_SHOWN_AFTER_S, SilenceSink, told_of_silence
from pyagent.messages import JsonObject

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from httpx2 import Response as HttpResponse

DEFAULT_BASE_URL = "https://api.anthropic.com"
COMPATIBLE_API_VERSION = "2023-06-01"
"""The version every server that speaks this API knows; newer ones are the first party's own."""

FIRST_BYTE_TIMEOUT_S = 180.0
"""Until the response's headers: a long prompt that no cache holds takes the first party a minute or more."""
IDLE_TIMEOUT_S = 90.0
"""Between two events. The first party sends a ping every few seconds, so this much silence is a dead connection."""
LOCAL_FIRST_BYTE_TIMEOUT_S = 900.0
LOCAL_IDLE_TIMEOUT_S = 600.0
"""Other servers may send no pings, and a local one reads a long prompt for minutes before its first word."""
CONNECT_TIMEOUT_S = 10.0
METADATA_TIMEOUT_S = 15.0
"""For the model list and token counts: nobody should wait long for what an estimate can replace."""

MIN_SECRET_CHARS = 8
"""A shorter key, as people give servers of their own that check none, would be found in any text."""

MESSAGES_PATH = "/v1/messages"
_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "proxy-authorization"})

COUNT_PATH = "/v1/messages/count_tokens"
MODELS_PATH = "/v1/models"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where to send requests and what to show there. The secrets are in no `repr`."""

    api_key: str | None = field(default=None, repr=False)
    auth_token: str | None = field(default=None, repr=False)
    base_url: str = DEFAULT_BASE_URL
    custom_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    profile: str = ""
    """A profile of the SDK's configuration, if one is named."""

    @property
    def is_first_party(self) -> bool:
        host = self._host
        return host == "anthropic.com" or host.endswith(".anthropic.com")

    @property
    def is_address_valid(self) -> bool:
        return bool(self._host) and self.base_url.lower().startswith(("http://", "https://"))

    @property
    def _host(self) -> str:
        """The server's name; empty if the address makes no sense."""
        try:
            parts = urlsplit(self.base_url)
            return "" if parts.port == 0 else parts.hostname or ""
        except ValueError:
            return ""

    @property
    def has_secret(self) -> bool:
        return bool(self.api_key or self.auth_token or self.profile or self.has_secret_in_headers)

    @property
    def has_secret_in_headers(self) -> bool:
        return any(name.lower() in _SECRET_HEADERS for name in self.custom_headers)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every string that must stand in no message and no log."""
        headers = [value for name, value in self.custom_headers.items() if name.lower() in _SECRET_HEADERS]
        return tuple(secret for secret in (self.api_key, self.auth_token, *headers) if secret)

    @property
    def can_call(self) -> bool:
        """Whether a call has a chance: other servers may want no key at all."""
        return self.has_secret or not self.is_first_party


def credentials_from(environ: Mapping[str, str]) -> Credentials:
    """Credentials as the environment gives them. A key wins over a token."""
    headers: dict[str, str] = {}
    for line in environ.get("ANTHROPIC_CUSTOM_HEADERS", "").splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip():
            headers[name.strip()] = value.strip()
    api_key = environ.get("ANTHROPIC_API_KEY", "").strip() or None
    auth_token = environ.get("ANTHROPIC_AUTH_TOKEN", "").strip() or None
    return Credentials(
        api_key,
        None if api_key else auth_token,
        environ.get("ANTHROPIC_BASE_URL", "").strip().rstrip("/") or DEFAULT_BASE_URL,
        headers,
        environ.get("ANTHROPIC_PROFILE", "").strip(),
    )


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request, as bytes. Timeouts in seconds; None means the server kind's default."""

    body: bytes = field(repr=False)
    model: str
    betas: tuple[str, ...] = ()
    source: str = ""
    """The query source, for events and the bill."""
    first_byte_timeout_s: float | None = None
    idle_timeout_s: float | None = None
    on_silence: SilenceSink | None = field(default=None, repr=False, compare=False)
    silence_shown_after_s: float = SILENCE_SHOWN_AFTER_S

    def with_body(self, body: bytes) -> ModelRequest:
        return replace(self, body=body)


class ModelClient(Protocol):
    """What answers requests."""

    def stream(self, request: ModelRequest) -> AsyncIterator[JsonObject]:
        """The answer's raw events, pings included. Raises ApiFailure."""
        ...


class AnthropicClient:
    """The Messages API and the servers that speak it."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._loading: asyncio.Task[AsyncAnthropic] | None = None

    @property
    def credentials(self) -> Credentials:
        return self._credentials

    async def warm_up(self) -> None:
        """Import the SDK now, in a thread: half a second that need not follow the first prompt."""
        await self._client()

    async def stream(self, request: ModelRequest) -> AsyncIterator[JsonObject]:
        """Post the request and give its events. Closing the iterator, or a cancel, closes the connection.

        Raises:
            ApiFailure: the server refused, or could not be reached, or fell silent.
        """
        if self._credentials.is_first_party and len(request.body) > MAX_BODY_BYTES:
            # The answer would be a 413, after all these bytes were sent.
            raise failure_from_response(413, {}, f"{len(request.body):,} bytes are above the limit")
        sdk = await self._client()
        is_local = not self._credentials.is_first_party
        first_s = request.first_byte_timeout_s or (LOCAL_FIRST_BYTE_TIMEOUT_S if is_local else FIRST_BYTE_TIMEOUT_S)
        idle_s = request.idle_timeout_s or (LOCAL_IDLE_TIMEOUT_S if is_local else IDLE_TIMEOUT_S)
        try:
            with told_of_silence(request.on_silence, after_s=request.silence_shown_after_s, limit_s=first_s):
                async with asyncio.timeout(first_s):
                    response = await _post_stream(sdk, request)
        except TimeoutError as error:
            raise connection_failure(f"no answer within {first_s:.0f} s") from error
        except Exception as error:
            raise self._failure_of(error) from None
        try:
            async for event in _events(response, idle_s, request):
                yield event
        finally:
            await response.aclose()

    async def count_tokens(self, body: bytes, betas: tuple[str, ...] = ()) -> int:
        """The server's estimate of a prompt's tokens. `body` must hold no `max_tokens` and no `stream`.

        Raises:
            ApiFailure: it could not be had.
        """
        sdk = await self._client()
        try:
            async with asyncio.timeout(METADATA_TIMEOUT_S):
                answer = await sdk.post(
                    COUNT_PATH, cast_to=object, content=body, options={"headers": _beta_header(betas)}
                )
        except TimeoutError as error:
            raise connection_failure(f"no answer within {METADATA_TIMEOUT_S:.0f} s") from error
        except Exception as error:
            raise self._failure_of(error) from None
        count = answer.get("input_tokens") if isinstance(answer, dict) else None
        if not isinstance(count, int):
            raise BrokenStreamFailure("The server gave no token count.", FailureFacts(status=200))
        return count

    async def model_info(self, model: str) -> JsonObject:
        """What the server says of a model.

        Raises:
            ApiFailure: it does not say.
        """
        return await self._get(f"{MODELS_PATH}/{quote(model, safe='')}")

    async def list_models(self) -> tuple[JsonObject, ...]:
        """The models the server names, first page.

        Raises:
            ApiFailure: it names none.
        """
        answer = await self._get(f"{MODELS_PATH}?limit=100")
        listed = answer.get("data")
        return tuple(item for item in listed if isinstance(item, dict)) if isinstance(listed, list) else ()

    async def _get(self, path: str) -> JsonObject:
        sdk = await self._client()
        try:
            async with asyncio.timeout(METADATA_TIMEOUT_S):
                answer = await sdk.get(path, cast_to=object)
        except TimeoutError as error:
            raise connection_failure(f"no answer within {METADATA_TIMEOUT_S:.0f} s") from error
        except Exception as error:
            raise self._failure_of(error) from None
        return answer if isinstance(answer, dict) else {}

    async def close(self) -> None:
        """Close all connections."""
        if self._loading is not None:
            sdk = await self._loading
            self._loading = None
            await sdk.close()

    async def _client(self) -> AsyncAnthropic:
        if not self._credentials.can_call:
            raise missing_credentials()
        if not self._credentials.is_address_valid:
            raise CredentialsFailure(
                f"ANTHROPIC_BASE_URL is not the address of a server: {self._credentials.base_url!r}.",
                FailureFacts(),
                hint="It begins with http:// or https://.",
            )
        if not all(secret.isascii() and secret.isprintable() for secret in self._credentials.secrets):
            raise CredentialsFailure(
                "The key holds characters that cannot be sent.", FailureFacts(), hint="Copy it again, without quotes."
            )
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(_make_sdk_client, self._credentials))
        try:
            return await asyncio.shield(self._loading)
        except Exception as error:
            self._loading = None
            raise self._failure_of(error) from None

    def _failure_of(self, error: Exception) -> ApiFailure:
        """The failure an exception means, its texts free of secrets.

        What was caught is not chained: an HTTP library's error may quote the header it could not send.
        """
        failure = _failure_of(error)
        texts = f"{failure.message} {failure.facts.server_text}"
        if not any(secret in texts for secret in self._credentials.secrets if len(secret) >= MIN_SECRET_CHARS):
            return failure
        return RefusedFailure("The server's error text held the key, so it is not shown.", FailureFacts(failure.status))


def _make_sdk_client(credentials: Credentials) -> AsyncAnthropic:
    # Collecting while thousands of objects that stay are made only costs time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        import anthropic
        import httpx2
    finally:
        if was_enabled:
            gc.enable()
    timeout = httpx2.Timeout(LOCAL_FIRST_BYTE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    headers: dict[str, Any] = dict(_compatible_headers(credentials))
    for name, value in credentials.custom_headers.items():
        # One spelling a name, else the SDK's own header would be sent beside the user's.
        headers[_SPELLINGS.get(name.lower(), name)] = value
    common: dict[str, Any] = {"base_url": credentials.base_url, "max_retries": 0, "timeout": timeout}
    if credentials.profile and not (credentials.api_key or credentials.auth_token):
        return anthropic.AsyncAnthropic(profile=credentials.profile, default_headers=headers, **common)
    if not (credentials.api_key or credentials.auth_token) and "Authorization" not in headers:
        # Without a key the SDK refuses to send; leaving the header out on purpose is allowed.
        headers["Authorization"] = anthropic.Omit()
    secret = credentials.api_key or credentials.auth_token or "none"
    if credentials.auth_token:
        return anthropic.AsyncAnthropic(auth_token=secret, default_headers=headers, **common)
    return anthropic.AsyncAnthropic(api_key=secret, default_headers=headers, **common)


_SPELLINGS = {name.lower(): name for name in ("Authorization", "x-api-key", "anthropic-version", "anthropic-beta")}


def _compatible_headers(credentials: Credentials) -> Mapping[str, str]:
    """Other servers look for the key in either header and know the old version only."""
    if credentials.is_first_party:
        return {}
    headers = {"anthropic-version": COMPATIBLE_API_VERSION}
    secret = credentials.api_key or credentials.auth_token
    return headers | {"x-api-key": secret} if secret else headers


def _beta_header(betas: tuple[str, ...]) -> dict[str, str]:
    return {"anthropic-beta": ",".join(betas)} if betas else {}


async def _post_stream(sdk: AsyncAnthropic, request: ModelRequest) -> HttpResponse:
    from anthropic import AsyncStream

    stream: AsyncStream[object] = await sdk.post(
        MESSAGES_PATH,
        cast_to=object,
        content=request.body,
        options={"headers": {"Accept": "text/event-stream", **_beta_header(request.betas)}},
        stream=True,
        stream_cls=AsyncStream[object],
    )
    return stream.response


async def _events(response: HttpResponse, idle_s: float, request: ModelRequest) -> AsyncIterator[JsonObject]:
    """The stream's events as objects; data that is no JSON ends it."""
    from anthropic import AsyncStream

    kind = response.headers.get("content-type", "")
    if "text/event-stream" not in kind and ("json" in kind or "html" in kind):
        for event in await _whole_answer(response, kind, idle_s):
            yield event
        return
    events = AsyncStream.raw_events(response)
    while True:
        try:
            with told_of_silence(request.on_silence, after_s=request.silence_shown_after_s, limit_s=idle_s):
                async with asyncio.timeout(idle_s):
                    sse = await anext(events, None)
        except TimeoutError as error:
            raise _broken(f"no data for {idle_s:.0f} s") from error
        except Exception as error:
            raise _broken(_break_reason(error)) from error
        if sse is None:
            return
        if not sse.data or sse.data == "[DONE]":
            if sse.event == "ping":
                yield {"type": "ping"}
            continue
        try:
            event = json.loads(sse.data)
        except (ValueError, RecursionError) as error:
            raise _broken("an event was no JSON") from error
        if not isinstance(event, dict):
            raise _broken("an event was no JSON object")
        if "type" not in event and sse.event:
            event["type"] = "error" if sse.event == "error" else sse.event
        elif "type" not in event and "error" in event:
            event["type"] = "error"
        yield event


async def _whole_answer(response: HttpResponse, kind: str, idle_s: float) -> tuple[JsonObject, ...]:
    """The events of an answer that came in one piece; a page for people is no answer at all."""
    try:
        async with asyncio.timeout(idle_s):
            body = await response.aread()
    except Exception as error:
        raise _broken(_break_reason(error)) from error
    if "html" in kind:
        shown = readable_text(body.decode("utf-8", "replace"))
        raise RefusedFailure(
            f"This is no model server, it answered with a web page: {shown}",
            FailureFacts(response.status_code, server_text=shown),
            hint="Check the base URL and whether a proxy or a login page stands in between.",
        )
    try:
        return _as_events(json.loads(body))
    except (ValueError, RecursionError) as error:
        raise _broken("the answer was no JSON") from error


def _as_events(message: object) -> tuple[JsonObject, ...]:
    """Events for a server that answered in one piece although a stream was asked for."""
    if not isinstance(message, dict) or message.get("type") == "error" or "error" in message:
        return ({**(message if isinstance(message, dict) else {}), "type": "error"},)
    return ({"type": "message_start", "message": message}, {"type": "message_stop"})


def _broken(reason: str) -> BrokenStreamFailure:
    return BrokenStreamFailure(
        f"The answer broke off: {reason}.", FailureFacts(status=200, server_text=reason, is_retryable=True)
    )


def _break_reason(error: Exception) -> str:
    """What cut a stream off, in words; the class names of the HTTP library tell nobody anything."""
    import httpx2

    match error:
        case httpx2.RemoteProtocolError():
            return "the server closed the connection"
        case httpx2.TimeoutException() | TimeoutError():
            return "the connection fell silent"
        case httpx2.NetworkError():
            return "the connection was lost"
        case UnicodeDecodeError():
            return "it held bytes that are no text"
        case _:
            return type(error).__name__


def _failure_of(error: Exception) -> ApiFailure:
    """The failure an exception of the SDK or its HTTP library means.

    Raises:
        Exception: the given one, if neither threw it: a mistake of our own.
    """
    import anthropic
    import httpx2

    match error:
        case ApiFailure():
            return error
        case anthropic.APIStatusError():
            body = error.body if error.body is not None else error.response.text
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            return failure_from_response(error.status_code, headers, body, request_id=error.request_id)
        case anthropic.APITimeoutError() | httpx2.TimeoutException():
            return connection_failure("the connection timed out")
        case anthropic.APIConnectionError():
            return connection_failure(_cause_text(error))
        case httpx2.HTTPError() | httpx2.InvalidURL():
            return connection_failure(type(error).__name__)
        case anthropic.CredentialsError():
            return missing_credentials()
        case anthropic.AnthropicError():
            return connection_failure(type(error).__name__)
        case _:
            raise error


def _cause_text(error: BaseException) -> str:
    """The innermost cause's words: `[Errno 111] Connection refused` says more than `Connection error`."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return (str(cause) or type(cause).__name__).rstrip(".")
