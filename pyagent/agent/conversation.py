"""The conversation: an actor that alone writes its log.

Front ends put commands into its mailbox; it does one piece of work at a time (a turn, or a compaction by hand) and
stays open for an interrupt, an answer to a dialog or the next prompt meanwhile. Prompts that come during work are
queued in the log and sent next.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pyagent.agent.journal import Journal
from pyagent.agent.tool_runner import PermissionAnswer
from pyagent.agent.turn import TurnParts, run_turn
from pyagent.commands import (
    AnswerPermission,
    AnswerQuestion,
    Command,
    Interrupt,
    LetRunOn,
    RunCommand,
    RunShell,
    Shutdown,
    SubmitPrompt,
    TakeBackQueued,
    VimModeMoved,
)
from pyagent.errors import PyagentError, UsageError
from pyagent.events import (
    CommandFinished,
    EventSink,
    Notice,
    PermissionNeeded,
    PermissionQuestion,
    PermissionSettled,
    PromptReturned,
    Question,
    QuestionAsked,
    QuestionSettled,
    QueueChanged,
    RecordCommitted,
    ReplayFinished,
    TurnFailed,
    TurnFinished,
    TurnStarted,
)
from pyagent.log import Payload, PromptQueued, PromptTaken, Record, SetHead, TurnEnded, UserEntry
from pyagent.messages import Block, ImageBlock, TextBlock, scrub_surrogates

_log = logging.getLogger(__name__)


class CommandHandler(Protocol):
    """Answers one slash command. A returned coroutine is work: it runs alone, and an interrupt cancels it. A returned
    task runs beside a turn."""

    def __call__(self, argument: str) -> Coroutine[Any, Any, None] | asyncio.Task[None] | None: ...


class PermissionBook(Protocol):
    """Where a 'yes, for this session' is kept."""

    def allow_for_session(self, rule: str) -> None: ...


async def _nothing() -> None:
    """For conversations that keep no checkpoints."""


class PersonShell(Protocol):
    """Runs the person's own commands."""

    async def run(self, command: str, *, is_private: bool) -> str:
        """Run it and record what came of it; the prompt to answer at once, empty if there is none."""
        ...

    def let_run_on(self) -> str:
        """Leave the running command to the background; what to tell the person."""
        ...


class NoShell:
    """For conversations whose front end has no way to give commands."""

    async def run(self, command: str, *, is_private: bool) -> str:
        raise UsageError("This conversation has no shell.")

    def let_run_on(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Enclosed:
    """What goes with a prompt: entries that stand right before it, and blocks of its own message."""

    before: tuple[tuple[str, Payload], ...] = ()
    """(uuid, payload); an empty uuid for any."""
    images: tuple[ImageBlock, ...] = ()


async def _nothing_enclosed(prompt: SubmitPrompt) -> Enclosed:
    return Enclosed()


def _nothing_runs() -> None:
    """For a conversation without commands that run beside it."""


def _nothing_shown(mode: str) -> None:
    """For a conversation without a status line."""


@dataclass(frozen=True, slots=True)
class ConversationParts:
    """What a conversation is made of; the entry point builds the real objects, tests others."""

    session_id: str
    journal: Journal
    turn: Callable[[Conversation], TurnParts]
    emit: EventSink
    prepare_prompt: Callable[[], Awaitable[None]]
    """Called before a prompt is committed: sets what must stand before it (memory files, state that changed)."""
    check_prompt: Callable[[], None]
    """Raises `PyagentError` if no prompt may be sent now (context full with automatic compaction off)."""
    opened: Callable[[], Awaitable[None]]
    """Told once the conversation serves its mailbox: the first figures go out."""
    commands: Mapping[str, CommandHandler]
    permissions: PermissionBook
    close: Callable[[], Awaitable[None]]
    """Ends what the conversation started: background tasks, open files."""
    after_turn: Callable[[], Awaitable[None]] = _nothing
    """Called when a turn is over, however it ended."""
    enclose: Callable[[SubmitPrompt], Awaitable[Enclosed]] = _nothing_enclosed
    """Reads the files and images that a prompt names. Raises `PyagentError` for an image that cannot be sent."""
    stop_errands: Callable[[], object] = _nothing_runs
    """Interrupts what runs beside turns."""
    show_vim_mode: Callable[[str], None] = _nothing_shown
    """Told of the input line's mode in vim editing."""
    shell: PersonShell = field(default_factory=NoShell)
    refusal: PyagentError | None = None
    """Why nothing may be written; None for a conversation that goes on."""
    replayed: tuple[Record, ...] = ()
    """What is told of a resumed session at its opening."""


class Conversation:
    """See the module's docstring. All methods but `send` are for the event loop it runs on."""

    def __init__(self, parts: ConversationParts) -> None:
        self._parts = parts
        self._journal = parts.journal
        self._mailbox: asyncio.Queue[Command] = asyncio.Queue()
        self._work: asyncio.Task[None] | None = None
        self._waiting_commands: deque[RunCommand] = deque()
        self._questions: dict[str, tuple[PermissionQuestion, asyncio.Future[PermissionAnswer]]] = {}
        self._asked: dict[str, asyncio.Future[AnswerQuestion]] = {}
        self._turn_parts = parts.turn(self)

    def send(self, command: Command) -> None:
        """Put a command into the mailbox. Only from the conversation's own event loop."""
        self._mailbox.put_nowait(command)

    @property
    def session_id(self) -> str:
        return self._parts.session_id

    def replay(self) -> None:
        """Tell the front end what was said before."""
        for record in self._parts.replayed:
            self._parts.emit(RecordCommitted(record, is_replay=True))
        self._parts.emit(ReplayFinished())
        self._tell_queue()

    async def run(self) -> None:
        """Serve the mailbox until `Shutdown`; then everything is ended and the log closed."""
        opening = asyncio.ensure_future(self._parts.opened())
        try:
            while True:
                self._start_next_work()
                command = await self._next_command()
                if isinstance(command, Shutdown):
                    break
                if command is not None:
                    self._handle(command)
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            await self._stop_work()
            await self._parts.close()
            self._journal.close()

    async def _next_command(self) -> Command | None:
        """The next command, or None when the running work has ended first."""
        getter = asyncio.create_task(self._mailbox.get())
        waiting: set[asyncio.Task[Any]] = {getter} if self._work is None else {getter, self._work}
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not getter.done():
                getter.cancel()
        if self._work is not None and self._work.done():
            self._work = None
        if getter.done() and not getter.cancelled():
            return getter.result()
        return None

    def _start_next_work(self) -> None:
        while self._work is None:
            if self._waiting_commands:
                self._run_command(self._waiting_commands.popleft())
            elif self._journal.state.queued_prompts and self._parts.refusal is None:
                queued = next(iter(self._journal.state.queued.values()))
                self._journal.commit(PromptTaken(queued.prompt_id))
                self._tell_queue()
                if queued.sort == "prompt":
                    self._begin(self._turn(SubmitPrompt(queued.text, queued.display, queued.images)))
                else:
                    self._begin(self._guarded(self._shell(RunShell(queued.text, queued.sort == "private_shell")), "!"))
            else:
                return

    def _handle(self, command: Command) -> None:
        match command:
            case SubmitPrompt():
                self._submit(command)
            case RunShell():
                self._run_shell(command)
            case LetRunOn():
                if told := self._parts.shell.let_run_on():
                    self._parts.emit(Notice(told))
            case TakeBackQueued():
                self._take_back()
            case Interrupt():
                if self._work is not None:
                    self._work.cancel()
                else:
                    self._parts.stop_errands()
            case VimModeMoved(mode=mode):
                self._parts.show_vim_mode(mode)
            case RunCommand():
                self._run_command(command)
            case AnswerPermission():
                self._settle(command)
            case AnswerQuestion(request_id=request_id):
                asked = self._asked.get(request_id)
                if asked is not None and not asked.done():
                    asked.set_result(command)
            case Shutdown():
                raise AssertionError("handled by run()")

    def _submit(self, prompt: SubmitPrompt) -> None:
        if not prompt.text.strip() or self._is_refused(prompt.text, prompt.display):
            return
        if self._work is not None:
            self._queue(prompt.text, prompt.display, prompt.images)
            return
        self._begin(self._turn(prompt))

    def _run_shell(self, run: RunShell) -> None:
        if not run.command.strip() or self._is_refused(f"{'!!' if run.is_private else '!'}{run.command}"):
            return
        if self._work is not None:
            self._queue(run.command, sort="private_shell" if run.is_private else "shell")
            return
        self._begin(self._guarded(self._shell(run), "!"))

    def _is_refused(self, text: str, display: str = "") -> bool:
        """Give back what was typed, and say why, where nothing may be written."""
        refusal = self._parts.refusal
        if refusal is not None:
            self._parts.emit(PromptReturned(text, display))
            self._parts.emit(TurnFailed(refusal.kind, refusal.message, refusal.hint))
        return refusal is not None

    async def _shell(self, run: RunShell) -> None:
        """Run the person's command, and answer it if that is wanted."""
        asked = await self._parts.shell.run(scrub_surrogates(run.command), is_private=run.is_private)
        if asked:
            await self._turn(SubmitPrompt(asked, f"!{run.command}"))

    def _queue(
        self,
        text: str,
        display: str = "",
        images: tuple[str, ...] = (),
        sort: Literal["prompt", "shell", "private_shell"] = "prompt",
    ) -> None:
        uuid = self._journal.new_uuid()
        self._journal.commit(PromptQueued(uuid, scrub_surrogates(text), scrub_surrogates(display), images, sort))
        self._tell_queue()

    def _take_back(self) -> None:
        queued = self._journal.state.queued_prompts
        if queued and self._parts.refusal is None:
            prompt_id, text = list(queued.items())[-1]
            display = self._journal.state.queued[prompt_id].display
            self._journal.commit(PromptTaken(prompt_id, was_sent=False))
            self._tell_queue()
            self._parts.emit(PromptReturned(text, display))

    def _tell_queue(self) -> None:
        # Those of a session that is only read are somebody else's.
        queued = self._journal.state.queued_prompts if self._parts.refusal is None else {}
        self._parts.emit(QueueChanged(tuple(queued.items())))

    def _run_command(self, command: RunCommand) -> None:
        handler = self._parts.commands.get(command.name)
        if handler is None:
            self._parts.emit(Notice(f"There is no command /{command.name}.", "error", "See /help."))
            self._parts.emit(CommandFinished(command.name))
            return
        try:
            work = handler(command.argument)
        except PyagentError as error:
            self._parts.emit(Notice(error.message, "error", error.hint))
            self._parts.emit(CommandFinished(command.name))
            return
        if work is None:
            self._parts.emit(CommandFinished(command.name))
            return
        if isinstance(work, asyncio.Task):
            work.add_done_callback(lambda task: self._parts.emit(CommandFinished(command.name)))
            return
        if self._work is not None:
            work.close()
            self._waiting_commands.append(command)
            self._parts.emit(Notice(f"/{command.name} runs as soon as the current work is done."))
            return
        self._begin(self._guarded(work, command.name))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = asyncio.create_task(work)

    async def _guarded(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run a command's work; its errors are told, an interrupt ends it."""
        try:
            await work
        except asyncio.CancelledError:
            self._parts.emit(Notice("Interrupted."))
        except PyagentError as error:
            self._parts.emit(Notice(error.message, "error", error.hint))
        except Exception as error:
            self._report_bug(error)
        finally:
            self._parts.emit(CommandFinished(name))

    async def _turn(self, prompt: SubmitPrompt) -> None:
        started_at = self._journal.clock()
        text = scrub_surrogates(prompt.text)
        entry: Record | None = None
        try:
            self._parts.check_prompt()
            await self._parts.prepare_prompt()
            enclosed = await self._parts.enclose(prompt)
            head_seq = self._journal.state.next_seq - 1
            display = scrub_surrogates(prompt.display) if prompt.display != prompt.text else ""
            for uuid, payload in enclosed.before:
                self._journal.commit(payload, uuid=uuid)
            content: tuple[Block, ...] = (*enclosed.images, TextBlock(text))
            entry = self._journal.commit(UserEntry(content, origin="prompt", display=display))
            self._parts.emit(TurnStarted(entry.uuid))
            try:
                result = await run_turn(self._turn_parts)
            finally:
                await self._parts.after_turn()
        except asyncio.CancelledError:
            if entry is None:
                self._parts.emit(PromptReturned(text, prompt.display))
            elif self._is_unanswered(entry):
                self._journal.commit(SetHead(head_seq, reason="interrupted before an answer"))
                self._parts.emit(PromptReturned(text, prompt.display))
            # Without a last response nobody told the context's size since.
            self._turn_parts.context.tell_gauge()
            self._finish("interrupted", 0, started_at, "")
        except PyagentError as error:
            if entry is None:
                self._parts.emit(PromptReturned(text, prompt.display))
            self._turn_parts.context.tell_gauge()
            self._journal.commit(TurnEnded("failed", str(error)))
            self._parts.emit(TurnFailed(error.kind, error.message, error.hint))
        except Exception as error:
            self._report_bug(error)
        else:
            self._finish(result.stop_reason, result.api_rounds, started_at, result.text)

    def _is_unanswered(self, prompt: Record) -> bool:
        """Whether nothing but the prompt itself came of the turn."""
        return self._journal.state.view.items[-1].uuid == prompt.uuid

    def _finish(self, stop_reason: str, api_rounds: int, started_at: Any, text: str) -> None:
        duration_s = (self._journal.clock() - started_at).total_seconds()
        self._journal.commit(TurnEnded(stop_reason))
        self._parts.emit(TurnFinished(stop_reason, api_rounds, duration_s, text))

    def _report_bug(self, error: Exception) -> None:
        _log.exception("a turn ended by a mistake of pyagent's")
        message = f"pyagent made a mistake: {type(error).__name__}: {error}"
        hint = "The conversation is intact; the log file has the details. Send your prompt again."
        self._journal.commit(TurnEnded("failed", message))
        self._parts.emit(TurnFailed(type(error).__name__, message, hint))

    async def ask(self, tool_use_id: str, question: PermissionQuestion) -> PermissionAnswer:
        """Put a question to whoever sits at the front end, and wait for the answer."""
        request_id = self._journal.new_uuid()
        answer: asyncio.Future[PermissionAnswer] = asyncio.get_running_loop().create_future()
        self._questions[request_id] = (question, answer)
        self._parts.emit(PermissionNeeded(request_id, tool_use_id, question))
        is_allowed = False
        try:
            given = await answer
            is_allowed = given.is_allowed
            return given
        finally:
            self._questions.pop(request_id, None)
            self._parts.emit(PermissionSettled(request_id, is_allowed))

    def _settle(self, command: AnswerPermission) -> None:
        question, answer = self._questions.get(command.request_id, (None, None))
        if question is None or answer is None or answer.done():
            return
        if command.answer == "session" and question.session_rule:
            self._parts.permissions.allow_for_session(question.session_rule)
        answer.set_result(PermissionAnswer(command.answer != "no", command.feedback))

    async def ask_questions(self, tool_use_id: str, questions: tuple[Question, ...]) -> AnswerQuestion:
        """Put the model's own questions to whoever sits at the front end, and wait for the answers."""
        request_id = self._journal.new_uuid()
        answer: asyncio.Future[AnswerQuestion] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = answer
        self._parts.emit(QuestionAsked(request_id, tool_use_id, questions))
        is_answered = False
        try:
            given = await answer
            is_answered = bool(given.answers)
            return given
        finally:
            self._asked.pop(request_id, None)
            self._parts.emit(QuestionSettled(request_id, is_answered))

    async def _stop_work(self) -> None:
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
            self._work = None
