"""The one place where errors of the API are read: status, type, code and text become a typed failure.

Wording may change, so codes count before types and types before text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyagent.agent.wire.overflow import MediaFault, Overflow, find_media_fault, find_overflow
from pyagent.errors import (
    BrokenStreamError,
    CredentialsError,
    ModelError,
    ModelUnavailableError,
    PromptTooLongError,
    RequestRefusedError,
)
from pyagent.messages import JsonObject, Usage

MAX_TEXT_CHARS = 500
"""How much of a server's text is shown; error pages can be long."""

RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 501, 502, 503, 504, 520, 522, 524, 529})
_RETRYABLE_TYPES = frozenset({"overloaded_error", "api_error", "timeout_error", "rate_limit_error", "conflict_error"})
_SPEND_CODES = frozenset({"enforced_spend_limit_reached", "ramp_limit_exceeded", "organization_on_hold"})
_SPEND_TEXT = re.compile(
    r"specified api usage limits|spend limit|credit balance is too low|monthly (?:spend|usage) limit", re.I
)
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.I | re.S)
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class FailureFacts:
    """What is known of a failed call. `status` is None where no response came."""

    status: int | None = None
    error_type: str | None = None
    error_code: str | None = None
    server_text: str = ""
    request_id: str | None = None
    retry_after_s: float | None = None
    is_retryable: bool = False
    is_spend_limit: bool = False
    details: JsonObject = field(default_factory=dict)


class ApiFailure(ModelError):
    """A model call the server (or the way to it) failed. The subclass also derives from what it means to a user."""

    def __init__(self, message: str, facts: FailureFacts, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.facts = facts

    @property
    def status(self) -> int | None:
        return self.facts.status

    @property
    def error_type(self) -> str | None:
        return self.facts.error_type

    @property
    def error_code(self) -> str | None:
        return self.facts.error_code

    @property
    def request_id(self) -> str | None:
        return self.facts.request_id

    @property
    def retry_after_s(self) -> float | None:
        return self.facts.retry_after_s

    @property
    def is_retryable(self) -> bool:
        return self.facts.is_retryable


class CredentialsFailure(ApiFailure, CredentialsError):
    """401 or 403, or there are no credentials."""


class UnavailableFailure(ApiFailure, ModelUnavailableError):
    """The server cannot be reached or cannot serve now: worth another try."""


class RefusedFailure(ApiFailure, RequestRefusedError):
    """The server will never take this request as it is."""


class SpendLimitFailure(RefusedFailure):
    """The account's limit of spending is reached: waiting does not help."""


class MediaFailure(RefusedFailure):
    """Images or documents in the request were refused; `fault` says which."""

    def __init__(self, message: str, facts: FailureFacts, fault: MediaFault, *, hint: str = "") -> None:
        super().__init__(message, facts, hint=hint)
        self.fault = fault


class OverflowFailure(ApiFailure, PromptTooLongError):
    """The request does not fit the window or the body limit."""

    def __init__(self, message: str, facts: FailureFacts, overflow: Overflow, *, hint: str = "") -> None:
        PromptTooLongError.__init__(
            self,
            message,
            hint=hint,
            prompt_tokens=overflow.prompt_tokens,
            limit_tokens=overflow.limit_tokens,
            is_byte_limit=overflow.is_byte_limit,
        )
        self.facts = facts
        self.overflow = overflow

    def as_refusal(self) -> RefusedFailure:
        """What it is if it cannot be about the request's size."""
        return RefusedFailure(_refused_text(self.facts.status or 0, _sentence(self.facts.server_text)), self.facts)


class BrokenStreamFailure(ApiFailure, BrokenStreamError):
    """The answer broke off, stalled or was garbled. What had come is shown, never run.

    `usage` is what the server had reported by then: it is billed all the same.
    """

    def __init__(self, message: str, facts: FailureFacts, *, usage: Usage | None = None, model: str = "") -> None:
        super().__init__(message, facts)
        self.usage, self.model = usage or Usage(), model


def failure_from_response(
    status: int, headers: Mapping[str, str], body: object, *, request_id: str | None = None
) -> ApiFailure:
    """The failure of an HTTP error response. `body` is the parsed JSON, or the text where it is none."""
    error = _error_object(body)
    text = str(error.get("message") or "") if error else ""
    if not text:
        text = readable_text(body) if isinstance(body, str) else ""
    details = error.get("details") if isinstance(error.get("details"), dict) else {}
    assert isinstance(details, dict)
    return _failure(
        status,
        _string(error.get("type")),
        _string(details.get("error_code")) or _string(error.get("code")),
        text,
        request_id or headers.get("request-id") or _request_id(body),
        retry_after_s(headers),
        headers.get("x-should-retry"),
        details,
    )


def failure_from_error_event(event: Mapping[str, Any]) -> ApiFailure:
    """The failure an `error` event within a stream tells of: status 200, but it means what its type says."""
    error = _error_object(event)
    details = error.get("details") if isinstance(error.get("details"), dict) else {}
    assert isinstance(details, dict)
    text = str(error.get("message") or "The server reported an error in the middle of its answer.")
    code = _string(details.get("error_code"))
    return _failure(200, _string(error.get("type")), code, text, _request_id(event), None, None, details)


def connection_failure(reason: str) -> UnavailableFailure:
    """No response came: the network, the name, TLS, or a timeout."""
    return UnavailableFailure(
        f"The model server cannot be reached: {reason}.",
        FailureFacts(is_retryable=True, server_text=reason),
        hint="Check the network connection and the base URL.",
    )


def missing_credentials() -> CredentialsFailure:
    return CredentialsFailure(
        "No credentials for the model server were found.",
        FailureFacts(),
        hint="Set ANTHROPIC_API_KEY, or start with --model offline.",
    )


def retry_after_s(headers: Mapping[str, str], *, now_epoch_s: float | None = None) -> float | None:
    """Seconds the server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date. None if neither."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit_s
        except ValueError:
            date_s = _http_date_s(value)
            if date_s is None:
                continue
            if now_epoch_s is None:
                # The server's own clock is in its Date header, which spares a skewed local one.
                now_epoch_s = _http_date_s(headers.get("date", ""))
            if now_epoch_s is None:
                continue
            seconds = date_s - now_epoch_s
        if seconds == seconds and seconds >= 0:
            return seconds
    return None


def readable_text(body: str) -> str:
    """The words of an error page, shortened."""
    text = _SPACE.sub(" ", _TAGS.sub(" ", body)).strip()
    return text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1] + "…"


def _failure(
    status: int,
    error_type: str | None,
    error_code: str | None,
    text: str,
    request_id: str | None,
    wait_s: float | None,
    should_retry: str | None,
    details: JsonObject,
) -> ApiFailure:
    is_spend_limit = error_code in _SPEND_CODES or status == 402 or bool(_SPEND_TEXT.search(text))
    may_pass = status in RETRYABLE_STATUSES or (status == 200 and error_type in (None, *_RETRYABLE_TYPES))
    if should_retry in ("true", "false") and status != 200:
        may_pass = should_retry == "true"
    facts = FailureFacts(
        status,
        error_type,
        error_code,
        readable_text(text),
        request_id,
        wait_s,
        is_retryable=may_pass and not is_spend_limit,
        is_spend_limit=is_spend_limit,
        details=details,
    )
    shown = _sentence(facts.server_text or f"HTTP {status}")
    if is_spend_limit:
        return SpendLimitFailure(
            f"The account's spending limit is reached: {shown}", facts, hint="Raise the limit, or use another key."
        )
    if status in (401, 403):
        return CredentialsFailure(
            f"The server refused the credentials: {shown}", facts, hint="Check ANTHROPIC_API_KEY and the base URL."
        )
    media = find_media_fault(status, text, error_code, details)
    overflow = find_overflow(status, text, error_type)
    if overflow is not None and overflow.is_guess and (media is not None or status not in (400, 422)):
        overflow = None
    if overflow is not None and not (status == 500 and overflow.limit_tokens is None):
        return OverflowFailure(
            f"The request is too long: {shown}",
            FailureFacts(**{name: getattr(facts, name) for name in facts.__slots__} | {"is_retryable": False}),
            overflow,
            hint="Use /compact, /rewind or /clear.",
        )
    if media is not None:
        return MediaFailure(f"The server refused an image or document: {shown}", facts, media)
    if may_pass:
        return UnavailableFailure(_unavailable_text(status, error_type, shown), facts, hint="Try again in a moment.")
    return RefusedFailure(_refused_text(status, shown), facts)


def _sentence(text: str) -> str:
    """The text with a full stop, as a hint may follow."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _unavailable_text(status: int, error_type: str | None, shown: str) -> str:
    if status == 529 or error_type == "overloaded_error":
        return "The model server is overloaded."
    if status == 429:
        return f"The rate limit is reached: {shown}"
    return f"The model server failed ({status}): {shown}"


def _refused_text(status: int, shown: str) -> str:
    if status == 404:
        return f"The server does not know this model or address: {shown}"
    if status == 200:
        return f"The server broke off its answer: {shown}"
    return f"The server refused the request ({status}): {shown}"


def _error_object(body: object) -> Mapping[str, Any]:
    """The `error` object of a body; some servers send its fields bare, or a string in its place."""
    if not isinstance(body, Mapping):
        return {}
    error = body.get("error")
    if isinstance(error, Mapping):
        return error
    if isinstance(error, str):
        return {"message": error, "type": body.get("type")}
    if isinstance(body.get("message"), str):
        return body
    detail = body.get("detail")
    return {"message": detail} if isinstance(detail, str) else {}


def _request_id(body: object) -> str | None:
    return _string(body.get("request_id")) if isinstance(body, Mapping) else None


def _string(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _http_date_s(text: str) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
