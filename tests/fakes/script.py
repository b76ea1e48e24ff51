"""Scripted answers: blocks, faults, and the responders that choose an answer for a request."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from tests.fakes.binding import blocks_of

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Sent only if the request has thinking on; shown as its `display` says; signed by the server."""

    text: str


@dataclass(frozen=True, slots=True)
class RedactedThinking:
    tokens: int = 50


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call. `raw_json` streams instead of `input`, for truncated or invalid JSON."""

    name: str
    input: Json
    id: str | None = None
    raw_json: str | None = None


@dataclass(frozen=True, slots=True)
class Compaction:
    """The answer to an on-demand compaction; the server signs it."""

    content: str | None


@dataclass(frozen=True, slots=True)
class RawBlock:
    """A block sent as it is: `start` in content_block_start, then `deltas`; `final` is what a client keeps."""

    start: Json
    deltas: tuple[Json, ...] = ()
    final: Json | None = None


Block = Text | Thinking | RedactedThinking | ToolUse | Compaction | RawBlock

PointKind = Literal["headers", "events", "deltas", "block", "end"]


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a reply."""

    kind: PointKind
    count: int = 0


BEFORE_HEADERS = Point("headers")
BEFORE_STOP = Point("end")
"""After message_delta, before message_stop."""


def after_events(count: int) -> Point:
    """After that many SSE events (pings included)."""
    return Point("events", count)


def after_deltas(count: int) -> Point:
    """After that many content_block_delta events."""
    return Point("deltas", count)


def after_block(index: int) -> Point:
    """After the content_block_stop of block `index`."""
    return Point("block", index)


@dataclass(frozen=True, slots=True)
class Cut:
    """End of the connection: a clean end of the body, a close within a chunk, or a TCP reset."""

    at: Point
    how: Literal["eof", "mid_chunk", "reset"]


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """An `error` event, after which the body ends."""

    at: Point
    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Stall:
    """Silence until `server.release()`."""

    at: Point


@dataclass(frozen=True, slots=True)
class Inject:
    """Bytes put into the body at a point."""

    at: Point
    raw: bytes


Fault = Cut | ErrorEvent | Stall | Inject


@dataclass(frozen=True, slots=True)
class HttpError:
    """An answer that is an HTTP error."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    html: str | None = None
    details: Json | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server says to one request."""

    blocks: tuple[Block, ...] = ()
    stop_reason: str | None = "auto"
    """"auto" means "tool_use" with a client tool call and "end_turn" without."""
    stop_sequence: str | None = None
    stop_details: Json | None = None
    usage: Json | None = None
    """Overrides fields of the usage that was counted."""
    sends_usage: bool = True
    double_usage: bool = False
    """Two message_delta events, both with cumulative usage."""
    http_error: HttpError | None = None
    faults: tuple[Fault, ...] = ()
    delta_chars: int = 0
    """Characters in each text, thinking or JSON delta; 0 sends a block in one delta."""
    tokens_per_s: float = 0.0
    """Pace of the deltas; 0 is as fast as possible."""
    pings_between_deltas: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Json = field(default_factory=dict)
    """More fields of the message, such as `model` or `diagnostics`."""
    applied_edits: tuple[Json, ...] | None = None
    """`context_management.applied_edits` of the response; None leaves it to the server's own clearing."""

    def with_faults(self, *faults: Fault) -> "Answer":
        """The same answer with these faults added."""
        return replace(self, faults=(*self.faults, *faults))


def text(value: str) -> Text:
    """A text block."""
    return Text(value)


def thinking(value: str) -> Thinking:
    """A thinking block."""
    return Thinking(value)


def redacted_thinking(*, tokens: int = 50) -> RedactedThinking:
    """A redacted thinking block."""
    return RedactedThinking(tokens)


def tool_use(name: str, input: Json | None = None, *, id: str | None = None, raw_json: str | None = None) -> ToolUse:
    """A tool call; without `id` the server numbers it."""
    return ToolUse(name, input or {}, id, raw_json)


def compaction(content: str | None) -> Compaction:
    """A server-written summary; None is a failed one."""
    return Compaction(content)


def unknown_block(type: str = "hologram", **fields: Any) -> RawBlock:
    """A block of a type no client knows; the server accepts it back."""
    return RawBlock({"type": type, **fields})


def unknown_delta(block_text: str) -> RawBlock:
    """A text block with a delta of unknown type in its midst."""
    half = len(block_text) // 2
    return RawBlock(
        {"type": "text", "text": ""},
        (
            {"type": "text_delta", "text": block_text[:half]},
            {"type": "shimmer_delta", "shimmer": "?"},
            {"type": "text_delta", "text": block_text[half:]},
        ),
        {"type": "text", "text": block_text},
    )


def reply(*blocks: Block | str, **options: Any) -> Answer:
    """An answer of blocks; strings are text. `options` are fields of `Answer`."""
    return Answer(tuple(Text(block) if isinstance(block, str) else block for block in blocks), **options)


def http_error(
    status: int,
    type: str = "api_error",
    message: str = "",
    *,
    headers: Mapping[str, str] | None = None,
    html: str | None = None,
    details: Json | None = None,
) -> Answer:
    """An HTTP error answer; `html` is sent as the body instead of the JSON error."""
    return Answer(http_error=HttpError(status, type, message or type, headers or {}, html, details))


def overloaded() -> Answer:
    """HTTP 529."""
    return http_error(529, "overloaded_error", "Overloaded")


def rate_limited(*, retry_after_s: float | None = None) -> Answer:
    """HTTP 429, with `retry-after` if given."""
    headers = {} if retry_after_s is None else {"retry-after": f"{retry_after_s:g}"}
    return http_error(429, "rate_limit_error", "This request would exceed your rate limit", headers=headers)


def prompt_too_long(input_tokens: int, window_tokens: int) -> Answer:
    """The 400 for input that is longer than the window, whatever its real length."""
    message = f"prompt is too long: {input_tokens} tokens > {window_tokens} maximum"
    return http_error(400, "invalid_request_error", message)


def error_event(answer: Answer, at: Point, type: str = "overloaded_error", message: str = "Overloaded") -> Answer:
    """The answer broken off by an `error` event within the 200 stream."""
    return answer.with_faults(ErrorEvent(at, type, message))


def eof(answer: Answer, at: Point = BEFORE_STOP) -> Answer:
    """The answer ending cleanly at a point, without message_stop."""
    return answer.with_faults(Cut(at, "eof"))


def cut_mid_chunk(answer: Answer, at: Point) -> Answer:
    """The connection closed within a chunk."""
    return answer.with_faults(Cut(at, "mid_chunk"))


def reset(answer: Answer, at: Point) -> Answer:
    """The connection reset at a point."""
    return answer.with_faults(Cut(at, "reset"))


def stall(answer: Answer, at: Point = BEFORE_HEADERS) -> Answer:
    """Silence at a point until `server.release()`."""
    return answer.with_faults(Stall(at))


def garbage(answer: Answer, at: Point, raw: bytes = b"event: content_block_delta\ndata: {not json\n\n") -> Answer:
    """Bytes that are no valid event, at a point."""
    return answer.with_faults(Inject(at, raw))


def ping(answer: Answer, at: Point) -> Answer:
    """A ping at a point."""
    return answer.with_faults(Inject(at, b'event: ping\ndata: {"type": "ping"}\n\n'))


def unknown_event(answer: Answer, at: Point) -> Answer:
    """An event of unknown type at a point."""
    return answer.with_faults(Inject(at, b'event: weather\ndata: {"type": "weather", "sky": "clear"}\n\n'))


def refusal(*blocks: Block | str, category: str | None = "cyber", explanation: str = "declined") -> Answer:
    """A 200 that declines."""
    details = {"type": "refusal", "category": category, "explanation": explanation}
    return reply(*blocks, stop_reason="refusal", stop_details=details)


@dataclass(frozen=True, slots=True)
class Request:
    """An accepted request, as a responder sees it."""

    body: Json
    headers: Mapping[str, str]
    index: int
    """Counts accepted POST /v1/messages requests from 0."""
    input_tokens: int

    @property
    def messages(self) -> list[Json]:
        messages: list[Json] = self.body["messages"]
        return messages

    @property
    def last_text(self) -> str:
        """All text of the last message that is not a system message."""
        last = next((message for message in reversed(self.messages) if message["role"] != "system"), None)
        blocks = blocks_of(last["content"]) if last else []
        return "\n".join(block["text"] for block in blocks if block.get("type") == "text")

    @property
    def tool_results(self) -> list[Json]:
        """The tool_result blocks of the last user message."""
        last = next((message for message in reversed(self.messages) if message["role"] == "user"), None)
        blocks = blocks_of(last["content"]) if last else []
        return [block for block in blocks if block.get("type") == "tool_result"]

    @property
    def tool_names(self) -> list[str]:
        return [tool["name"] for tool in self.body.get("tools") or []]


class Responder(Protocol):
    def __call__(self, request: Request, /) -> Answer:
        """The answer to an accepted request. An exception fails the test at the server's exit."""
        ...


Step = Answer | str | Callable[[Request], Answer]


class Script:
    """Answers in order; an answer may be a text or a function of the request."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps: list[Step] = list(steps)
        self._served_count = 0
        self._overrun_count = 0

    def __call__(self, request: Request) -> Answer:
        if self._served_count >= len(self._steps):
            self._overrun_count += 1
            raise AssertionError(f"the script of {len(self._steps)} answers ran out at {request.last_text[:80]!r}")
        step = self._steps[self._served_count]
        self._served_count += 1
        if isinstance(step, str):
            return reply(step)
        return step if isinstance(step, Answer) else step(request)

    @property
    def remaining_count(self) -> int:
        return len(self._steps) - self._served_count

    def assert_finished(self) -> None:
        """Raise AssertionError if answers are left over or requests came beyond the end."""
        if self.remaining_count or self._overrun_count:
            raise AssertionError(f"{self.remaining_count} answers left over, {self._overrun_count} requests too many")


_NOTES = re.compile(r"<notes>\n(.*)\n</notes>\s*\Z", re.S)


def notes_asked_for(request: Request) -> str | None:
    """The session notes a request wants brought up to date, None if it wants none."""
    found = _NOTES.search(request.last_text)
    return found[1] if found else None


Call = tuple[str, Json]


class ToolRounds:
    """Plays a working agent: each prompt gets `rounds` rounds of tool calls, then a final text.

    `calls` are cycled through, `parallel` at a time; an input may hold "{round}", which is replaced by a running
    number. Requests for which `is_summary` holds get `summary_text`, those for session notes the notes with a line
    more; neither counts as a round.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        *,
        rounds: int,
        final_text: str = "Done.",
        parallel: int = 1,
        think: bool = False,
        note: str = "",
        is_summary: Callable[[Request], bool] = lambda request: False,
        summary_text: str = "<summary>work so far</summary>",
        delta_chars: int = 0,
    ) -> None:
        self._calls = list(calls)
        self._rounds, self._final_text, self._parallel = rounds, final_text, parallel
        self._think, self._note, self._delta_chars = think, note, delta_chars
        self._is_summary, self._summary_text = is_summary, summary_text
        self._round = 0
        self._serial = 0
        self.summary_count = self.notes_count = 0
        self.finished_turn_count = 0

    def __call__(self, request: Request) -> Answer:
        notes = notes_asked_for(request)
        if notes is not None:
            self.notes_count += 1
            return reply(f"<notes>\n{notes}\nUpdate {self.notes_count}: round {self._round}.\n</notes>")
        if self._is_summary(request):
            self.summary_count += 1
            return reply(self._summary_text)
        blocks: list[Block] = [Thinking(f"Considering step {self._round}.")] if self._think else []
        if self._round >= self._rounds:
            self._round = 0
            self.finished_turn_count += 1
            return reply(*blocks, self._final_text, delta_chars=self._delta_chars)
        self._round += 1
        if self._note:
            blocks.append(Text(self._note))
        for _ in range(self._parallel):
            name, values = self._calls[self._serial % len(self._calls)]
            self._serial += 1
            blocks.append(ToolUse(name, {key: self._numbered(value) for key, value in values.items()}))
        return reply(*blocks, delta_chars=self._delta_chars)

    def _numbered(self, value: Any) -> Any:
        return value.replace("{round}", str(self._serial)) if isinstance(value, str) else value


def echo(request: Request) -> Answer:
    """Answers every prompt with its own last text."""
    return reply(f"You said: {request.last_text[:2_000]}")
