"""Makes a model call until it succeeds, cannot succeed, or is cancelled; every wait is announced.

The SDK's own loop obeys any `retry-after`, of days too, tells nobody, and never retries a stream that broke.
"""

from __future__ import annotations

import asyncio
import contextlib
import random as random_module
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pyagent.agent.wire.client import ModelClient, ModelRequest
from pyagent.agent.wire.failures import ApiFailure, BrokenStreamFailure, UnavailableFailure
from pyagent.agent.wire.silence import SILENCE_SHOWN_AFTER_S
from pyagent.agent.wire.stream import Response, StreamEvent, accumulate
from pyagent.events import RequestStarted, RetryScheduled, StreamDiscarded, StreamSilent
from pyagent.settings import Settings

CallEvent: TypeAlias = StreamEvent | RequestStarted | RetryScheduled | StreamDiscarded | StreamSilent
CallSink: TypeAlias = Callable[[CallEvent], None]

FIRST_DELAY_S = 0.5
MAX_DELAY_S = 32.0
"""Ten attempts at this pace last about two minutes: longer than nearly every overload, short enough to watch."""
JITTER_SHARE = 0.25
"""Each delay is moved by up to this share, so that clients refused together do not come back together."""
OVERLOADS_BEFORE_FALLBACK_COUNT = 3


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    max_attempts: int = 10
    retry_after_cap_s: float = 60.0
    """The longest wait a server may ask for without a person being asked first."""


class LongWaitFailure(UnavailableFailure):
    """The server asks for a wait so long that a person must decide; `retry_after_s` says how long."""

    @property
    def wait_text(self) -> str:
        return _duration(self.retry_after_s or 0.0)


async def never(failure: LongWaitFailure) -> bool:
    """Nobody is there who could agree to a long wait."""
    return False


@dataclass(frozen=True, slots=True)
class CallWaits:
    """How long calls wait: for the server, and between attempts. Timeouts of None are the server kind's defaults."""

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    first_byte_timeout_s: float | None = None
    idle_timeout_s: float | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    silence_shown_after_s: float = SILENCE_SHOWN_AFTER_S
    agree_to_wait: Callable[[LongWaitFailure], Awaitable[bool]] = never
    """Asks whoever can decide whether to wait as long as the server wants."""

    @classmethod
    def of(cls, settings: Settings, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> CallWaits:
        """The waits a person set."""
        policy = RetryPolicy() if settings.max_retries is None else RetryPolicy(max_attempts=settings.max_retries + 1)
        return cls(policy, _seconds(settings.api_timeout_ms), _seconds(settings.stream_idle_timeout_ms), sleep)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1_000


async def call_model(
    client: ModelClient,
    request: ModelRequest,
    *,
    emit: CallSink = lambda event: None,
    policy: RetryPolicy = RetryPolicy(),
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    random: Callable[[], float] = random_module.random,
    next_request: Callable[[ApiFailure], ModelRequest | None] = lambda failure: None,
    agree_to_wait: Callable[[LongWaitFailure], Awaitable[bool]] = never,
    on_failure: Callable[[ApiFailure], None] = lambda failure: None,
    sends_wire_events: bool = False,
    is_id_taken: Callable[[str], bool] = lambda tool_id: False,
    infers_stop_reason: bool = True,
    broken_stream_attempts: int | None = None,
) -> Response:
    """The response to a request, after as many attempts as the policy allows.

    `next_request` is asked for a request to a fallback model when this one stays overloaded or out of reach.
    `agree_to_wait` is asked when the server names a wait beyond the policy's cap. `on_failure` sees every failed
    attempt (what a broken stream has used is billed). `broken_stream_attempts` limits how many streams may break: each
    has used its whole prompt, so whoever asks again anyway sets a limit; None leaves it to the policy.

    Raises:
        LongWaitFailure: nobody agreed to a wait beyond the policy's cap.
        ApiFailure: the call cannot succeed, or did not within the attempts.
    """
    attempt = overloads = broken = 0
    while True:
        attempt += 1
        try:
            return await _attempt(client, request, attempt, emit, sends_wire_events, is_id_taken, infers_stop_reason)
        except ApiFailure as failure:
            on_failure(failure)
            overloads = overloads + 1 if _is_overload(failure) else 0
            broken += isinstance(failure, BrokenStreamFailure)
            if broken_stream_attempts is not None and broken >= broken_stream_attempts:
                raise
            is_last = not failure.is_retryable or attempt >= policy.max_attempts
            is_long = (failure.retry_after_s or 0.0) > policy.retry_after_cap_s
            if failure.is_retryable and (is_last or is_long or overloads >= OVERLOADS_BEFORE_FALLBACK_COUNT):
                fallback = next_request(failure)
                if fallback is not None:
                    request, attempt, overloads = fallback, 0, 0
                    continue
            if is_long and failure.is_retryable:
                long_wait = _long_wait(failure)
                if not await agree_to_wait(long_wait):
                    raise long_wait from failure
                # Whoever waits that long means to go on: the attempts begin anew.
                attempt = overloads = 0
            elif is_last:
                raise
            delay_s = _delay_s(failure, attempt, random)
            emit(RetryScheduled(max(attempt, 1), policy.max_attempts, delay_s, failure.message, failure.status))
        await sleep(delay_s)


async def _attempt(
    client: ModelClient,
    request: ModelRequest,
    attempt: int,
    emit: CallSink,
    sends_wire_events: bool,
    is_id_taken: Callable[[str], bool],
    infers_stop_reason: bool,
) -> Response:
    """One attempt; while the server is silent, events tell for how long."""
    emit(RequestStarted(request.source, attempt))
    has_shown = False

    def show(event: StreamEvent) -> None:
        nonlocal has_shown
        has_shown = True
        emit(event)

    def tell_silence(silent_s: float, limit_s: float) -> None:
        emit(StreamSilent(silent_s, limit_s))

    events = client.stream(replace(request, on_silence=tell_silence))
    try:
        return await accumulate(
            events,
            show,
            sends_wire_events=sends_wire_events,
            is_id_taken=is_id_taken,
            infers_stop_reason=infers_stop_reason,
        )
    except ApiFailure as failure:
        if has_shown or isinstance(failure, BrokenStreamFailure):
            emit(StreamDiscarded(failure.message))
        raise
    finally:
        if isinstance(events, AsyncGenerator):
            # A cancel must not leave the connection to the garbage collector.
            with contextlib.suppress(RuntimeError):
                await events.aclose()


def _is_overload(failure: ApiFailure) -> bool:
    return failure.status == 529 or failure.error_type == "overloaded_error"


def _delay_s(failure: ApiFailure, attempt: int, random: Callable[[], float]) -> float:
    if failure.retry_after_s is not None:
        return failure.retry_after_s
    delay_s = min(FIRST_DELAY_S * 2.0 ** (attempt - 1), MAX_DELAY_S)
    return delay_s * (1 + JITTER_SHARE * (2 * random() - 1))


def _long_wait(failure: ApiFailure) -> LongWaitFailure:
    return LongWaitFailure(
        f"The server asks to wait {_duration(failure.retry_after_s or 0.0)} before the next request.",
        failure.facts,
        hint="Try again then, or choose another model with /model.",
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"
