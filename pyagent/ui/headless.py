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
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, TextIO

from pyagent.commands import (
    NOBODY_ANSWERS,
    NOBODY_DECIDES,
    AnswerPermission,
    AnswerQuestion,
    Interrupt,
    RunCommand,
    Shutdown,
    SubmitPrompt,
)
from pyagent.errors import UsageError
from pyagent.events import (
    ConversationClosed,
    Event,
    GaugeMoved,
    Notice,
    PermissionNeeded,
    PermissionSettled,
    QuestionAsked,
    QuestionSettled,
    RecordCommitted,
    RetryScheduled,
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
from pyagent.ui.headless_commands import CommandAnswer, command_in
from pyagent.ui.headless_control import ControlChannel
from pyagent.ui.headless_input import read_message
from pyagent.ui.log_file import errors_to_log
from pyagent.ui.stream_json import StreamWriter

CLOSE_TIMEOUT_S = 5.0
"""How long the agent gets to stop tools and close its log; a supervisor's own patience is usually 10 s."""

TICK_S = 5.0
"""How long nothing may be written while tools run: consumers take a silent run for a dead one."""

RETRY_SAID_AT_ATTEMPT = 3
"""Two failures pass within a second or so; from then on a silent wait of minutes would look like a hang. Said once."""

EXIT_BROKEN_PIPE = 141
"""128 + SIGPIPE, what a shell reports for any program whose reader left."""

_INPUT_ENDED = "input ended"

_WORDS_OF_STOP = {
    "max_turns": "Stopped: the limit of --max-turns is reached.",
    "budget": "Stopped: the budget is spent.",
    "interrupted": "Interrupted.",
    "max_structured_output_retries": "Stopped: the model gave no answer that fits the schema.",
}


class _SignalCame(Exception):
    """Raised in the main loop once a signal's number arrives in the queue."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_headless(invocation: Invocation, starter: AgentStarter) -> int:
    """Answer the prompt (or the prompts on standard input) and return the exit code.

    Raises:
        UsageError: the prompt is a slash command that does not exist or needs a person.
    """
    command_in(invocation.options.prompt)
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
                try:
                    item = inbox.get(timeout=TICK_S)
                except Empty:
                    run.tick()
                    continue
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
        self._is_ready = False
        """Whether the conversation serves: its first figures are out, and what was wrong at its opening is told."""
        self._has_failed = self._is_misused = False
        self._last_text = ""
        self._waiting: deque[RunCommand | SubmitPrompt] = deque()
        """Not sent yet."""
        self._asked_count = 0
        """Prompts that were sent and are not answered."""
        self._answer: CommandAnswer | None = None
        self._writer = StreamWriter(
            emit=self._write_line if invocation.output_format is OutputFormat.STREAM_JSON else lambda line: None,
            has_partial_messages=invocation.has_partial_messages,
            replays_user_messages=invocation.replays_user_messages,
            environ=invocation.options.environ,
            clock=time.monotonic,
            new_uuid=lambda: str(uuid.uuid4()),
        )
        self._control = ControlChannel(handle, self._writer)

    @property
    def is_done(self) -> bool:
        """Whether nothing more will come."""
        return self._is_closed or (self._has_input_ended and self._open_turns <= 0 and not self._control.is_busy)

    @property
    def exit_code(self) -> int:
        if self._is_misused:
            return EXIT_USAGE
        if self._is_closed and (self._open_turns > 0 or not self._has_input_ended):
            return EXIT_FAILURE
        return EXIT_FAILURE if self._has_failed else 0

    def submit(self, text: str, uuid: str = "", images: tuple[str, ...] = ()) -> None:
        """Send a prompt, or run the slash command that it is; what was sent before comes first. `images` are paths."""
        self._open_turns += 1
        self._writer.prompt_sent(uuid)
        try:
            command = command_in(text)
        except UsageError as error:
            self._end_command(str(error), is_error=True)
            return
        self._waiting.append(RunCommand(*command) if command else SubmitPrompt(text, images=images))
        self._send_next()

    def _send_next(self) -> None:
        """Send what waits. A command waits until all before it is answered; prompts are queued by the agent."""
        while self._waiting and self._answer is None:
            command = self._waiting[0]
            if isinstance(command, RunCommand):
                if self._asked_count or not self._is_ready:
                    return
                self._answer = CommandAnswer(command.name)
            else:
                self._asked_count += 1
            self._handle.send(self._waiting.popleft())

    def tick(self) -> None:
        """Nothing has happened for a while."""
        self._writer.tick()

    def take(self, item: Event | JsonObject | str) -> None:
        """Take in an event, a line of standard input, or its end."""
        if isinstance(item, str):
            self._has_input_ended = True
            self._control.input_ended()
        elif isinstance(item, dict):
            self._take_input(item)
        else:
            self._take_event(item)

    def _take_event(self, event: Event) -> None:
        self._writer.take(event)
        self._control.take(event)
        self._take_answer(event)
        match event:
            case PermissionNeeded(request_id=request_id, tool_use_id=use_id) as needed:
                if self._invocation.asks_on_stdin and not self._has_input_ended:
                    self._control.ask_permission(needed)
                else:
                    self._writer.denied(use_id)
                    self._handle.send(AnswerPermission(request_id, "no", NOBODY_DECIDES))
            case PermissionSettled(request_id=request_id) | QuestionSettled(request_id=request_id):
                self._control.settled(request_id)
            case QuestionAsked(request_id=request_id) as asked:
                if self._invocation.asks_on_stdin and not self._has_input_ended:
                    self._control.ask_questions(asked)
                else:
                    self._handle.send(AnswerQuestion(request_id, reason=NOBODY_ANSWERS))
            case GaugeMoved():
                self._is_ready = True
                self._send_next()
            case Notice(text=text, level=level, hint=hint):
                if self._answer is None and (level != "info" or self._invocation.is_verbose):
                    self._say(f"{text} {hint}".rstrip())
            case RecordCommitted(record=Record(payload=NoticeShown(text=text, level=level)), is_replay=False):
                if level != "info" or self._invocation.is_verbose:
                    self._say(text)
            case RetryScheduled(attempt=attempt, max_attempts=most, reason=reason) if attempt == RETRY_SAID_AT_ATTEMPT:
                self._say(f"{reason.rstrip('.')}. Trying again, {most - attempt} times at most.")
            case TurnFinished(stop_reason=stop_reason, text=text):
                self._last_text = text
                if stop_reason in _WORDS_OF_STOP:
                    self._say(_WORDS_OF_STOP[stop_reason])
                self._end_turn(is_error=self._writer.result["is_error"])
            case TurnFailed(kind=kind, message=message, hint=hint):
                self._is_misused = self._is_misused or kind == "UsageError"
                self._say(f"{message} {hint}".rstrip())
                self._end_turn(is_error=True)
            case ConversationClosed():
                self._is_closed = True
            case _:
                pass

    def _take_answer(self, event: Event) -> None:
        answer = self._answer
        if answer is None:
            return
        answer.take(event)
        if isinstance(event, TurnFailed):
            self._answer = None
            self._asked_count += 1  # It ends as a prompt would, by the event itself.
        elif answer.is_over:
            self._answer = None
            self._end_command(answer.text, is_error=answer.is_error)

    def _end_command(self, text: str, *, is_error: bool) -> None:
        self._writer.command_finished(text, is_error=is_error)
        if is_error:
            self._say(text)
        else:
            self._last_text = text
        self._end_turn(is_error=is_error, was_asked=False)

    def _end_turn(self, *, is_error: bool, was_asked: bool = True) -> None:
        self._open_turns -= 1
        self._asked_count -= was_asked
        self._has_failed = self._has_failed or is_error
        match self._invocation.output_format:
            case OutputFormat.TEXT if not is_error or self._last_text:
                self._write_line(self._last_text)
            case OutputFormat.JSON:
                self._write_line(json.dumps(self._writer.result, ensure_ascii=False))
            case _:
                pass
        self._last_text = ""
        self._send_next()

    def _take_input(self, line: JsonObject) -> None:
        match line.get("type"):
            case "user":
                message = read_message(line.get("message"), self._invocation.options.home)
                for remark in message.remarks:
                    self._say(remark)
                given = line.get("uuid")
                if message.text:
                    self.submit(message.text, given if isinstance(given, str) else "", message.images)
            case "control_request":
                self._control.request(line)
            case "control_response":
                self._control.response(line)
            case "keep_alive":
                pass
            case "invalid":
                self._say(f"Line {line['number']} of standard input is ignored: {line['reason']}.")
            case kind:
                self._say(f"A line of type {kind!r} on standard input is ignored.")

    def _write_line(self, text: str) -> None:
        """A line on standard output, flushed; raises BrokenPipeError when the reader left."""
        data = (text.removesuffix("\n") + "\n").encode("utf-8", "replace")
        self._out.flush()
        view = memoryview(data)
        while view:
            view = view[os.write(self._out.fileno(), view) :]

    def _say(self, text: str) -> None:
        print("pyagent: " + " ".join(text.split()), file=self._err, flush=True)


def _read_input(inbox: SimpleQueue[Any]) -> None:
    """Put each JSON line of standard input into the queue, and at last its end."""
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        line = raw.decode("utf-8", "replace").strip()
        if not line:
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:  # the latter for what is nested thousands of levels deep
            item = {"type": "invalid", "number": number, "reason": f"no JSON ({error})"}
        if not isinstance(item, dict):
            item = {"type": "invalid", "number": number, "reason": "no JSON object"}
        inbox.put(item)
    inbox.put(_INPUT_ENDED)
