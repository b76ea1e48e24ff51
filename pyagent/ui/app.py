"""The full screen: wiring between events, widgets and keys. What things look like and mean is decided elsewhere."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from textual import events, work
from textual.actions import SkipAction
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer

from pyagent import __version__
from pyagent.events import (
    ConversationClosed,
    Event,
    Interrupt,
    PermissionNeeded,
    PermissionSettled,
    PromptReturned,
    QuestionAsked,
    QuestionSettled,
    RecordCommitted,
    ReplayFinished,
    Report,
    RetryScheduled,
    RunCommand,
    SessionOpened,
    Shutdown,
    SubmitPrompt,
    TakeBackQueued,
    TurnFailed,
)
from pyagent.launch import AgentHandle, AgentStarter
from pyagent.ui import commands
from pyagent.ui.blocks import Block, BlockKind
from pyagent.ui.busy import SPINNER_FRAME_S, BusyLine, QueuePanel
from pyagent.ui.cli import EXIT_FAILURE, Invocation
from pyagent.ui.clipboard import copy_by_program
from pyagent.ui.completion import Candidate, CompletionMenu
from pyagent.ui.dialogs.approval import ApprovalScreen
from pyagent.ui.dialogs.help import HelpScreen, HelpSection
from pyagent.ui.dialogs.pager import PagerScreen, block_layout
from pyagent.ui.dialogs.picker import PickerItem, PickerScreen, Preview
from pyagent.ui.dialogs.question import QuestionScreen
from pyagent.ui.dialogs.text import TextScreen
from pyagent.ui.editor import edited_text
from pyagent.ui.files import FileIndex
from pyagent.ui.history import PromptHistory, Recall, history_path
from pyagent.ui.prompt import Prompt
from pyagent.ui.pump import EventPump
from pyagent.ui.questions import Asked, answer_to, dialog_contents, dialog_of
from pyagent.ui.reduce import AllReplaced, BlockGone, BlockPut, Change, TextGrown, TranscriptFold
from pyagent.ui.status import SessionStatus, reduce_status
from pyagent.ui.statusbar import StatusBar
from pyagent.ui.terminal import Watchdog, unwatch_signals, watch_signals
from pyagent.ui.theme import DARK, LIGHT, THEMES
from pyagent.ui.transcript import Transcript

AGAIN_S = 2.0
"""Time in which a second Ctrl+C or Ctrl+D leaves."""

ESCAPE_AGAIN_S = 0.5
"""Time in which a second Esc empties the input line; longer, and two separate wishes to stop would erase a draft."""

QUIET_KEYS_S = 0.6
"""A dialog waits until no key was pressed for this long: the next letter of a sentence must not answer it."""

TALL_ROWS = 20
"""From this height on there is a blank row to spare between the conversation and what stands below it."""

UNFOLDED_KINDS = (BlockKind.TOOL, BlockKind.THINKING, BlockKind.BOUNDARY, BlockKind.CLEARED)
MODE_CYCLE = ("default", "acceptEdits", "plan")
"""What Shift+Tab goes through. Never bypassPermissions: that takes a command or a flag."""


class PyagentApp(App[int]):
    """One session at a time on a full screen; the agent runs behind `AgentHandle`, on its own thread."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "pyagent"
    CSS = """
    Screen { background: $background; color: $foreground; }
    ModalScreen { background: $background 60%; }
    Screen.-tall > Transcript { margin-bottom: 1; }
    """
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL_ROWS, "-tall")]  # noqa: RUF012  # declared so by the base class
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "stop_or_leave", show=False, priority=True, id="app:interrupt"),
        Binding("ctrl+d", "leave_if_empty", show=False, id="app:exit"),
        Binding("ctrl+q", "ignore", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True, id="app:suspend"),
        Binding("ctrl+l", "redraw", show=False, priority=True, id="app:redraw"),
        Binding("ctrl+o", "fold_all", show=False, id="app:toggleTranscript"),
        Binding("escape", "interrupt", show=False, id="chat:cancel"),
        Binding("shift+tab", "next_mode", show=False, priority=True, id="chat:cycleMode"),
        Binding("alt+p", "pick_model", show=False, id="chat:modelPicker"),
        Binding("ctrl+r", "search_history", show=False, id="history:search"),
        Binding("pageup", "scroll_page(-1)", show=False, priority=True, id="scroll:pageUp"),
        Binding("pagedown", "scroll_page(1)", show=False, priority=True, id="scroll:pageDown"),
        Binding("ctrl+home", "scroll_to('home')", show=False, priority=True, id="scroll:top"),
        Binding("ctrl+end", "scroll_to('end')", show=False, priority=True, id="scroll:bottom"),
    ]

    def __init__(
        self,
        invocation: Invocation,
        starter: AgentStarter,
        *,
        watchdog: Watchdog | None = None,
        clock: Callable[[], float] = time.monotonic,
        version: str = "",
    ) -> None:
        """`clock` gives seconds; it drives what is shown only."""
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = _theme_for(invocation.options.environ)
        self.animation_level = "none"
        self.failure = ""
        """Why the program ends, if it could not begin."""
        self.handle: AgentHandle | None = None
        self.take_count = 0
        """Batches of events shown so far."""
        self._invocation = invocation
        self._starter = starter
        self._watchdog = watchdog
        self._clock = clock
        self._version = version or __version__
        self._pump = EventPump(self._take)
        self._fold = TranscriptFold(self._banner)
        self._status = SessionStatus()
        self._is_loading = False
        self._was_open = False
        self._is_leaving = False
        self._is_ticking = False
        self._busy_since_s = 0.0
        self._retry_due_s = 0.0
        self._hint_timer: Timer | None = None
        self._again: tuple[str, float] = ("", float("-inf"))
        self._early_prompts: list[str] = []
        self._typed_ahead: list[events.Event] | None = []
        self._last_key_s = float("-inf")
        self._questions: deque[Asked] = deque()
        self._asked: tuple[str, ApprovalScreen | QuestionScreen | None] | None = None
        self._files = FileIndex(invocation.options.cwd)
        past = PromptHistory(history_path(invocation.options.home, invocation.options.cwd))
        self._recall = Recall(past, self._take_back_queued)

    @property
    def status(self) -> SessionStatus:
        """What is known of the session."""
        return self._status

    @property
    def has_conversation(self) -> bool:
        """Whether anything was said that could be gone on with."""
        return any(block.kind is BlockKind.USER for block in self._fold.blocks)

    def compose(self) -> ComposeResult:
        menu = CompletionMenu()
        yield Transcript()
        yield QueuePanel()
        yield BusyLine()
        yield menu
        yield Prompt(
            menu=menu,
            commands=lambda _query: _COMMAND_CANDIDATES,
            files=lambda _query: [Candidate(path) for path in self._files.paths()],
            history=self._recall,
            placeholder="Ask, or / for commands, @ for files, ? for help",
        )
        yield StatusBar()

    def on_mount(self) -> None:
        self._transcript = self.query_one(Transcript)
        self._prompt = self.query_one(Prompt)
        self._busy = self.query_one(BusyLine)
        self._queue = self.query_one(QueuePanel)
        self._bar = self.query_one(StatusBar)
        self._ticker = self.set_interval(SPINNER_FRAME_S, self._tick, pause=True)
        self._transcript.can_focus = True
        self._transcript.load([Block("banner", BlockKind.BANNER, title=f"pyagent {self._version}", text="starting …")])
        options = self._invocation.options
        self._status = SessionStatus(model=options.model, cwd=_short_path(str(options.cwd)))
        self._bar.show(self._status.bar())
        self._prompt.focus()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        """The first paint is done: now the agent and all that is heavy."""
        loop = asyncio.get_running_loop()
        if self._watchdog is not None:
            watch_signals(loop, self._end_by_signal)
        self._pump.attach(loop)
        self.handle = self._starter(self._invocation.options, self._pump.put)
        if self._invocation.picks_session:
            self._pick_session()
        if self._invocation.options.prompt:
            self._submit(self._invocation.options.prompt)
        self._replay_typed_ahead()

    def on_unmount(self) -> None:
        self._pump.detach()
        if self._watchdog is not None:
            unwatch_signals(asyncio.get_running_loop())

    # ── keys typed before there is a focus ──

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key):
            self._last_key_s = time.monotonic()
        if self._typed_ahead is not None and isinstance(event, events.Key | events.Paste):
            self._typed_ahead.append(event)
            return
        await super().on_event(event)

    def _replay_typed_ahead(self) -> None:
        waiting, self._typed_ahead = self._typed_ahead or [], None
        for event in waiting:
            self.post_message(event)

    # ── events of the agent ──

    def _take(self, batch: list[Event]) -> None:
        self.take_count += 1
        with self._transcript.changes():
            for event in batch:
                self._status = reduce_status(self._status, event)
                self._show(self._fold.apply(event), event)
                self._react(event)
        self._show_status()

    def _show(self, changes: tuple[Change, ...], event: Event) -> None:
        """Bring changes to the screen. A resumed session is loaded in one go, at its end."""
        if isinstance(event, RecordCommitted) and event.is_replay:
            self._is_loading = True
            return
        if isinstance(event, ReplayFinished):
            self._is_loading = False
            self._load(self._fold.blocks)
            return
        if not self._is_loading:
            for change in changes:
                self._apply(change)

    def _apply(self, change: Change) -> None:
        match change:
            case BlockPut(block=block) if block.id in self._transcript:
                shown = self._transcript.block(block.id)
                changed = {
                    name: getattr(block, name) for name in _FIELDS if getattr(block, name) != getattr(shown, name)
                }
                if changed:
                    self._transcript.update(block.id, **changed)
            case BlockPut(block=block):
                self._transcript.append(self._as_unfolded(block))
            case TextGrown(block_id=block_id, delta=delta):
                self._transcript.append_text(block_id, delta)
            case BlockGone(block_id=block_id):
                self._transcript.remove_block(block_id)
            case AllReplaced(blocks=blocks):
                self._load(blocks)

    def _load(self, blocks: tuple[Block, ...]) -> None:
        self._transcript.load(self._as_unfolded(block) for block in blocks)

    def _as_unfolded(self, block: Block) -> Block:
        if not self._invocation.is_verbose or block.kind not in UNFOLDED_KINDS or block.collapsed is not None:
            return block
        return replace(block, collapsed=False)

    def _react(self, event: Event) -> None:
        match event:
            case SessionOpened(cwd=cwd):
                self._was_open = True
                self._early_prompts.clear()
                self._files = FileIndex(Path(cwd))
                self._files.refresh()
            case PermissionNeeded() | QuestionAsked():
                self._questions.append(event)
                self._ask_next()
            case PermissionSettled(request_id=request_id) | QuestionSettled(request_id=request_id):
                self._withdraw(request_id)
            case PromptReturned(text=text):
                self._give_back(text)
            case Report():
                self._report(event)
            case RetryScheduled(delay_s=delay_s):
                self._retry_due_s = self._clock() + delay_s
            case TurnFailed(message=message, hint=hint) if not self._was_open:
                self.failure = f"{message} {hint}".rstrip()
            case ConversationClosed() if not self._was_open and not self._is_leaving:
                self.exit(return_code=EXIT_FAILURE)
            case ConversationClosed() if not self._is_leaving:
                self._show_hint("The agent has ended; Ctrl+D leaves. The session can be resumed.", lasting_s=None)
            case _:
                pass

    # ── what is shown besides the transcript ──

    def _banner(self, event: SessionOpened) -> Block:
        place = _short_path(event.cwd) + (f" ({event.git_branch})" if event.git_branch else "")
        lines = [f"{event.model} · {place}"]
        if event.is_offline:
            lines.append(
                "Offline model: answers come from a small built-in program, not from a language model. "
                "Set ANTHROPIC_API_KEY or choose a /model for the real thing."
            )
        if event.context_files:
            lines.append(f"Memory: {', '.join(_short_path(path) for path in event.context_files)}")
        lines.append("resumed" if event.is_resumed else "/help shows commands and keys")
        return Block("banner", BlockKind.BANNER, title=f"pyagent {self._version}", text="\n".join(lines))

    def _show_status(self) -> None:
        if self._status.is_busy and not self._is_ticking:
            self._busy_since_s = self._clock()
            self._ticker.resume()
        elif not self._status.is_busy:
            self._ticker.pause()
        self._is_ticking = self._status.is_busy
        self._tick()
        self._bar.show(replace(self._status.bar(), cwd=_short_path(self._status.cwd)))
        self._queue.show(tuple([text for _, text in self._status.queued] + self._early_prompts))

    def _tick(self) -> None:
        """Move the spinner and the countdown. Nothing but one row is painted."""
        now_s = self._clock()
        activity = self._status.activity(self._retry_due_s - now_s) if self._status.is_busy else ""
        elapsed_s = max(0.0, now_s - self._busy_since_s)
        self._busy.show(activity, elapsed_s=elapsed_s, streamed_tokens=self._status.streamed_tokens)

    def _show_hint(self, text: str, lasting_s: float | None = AGAIN_S) -> None:
        if self._hint_timer is not None:
            self._hint_timer.stop()
            self._hint_timer = None
        self._busy.hint(text)
        if lasting_s is not None:
            self._hint_timer = self.set_timer(lasting_s, lambda: self._busy.hint(""))

    def _report(self, report: Report) -> None:
        self.push_screen(TextScreen(report.title, report.text, is_markdown=False))

    # ── prompts and commands ──

    def _send(self, command: Any) -> None:
        if self.handle is not None:
            self.handle.send(command)

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        match commands.read_typed(event.text):
            case commands.Prompt():
                self._submit(event.text, event.shown)
            case commands.Unknown() as unknown:
                self._prompt.set_text(event.shown)
                self._show_hint(unknown.message, lasting_s=2 * AGAIN_S)
            case commands.Invoked(command=command, argument=argument) if command.handler == "agent":
                self._command(command.name, argument)
            case commands.Invoked(command=command, argument=argument):
                self._run_here(command.name, argument)

    def _submit(self, text: str, shown: str = "") -> None:
        self._transcript.action_scroll_end()
        if not self._status.is_open:
            self._early_prompts.append(shown or text)
            self._show_status()
        self._send(SubmitPrompt(text, shown if shown != text else ""))

    def _command(self, name: str, argument: str) -> None:
        """Have the agent do it; where a choice is missing, ask for it first."""
        match (name, argument):
            case ("resume", ""):
                self._pick_session()
            case ("model", ""):
                from pyagent.ui.choosing import model_items

                self._pick("Model", model_items(), "model", self._status.model)
            case ("mode", ""):
                from pyagent.ui.choosing import mode_items

                self._pick("Permission mode", mode_items(), "mode", self._status.mode)
            case _:
                self._send(RunCommand(name, argument))

    def _pick(
        self, title: str, items: list[PickerItem], command: str, current: str, preview: Preview | None = None
    ) -> None:
        """Let the person choose; the choice becomes the command's argument."""

        def chosen(item_id: str | None) -> None:
            if item_id is not None:
                self._send(RunCommand(command, item_id))

        self.push_screen(PickerScreen(title, items, chosen_id=current, preview=preview), chosen)

    @work(group="sessions")
    async def _pick_session(self) -> None:
        from pyagent.ui.choosing import saved_sessions, session_items, session_preview

        options = self._invocation.options
        sessions = await asyncio.to_thread(saved_sessions, options.home, options.cwd)
        by_id = {info.session_id: info for info in sessions if info.session_id != self._status.session_id}
        if not by_id:
            self._show_hint("There is no other session in this folder.", lasting_s=2 * AGAIN_S)
            return
        items = session_items(by_id.values(), datetime.now(UTC))
        self._pick("Resume a session", items, "resume", "", lambda item_id: session_preview(by_id[item_id]))

    def _run_here(self, name: str, argument: str) -> None:
        match name:
            case "help":
                self.action_help()
            case "exit":
                self._leave(0)
            case "copy":
                self._copy_answer(argument)
            case "theme":
                self._choose_theme(argument)
            case _:
                raise AssertionError(f"/{name} is in the table, but nothing here runs it")

    def _copy_answer(self, argument: str) -> None:
        answers = [block.text for block in self._fold.blocks if block.kind is BlockKind.ASSISTANT]
        number = int(argument) if argument.isdecimal() and int(argument) > 0 else 1
        if len(answers) < number:
            self._show_hint("There is no such answer to copy.")
            return
        self._copy(answers[-number])
        self._show_hint(f"Copied {len(answers[-number]):,} characters.".replace(",", " "))

    def _choose_theme(self, argument: str) -> None:
        names = [theme.name for theme in THEMES]
        wanted = next((name for name in names if argument and name.endswith(argument.lower())), None)
        if wanted is not None:
            self.theme = wanted
            return

        def chosen(name: str | None) -> None:
            if name is not None:
                self.theme = name

        items = [PickerItem(name, name.removeprefix("pyagent-")) for name in names]
        self.push_screen(PickerScreen("Theme", items, chosen_id=self.theme), chosen)

    def _give_back(self, text: str) -> None:
        """Text returns to the input line; a draft that stands there stays, below it."""
        draft = self._prompt.text
        self._prompt.set_text(f"{text}\n{draft}" if draft.strip() else text)

    def _take_back_queued(self) -> bool:
        if self._status.queued:
            self._send(TakeBackQueued())
        return bool(self._status.queued)

    def on_prompt_help_requested(self) -> None:
        self.action_help()

    def on_prompt_editor_requested(self, event: Prompt.EditorRequested) -> None:
        with self.suspend():
            text, problem = edited_text(event.text, self._invocation.options.environ)
        self.refresh(layout=True)
        if problem:
            self._show_hint(problem, lasting_s=2 * AGAIN_S)
        else:
            self._prompt.set_text(text)

    def on_transcript_open_requested(self, event: Transcript.OpenRequested) -> None:
        block = self._transcript.block(event.block_id)
        self.push_screen(PagerScreen(f"{block.title} {block.text}".strip(), block_layout(block)))

    # ── permission dialogs ──

    def _ask_next(self) -> None:
        if self._asked is None and self._questions:
            needed = self._questions.popleft()
            self._asked = (needed.request_id, None)
            self._ask(needed)

    @work(group="permission")
    async def _ask(self, needed: Asked) -> None:
        contents = await asyncio.to_thread(dialog_contents, needed)
        await self._keys_are_quiet()
        if not self._is_asked(needed):
            return
        screen = dialog_of(contents)
        self._asked = (needed.request_id, screen)
        answer: Any = await self.push_screen_wait(screen)
        if not self._is_asked(needed):
            return
        self._asked = None
        self._send(answer_to(needed, answer))
        self._ask_next()

    def _is_asked(self, needed: Asked) -> bool:
        """Whether this question still stands."""
        return self._asked is not None and self._asked[0] == needed.request_id

    async def _keys_are_quiet(self) -> None:
        left_s = self._last_key_s + QUIET_KEYS_S - time.monotonic()
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

    # ── keys ──

    def _is_again(self, key: str, within_s: float) -> bool:
        """Whether the same key came a moment ago; remembers this one."""
        last_key, last_s = self._again
        now_s = self._clock()
        is_again = last_key == key and now_s - last_s <= within_s
        self._again = ("", float("-inf")) if is_again else (key, now_s)
        return is_again

    @property
    def _is_dialog_open(self) -> bool:
        return len(self.screen_stack) > 1

    def action_stop_or_leave(self) -> None:
        """Copy what is selected, else empty the input line, else stop the turn, else leave at the second press."""
        selected = self.screen.get_selected_text() or self._prompt.selected_text
        if selected:
            self._copy(selected)
            self.screen.clear_selection()
            self._show_hint(f"Copied {len(selected):,} characters.".replace(",", " "))
        elif self._is_dialog_open and not isinstance(self.screen, ApprovalScreen | QuestionScreen):
            self.pop_screen()
        elif self._prompt.text and not self._is_dialog_open:
            self._prompt.set_text("")
            self._show_hint("Ctrl+_ brings the text back")
        elif self._is_again("ctrl+c", AGAIN_S):
            self._leave(0)
        elif self._status.is_busy:
            self._send(Interrupt())
            self._show_hint("Stopping · Ctrl+C again to leave")
        else:
            self._show_hint("Ctrl+C again to leave")

    def action_leave_if_empty(self) -> None:
        if self._prompt.text or self._is_dialog_open:
            raise SkipAction
        if self._is_again("ctrl+d", AGAIN_S):
            self._leave(0)
        else:
            self._show_hint("Ctrl+D again to leave")

    def action_interrupt(self) -> None:
        """Stop what runs; twice in a row on an idle session, empty the input line."""
        if self._status.is_busy:
            self._send(Interrupt())
        elif self._prompt.text:
            if self._is_again("escape", ESCAPE_AGAIN_S):
                self._prompt.set_text("")
            else:
                self._show_hint("Esc again to empty the line")
        self._prompt.focus()

    def action_ignore(self) -> None:
        """Ctrl+Q is Textual's own way out; here it would lose a draft by one slip of a finger."""

    def action_redraw(self) -> None:
        self.refresh(repaint=True, layout=True)

    def action_fold_all(self) -> None:
        """Unfold everything, or fold it if anything is unfolded."""
        foldable = [block for block in self._transcript.blocks if block.kind in UNFOLDED_KINDS and block.is_foldable]
        is_any_open = any(not block.is_collapsed for block in foldable)
        for kind in UNFOLDED_KINDS:
            self._transcript.set_all_collapsed(kind, is_any_open)

    def action_next_mode(self) -> None:
        if self._is_dialog_open:
            raise SkipAction
        now = self._status.mode
        after = MODE_CYCLE[(MODE_CYCLE.index(now) + 1) % len(MODE_CYCLE)] if now in MODE_CYCLE else MODE_CYCLE[0]
        self._send(RunCommand("mode", after))

    def action_pick_model(self) -> None:
        if self._is_dialog_open:
            raise SkipAction
        self._command("model", "")

    def action_search_history(self) -> None:
        """Pick an earlier prompt."""
        entries = list(dict.fromkeys(reversed(self._recall.entries)))
        if not entries:
            self._show_hint("There are no earlier prompts in this folder.")
            return

        def chosen(number: str | None) -> None:
            if number is not None:
                self._prompt.set_text(entries[int(number)])

        items = [PickerItem(str(index), " ".join(entry.split())[:400]) for index, entry in enumerate(entries)]
        self.push_screen(PickerScreen("Earlier prompts", items), chosen)

    def action_scroll_page(self, direction: int) -> None:
        if self._is_dialog_open:
            raise SkipAction
        self._transcript.action_half_page(direction)

    def action_scroll_to(self, end: str) -> None:
        if self._is_dialog_open:
            raise SkipAction
        if end == "home":
            self._transcript.action_scroll_home()
        else:
            self._transcript.action_scroll_end()

    def action_help(self) -> None:
        sections = (
            HelpSection("Keys", commands.KEYS),
            HelpSection("Commands", tuple(commands.help_lines())),
            HelpSection(
                "Mouse",
                (
                    ("click", "unfold or fold a row"),
                    ("drag", "select; Ctrl+C copies. With Shift (or Option) the terminal selects by itself"),
                ),
            ),
        )
        self.push_screen(HelpScreen(sections))

    @work(thread=True, group="clipboard")
    def _copy_by_program(self, text: str) -> None:
        copy_by_program(text)

    def _copy(self, text: str) -> None:
        self.copy_to_clipboard(text)
        self._copy_by_program(text)

    # ── the end ──

    def _leave(self, exit_code: int) -> None:
        self._is_leaving = True
        self._send(Shutdown())
        self.exit(return_code=exit_code)

    def _end_by_signal(self, exit_code: int) -> None:
        if self._watchdog is not None:
            self._watchdog.arm(exit_code)
        self._leave(exit_code)


_FIELDS = ("kind", "text", "title", "detail", "state", "facts", "diff", "elapsed_s")
"""What a block may change; whether it is folded belongs to the reader."""

_COMMAND_CANDIDATES = [Candidate(command.name, command.help) for command in commands.COMMANDS]


def _theme_for(environ: Any) -> str:
    """The light theme where the terminal says that its background is light."""
    background = str(environ.get("COLORFGBG", "")).rpartition(";")[2]
    return LIGHT if background in ("7", "15") else DARK


def _short_path(path: str) -> str:
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
