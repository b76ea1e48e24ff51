"""Line by line: the conversation printed into the scrollback, dialogs as numbered lists.

For screen readers, slow links, dumb terminals and pipes. The same events and commands as on the full screen; nothing
is ever redrawn, and no meaning is carried by colour.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import assert_never

from pyagent import __version__
from pyagent.errors import READING
from pyagent.events import (
    NOBODY_ANSWERS,
    AnswerPermission,
    AnswerQuestion,
    CompactionEnded,
    CompactionFinished,
    CompactionStarted,
    ConversationClosed,
    Event,
    Interrupt,
    Notice,
    PermissionNeeded,
    PermissionQuestion,
    PermissionSettled,
    PromptReturned,
    Question,
    QuestionAsked,
    RecordCommitted,
    Report,
    RetryScheduled,
    RewindOffered,
    RewindPlanned,
    RunCommand,
    RunShell,
    SessionOpened,
    SettingMoved,
    Shutdown,
    StreamSilent,
    SubmitPrompt,
    TurnFailed,
    TurnFinished,
)
from pyagent.launch import AgentHandle, AgentStarter
from pyagent.log import ShellRan
from pyagent.ui import commands
from pyagent.ui.choosing import OtherSessions, memory_items, mode_items, model_items
from pyagent.ui.cli import EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_TERMINATED, Invocation, silence
from pyagent.ui.history import PromptHistory, history_path
from pyagent.ui.leftovers import cure_terminal
from pyagent.ui.lines import inert
from pyagent.ui.log_file import errors_to_log
from pyagent.ui.pages.layout import page_text
from pyagent.ui.plain_input import LineReader, StreamReader, TerminalReader
from pyagent.ui.plain_output import PlainPrinter
from pyagent.ui.plain_sessions import choose_session
from pyagent.ui.reduce import TranscriptFold
from pyagent.ui.rewinding import point_items, way_items, whole_diff
from pyagent.ui.sequences import OUTPUT_MARK, PROMPT_MARK, done_mark
from pyagent.ui.status import SessionStatus, reduce_status
from pyagent.ui.terminal_kind import has_marks

ANSWER_TIMEOUT_S = 2.0
"""How long the next input line waits for a command's answer to begin; most come within milliseconds."""

CLOSE_TIMEOUT_S = 5.0
AGAIN_S = 2.0
"""Time in which a second Ctrl+C leaves."""

MAX_CHOICES = 30
"""Entries of a numbered list; the command takes a name or id for everything beyond."""


class _Terminated(Exception):
    """SIGTERM or SIGHUP came."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def run_plain(invocation: Invocation, starter: AgentStarter) -> int:
    """Hold a session line by line and return the exit code."""
    options = invocation.options
    history = PromptHistory(history_path(options.home, options.cwd))
    is_tty = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if is_tty:
        cure_terminal(options.home, sys.stdout.fileno())
    reader: LineReader = TerminalReader(history, options.cwd) if is_tty else StreamReader(sys.stdin)
    for number, exit_code in ((signal.SIGTERM, EXIT_TERMINATED), (signal.SIGHUP, 129)):
        signal.signal(number, _raising(exit_code))
    with errors_to_log(options.log_path, options.environ):
        return _hold_session(invocation, starter, reader)


def _hold_session(invocation: Invocation, starter: AgentStarter, reader: LineReader) -> int:
    inbox: SimpleQueue[Event] = SimpleQueue()
    handle = starter(invocation.options, lambda event: inbox.put(event))
    session = PlainSession(invocation, handle, inbox, reader, PlainPrinter(_write, is_verbose=invocation.is_verbose))
    try:
        exit_code = session.run()
    except BrokenPipeError:
        silence(sys.stdout)
        exit_code = EXIT_FAILURE
    except _Terminated as terminated:
        exit_code = terminated.exit_code
    except KeyboardInterrupt:
        exit_code = EXIT_INTERRUPTED
    handle.send(Shutdown())
    handle.close(CLOSE_TIMEOUT_S)
    return exit_code


def _raising(exit_code: int) -> Callable[[int, FrameType | None], None]:
    def handler(_number: int, _frame: FrameType | None) -> None:
        raise _Terminated(exit_code)

    return handler


def _ends_opening_for_reading(event: Event) -> bool:
    """Whether it is settled that a session is only read, or that another is opened instead."""
    return isinstance(event, SessionOpened) or (isinstance(event, Notice) and event.text == READING)


def _write(text: str) -> None:
    """Print at once, whatever the encoding of the stream can hold."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


class PlainSession:
    """Reads lines, sends commands, prints what comes back."""

    def __init__(
        self,
        invocation: Invocation,
        handle: AgentHandle,
        inbox: SimpleQueue[Event],
        reader: LineReader,
        printer: PlainPrinter,
    ) -> None:
        self._invocation = invocation
        self._handle = handle
        self._inbox = inbox
        self._reader = reader
        self._printer = printer
        self._fold = TranscriptFold()
        self._status = SessionStatus()
        self._has_marks = reader.is_interactive and has_marks(invocation.options.environ)
        self._is_closed = False
        self._is_leaving = False
        self._has_failed = False
        self._interrupted_at_s = float("-inf")
        self._draft = ""
        self._rewind: RewindOffered | RewindPlanned | None = None
        """What `/rewind` offers, until something is chosen."""

    def run(self) -> int:
        """The whole session; the exit code."""
        via = self._invocation.screen_reader_via
        if via:
            self._printer.line(f"[Screen Reader Mode: on via {via}]")
        self._drain(lambda event: isinstance(event, SessionOpened))
        if self._is_closed:
            return EXIT_FAILURE
        if self._invocation.picks_session:
            self._command("resume", "")
        if self._invocation.options.prompt:
            self._submit(self._invocation.options.prompt)
        while not self._is_over:
            self._drain_pending()
            self._bell()
            self._mark(PROMPT_MARK)
            try:
                line = self._reader.read(self._prompt_words(), self._draft)
            except KeyboardInterrupt:
                if self._is_second_interrupt():
                    break
                self._printer.line("Ctrl+C again to leave.")
                continue
            self._draft = ""
            if line is None:
                break
            self._take_line(line)
        self._say_goodbye()
        return EXIT_FAILURE if self._has_failed and not self._reader.is_interactive else 0

    @property
    def _is_over(self) -> bool:
        return self._is_closed or self._is_leaving

    def _prompt_words(self) -> str:
        mode = "" if self._status.mode in ("", "default") else f"{self._status.mode} "
        return f"{mode}> "

    def _bell(self) -> None:
        if self._invocation.screen_reader_via:
            self._printer.raw("\a")

    def _mark(self, sequence: str) -> None:
        """Mark where a turn begins or ends, for the terminal to jump to."""
        if self._has_marks:
            self._printer.raw(sequence)

    def _take_line(self, line: str) -> None:
        if not line.strip():
            return
        match commands.read_typed(line):
            case commands.Prompt(text=text):
                if self._reader.is_interactive:
                    self._printer.typed(text)
                self._submit(text)
            case commands.Unknown() as unknown:
                self._printer.line(unknown.message)
            case commands.Shell(command=command, is_private=is_private):
                self._run_shell(command, is_private)
            case commands.Remember(text=text):
                self._remember(text, line)
            case commands.Invoked(command=command, argument=argument) if command.handler == "agent":
                self._command(command.name, argument)
            case commands.Invoked(command=command, argument=argument):
                self._run_here(command.name, argument)
            case _ as never:
                assert_never(never)

    def _run_shell(self, command: str, is_private: bool) -> None:
        """Run the person's command and show what it says; Ctrl+C stops it."""
        if not command:
            return
        self._handle.send(RunShell(command, is_private))
        self._drain(
            lambda event: (
                (isinstance(event, RecordCommitted) and isinstance(event.record.payload, ShellRan))
                or isinstance(event, TurnFailed)
            )
        )
        if self._status.is_turn_running:
            self._drain(lambda event: isinstance(event, TurnFinished | TurnFailed))

    def _remember(self, text: str, line: str) -> None:
        """Ask for the memory file; where nobody can be asked, the line is a prompt like any other."""
        if not self._reader.is_interactive:
            self._submit(line)
            return
        options = self._invocation.options
        items = memory_items(Path(self._status.cwd or options.cwd), options.home)
        chosen = self._choose([f"{item.label} ({item.detail})" for item in items])
        if chosen is not None:
            self._run_command("remember", f"{items[chosen].id} {text}")

    def _submit(self, text: str) -> None:
        had_failed, self._has_failed = self._has_failed, False
        self._mark(OUTPUT_MARK)
        self._handle.send(SubmitPrompt(text))
        self._drain(lambda event: isinstance(event, TurnFinished | TurnFailed))
        self._mark(done_mark(EXIT_FAILURE if self._has_failed else 0))
        self._has_failed = self._has_failed or had_failed

    def _command(self, name: str, argument: str) -> None:
        """Send a command and wait for its answer, or for the end of a compaction it began."""
        if name in ("resume", "view", "model", "mode") and not argument:
            argument = self._chosen_for(name)
            if not argument:
                return
        self._run_command(name, argument)
        while self._rewind is not None:
            offered, self._rewind = self._rewind, None
            argument = self._chosen_rewind(offered)
            if argument:
                self._run_command("rewind", argument)

    def _run_command(self, name: str, argument: str) -> None:
        self._handle.send(RunCommand(name, argument))
        answers = (
            *(Report, Notice, SettingMoved, SessionOpened, CompactionFinished, CompactionEnded),
            *(RewindOffered, RewindPlanned),
        )
        is_answered = self._drain(
            lambda event: isinstance(event, (*answers, CompactionStarted)), timeout_s=ANSWER_TIMEOUT_S
        )
        if is_answered and self._status.is_compacting:
            self._drain(lambda event: isinstance(event, CompactionFinished | CompactionEnded))

    def _chosen_for(self, name: str) -> str:
        """What a person picks from a numbered list for a command that needs an argument; empty for nothing."""
        if not self._reader.is_interactive:
            self._printer.line(f"/{name} needs an argument here.")
            return ""
        match name:
            case "resume" | "view":
                sessions = OtherSessions(self._invocation.options, self._status.session_id)
                sessions.load()
                return choose_session(sessions, self._reader.read, self._printer.line)
            case "model":
                items = model_items()
            case _:
                items = mode_items()
        items = items[:MAX_CHOICES]
        if not items:
            self._printer.line("There is nothing to choose from.")
            return ""
        chosen = self._choose([f"{item.label} ({item.detail})" for item in items])
        return "" if chosen is None else items[chosen].id

    def _chosen_rewind(self, offered: RewindOffered | RewindPlanned) -> str:
        """The argument of `/rewind` for what a person picks from a numbered list; empty for nothing."""
        if isinstance(offered, RewindPlanned):
            for remark in (offered.problem, whole_diff(offered)):
                if remark:
                    self._printer.line(remark)
            items = way_items(offered)
        else:
            items = point_items(offered, datetime.now(UTC))
        if not self._reader.is_interactive:
            for item in items[:MAX_CHOICES]:
                self._printer.line(f"/rewind {item.id}: {item.label} ({item.detail})")
            return ""
        items = items[:MAX_CHOICES]
        chosen = self._choose([f"{item.label} ({item.detail})" for item in items])
        return "" if chosen is None else items[chosen].id

    def _run_here(self, name: str, argument: str) -> None:
        match name:
            case "help":
                for usage, words in commands.help_lines():
                    self._printer.line(f"{usage}: {words}")
                for sign, words in commands.SIGNS[:4]:
                    self._printer.line(f"{sign}: {words}")
                self._printer.line("Alt+Enter breaks the line; Ctrl+C stops a turn; Ctrl+D or /exit leaves.")
            case "exit":
                self._is_leaving = True
            case _:
                self._printer.line(f"/{name} works on the full screen only.")

    # ── events ──

    def _drain(self, is_last: Callable[[Event], bool], timeout_s: float | None = None) -> bool:
        """Print what comes until an event ends the waiting; False when time ran out or the agent is gone."""
        ends_at_s = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._is_closed:
            try:
                left_s = None if ends_at_s is None else max(0.0, ends_at_s - time.monotonic())
                event = self._inbox.get(timeout=left_s)
                self._take(event)
            except Empty:
                return False
            except KeyboardInterrupt:
                if self._is_second_interrupt():
                    raise
                self._handle.send(Interrupt())
                self._printer.line("Stopping. Ctrl+C again to leave.")
                continue
            if is_last(event):
                return True
        return False

    def _drain_pending(self) -> None:
        while True:
            try:
                self._take(self._inbox.get_nowait())
            except Empty:
                return

    def _is_second_interrupt(self) -> bool:
        now_s = time.monotonic()
        is_second = now_s - self._interrupted_at_s <= AGAIN_S
        self._interrupted_at_s = now_s
        return is_second

    def _take(self, event: Event) -> None:
        self._status = reduce_status(self._status, event)
        for change in self._fold.apply(event):
            self._printer.show(change)
        match event:
            case SessionOpened():
                place = f" ({event.git_branch})" if event.git_branch else ""
                self._printer.line(f"pyagent {__version__} · {event.model} · {event.cwd}{place}")
                if event.is_offline:
                    self._printer.line("Offline model: answers come from a small built-in program.")
                if event.is_read_only:
                    self._drain(_ends_opening_for_reading)
            case PermissionNeeded(request_id=request_id, question=question):
                self._ask(request_id, question)
            case QuestionAsked():
                self._answer_questions(event)
            case PermissionSettled(is_allowed=False):
                self._printer.line("Not allowed.")
            case RetryScheduled():
                self._printer.line(f"warning: {self._status.activity()}")
            case StreamSilent(silent_s=silent_s) if silent_s:
                self._printer.line(f"warning: {self._status.activity()}. Ctrl+C stops the turn.")
            case CompactionStarted():
                self._printer.line("Compacting the conversation.")
            case SettingMoved(name=name, value=value):
                self._printer.line(f"{name}: {value}")
            case Report():
                self._report(event)
            case RewindOffered() | RewindPlanned():
                self._rewind = event
            case PromptReturned(text=text):
                self._draft = inert(text)
            case TurnFailed():
                self._has_failed = True
            case ConversationClosed():
                self._is_closed = True
            case _:
                pass

    def _ask(self, request_id: str, question: PermissionQuestion) -> None:
        self._printer.question(question)
        if not self._reader.is_interactive:
            self._printer.line("Answered no: nobody is at a terminal.")
            self._handle.send(AnswerPermission(request_id, "no", "Nobody is here to be asked."))
            return
        options = ["Yes, once"]
        if question.session_rule:
            options.append(f"Yes, and allow {question.session_rule} for this session")
        options += ["No", "No, and tell the model what to do instead"]
        self._bell()
        try:
            chosen = self._choose(options, {"y": "Yes, once", "n": "No"})
        except KeyboardInterrupt:
            self._handle.send(Interrupt())
            return
        picked = "No" if chosen is None else options[chosen]
        if picked.startswith("Yes"):
            self._handle.send(AnswerPermission(request_id, "once" if chosen == 0 else "session"))
        else:
            feedback = ""
            if picked != "No":
                feedback = self._reader.read("What should the model do instead? ") or ""
            self._handle.send(AnswerPermission(request_id, "no", feedback.strip()))

    def _answer_questions(self, asked: QuestionAsked) -> None:
        if not self._reader.is_interactive:
            self._printer.line("The model has questions; nobody is at a terminal to answer them.")
            self._handle.send(AnswerQuestion(asked.request_id, reason=NOBODY_ANSWERS))
            return
        answers: list[tuple[str, ...]] = []
        self._bell()
        try:
            for question in asked.questions:
                answers.append(self._answer_one(question))
        except KeyboardInterrupt:
            self._handle.send(Interrupt())
            return
        if not any(answers):
            answers.clear()
        reason = "" if answers else "The user left the questions unanswered."
        self._handle.send(AnswerQuestion(asked.request_id, tuple(answers), reason))

    def _answer_one(self, question: Question) -> tuple[str, ...]:
        """The labels chosen by number, or other words as they were typed; empty for no answer."""
        self._printer.line(f"Question: {question.text}")
        for number, option in enumerate(question.options, start=1):
            self._printer.line(f"{number}. {option.label}" + (f": {option.description}" if option.description else ""))
        how = "Numbers, separated by commas" if question.is_multi_select else "A number"
        line = (self._reader.read(f"{how}, or your own words: ") or "").strip()
        parts = [part.strip() for part in line.split(",")] if question.is_multi_select else [line]
        if all(part.isdecimal() and 1 <= int(part) <= len(question.options) for part in parts):
            return tuple(question.options[int(part) - 1].label for part in dict.fromkeys(parts))
        return (line,) if line else ()

    def _choose(self, options: list[str], letters: Mapping[str, str] | None = None) -> int | None:
        """The index of the chosen option; None for none. `letters` are options known by their first letter, so that
        `y` and `yes` are answers too."""
        for number, option in enumerate(options, start=1):
            self._printer.line(f"{number}. {option}")
        while True:
            line = self._reader.read("Enter selection: ")
            if line is None or not line.strip():
                return None
            if line.strip().isdecimal() and 1 <= int(line) <= len(options):
                return int(line) - 1
            word = line.strip().lower()
            named = (letters or {}).get(word[:1])
            if named is not None and word in ("y", "yes", "n", "no"):
                return options.index(named)
            self._printer.line(f"Type a number from 1 to {len(options)}, or nothing.")

    def _report(self, report: Report) -> None:
        self._printer.line(report.title)
        text = report.text or (page_text(report.page) if report.page is not None else "")
        if text:
            self._printer.line(text)

    def _say_goodbye(self) -> None:
        if self._status.cost is not None and self._status.cost.total_usd:
            self._printer.line(f"Cost: ${self._status.cost.total_usd:.4f}")
        if self._status.session_id and self._printer.has_prompt and self._reader.is_interactive:
            self._printer.line(f"Resume this session with: pyagent --resume {self._status.session_id}")
