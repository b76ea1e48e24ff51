"""Line by line: the conversation printed into the scrollback, dialogs as numbered lists.

For screen readers, slow links, dumb terminals and pipes. The same events and commands as on the full screen; nothing
is ever redrawn, and no meaning is carried by colour.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import assert_never

from pyagent import __version__
from pyagent.commands import Interrupt, RunCommand, RunShell, SubmitPrompt
from pyagent.errors import READING
from pyagent.events import (
    CommandFinished,
    CompactionStarted,
    ConversationClosed,
    Event,
    Notice,
    PermissionNeeded,
    PermissionSettled,
    PromptReturned,
    QuestionAsked,
    RecordCommitted,
    ReplayFinished,
    Report,
    RetryScheduled,
    RewindOffered,
    RewindPlanned,
    SessionOpened,
    SettingMoved,
    StreamSilent,
    ToolFinished,
    TurnFailed,
    TurnFinished,
)
from pyagent.launch import AgentHandle
from pyagent.log import ShellRan
from pyagent.ui import commands
from pyagent.ui.blocks import BlockKind
from pyagent.ui.cli import EXIT_FAILURE, Invocation
from pyagent.ui.clipboard import clipboard_routes, copy_by_program, copy_sequences
from pyagent.ui.doctor import all_findings, lines_of
from pyagent.ui.gauge import READ_ONLY
from pyagent.ui.handover import Handover, handed_draft, refusal, target
from pyagent.ui.keybindings_file import own_file
from pyagent.ui.lines import inert
from pyagent.ui.pages.layout import page_text
from pyagent.ui.plain_dialogs import NEEDS_CHOICE, PlainDialogs
from pyagent.ui.plain_input import LineReader, NextModeKey
from pyagent.ui.plain_output import PlainPrinter
from pyagent.ui.reduce import TranscriptFold
from pyagent.ui.sequences import BELL, OUTPUT_MARK, PROMPT_MARK, done_mark
from pyagent.ui.status import SessionStatus, reduce_status
from pyagent.ui.terminal_kind import has_marks
from pyagent.ui.words import next_mode

OPENS_ANOTHER = frozenset({"clear", "resume", "branch", "view"})
"""Commands whose answer is the session they open; unless they are refused they are not over before it is there."""

POLL_S = 0.1
"""How often a working agent's person is looked after: what they type is queued without a wait anyone would notice."""

QUIET_S = 3.0
"""After the start nothing calls or speaks up on its own: a screen reader is still reading the first lines."""

LONG_TOOL_S = 5.0
"""A tool that took longer is called out at its end: the person has turned to something else."""

AGAIN_S = 2.0
"""Time in which a second Ctrl+C leaves."""


def _ends_opening_for_reading(event: Event) -> bool:
    """Whether it is settled that a session is only read, or that another is opened instead."""
    return isinstance(event, SessionOpened) or (isinstance(event, Notice) and event.text == READING)


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
        environ = invocation.options.environ
        is_spoken = bool(invocation.screen_reader_via) and environ.get("TERM", "") not in ("", "dumb", "unknown")
        self._has_marks = reader.is_interactive and (is_spoken or has_marks(environ))
        self._is_closed = self._is_resumed = False
        self._is_leaving = False
        self._has_failed = False
        self._tells_cost = False
        self._told_usd = 0.0
        self._interrupted_at_s = float("-inf")
        self._draft = handed_draft(invocation.options.environ)
        self._asked_count = 0
        """Prompts that were sent and are not answered."""
        self.handover: Handover | None = None
        """What the other front end is to go on with, once this one has left."""
        self._later: list[str] = []
        """Lines typed while the agent was at work, for when it is done."""
        self._opened_at_s = time.monotonic()
        self._dialogs = PlainDialogs(invocation.options, reader, printer, handle.send, self._bell)
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
        if self._is_resumed:
            self._drain(lambda event: isinstance(event, ReplayFinished))
        if self._invocation.picks_session:
            self._command("resume", "")
        if self._invocation.options.prompt:
            self._submit(self._invocation.options.prompt)
        while not self._is_over:
            if not self._is_quiet:
                self._drain_pending()
            if self._later:
                self._take_line(self._later.pop(0))
                continue
            self._printer.settle()
            self._mark(PROMPT_MARK)
            try:
                line = self._reader.read(self._prompt_words(), self._draft)
            except KeyboardInterrupt:
                if self._is_second_interrupt():
                    break
                self._printer.line("Ctrl+C again to leave.")
                continue
            except NextModeKey as key:
                self._draft = key.draft
                self._command("mode", next_mode(self._status.mode))
                continue
            self._draft = ""
            if line is None:
                break
            self._take_line(line)
        if self.handover is None:
            self._say_goodbye()
        return EXIT_FAILURE if self._has_failed and not self._reader.is_interactive else 0

    @property
    def _is_over(self) -> bool:
        return self._is_closed or self._is_leaving

    def _prompt_words(self) -> str:
        status = self._status
        if status.is_read_only:
            return f"{READ_ONLY} > "
        mode = "" if status.mode in ("", "default") else f"{status.mode} "
        return f"{mode}> "

    @property
    def _is_quiet(self) -> bool:
        """Whether a screen reader is still reading out how the session begins."""
        return bool(self._invocation.screen_reader_via) and time.monotonic() - self._opened_at_s < QUIET_S

    def _bell(self) -> None:
        """Call the person at a screen reader: an answer is there, or a question."""
        if self._invocation.screen_reader_via and not self._is_quiet:
            self._printer.raw(BELL)

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
        scope = self._dialogs.memory_scope(Path(self._status.cwd or self._invocation.options.cwd))
        if scope:
            self._run_command("remember", f"{scope} {text}")

    def _submit(self, text: str) -> None:
        self._send_prompt(text)
        self._await_turn()

    def _await_turn(self) -> None:
        """Print what the agent does until the prompts it was sent are answered."""
        had_failed, self._has_failed = self._has_failed, False
        self._mark(OUTPUT_MARK)
        self._drain(lambda event: isinstance(event, TurnFinished | TurnFailed) and not self._asked_count)
        self._bell()
        self._say_cost()
        self._mark(done_mark(EXIT_FAILURE if self._has_failed else 0))
        self._has_failed = self._has_failed or had_failed

    def _send_prompt(self, text: str) -> None:
        self._asked_count += 1
        self._handle.send(SubmitPrompt(text))

    def _take_typed_ahead(self) -> None:
        """What was typed while the agent works: prompts are queued, all else waits until it is done."""
        for line in self._reader.typed_ahead():
            if not line.strip():
                continue
            if isinstance(commands.read_typed(line), commands.Prompt):
                self._printer.typed(line)
                self._printer.line(f"queued: {line}")
                self._send_prompt(line)
            else:
                self._later.append(line)

    def _say_cost(self) -> None:
        """What the turn cost, where that is wanted: a screen reader has no bar to glance at."""
        cost = self._status.cost
        if cost is None or not self._tells_cost:
            return
        turn_usd, self._told_usd = cost.total_usd - self._told_usd, cost.total_usd
        self._printer.line(f"Cost: ${turn_usd:.4f}, ${cost.total_usd:.4f} in all")

    def _command(self, name: str, argument: str) -> None:
        """Send a command and wait for its answer, or for the end of a compaction it began."""
        if name in NEEDS_CHOICE and not argument:
            argument = self._dialogs.chosen_for(name, self._status.session_id)
            if not argument:
                return
        self._run_command(name, argument)
        while self._rewind is not None:
            offered, self._rewind = self._rewind, None
            argument = self._dialogs.chosen_rewind(offered)
            if argument:
                self._run_command("rewind", argument)

    def _run_command(self, name: str, argument: str) -> None:
        self._handle.send(RunCommand(name, argument))
        # `/plan` has `/mode` carry it out, and sends its task; `/init` sends its own prompt.
        last = "mode" if name == "plan" else name
        was_refused = False

        def is_over(event: Event) -> bool:
            nonlocal was_refused
            match event:
                case Notice(level="error"):
                    was_refused = True
                    return False
                case CommandFinished(name=finished):
                    return finished == last and (was_refused or name not in OPENS_ANOTHER)
                case _:
                    return isinstance(event, SessionOpened | TurnFailed)

        self._drain(is_over)
        if name == "init" or (name == "plan" and argument):
            self._asked_count += 1
            self._await_turn()

    def _run_here(self, name: str, argument: str) -> None:
        match name:
            case "help":
                for usage, words in commands.help_lines():
                    self._printer.line(f"{usage}: {words}")
                for sign, words in commands.SIGNS[:4]:
                    self._printer.line(f"{sign}: {words}")
                self._printer.line("Alt+Enter breaks the line; Ctrl+C stops a turn; Ctrl+D or /exit leaves.")
            case "doctor":
                for line in lines_of(all_findings(self._invocation.options)):
                    self._printer.line(line)
            case "exit":
                self._is_leaving = True
            case "copy":
                self._copy_answer(argument)
            case "vim":
                is_vim = self._reader.switch_vim(None)
                self._printer.line(f"The input line is edited {'as vim does' if is_vim else 'as usual'}.")
            case "keybindings":
                path = own_file(self._invocation.options.home)
                self._printer.line(f"Keys of the full screen are set in {path}; plain mode has those of the shell.")
            case "tui":
                self._switch_front_end(argument)
            case _:
                raise AssertionError(f"/{name} is in the table, but nothing here runs it")

    def _switch_front_end(self, argument: str) -> None:
        """Leave, for the front end that is to go on with this session."""
        to, status = target(argument, here="plain"), self._status
        if to is None:
            self._printer.line("There are two front ends: /tui plain and /tui fullscreen.")
            return
        problem = refusal(self._invocation.options, is_busy=status.is_busy, is_there=to == "plain")
        if not problem and not (self._reader.is_interactive and sys.stderr.isatty()):
            problem = "The full screen needs a terminal for input and output."
        if problem:
            self._printer.line(problem)
            return
        session_id = status.session_id if self._printer.has_prompt else ""
        self.handover = Handover(to, status.model, status.mode or "default", session_id, "\n".join(self._later))
        self._is_leaving = True

    def _copy_answer(self, argument: str) -> None:
        answers = [block.text for block in self._fold.blocks if block.kind is BlockKind.ASSISTANT]
        number = int(argument) if argument.isdecimal() and int(argument) > 0 else 1
        if len(answers) < number:
            self._printer.line("There is no such answer to copy.")
            return
        environ, text = self._invocation.options.environ, answers[-number]
        routes = clipboard_routes(environ)
        has_copied = bool(routes.command) and copy_by_program(routes.command, text, environ)
        if not has_copied and self._reader.is_interactive:
            for sequence in copy_sequences(environ, text):
                self._printer.raw(sequence)
                has_copied = True
        self._printer.line("Copied." if has_copied else "There is no clipboard to copy to.")

    # ── events ──

    def _drain(self, is_last: Callable[[Event], bool]) -> None:
        """Print what comes until an event ends the waiting, or the agent is gone."""
        while not self._is_closed:
            try:
                event = self._next_event()
                self._take(event)
            except KeyboardInterrupt:
                if self._is_second_interrupt():
                    raise
                self._handle.send(Interrupt())
                self._printer.line("Stopping. Ctrl+C again to leave.")
                continue
            if is_last(event):
                return

    def _next_event(self) -> Event:
        """The next event, however long it takes. A person may type meanwhile."""
        while True:
            try:
                return self._inbox.get(timeout=POLL_S)
            except Empty:
                if self._asked_count:
                    self._take_typed_ahead()

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
                # Of one that is only read the waiting below takes in what was said.
                self._is_resumed = event.is_resumed and not event.is_read_only
                self._asked_count = 0
                self._tells_cost = event.terminal.tells_cost
                self._reader.switch_vim(event.is_vim, dict(event.insert_remaps))
                place = f" ({event.git_branch})" if event.git_branch else ""
                self._printer.line(f"pyagent {__version__} · {event.model} · {event.cwd}{place}")
                if event.is_offline:
                    self._printer.line("Offline model: answers come from a small built-in program.")
                if event.is_read_only:
                    self._drain(_ends_opening_for_reading)
            case PermissionNeeded(request_id=request_id, question=question):
                self._dialogs.ask_permission(request_id, question)
            case QuestionAsked():
                self._dialogs.ask_questions(event)
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
                text = event.text or (page_text(event.page) if event.page is not None else "")
                self._printer.report(event.title, text)
            case RewindOffered() | RewindPlanned():
                self._rewind = event
            case PromptReturned(text=text):
                self._draft = inert(text)
            case TurnFailed():
                self._has_failed = True
                self._asked_count = max(self._asked_count - 1, 0)
            case TurnFinished():
                self._asked_count = max(self._asked_count - 1, 0)
            case ToolFinished(duration_s=duration_s) if duration_s > LONG_TOOL_S:
                self._bell()
            case ConversationClosed():
                self._is_closed = True
            case _:
                pass

    def _say_goodbye(self) -> None:
        if self._status.cost is not None and self._status.cost.total_usd:
            self._printer.line(f"Cost: ${self._status.cost.total_usd:.4f}")
        if self._status.session_id and self._printer.has_prompt and self._reader.is_interactive:
            self._printer.line(f"Resume this session with: pyagent --resume {self._status.session_id}")
