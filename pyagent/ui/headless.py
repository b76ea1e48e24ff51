"""`pyagent -p`: a run without a person. Events become text, one JSON object, or a stream of JSON lines.

The agent puts events into an unbounded queue and goes on, so a slow reader of our output never holds it up.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TextIO

from pyagent.errors import UsageError
from pyagent.events import (
    NOBODY_ANSWERS,
    AnswerPermission,
    AnswerQuestion,
    ConversationClosed,
    Event,
    Interrupt,
    Notice,
    PermissionNeeded,
    QuestionAsked,
    RecordCommitted,
    RetryScheduled,
    RunCommand,
    Shutdown,
    SubmitPrompt,
    TurnFailed,
    TurnFinished,
)
from pyagent.launch import AgentHandle, AgentStarter
from pyagent.log import NoticeShown, Record
from pyagent.messages import JsonObject
from pyagent.ui.cli import (
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    EXIT_USAGE,
    Invocation,
    OutputFormat,
    silence,
)
from pyagent.ui.commands import Invoked, Prompt, Unknown, read_typed
from pyagent.ui.log_file import errors_to_log
from pyagent.ui.stream_json import StreamWriter

CLOSE_TIMEOUT_S = 5.0
"""How long the agent gets to stop tools and close its log; a supervisor's own patience is usually 10 s."""

RETRY_SAID_AT_ATTEMPT = 3
"""Two failures pass within a second or so; from then on a silent wait of minutes would look like a hang. Said once."""

EXIT_BROKEN_PIPE = 141
"""128 + SIGPIPE, what a shell reports for any program whose reader left."""

_INPUT_ENDED = "input ended"


class _SignalCame(Exception):
    """Raised in the main loop once a signal's number arrives in the queue."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_headless(invocation: Invocation, starter: AgentStarter) -> int:
    """Answer the prompt (or the prompts on standard input) and return the exit code.

    Raises:
        UsageError: the prompt is a slash command, or looks like one.
    """
    _require_prompt(invocation.options.prompt)
    inbox: SimpleQueue[Event | int | JsonObject | str] = SimpleQueue()
    with errors_to_log(invocation.options.log_path, invocation.options.environ), _signals_into(inbox):
        handle = starter(invocation.options, lambda event: inbox.put(event))
        run = HeadlessRun(invocation, handle, sys.stdout, sys.stderr)
        try:
            if invocation.is_input_stream_json:
                threading.Thread(target=_read_input, args=(inbox,), name="stdin", daemon=True).start()
            else:
                run.submit(invocation.options.prompt)
                inbox.put(_INPUT_ENDED)
            while not run.is_done:
                item = inbox.get()
                if isinstance(item, int):
                    raise _SignalCame(item)
                run.take(item)
            code = run.exit_code
        except BrokenPipeError:
            handle.send(Interrupt())
            silence(sys.stdout)
            code = EXIT_BROKEN_PIPE
        except _SignalCame as came:
            handle.send(Interrupt())
            code = EXIT_INTERRUPTED if came.number == signal.SIGINT else EXIT_TERMINATED
        handle.send(Shutdown())
        handle.close(CLOSE_TIMEOUT_S)
        return code


def _require_prompt(text: str) -> None:
    match read_typed(text):
        case Unknown() as unknown:
            raise UsageError(unknown.message)
        case Invoked(command=command):
            raise UsageError(f"/{command.name} works only in an interactive session.")
        case Prompt():
            pass


@contextmanager
def _signals_into(inbox: SimpleQueue[Any]) -> Iterator[None]:
    """Signals become items of the queue: `SimpleQueue.put` may be called from a handler."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, lambda came, _frame: inbox.put(int(came))) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class HeadlessRun:
    """One run: counts open turns, writes what the output format asks for, knows the exit code at the end."""

    def __init__(self, invocation: Invocation, handle: AgentHandle, out: TextIO, err: TextIO) -> None:
        self._invocation = invocation
        self._handle = handle
        self._out, self._err = out, err
        self._open_turns = 0
        self._has_input_ended = False
        self._is_closed = False
        self._has_failed = self._is_misused = False
        self._last_text = ""
        self._writer = StreamWriter(
            emit=self._write_line if invocation.output_format is OutputFormat.STREAM_JSON else lambda line: None,
            has_partial_messages=invocation.has_partial_messages,
            replays_user_messages=invocation.replays_user_messages,
            environ=invocation.options.environ,
            clock=time.monotonic,
            new_uuid=lambda: str(uuid.uuid4()),
        )

    @property
    def is_done(self) -> bool:
        """Whether nothing more will come."""
        return self._is_closed or (self._has_input_ended and self._open_turns <= 0)

    @property
    def exit_code(self) -> int:
        if self._is_misused:
            return EXIT_USAGE
        if self._is_closed and (self._open_turns > 0 or not self._has_input_ended):
            return EXIT_FAILURE
        return EXIT_FAILURE if self._has_failed else 0

    def submit(self, text: str) -> None:
        """Send a prompt."""
        self._open_turns += 1
        self._writer.prompt_sent()
        self._handle.send(SubmitPrompt(text))

    def take(self, item: Event | JsonObject | str) -> None:
        """Take in an event, a line of standard input, or its end."""
        if isinstance(item, str):
            self._has_input_ended = True
        elif isinstance(item, dict):
            self._take_input(item)
        else:
            self._take_event(item)

    def _take_event(self, event: Event) -> None:
        self._writer.take(event)
        match event:
            case PermissionNeeded(request_id=request_id):
                text = "Nobody is here to be asked; go on without it or say what would be needed."
                self._handle.send(AnswerPermission(request_id, "no", text))
            case QuestionAsked(request_id=request_id):
                self._handle.send(AnswerQuestion(request_id, reason=NOBODY_ANSWERS))
            case Notice(text=text, level=level, hint=hint):
                if level != "info" or self._invocation.is_verbose:
                    self._say(f"{text} {hint}".rstrip())
            case RecordCommitted(record=Record(payload=NoticeShown(text=text, level=level)), is_replay=False):
                if level != "info" or self._invocation.is_verbose:
                    self._say(text)
            case RetryScheduled(attempt=attempt, max_attempts=most, reason=reason) if attempt == RETRY_SAID_AT_ATTEMPT:
                self._say(f"{reason.rstrip('.')}. Trying again, {most - attempt} times at most.")
            case TurnFinished(stop_reason=stop_reason, text=text):
                self._last_text = text
                if stop_reason in ("max_turns", "budget", "interrupted"):
                    self._say(
                        {
                            "max_turns": "Stopped: the limit of --max-turns is reached.",
                            "budget": "Stopped: the budget is spent.",
                            "interrupted": "Interrupted.",
                        }[stop_reason]
                    )
                self._end_turn(is_error=self._writer.result["is_error"])
            case TurnFailed(kind=kind, message=message, hint=hint):
                self._is_misused = self._is_misused or kind == "UsageError"
                self._say(f"{message} {hint}".rstrip())
                self._end_turn(is_error=True)
            case ConversationClosed():
                self._is_closed = True
            case _:
                pass

    def _end_turn(self, *, is_error: bool) -> None:
        self._open_turns -= 1
        self._has_failed = self._has_failed or is_error
        match self._invocation.output_format:
            case OutputFormat.TEXT if not is_error or self._last_text:
                self._write_line(self._last_text)
            case OutputFormat.JSON:
                self._write_line(json.dumps(self._writer.result, ensure_ascii=False))
            case _:
                pass
        self._last_text = ""

    def _take_input(self, line: JsonObject) -> None:
        match line.get("type"):
            case "user":
                text = _message_text(line.get("message"))
                if text.strip():
                    self.submit(text)
            case "control_request":
                self._control(line)
            case "invalid":
                self._say(f"Line {line['number']} of standard input is ignored: {line['reason']}.")
            case kind:
                self._say(f"A line of type {kind!r} on standard input is ignored.")

    def _control(self, line: JsonObject) -> None:
        raw = line.get("request")
        request: JsonObject = raw if isinstance(raw, dict) else {}
        match request.get("subtype"):
            case "interrupt":
                self._handle.send(Interrupt())
            case "set_permission_mode" if isinstance(request.get("mode"), str):
                self._handle.send(RunCommand("mode", request["mode"]))
            case "set_model" if isinstance(request.get("model"), str):
                self._handle.send(RunCommand("model", request["model"]))
            case subtype:
                self._writer.control_response(line.get("request_id"), error=f"unknown request {subtype!r}")
                return
        self._writer.control_response(line.get("request_id"))

    def _write_line(self, text: str) -> None:
        """A line on standard output, flushed; raises BrokenPipeError when the reader left."""
        data = (text.removesuffix("\n") + "\n").encode("utf-8", "replace")
        self._out.flush()
        view = memoryview(data)
        while view:
            view = view[os.write(self._out.fileno(), view) :]

    def _say(self, text: str) -> None:
        print("pyagent: " + " ".join(text.split()), file=self._err, flush=True)


def _message_text(message: Any) -> str:
    """The text of an API message; blocks of other types are left out."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def _read_input(inbox: SimpleQueue[Any]) -> None:
    """Put each JSON line of standard input into the queue, and at last its end."""
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        line = raw.decode("utf-8", "replace").strip()
        if not line:
            continue
        try:
            item = json.loads(line)
        except ValueError as error:
            item = {"type": "invalid", "number": number, "reason": f"no JSON ({error})"}
        if not isinstance(item, dict):
            item = {"type": "invalid", "number": number, "reason": "no JSON object"}
        inbox.put(item)
    inbox.put(_INPUT_ENDED)
