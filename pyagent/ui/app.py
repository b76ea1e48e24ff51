"""The full screen: wiring between events, widgets and keys. What things look like and mean is decided elsewhere."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pyagent import __version__
from pyagent.ui import commands
from pyagent.ui.blocks import Block, BlockKind
from pyagent.ui.busy import BusyLine, QueuePanel
from pyagent.ui.completion import Candidate, CompletionMenu
from pyagent.ui.drafts import Draft
from pyagent.ui.files import FileIndex
from pyagent.ui.gauge import StatusModel
from pyagent.ui.handover import Handover, handed_draft, refusal, target
from pyagent.ui.history import PromptHistory, Recall, history_path
from pyagent.ui.keymap import bound
from pyagent.ui.prompt import Prompt
from pyagent.ui.prompt_app import AGAIN_S, FilesListed, PromptApp
from pyagent.ui.prompt_desk import PromptDesk
from pyagent.ui.status_rows import StatusRows
from pyagent.ui.statusbar import StatusBar
from pyagent.ui.task_panel import TaskPanel
from pyagent.ui.terminal import Watchdog, unwatch_signals, watch_signals
from pyagent.ui.theme import THEMES
from pyagent.ui.theming import Colours, first_theme_setting
from pyagent.ui.too_small import TooSmall, is_too_small
from pyagent.ui.transcript import Transcript
from pyagent.ui.type_ahead import TypeAhead
from pyagent.ui.words import PLACEHOLDER, STARTING, next_mode, short_path

if TYPE_CHECKING:
    from textual.driver import Driver

    from pyagent.launch import AgentStarter
    from pyagent.ui.cli import Invocation
    from pyagent.ui.images import Clipboard
    from pyagent.ui.instant import InstantPrompt
    from pyagent.ui.keyboard import BackgroundTold, InputDriver
    from pyagent.ui.search_bar import SearchBar
    from pyagent.ui.session_view import SessionView

_log = logging.getLogger(__name__)

END_AGAIN_S = 0.8
"""The same for Ctrl+D, which is no way to stop a turn."""

ESCAPE_AGAIN_S = 0.5
"""Time in which a second Esc empties the input line; longer, and two separate wishes to stop would erase a draft."""

TALL_ROWS = 20
"""From this height on there is a blank row to spare between the conversation and what stands below it."""


class PyagentApp(PromptApp):
    """One session at a time on a full screen; the agent runs behind `AgentHandle`, on its own thread."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "pyagent"
    CSS = """
    Screen { background: $background; color: $foreground; overflow: hidden hidden; layers: base cover; }
    ModalScreen { background: $background 60%; }
    ApprovalScreen, QuestionScreen { background: $background 30%; }
    Screen.-tall > Transcript { margin-bottom: 1; }
    """
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL_ROWS, "-tall")]  # noqa: RUF012  # declared so by the base class
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("app:interrupt", "stop_or_leave", priority=True),
        bound("app:exit", "leave_if_empty"),
        Binding("ctrl+q", "ignore", show=False, priority=True),
        bound("app:suspend", "suspend_process", priority=True),
        bound("app:redraw", "redraw", priority=True),
        bound("app:toggleTranscript", "read_transcript"),
        bound("app:toggleTodos", "toggle_tasks", priority=True),
        bound("task:background", "let_run_on"),
        bound("chat:cancel", "interrupt"),
        bound("chat:cycleMode", "next_mode", priority=True),
        bound("chat:modelPicker", "pick_model"),
        bound("chat:thinkingToggle", "toggle_thinking"),
        bound("history:search", "search_history"),
        bound("transcript:search", "search_transcript", priority=True),
        bound("scroll:pageUp", "scroll_page(-1)", priority=True),
        bound("scroll:pageDown", "scroll_page(1)", priority=True),
        bound("scroll:top", "scroll_to('home')", priority=True),
        bound("scroll:bottom", "scroll_to('end')", priority=True),
    ]

    def __init__(
        self,
        invocation: Invocation,
        starter: AgentStarter,
        *,
        watchdog: Watchdog | None = None,
        instant: InstantPrompt | None = None,
        clock: Callable[[], float] = time.monotonic,
        version: str = "",
        clipboard: Clipboard | None = None,
    ) -> None:
        """`clock` gives seconds; it drives what is shown only. `instant` is the prompt that stands on the screen,
        `clipboard` the desktop's by default."""
        super().__init__(driver_class=_driver_class())
        self.instant = instant
        for theme in THEMES:
            self.register_theme(theme)
        self.colours = Colours(self, first_theme_setting(invocation.options.home), invocation.options.environ)
        self.animation_level = "none"
        self.failure = ""
        """Why the program ends, if it could not begin."""
        self.last_key_s = float("-inf")
        """When a key was last pressed (monotonic seconds)."""
        self.has_focus_reported: bool | None = None
        """Whether the terminal says it is looked at; None if it never told."""
        self.is_leaving = False
        self._is_logging_print = False
        self.handover: Handover | None = None
        """What the other front end is to go on with, once this one has left."""
        self.version_text = version or __version__
        self.view: SessionView | None = None
        """The session, from the first paint on."""
        self._invocation = invocation
        self._starter = starter
        self._watchdog = watchdog
        self._clock = clock
        self._again: tuple[str, float] = ("", float("-inf"))
        self._typed_ahead = TypeAhead(self, self._pass_on, instant=instant, drops_enter=invocation.picks_session)
        self._files = FileIndex(invocation.options.cwd)
        self._desk = PromptDesk(self, invocation.options, clipboard)
        past = PromptHistory(history_path(invocation.options.home, invocation.options.cwd))
        self._recall = Recall(past, lambda: self.view is not None and self.view.take_back_queued())

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment this run was started in."""
        return self._invocation.options.environ

    def index_files(self, folder: Path) -> None:
        """Offer the files of this folder behind an `@`."""
        self._files = FileIndex(folder, lambda: self.post_message(FilesListed()))
        self._files.refresh()

    def compose(self) -> ComposeResult:
        menu = CompletionMenu()
        yield Transcript(is_unfolded=self._invocation.is_verbose)
        yield TaskPanel()
        yield QueuePanel()
        yield BusyLine()
        yield menu
        yield Prompt(
            menu=menu,
            commands=lambda _query: _COMMAND_CANDIDATES,
            files=lambda query: [Candidate(path) for path in self._files.matching(query)],
            history=self._recall,
            dropped=self._desk.dropped,
            placeholder=PLACEHOLDER,
        )
        yield StatusBar()
        yield StatusRows()

    def on_mount(self) -> None:
        self._transcript = self.query_one(Transcript)
        # Keys belong to the input line; those for reading work in the transcript's own view.
        self._transcript.can_focus = False
        self._prompt = self.query_one(Prompt)
        self._busy = self.query_one(BusyLine)
        title = f"pyagent {self.version_text}"
        self._transcript.load([Block("banner", BlockKind.BANNER, title=title, text=STARTING)])
        options = self._invocation.options
        self.query_one(StatusBar).show(StatusModel(model=options.model, cwd=short_path(str(options.cwd))))
        self._prompt.focus()
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        self.last_key_s = self._typed_ahead.take_over(self._prompt, self.query_one(QueuePanel))
        self.call_after_refresh(self._begin)

    def on_background_told(self, event: BackgroundTold) -> None:
        self.colours.told(event.is_light)

    async def _begin(self) -> None:
        """The first paint is done: now the agent and all that is heavy, on a thread, so that keys are still shown."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_loop_error)
        if self._watchdog is not None:
            watch_signals(loop, self._end_by_signal, self._watchdog.arm_from_signals())
        await self._typed_ahead.prompt_is_painted(self._prompt)
        self.run_worker(self._open_session(), group="start")

    async def _open_session(self) -> None:
        if "pyagent.ui.session_view" not in sys.modules:
            await asyncio.to_thread(import_module, "pyagent.ui.session_view")
        from pyagent.ui.session_view import SessionView

        self.view = SessionView(self, self._invocation, self._starter, clock=self._clock)
        if self._invocation.picks_session:
            self.view.pick_session(is_start=True)
        if self._invocation.options.prompt:
            self.view.submit(self._invocation.options.prompt)
        self.colours.ask_terminal()
        draft = handed_draft(self._invocation.options.environ)
        if draft:
            self._prompt.give_back(draft, "")
        self._desk.begin(self._prompt, is_typed_in=self._typed_ahead.is_waiting)
        for sent in self._typed_ahead.sent:
            self._recall.add(sent)
            self.view.submitted(Prompt.Submitted(sent.rstrip(), sent))
        self.call_later(self._typed_ahead.session_is_there)

    def on_unmount(self) -> None:
        if self.view is not None:
            self.view.close()
        if self._watchdog is not None:
            unwatch_signals(asyncio.get_running_loop())

    def on_resize(self, event: events.Resize) -> None:
        """Cover what has no room; the layout's scroll bars and half frames would be all there is to see."""
        for screen in self.screen_stack:
            if not is_too_small(event.size):
                screen.query(TooSmall).remove()
            elif not screen.query(TooSmall):
                screen.mount(TooSmall())

    # ── keys typed before there is a focus ──

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key):
            self.last_key_s = time.monotonic()
        elif isinstance(event, events.AppFocus | events.AppBlur):
            self.has_focus_reported = isinstance(event, events.AppFocus)
        is_typed = isinstance(event, events.Key | events.Paste) and not event.is_forwarded
        if is_typed and not self._typed_ahead.is_over:
            await self._typed_ahead.add(event)
        else:
            await self._pass_on(event)

    async def _pass_on(self, event: events.Event) -> None:
        """Act upon an event; a key may be part of a chord, or stand for another, once the keys are known."""
        if isinstance(event, events.Key) and not event.is_forwarded and self.view is not None:
            key = self._desk.key(event)
            if key is None:
                return
            event = key
        await super().on_event(event)

    # ── prompts and commands ──

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        self._session.submitted(event)

    def run_here(self, name: str, argument: str) -> None:
        """Do a command that concerns only the screen."""
        match name:
            case "help":
                self.action_help()
            case "exit":
                self._leave(0)
            case "copy":
                self._copy_answer(argument)
            case "vim":
                self._session.switch_vim()
            case "keybindings":
                self._desk.edit_keys()
            case "doctor":
                self.run_worker(self._look_for_faults(), group="doctor", exclusive=True)
            case "tui":
                self._switch_front_end(argument)
            case _:
                raise AssertionError(f"/{name} is in the table, but nothing here runs it")

    def _switch_front_end(self, argument: str) -> None:
        """Leave, for the front end that is to go on with this session."""
        to, status = target(argument, here="fullscreen"), self._session.status
        if to is None:
            self.show_hint("There are two front ends: /tui plain and /tui fullscreen.")
            return
        problem = refusal(self._invocation.options, is_busy=status.is_busy, is_there=to == "fullscreen")
        if problem:
            self.show_hint(problem)
            return
        has_prompt = any(block.kind is BlockKind.USER for block in self._session.blocks)
        session_id = status.session_id if has_prompt else ""
        self.handover = Handover(to, status.model, status.mode or "default", session_id, self._prompt.kept_text)
        self._prompt.bring_back(Draft())
        self._prompt.set_text("")
        self._leave(0)

    async def _look_for_faults(self) -> None:
        from pyagent.ui.dialogs.text import TextScreen
        from pyagent.ui.doctor import all_findings, lines_of, with_terminal

        options = self._invocation.options
        self.show_hint("Looking …", lasting_s=None)
        found = await asyncio.to_thread(lambda: list(all_findings(options)))
        self.show_hint("", lasting_s=None)
        report = "\n".join(lines_of(with_terminal(found, options.environ)))
        await self.push_screen(TextScreen("Doctor", report, is_markdown=False))

    def _copy_answer(self, argument: str) -> None:
        answers = [block.text for block in self._session.blocks if block.kind is BlockKind.ASSISTANT]
        number = int(argument) if argument.isdecimal() and int(argument) > 0 else 1
        if len(answers) < number:
            self.show_hint("There is no such answer to copy.")
            return
        self.copy_to_clipboard(answers[-number])

    def on_transcript_top_reached(self) -> None:
        if self.view is not None:
            self.view.show_older()

    def on_transcript_open_requested(self, event: Transcript.OpenRequested) -> None:
        from pyagent.ui.dialogs.pager import PagerScreen, block_layout

        block = self._transcript.block(event.block_id)
        self.push_screen(PagerScreen(f"{block.title} {block.text}".strip(), block_layout(block)))

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
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
        elif self._is_dialog_open and not self._session.is_asking:
            self.pop_screen()
        elif self._prompt.text and not self._is_dialog_open:
            self._prompt.set_text("")
            self.show_hint("Ctrl+_ brings the text back")
        elif self._is_again("ctrl+c", AGAIN_S):
            self._leave(0)
        elif self._session.status.is_busy:
            self._session.interrupt()
            self.show_hint("Stopping · Ctrl+C again to leave")
        else:
            self.show_hint("Ctrl+C again to leave")

    def action_leave_if_empty(self) -> None:
        if self._prompt.text or self._is_dialog_open:
            raise SkipAction
        if self._is_again("ctrl+d", END_AGAIN_S):
            self._leave(0)
        else:
            self.show_hint("Ctrl+D again to leave")

    def action_interrupt(self) -> None:
        """Stop what runs; twice in a row on an idle session, empty the input line, or go back if it is empty."""
        if self._session.status.is_busy or (self._session.is_asking_aside and not self._prompt.text):
            self._session.interrupt()
        elif self._prompt.text:
            if self._is_again("escape", ESCAPE_AGAIN_S):
                self._prompt.set_text("")
            else:
                self.show_hint("Esc again to empty the line")
        elif self._session.blocks[1:] and self._is_again("escape", ESCAPE_AGAIN_S):
            self._session.command("rewind", "")
        self._prompt.focus()

    async def action_search_transcript(self) -> None:
        if self._is_dialog_open:
            raise SkipAction
        if self._prompt.has_focus and self._prompt.text:
            self._prompt.action_cursor_right()
            return
        # Made when it is first wanted: its imports would only delay the first paint.
        from pyagent.ui.search_bar import SearchBar

        if not self.query(SearchBar):
            await self.mount(SearchBar(self._transcript), after=self._transcript)
        self.query_one(SearchBar).open()

    def on_search_bar_found(self, event: SearchBar.Found) -> None:
        if event.query:
            self.show_hint(f"{event.count:,} blocks" if event.count != 1 else "1 block", lasting_s=None)
        else:
            self.show_hint("", lasting_s=None)

    def on_search_bar_closed(self) -> None:
        self.show_hint("", lasting_s=None)
        self._prompt.focus()

    def action_ignore(self) -> None:
        """Ctrl+Q is Textual's own way out; here it would lose a draft by one slip of a finger."""

    def action_redraw(self) -> None:
        self.refresh(repaint=True, layout=True)

    def action_read_transcript(self) -> None:
        """Show the whole transcript, everything unfolded, over the rest."""
        if self._is_dialog_open:
            raise SkipAction
        from pyagent.ui.dialogs.transcript_view import TranscriptScreen

        self.push_screen(TranscriptScreen(self._session, self._invocation.options.environ, self._transcript.top_id))

    def action_next_mode(self) -> None:
        if self._is_dialog_open:
            raise SkipAction
        self._session.command("mode", next_mode(self._session.status.mode))

    def action_pick_model(self) -> None:
        if self._is_dialog_open:
            raise SkipAction
        self._session.command("model", "")

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

    def copy_to_clipboard(self, text: str) -> None:
        self._clipboard = text
        self._session.outer.copy(text)

    @property
    def terminal_driver(self) -> InputDriver | None:
        """The driver while it holds a terminal; None in a test without one."""
        from pyagent.ui.keyboard import InputDriver

        return self._driver if isinstance(self._driver, InputDriver) else None

    def reduce_motion(self) -> None:
        """Let nothing move or blink."""
        self._prompt.cursor_blink = False
        self._busy.is_still = True

    # ── the end ──

    def _handle_exception(self, error: Exception) -> None:
        """End the app, and leave the whole trace in the log: Textual's own is drawn for the screen, at its width."""
        _log.critical("the screen ended by a mistake of pyagent's", exc_info=error)
        super()._handle_exception(error)

    def _print(self, text: str, stderr: bool = False) -> None:
        """Keep what a library prints in the log; it would be lost."""
        super()._print(text, stderr)
        if text.strip() and not self._is_logging_print:
            # Logging prints to stderr where it has no file, or cannot write it: that must not be logged in turn.
            self._is_logging_print = True
            try:
                _log.warning("printed to %s: %s", "stderr" if stderr else "stdout", text.rstrip())
            finally:
                self._is_logging_print = False

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the app also for a mistake in a callback, after which the screen would show half of what is known."""
        error = context.get("exception")
        if isinstance(error, Exception) and "handle" in context:
            self._handle_exception(error)
        else:
            loop.default_exception_handler(context)

    def _leave(self, exit_code: int) -> None:
        self.is_leaving = True
        self._desk.leave()
        if self.view is not None:
            self.view.shut_down()
        self.exit(return_code=exit_code)

    def _end_by_signal(self, exit_code: int) -> None:
        if self._watchdog is not None:
            self._watchdog.arm(exit_code)
        self._leave(exit_code)


_COMMAND_CANDIDATES = [Candidate(command.name, command.help) for command in commands.COMMANDS]


def _driver_class() -> type[Driver] | None:
    """The driver with our own reading of the keyboard, where there is one; Textual chooses elsewhere."""
    if sys.platform == "win32":
        return None
    from pyagent.ui.keyboard import InputDriver

    return InputDriver
