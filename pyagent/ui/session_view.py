"""One session behind the full screen: events become blocks, figures and dialogs; input becomes commands.

Loaded after the first paint: what it imports took a third of the time to get there.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyagent.commands import (
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
from pyagent.events import (
    CommandFinished,
    ConversationClosed,
    CostMoved,
    Event,
    Notice,
    OlderRecords,
    PermissionNeeded,
    PermissionSettled,
    PromptReturned,
    QuestionAsked,
    QuestionSettled,
    RecordCommitted,
    ReplayFinished,
    Report,
    RetryScheduled,
    RewindOffered,
    RewindPlanned,
    SessionOpened,
    SettingMoved,
    StatusLineMoved,
    StreamSilent,
    TurnFailed,
)
from pyagent.launch import AgentHandle, AgentStarter
from pyagent.pages import AnswerPage
from pyagent.ui import commands
from pyagent.ui.applying import apply_changes
from pyagent.ui.blocks import Block, BlockKind
from pyagent.ui.busy import SPINNER_FRAME_S, STILL_TICK_S, BusyLine, QueuePanel
from pyagent.ui.cli import EXIT_FAILURE, Invocation
from pyagent.ui.dialogs.approval import ApprovalScreen
from pyagent.ui.dialogs.picker import PickerItem, PickerScreen, Preview
from pyagent.ui.dialogs.question import QuestionScreen
from pyagent.ui.outer_terminal import OuterTerminal
from pyagent.ui.page_showing import say_in_dialog, show_report
from pyagent.ui.prompt import Prompt
from pyagent.ui.pump import EventPump
from pyagent.ui.questions import Asked, answer_to, dialog_contents, dialog_of
from pyagent.ui.record_blocks import OWN_SHELL
from pyagent.ui.reduce import Change, TranscriptFold
from pyagent.ui.sent_prompts import SentPrompts
from pyagent.ui.status import SessionStatus, reduce_status
from pyagent.ui.status_rows import StatusRows
from pyagent.ui.statusbar import StatusBar
from pyagent.ui.task_panel import TaskPanel
from pyagent.ui.transcript import Transcript
from pyagent.ui.words import short_path

if TYPE_CHECKING:
    from pyagent.ui.app import PyagentApp

QUIET_KEYS_S = 0.6
"""A dialog waits until no key was pressed for this long: the next letter of a sentence must not answer it."""

CACHE_COUNTDOWN_S = 5.0
"""How often the status bar's countdown moves on while nothing else happens: minutes, and seconds at the end."""

HINT_S = 4.0
"""Time for a remark that is to be read, not acted upon."""


def _moved_words(name: str, value: str) -> str:
    """What is said of a setting that a narrow status bar has no room for."""
    match name:
        case "title":
            return f"This session is called {value} now."
        case "effort":
            return f"Effort: {value or 'as the model has it'}, from the next prompt on."
        case _:
            return f"Working folder: {short_path(value)}"


class SessionView:
    """Holds what is known of the session and brings it to the app's widgets."""

    def __init__(
        self, app: PyagentApp, invocation: Invocation, starter: AgentStarter, *, clock: Callable[[], float]
    ) -> None:
        """`clock` gives seconds; it drives what is shown only."""
        self.status = SessionStatus(model=invocation.options.model, cwd=str(invocation.options.cwd))
        """What is known of the session."""
        self.take_count = 0
        """Batches of events shown so far."""
        self.outer = OuterTerminal(app, invocation.options.environ, clock)
        """The terminal around the screen."""
        self._app = app
        self._invocation = invocation
        self._clock = clock
        self._transcript = app.query_one(Transcript)
        self._transcripts = [self._transcript]
        self._prompt = app.query_one(Prompt)
        self._busy = app.query_one(BusyLine)
        self._queue = app.query_one(QueuePanel)
        self._tasks = app.query_one(TaskPanel)
        self._bar = app.query_one(StatusBar)
        self._ticker = app.set_interval(SPINNER_FRAME_S, self.tick, pause=True)
        self._fold = TranscriptFold(self._banner)
        self._is_loading = False
        self._was_open = False
        self._is_vim_set: bool | None = None
        self._asides = 0
        """Side questions that wait for their answers."""
        """What the settings said when a session was last opened; what `/vim` changes stays until they say otherwise."""
        self._has_older = False
        self._is_ticking = False
        self._busy_since_s = 0.0
        self._compacting_since_s: float | None = None
        self._retry_due_s = 0.0
        self._cache_ends_s: float | None = None
        """When the prompt cache goes cold, by our clock."""
        app.set_interval(CACHE_COUNTDOWN_S, self._show_bar)
        self._silent_since_s = 0.0
        self._sent = SentPrompts()
        self._questions: deque[Asked] = deque()
        self._asked: tuple[str, ApprovalScreen | QuestionScreen | None] | None = None
        self._pump = EventPump(self.take)
        self._pump.attach(asyncio.get_running_loop())
        self.handle: AgentHandle = starter(invocation.options, self._pump.put)

    def close(self) -> None:
        """Show no more events."""
        self._pump.detach()

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The transcript."""
        return self._fold.blocks

    @property
    def is_asking(self) -> bool:
        """Whether a question of the agent's is on the screen."""
        return self._asked is not None

    @property
    def is_asking_aside(self) -> bool:
        """Whether a side question waits for its answer."""
        return self._asides > 0

    def take(self, batch: list[Event]) -> None:
        """Show a batch of events."""
        self.take_count += 1
        with ExitStack() as placed:
            for transcript in self._transcripts:
                placed.enter_context(transcript.changes())
            for event in batch:
                self.status = reduce_status(self.status, event)
                self._show(self._fold.apply(event), event)
                self._react(event)
                self._sent.take(event)
                self.outer.take(event, self.status)
        self._show_status()

    def _show(self, changes: tuple[Change, ...], event: Event) -> None:
        """Bring changes to the screen. A resumed session is loaded in one go, at its end."""
        if isinstance(event, RecordCommitted) and event.is_replay:
            self._is_loading = True
            return
        for transcript in self._transcripts:
            if isinstance(event, ReplayFinished):
                transcript.load(self._fold.blocks)
            elif isinstance(event, OlderRecords):
                transcript.load_older(self._fold.blocks)
            elif not self._is_loading:
                apply_changes(transcript, changes)
        self._is_loading = self._is_loading and not isinstance(event, ReplayFinished)

    def show_in(self, transcript: Transcript) -> None:
        """Show the conversation in another transcript as well, from its beginning to what is still to come."""
        transcript.load(self._fold.blocks)
        self._transcripts.append(transcript)

    def leave(self, transcript: Transcript) -> None:
        """Show no more in that transcript."""
        self._transcripts.remove(transcript)

    def _react(self, event: Event) -> None:
        match event:
            case SessionOpened(cwd=cwd):
                if event.is_vim != self._is_vim_set:
                    was_switched_on = self._is_vim_set is None and self._prompt.is_vim
                    self._is_vim_set = event.is_vim
                    self._prompt.switch_vim(event.is_vim or was_switched_on, dict(event.insert_remaps))
                self._was_open = True
                self._has_older = event.has_older
                self._app.index_files(Path(cwd))
                self._transcript.linked_folder = Path(cwd)
                if event.terminal.is_motion_reduced:
                    self._reduce_motion()
                self._app.call_later(self._app.tell_key_problems)
                self._app.colours.use(event.theme)
            case StatusLineMoved(rows=rows):
                self._app.query_one(StatusRows).show(rows)
            case CostMoved(cache_expires_in_s=left_s):
                self._cache_ends_s = None if left_s is None else self._clock() + left_s
            case SettingMoved(name="theme", value=theme):
                self._app.colours.use(theme)
            case PermissionNeeded() | QuestionAsked():
                self._questions.append(event)
                self._ask_next()
            case PermissionSettled(request_id=request_id) | QuestionSettled(request_id=request_id):
                self._withdraw(request_id)
            case PromptReturned(text=text, display=display):
                self._prompt.give_back(text, display)
            case Report(page=AnswerPage()):
                self._app.run_worker(self._report_when_quiet(event), group="answer")
            case CommandFinished(name="btw"):
                self._asides -= 1
            case Report():
                self._report(event)
            case Notice(text=text, level="error", hint=hint):
                say_in_dialog(self._app, f"{text} {hint}".rstrip())
            case OlderRecords(has_more=has_more):
                self._has_older = has_more
            case RewindOffered() | RewindPlanned():
                self._offer_rewind(event)
            case SettingMoved(name="title" | "effort" | "cwd" as name, value=value):
                self._app.show_hint(_moved_words(name, value), lasting_s=HINT_S)
            case RetryScheduled(delay_s=delay_s):
                self._retry_due_s = self._clock() + delay_s
            case StreamSilent(silent_s=silent_s):
                self._silent_since_s = self._clock() - silent_s
            case TurnFailed(message=message, hint=hint) if not self._was_open:
                self._app.failure = f"{message} {hint}".rstrip()
            case ConversationClosed() if not self._was_open and not self._app.is_leaving:
                self._app.exit(return_code=EXIT_FAILURE)
            case ConversationClosed() if not self._app.is_leaving:
                self._app.show_hint("The agent has ended; Ctrl+D leaves. The session can be resumed.", lasting_s=None)
            case _:
                pass

    def _banner(self, event: SessionOpened) -> Block:
        place = short_path(event.cwd) + (f" ({event.git_branch})" if event.git_branch else "")
        lines = [f"{event.model} · {place}"]
        if event.is_offline:
            lines.append(
                "Offline model: answers come from a small built-in program, not from a language model. "
                "For the real thing start with ANTHROPIC_API_KEY set, or ANTHROPIC_BASE_URL for a local server."
            )
        if event.context_files:
            lines.append(f"Memory: {', '.join(short_path(path) for path in event.context_files)}")
        lines.append("resumed" if event.is_resumed else "/help shows commands and keys")
        return Block("banner", BlockKind.BANNER, title=f"pyagent {self._app.version_text}", text="\n".join(lines))

    def _show_status(self) -> None:
        if self.status.is_busy and not self._is_ticking:
            self._busy_since_s = self._clock()
            self._ticker.resume()
        elif not self.status.is_busy:
            self._ticker.pause()
        if not self.status.is_compacting:
            self._compacting_since_s = None
        elif self._compacting_since_s is None:
            self._compacting_since_s = self._clock()
        self._is_ticking = self.status.is_busy
        self.outer.show(self.status)
        self.tick()
        self._show_bar()
        self._tasks.show(self.status.tasks)
        queued = tuple(text for _, text in self.status.queued)
        self._queue.show(queued, self._sent.shown, is_open=self.status.is_open)

    def _reduce_motion(self) -> None:
        self._app.reduce_motion()
        self._pump.slow_down()
        self._ticker.stop()
        self._ticker = self._app.set_interval(STILL_TICK_S, self.tick, pause=not self._is_ticking)

    def _show_bar(self) -> None:
        left_s = None if self._cache_ends_s is None else self._cache_ends_s - self._clock()
        self._bar.show(replace(self.status.bar(left_s), cwd=short_path(self.status.cwd)))

    def tick(self) -> None:
        """Move the spinner and the countdown. Nothing but one row is painted.

        Under a dialog it stands still: the dialog dims the screen below it, so that any change there paints it all.
        """
        if self.status.is_busy and len(self._app.screen_stack) > 1:
            return
        now_s = self._clock()
        activity = ""
        if self.status.is_busy:
            activity = self.status.activity(self._retry_due_s - now_s, now_s - self._silent_since_s)
        # A compaction counts its own seconds and tokens, also in the middle of a turn.
        since_s, streamed_tokens = self._busy_since_s, self.status.streamed_tokens
        if self._compacting_since_s is not None:
            since_s, streamed_tokens = self._compacting_since_s, 0
        self._busy.show(activity, elapsed_s=max(0.0, now_s - since_s), streamed_tokens=streamed_tokens)

    def _report(self, report: Report) -> None:
        show_report(self._app, report, lambda name, argument: self.send(RunCommand(name, argument)))

    async def _report_when_quiet(self, report: Report) -> None:
        """For what comes unasked: the next letter of a sentence must not act on it."""
        await self._keys_are_quiet()
        self._report(report)

    def send(self, command: Command) -> None:
        """Tell the agent something."""
        self.handle.send(command)

    def show_older(self) -> None:
        """Ask for what stands before the first row, if a resume has left it on the disk."""
        if self._has_older:
            self._has_older = False
            self.send(RunCommand("older"))

    def tell_vim_mode(self, mode: str) -> None:
        """Tell of the input line's mode in vim editing; empty when it is not edited so."""
        self.send(VimModeMoved(mode))

    def interrupt(self) -> None:
        """Stop what runs."""
        self.send(Interrupt())

    def shut_down(self) -> None:
        """Have the agent end in good order."""
        self.send(Shutdown())

    def submitted(self, event: Prompt.Submitted) -> None:
        """The person sent the input line."""
        match commands.read_typed(event.text, shown=event.shown):
            case commands.Prompt():
                self.submit(event.text, event.shown, event.images)
            case commands.Shell(command="") | commands.Remember(text=""):
                self._prompt.set_text(event.shown)
                self._app.show_hint("There is nothing behind the sign yet.", lasting_s=HINT_S)
            case commands.Shell(command=command, is_private=is_private):
                self._transcript.action_scroll_end()
                self.send(RunShell(command, is_private))
            case commands.Remember(text=text):
                self._remember(text, event.shown)
            case commands.Unknown() as unknown:
                self._prompt.set_text(event.shown)
                self._app.show_hint(unknown.message, lasting_s=HINT_S)
            case commands.Invoked(command=command, argument=argument) if command.handler == "agent":
                self.command(command.name, argument)
            case commands.Invoked(command=command, argument=argument):
                self._app.run_here(command.name, argument)

    def _remember(self, text: str, shown: str) -> None:
        """Let the person choose the memory file; without a choice the words return."""
        from pyagent.ui.choosing import memory_items

        def chosen(scope: str | None) -> None:
            if scope is None:
                self._prompt.give_back(shown, shown)
            else:
                self.send(RunCommand("remember", f"{scope} {text}"))

        options = self._invocation.options
        items = memory_items(Path(self.status.cwd or options.cwd), options.home)
        self._app.push_screen(PickerScreen("Where is it remembered?", items, chosen_id="project"), chosen)

    def let_run_on(self) -> bool:
        """Leave the running command to the background; whether there is one."""
        is_running = any(name in ("Bash", OWN_SHELL) for _, name in self.status.running_tools)
        if is_running:
            self.send(LetRunOn())
        return is_running

    def switch_vim(self) -> None:
        """Edit as vim does, or no longer, for this run."""
        self._prompt.switch_vim(not self._prompt.is_vim)
        state = "on" if self._prompt.is_vim else "off"
        self._app.show_hint(f'Vim is {state}. For good: "editorMode" in settings.json.', lasting_s=HINT_S)

    def submit(self, text: str, shown: str = "", images: tuple[str, ...] = ()) -> None:
        """Send a prompt; `shown` is what stood in the input line."""
        self._transcript.action_scroll_end()
        self._sent.add(text, shown)
        self._show_status()
        self.send(SubmitPrompt(text, shown if shown != text else "", images))

    def command(self, name: str, argument: str) -> None:
        """Have the agent do it; where a choice is missing, ask for it first."""
        match (name, argument):
            case ("resume" | "view", ""):
                self.pick_session(name)
            case ("model", ""):
                from pyagent.ui.choosing import model_items

                self._pick("Model", model_items(), "model", self.status.model)
            case ("theme", ""):
                self._pick_theme()
            case ("btw", question):
                if question:
                    words = "Asked on the side; its answer comes by itself · Esc drops it"
                    self._app.show_hint(words, lasting_s=HINT_S)
                self._asides += 1
                self.send(RunCommand(name, argument))
            case ("mode", ""):
                from pyagent.ui.choosing import mode_items

                self._pick("Permission mode", mode_items(), "mode", self.status.mode)
            case _:
                self.send(RunCommand(name, argument))

    def _pick(
        self, title: str, items: list[PickerItem], command: str, current: str, preview: Preview | None = None
    ) -> None:
        """Let the person choose; the choice becomes the command's argument."""

        def chosen(item_id: str | None) -> None:
            if item_id is not None:
                self.send(RunCommand(command, item_id))

        self._app.push_screen(PickerScreen(title, items, chosen_id=current, preview=preview), chosen)

    def _pick_theme(self) -> None:
        """Let the person see the colours and choose."""
        from pyagent.ui.dialogs.theme_picker import ThemePicker

        colours = self._app.colours

        def chosen(name: str | None) -> None:
            if name is None:
                colours.show(colours.setting)
            else:
                self.send(RunCommand("theme", name))

        self._app.push_screen(ThemePicker(colours.setting, colours.show), chosen)

    def _offer_rewind(self, event: RewindOffered | RewindPlanned) -> None:
        """Let the person choose first the prompt, then the way, with the diff beside it."""
        from pyagent.ui.rewinding import point_items, way_items, way_preview

        match event:
            case RewindOffered():
                self._pick("Go back to before …", point_items(event, datetime.now(UTC)), "rewind", "")
            case RewindPlanned():
                self._pick("What goes back?", way_items(event), "rewind", "", lambda item: way_preview(event, item))

    def pick_session(self, command: str = "resume", *, is_start: bool = False) -> None:
        """Let the person choose another session of the folder. At the start, keys may come that are not for it."""
        self._app.run_worker(self._pick_session(command, is_start=is_start), group="sessions")

    async def _pick_session(self, command: str, *, is_start: bool) -> None:
        from pyagent.ui.choosing import OtherSessions
        from pyagent.ui.dialogs.session_picker import VIEWED, SessionPicker

        def chosen(session_id: str | None) -> None:
            if session_id is not None:
                is_viewed = session_id.startswith(VIEWED)
                self.send(RunCommand("view" if is_viewed else command, session_id.removeprefix(VIEWED)))

        sessions = OtherSessions(self._invocation.options, self.status.session_id)
        await asyncio.to_thread(sessions.load)
        if not sessions.items():
            self._app.show_hint("There is no other session in this folder.", lasting_s=HINT_S)
            return
        if is_start:
            await self._keys_are_quiet()
        self._app.push_screen(SessionPicker(sessions), chosen)

    def take_back_queued(self) -> bool:
        """Ask for the newest queued prompt; whether there is one."""
        if self.status.queued:
            self.send(TakeBackQueued())
        return bool(self.status.queued)

    # ── permission dialogs ──

    def _ask_next(self) -> None:
        if self._asked is None and self._questions:
            needed = self._questions.popleft()
            self._asked = (needed.request_id, None)
            self._app.run_worker(self._ask(needed), group="permission")

    async def _ask(self, needed: Asked) -> None:
        contents = await asyncio.to_thread(dialog_contents, needed)
        await self._keys_are_quiet()
        if not self._is_asked(needed):
            return
        screen = dialog_of(contents)
        self._asked = (needed.request_id, screen)
        answer: Any = await self._app.push_screen_wait(screen)
        if not self._is_asked(needed):
            return
        self._asked = None
        self.send(answer_to(needed, answer))
        self._ask_next()

    def _is_asked(self, needed: Asked) -> bool:
        """Whether this question still stands."""
        return self._asked is not None and self._asked[0] == needed.request_id

    async def _keys_are_quiet(self) -> None:
        left_s = self._app.last_key_s + QUIET_KEYS_S - time.monotonic()
        if left_s > 0:
            await asyncio.sleep(left_s)
            await self._keys_are_quiet()

    def _withdraw(self, request_id: str) -> None:
        """An interrupt or the agent ended the question."""
        self._questions = deque(needed for needed in self._questions if needed.request_id != request_id)
        if self._asked is not None and self._asked[0] == request_id:
            screen = self._asked[1]
            self._asked = None
            if screen is not None and screen.is_current:
                screen.dismiss()
            self._ask_next()
