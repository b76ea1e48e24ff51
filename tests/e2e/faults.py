"""Every fault of a server, and what came of it: run once, for the tests and for the table in the documentation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pyagent.events import (
    CompactionFinished,
    Event,
    Notice,
    RecordCommitted,
    RetryScheduled,
    StreamDiscarded,
    ToolFinished,
    TurnFailed,
    TurnFinished,
)
from pyagent.log import AssistantEntry, Boundary, Record, Repair, SetHead, TurnEnded, UserEntry
from pyagent.messages import ToolResultBlock, text_of
from tests.agent.support import launch_options, records_on_disk, running_agent
from tests.fakes.messages_server import HTML_413, FakeMessagesServer
from tests.fakes.script import (
    BEFORE_HEADERS,
    Answer,
    Cut,
    ErrorEvent,
    Inject,
    RawBlock,
    Request,
    Script,
    Stall,
    after_block,
    after_deltas,
    after_events,
    eof,
    error_event,
    http_error,
    overloaded,
    rate_limited,
    reply,
    thinking,
    tool_use,
    unknown_block,
    unknown_delta,
)

IDLE_TIMEOUT_MS = 1_000
"""For the rows in which the server falls silent; a loaded machine still answers within it."""

MARKER = "ran.txt"
RUN = {"command": f"echo ran > {MARKER}"}
"""A call that leaves a trace if it is run."""

WHOLE = reply(thinking("Let me see."), "I run it.", tool_use("Bash", RUN), delta_chars=6)
"""An answer in which something can break off anywhere."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`answers` are given in turn, then "Fine." for ever."""

    title: str
    answers: tuple[Answer, ...]
    runs_tool: bool = False
    """Whether the call of the answer is run in the end."""
    environ: Mapping[str, str] = field(default_factory=dict)
    bytes_per_token: float = 4.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a fault."""

    seen: tuple[str, ...]
    """What the person is told, in order."""
    on_disk: tuple[str, ...]
    """What the session file holds after the prompt."""
    next_prompt: str
    """What the next prompt was answered with."""
    has_run: bool
    refusals: tuple[str, ...]
    blocks_sent: tuple[str, ...]
    """Types of the blocks of the answers that were sent back."""
    delays_s: tuple[float, ...]


_SILENCE = {"API_TIMEOUT_MS": str(IDLE_TIMEOUT_MS), "CLAUDE_STREAM_IDLE_TIMEOUT_MS": str(IDLE_TIMEOUT_MS)}
_CUTS: tuple[tuple[int, Literal["reset", "mid_chunk", "eof"]], ...] = (
    (0, "mid_chunk"),
    (1, "eof"),
    (2, "mid_chunk"),
    (4, "eof"),
    (6, "mid_chunk"),
    (7, "reset"),
    (9, "eof"),
    (12, "reset"),
    (15, "mid_chunk"),
    (17, "reset"),
)
"""Events after which the answer is cut, from before the first to near the end, and how. A reset also takes what was not
read yet, so none stands near the start."""
_HOW = {"reset": "connection reset", "mid_chunk": "connection closed", "eof": "clean end"}


def _cut(events: int, how: Literal["reset", "mid_chunk", "eof"]) -> Fault:
    return Fault(f"{_HOW[how]} after {events} events", (WHOLE.with_faults(Cut(after_events(events), how)),))


_SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
_FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
_SPEND = {"error_code": "enforced_spend_limit_reached"}

FAULTS: dict[str, Fault] = {
    "529 five times": Fault("529 five times", (overloaded(),) * 5),
    "529 for ever": Fault("529 for ever", (overloaded(),) * 10),
    "429 for 3 s": Fault("429, retry-after 3 s", (rate_limited(retry_after_s=3),)),
    "429 for an hour": Fault("429, retry-after 3,600 s", (rate_limited(retry_after_s=3_600),)),
    "429 spend limit": Fault(
        "429, spending limit reached", (http_error(429, "rate_limit_error", "Monthly limit reached", details=_SPEND),)
    ),
    "400 usage limit": Fault(
        "400, the limit set by the account itself",
        (http_error(400, "invalid_request_error", "You have reached your specified API usage limits."),),
    ),
    "500": Fault("500", (http_error(500, "api_error", "Internal server error"),)),
    "503 as a page": Fault("503 with a web page", (http_error(503, html="<h1>Service Unavailable</h1>"),)),
    "401": Fault("401", (http_error(401, "authentication_error", "invalid x-api-key"),)),
    "404": Fault("404, unknown model", (http_error(404, "not_found_error", "model: nonsense"),)),
    "413 as a page": Fault("413 with a web page", (http_error(413, html=HTML_413),)),
    **{f"cut {events}": _cut(events, how) for events, how in _CUTS},
    "reset after a call": Fault(
        "connection reset after a complete tool call", (WHOLE.with_faults(Cut(after_block(2), "reset")),)
    ),
    "no message_stop": Fault("clean end without message_stop", (eof(WHOLE),)),
    "stall before headers": Fault(
        "silence before the answer", (WHOLE.with_faults(Stall(BEFORE_HEADERS)),), environ=_SILENCE
    ),
    "stall in text": Fault("silence in the text", (WHOLE.with_faults(Stall(after_deltas(4))),), environ=_SILENCE),
    "stall after a call": Fault(
        "silence after a complete tool call", (WHOLE.with_faults(Stall(after_block(2))),), environ=_SILENCE
    ),
    "garbage": Fault("an event that is no JSON", (WHOLE.with_faults(Inject(after_events(4), b"data: {garbage\n\n")),)),
    "nonsense": Fault(
        "a delta for a block that was never begun",
        (
            WHOLE.with_faults(
                Inject(
                    after_events(4),
                    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":9,"delta":{}}\n\n',
                )
            ),
        ),
    ),
    "binary": Fault("bytes that are no text", (WHOLE.with_faults(Inject(after_events(4), b"data: \xff\xfe\x00\n\n")),)),
    "overloaded in 200": Fault("error event overloaded_error within a 200", (error_event(WHOLE, after_deltas(4)),)),
    "refused in 200": Fault(
        "error event invalid_request_error within a 200",
        (WHOLE.with_faults(ErrorEvent(after_deltas(4), "invalid_request_error", "Something is not right")),),
    ),
    "refusal": Fault(
        "refusal",
        (reply("I can", stop_reason="refusal", stop_details={"category": "cyber", "explanation": "It is about X."}),),
    ),
    "empty": Fault("empty answer", (reply(),)),
    "empty twice": Fault("empty answer, twice", (reply(), reply())),
    "blank": Fault("answer of white space", (reply("\n\n"),)),
    "large input": Fault(
        "tool input of 5 MB",
        (
            reply(
                tool_use("Write", {"file_path": MARKER, "content": "0123456789abcde\n" * 327_680}), delta_chars=65_536
            ),
        ),
        runs_tool=True,
        bytes_per_token=1_000.0,
    ),
    "invalid JSON": Fault(
        "tool input that is no JSON", (reply(tool_use("Bash", raw_json='{"command": "echo ran > ran.txt"')),)
    ),
    "truncated JSON": Fault(
        "tool input cut at the output limit",
        (reply(tool_use("Bash", raw_json='{"command": "echo ran > ran.txt'), stop_reason="max_tokens"),),
    ),
    "plausible cut": Fault(
        "tool call at the output limit whose input looks whole",
        (reply(tool_use("Bash", RUN), stop_reason="max_tokens"),),
    ),
    "unknown tool": Fault("call of a tool that does not exist", (reply(tool_use("Teleport", {"to": "x"})),)),
    "unknown block": Fault("block of an unknown type", (reply(unknown_block(colour="blue"), "And on."),)),
    "unknown delta": Fault("delta of an unknown type", (reply(unknown_delta("Half and half")),)),
    "unknown event": Fault(
        "event of an unknown type",
        (reply("And on.").with_faults(Inject(after_events(2), b'event: sparkle\ndata: {"type":"sparkle"}\n\n')),),
    ),
    "unknown stop": Fault("unknown stop reason", (reply("And on.", stop_reason="moonrise"),)),
    "pause_turn": Fault(
        "pause_turn", (reply(RawBlock(_SEARCH), stop_reason="pause_turn"), reply(RawBlock(_FOUND), "Found it."))
    ),
    "pause_turn without a tool": Fault(
        "pause_turn although no tool of the server's ran", (reply("One moment.", stop_reason="pause_turn"),)
    ),
    "max_tokens": Fault("answer cut at the output limit", (reply("The first half", stop_reason="max_tokens"),)),
    "max_tokens for ever": Fault(
        "answer cut at the output limit, again and again", (reply("A part", stop_reason="max_tokens"),) * 4
    ),
    "window": Fault("model_context_window_exceeded", (reply("A part", stop_reason="model_context_window_exceeded"),)),
}


async def run(fault: Fault, folder: Path) -> Outcome:
    """Let the fault happen to a prompt, then send another prompt."""
    script = _then_fine(fault.answers)
    async with FakeMessagesServer(script, bytes_per_token=fault.bytes_per_token) as server:
        options = launch_options(folder, server.url, environ=fault.environ)
        async with running_agent(options) as agent:
            await agent.prompt("please")
            seen = tuple(_grouped(_told(agent.events)))
            on_disk = tuple(_grouped(_kept(records_on_disk(options))))
            has_run = (options.cwd / MARKER).exists()
            ended = await agent.prompt("again")
            delays_s = tuple(agent.slept.delays_s)
        last = server.message_requests[-1].body["messages"]
        return Outcome(
            seen,
            on_disk,
            ended.text if isinstance(ended, TurnFinished) else ended.message,
            has_run,
            tuple(text for request in server.refusals for text in request.errors),
            tuple(block["type"] for message in last if message["role"] == "assistant" for block in message["content"]),
            delays_s,
        )


def _then_fine(answers: Sequence[Answer]) -> Callable[[Request], Answer]:
    script = Script(answers)
    return lambda request: script(request) if script.remaining_count else reply("Fine.")


def _told(events: Sequence[Event]) -> Iterator[str]:
    """What of the events a person notices."""
    for event in events:
        match event:
            case RetryScheduled(reason=reason, delay_s=delay_s):
                wait = f" {delay_s:g} s" if delay_s == int(delay_s) else ""
                yield f"countdown{wait}, tries again: {reason}"
            case StreamDiscarded():
                yield "what had come is withdrawn"
            case ToolFinished(is_error=False, name=name):
                yield f"{name} runs"
            case RecordCommitted(record=Record(payload=UserEntry(origin="tool_results") as entry)):
                for block in entry.content:
                    if isinstance(block, ToolResultBlock) and block.is_error:
                        yield f"the call is answered: {text_of(block.content).splitlines()[0].partition(': ')[0]}"
            case CompactionFinished(layer=layer):
                yield f"the conversation is compacted ({layer})"
            case Notice(text=text, hint=hint):
                yield f"notice: {text} {hint}".rstrip()
            case TurnFailed(message=message, hint=hint):
                yield f"error: {message} {hint}".rstrip()
            case TurnFinished(text=text, stop_reason=stop_reason):
                yield f"answer: {text}" if text else f"the turn ends ({stop_reason})"
            case _:
                pass


def _kept(records: Sequence[Record]) -> Iterator[str]:
    """What of the records stands after the prompt."""
    is_after_prompt = False
    for record in records:
        match record.payload:
            case UserEntry(origin="prompt"):
                is_after_prompt = True
                yield "prompt"
            case UserEntry(origin="tool_results", content=content):
                is_error = any(isinstance(block, ToolResultBlock) and block.is_error for block in content)
                yield "result (error)" if is_error else "result"
            case UserEntry(origin=origin) if is_after_prompt:
                yield origin
            case AssistantEntry(content=content):
                yield f"answer ({', '.join(str(raw['type']) for raw in content)})"
            case Boundary():
                yield "compaction"
            case Repair():
                yield "repair"
            case SetHead():
                yield "prompt taken back"
            case TurnEnded(reason=reason):
                yield f"turn ended: {reason}"
            case _:
                pass


def _grouped(texts: Iterator[str]) -> Iterator[str]:
    """Each text once, with how often it came in a row of alternating ones."""
    listed = list(texts)
    counts = Counter(listed)
    for text in dict.fromkeys(listed):
        yield text if counts[text] == 1 else f"{counts[text]} × {text}"
