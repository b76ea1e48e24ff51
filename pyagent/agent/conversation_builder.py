"""Puts one conversation together from its parts."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pyagent import __version__
from pyagent.agent.answer_form import FreeForm
from pyagent.agent.caller import ModelCaller
from pyagent.agent.checkpoint_keeper import CheckpointKeeper
from pyagent.agent.checkpoints import ShadowRepository, work_tree_of
from pyagent.agent.cold_start import ASK_FROM_TOKENS, CLEAR, COMPACT, GO_ON, ColdStart, clearable, cold_start_question
from pyagent.agent.context_keeper import PipelineKeeper
from pyagent.agent.conversation import CommandHandler, Conversation, ConversationParts
from pyagent.agent.encoding import LocalEncoding
from pyagent.agent.errands import Errands
from pyagent.agent.export import export_path, write_export
from pyagent.agent.gatekeeper import SessionGatekeeper
from pyagent.agent.host import Host, NewSession, ResumedSession
from pyagent.agent.journal import Clock, Journal
from pyagent.agent.long_wait import asks_to_wait
from pyagent.agent.memory_edit import remember
from pyagent.agent.memory_files import LoadedMemory, load_memory_files
from pyagent.agent.memory_keeper import MemoryKeeper
from pyagent.agent.mentions import PromptFiles
from pyagent.agent.model_access import ModelAccess, ModelDesk
from pyagent.agent.model_choice import ModelChoice
from pyagent.agent.notes import DRAFT_SOURCE, NotesKeeper
from pyagent.agent.own_shell import OwnShell
from pyagent.agent.permissions import PermissionEngine
from pyagent.agent.pipeline_ports import NoHooks, TimelyHooks
from pyagent.agent.place_commands import PlaceCommands, new_memory_files
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.restore_sources import DiskSources
from pyagent.agent.rewind import RewindCommands
from pyagent.agent.sampler import MainSampler
from pyagent.agent.server_clearing import ServerClearing
from pyagent.agent.session_commands import SessionCommands
from pyagent.agent.session_place import SessionPlace
from pyagent.agent.session_reports import SessionReports
from pyagent.agent.settings_book import SettingsBook
from pyagent.agent.side_calls import SideCalls
from pyagent.agent.side_commands import SideCommands
from pyagent.agent.signing_server import SummarySigner
from pyagent.agent.status_line import StatusLine, StatusLineFacts, status_line_input
from pyagent.agent.summarizer import SOURCE as SUMMARY_SOURCE
from pyagent.agent.summarizer import ForkSummarizer
from pyagent.agent.token_anchor import TokenAnchor
from pyagent.agent.tool_runner import ToolRunner
from pyagent.agent.turn import TurnParts
from pyagent.agent.wire.render import Renderer
from pyagent.agent.wire.retry import CallWaits
from pyagent.commands import RunCommand
from pyagent.compaction.cleanup import cleanup_after
from pyagent.compaction.pipeline import Pipeline
from pyagent.compaction.ports import Ports
from pyagent.compaction.tracking import AutoCompactTracking
from pyagent.errors import UsageError
from pyagent.events import Event, EventSink, Notice, OlderRecords, TasksMoved
from pyagent.launch import LaunchOptions
from pyagent.log import Boundary, Record, UserEntry
from pyagent.messages import JsonObject
from pyagent.settings import Settings
from pyagent.state import ConversationState
from pyagent.tools.bash import BashTool
from pyagent.tools.read import ReadTool
from pyagent.tools.recall import RECALL
from pyagent.tools.shell import ShellSession
from pyagent.tools.tool import AnyTool, Asker, ToolContext, nobody


@dataclass(frozen=True, slots=True)
class Shared:
    """What all conversations of one program run share."""

    options: LaunchOptions
    settings: Settings
    book: SettingsBook
    emit: EventSink
    is_trusted: bool
    encoding: LocalEncoding
    desk: ModelDesk
    waits: CallWaits
    clock: Clock
    started_at: datetime
    host: Host
    """`/clear` and `/resume` go through it."""

    @property
    def extra_dirs(self) -> tuple[Path, ...]:
        """Folders beside the working one, from flags and settings."""
        return tuple(Path(folder) for folder in self.settings.additional_dirs)


class RunLimits:
    """How far one prompt may go: API rounds, and dollars from now on. None: no limit.

    What a resumed session cost before does not count: the budget is this run's.
    """

    def __init__(self, state: ConversationState, max_rounds: int | None, max_budget_usd: float | None) -> None:
        self._state = state
        self._max_rounds = max_rounds
        self._max_budget_usd = max_budget_usd
        self._spent_before_usd = state.cost_usd

    def stop_reason(self, api_rounds: int) -> str:
        if self._max_rounds is not None and api_rounds >= self._max_rounds:
            return "max_turns"
        if self._max_budget_usd is not None and self._spent_usd >= self._max_budget_usd:
            return "budget"
        return ""

    @property
    def _spent_usd(self) -> float:
        return self._state.cost_usd - self._spent_before_usd


class ConversationBuilder:
    """Puts one conversation together."""

    def __init__(
        self,
        shared: Shared,
        session: SessionPlace,
        journal: Journal,
        access: ModelAccess,
        profiles: ProfileBook,
        tools: dict[str, AnyTool],
        engine: PermissionEngine,
        form: FreeForm,
    ) -> None:
        self._shared = shared
        self._form = form
        self._options, self._settings = shared.options, shared.settings
        self._session, self._journal, self._access = session, journal, access
        self._profiles, self._tools = profiles, tools
        self._source = "sdk" if self._options.is_headless else "repl_main_thread"
        self._status_line = StatusLine(
            command=lambda: "" if shared.options.is_headless else shared.book.settings.status_line_command,
            facts=self._status_line_facts,
            environ=shared.options.environ,
            cwd=lambda: self._places.cwd,
            emit=shared.emit,
        )
        self._emit: EventSink = self._tell
        self._errands = Errands(self._tell)
        self._shell = ShellSession(self._settings, environ=self._options.environ)
        self._shell.on_change = lambda: self._emit(TasksMoved(self._shell.running_count))
        self._renderer = Renderer(lambda data: shared.encoding.count(data.decode("utf-8", "replace")))
        self._memory = MemoryKeeper(
            self._memory_files,
            journal=journal,
            emit=self._emit,
        )
        self._checkpoints = CheckpointKeeper(
            self._open_shadow if self._settings.has_file_checkpoints and self._options.is_persistent else None,
            journal=journal,
            emit=self._emit,
        )
        self._gatekeeper = SessionGatekeeper(engine, clock=shared.clock)
        self._ask: Asker = nobody
        waits = shared.waits
        if not self._options.is_headless:
            waits = replace(waits, agree_to_wait=asks_to_wait(lambda: self._ask))
        self._choice = ModelChoice(
            shared.desk,
            self._settings,
            profiles=profiles,
            access=lambda: self._access,
            effort=journal.state.settings.get("effort") or self._settings.effort,
        )
        for problem in self._choice.problems():
            self._emit(Notice(problem, "warning"))
        reports_breaks = self._settings.compaction.gates.prompt_cache_break_detection
        self._server_clearing = ServerClearing(
            profiles=profiles,
            store=shared.desk.store,
            settings=self._settings.compaction,
            endpoint=lambda: self._access.endpoint,
            cache_edit_servers=self._settings.cache_edit_servers,
        )
        self._caller = ModelCaller(
            access.client,
            journal=journal,
            profiles=profiles,
            store=shared.desk.store,
            endpoint=lambda: self._access.endpoint,
            waits=waits,
            emit=self._emit,
            fallbacks=self._choice.fallbacks,
        )
        self._sampler = MainSampler(
            self._caller,
            journal=journal,
            profiles=profiles,
            renderer=self._renderer,
            emit=self._emit,
            source=self._source,
            sends_wire_events=self._options.is_headless,
            sends_diagnostics=lambda: reports_breaks and self._takes_diagnostics(),
            reports_cache_breaks=reports_breaks,
            extra_fields=lambda: self._server_clearing.extra_fields(self._keeper.context()),
        )
        self._keeper: PipelineKeeper = self._make_keeper()
        self._anchor = TokenAnchor(
            self._keeper, journal=journal, profiles=profiles, store=shared.desk.store, emit=self._emit
        )
        self._places = PlaceCommands(
            journal=journal,
            emit=self._emit,
            send=shared.host.send,
            cwd=self._options.cwd,
            folders=self._allowed_dirs,
            memory=self._memory.look,
            count_tokens=lambda text: self._keeper.sizer.text(text),
            new_memory_files=lambda: new_memory_files(self._options.cwd, self._options.home),
        )
        self._model_facts: asyncio.Task[None] | None = None

    def _memory_files(self) -> LoadedMemory:
        options = self._options
        if not options.has_memory_files:
            return LoadedMemory()
        return load_memory_files(options.cwd, options.home, options.environ, is_trusted=self._shared.is_trusted)

    def _tell(self, event: Event) -> None:
        """Pass an event on to the front end; what moves figures may call for the user's own status line."""
        self._shared.emit(event)
        self._status_line.watch(event)

    def _takes_diagnostics(self) -> bool:
        access, model = self._access, self._profiles.current.model
        return access.is_first_party and self._shared.desk.store.is_on(access.endpoint, model, "diagnostics")

    async def _settle_model(self) -> None:
        """Before the first request: what the server says of the model replaces what the catalogue says."""
        if self._model_facts is None:
            self._model_facts = asyncio.create_task(self._ask_endpoint(self._access))
        await asyncio.shield(self._model_facts)

    async def _ask_endpoint(self, access: ModelAccess) -> None:
        info = await self._shared.desk.ask_endpoint(access)
        if info == access.info or access is not self._access:
            return
        self._access = replace(access, info=info)
        current = self._profiles.current
        is_used = current.profile_id in self._journal.state.profiles
        profile = current if is_used else self._choice.profile(self._access, current)
        self._profiles.replace(profile, info)
        self._keeper.tell_gauge()

    async def _prepare_prompt(self) -> None:
        self._choice.new_prompt()
        await self._settle_model()
        await self._memory.before_prompt()
        await self._checkpoints.before_prompt()

    def _open_shadow(self) -> ShadowRepository:
        options = self._options
        user_home = Path(options.environ.get("HOME") or Path.home())
        tree = work_tree_of(options.cwd, user_home)
        return ShadowRepository(options.home, tree, self._session.session_id, user_home=user_home)

    async def _close(self) -> None:
        if self._model_facts is not None:
            self._model_facts.cancel()
            await asyncio.gather(self._model_facts, return_exceptions=True)
        await self._status_line.close()
        await self._errands.close()
        await self._anchor.close()
        await self._notes.close()
        await self._shell.close()

    def _make_keeper(self) -> PipelineKeeper:
        journal, encoding = self._journal, self._shared.encoding
        pipeline = Pipeline.resumed(encoding, AutoCompactTracking.from_json(journal.state.tracking))
        self._side_calls = SideCalls(self._caller, journal=journal, profiles=self._profiles)
        self._notes = NotesKeeper(
            self._side_calls,
            self._summarizer(DRAFT_SOURCE, lambda event: None, is_awaited=False),
            pipeline=pipeline,
            journal=journal,
            profiles=self._profiles,
            renderer=self._renderer,
            settings=self._settings.compaction,
            path=self._session.notes_path,
        )
        ports = Ports(
            summarizer=self._summarizer(SUMMARY_SOURCE, self._emit),
            sources=DiskSources(
                journal.state, load_memory=self._memory.load_for_restore, is_memory=self._memory.is_memory
            ),
            hooks=TimelyHooks(NoHooks(), self._emit),
            notes=self._notes,
            new_uuid=new_uuid,
            clock=self._shared.clock,
            emit=self._emit,
            server=SummarySigner(
                self._side_calls,
                profiles=self._profiles,
                renderer=self._renderer,
                store=self._shared.desk.store,
                endpoint=lambda: self._access.endpoint,
                emit=self._emit,
            ),
        )
        return PipelineKeeper(
            pipeline,
            ports,
            journal=journal,
            profiles=self._profiles,
            settings=self._settings.compaction,
            emit=self._emit,
            source=self._source,
            transcript_path=str(self._session.transcript_path or ""),
            encoding_ready=encoding.ready,
            notes=self._notes,
            server_clearing=self._server_clearing,
            after_boundary=self._after_boundary,
            learn_window=self._learn_window,
        )

    def _summarizer(self, source: str, emit: EventSink, *, is_awaited: bool = True) -> ForkSummarizer:
        return ForkSummarizer(
            self._side_calls,
            journal=self._journal,
            profiles=self._profiles,
            renderer=self._renderer,
            emit=emit,
            source=source,
            is_awaited=is_awaited,
        )

    def _after_boundary(self, boundary: Boundary) -> None:
        """What the conversation forgets once a compaction stands in the log, and what is measured anew."""
        self._anchor.refresh(self._access)
        has_attribution = self._settings.compaction.gates.commit_attribution
        cleanup = cleanup_after(self._source, has_commit_attribution=has_attribution)
        if cleanup.resets_notes:
            self._notes.after_boundary(boundary)
        if cleanup.resets_memory_files:
            self._memory.after_boundary()
        if cleanup.forgets_measures:
            self._keeper.pipeline.counter.ledger.keep_only(self._journal.state.view)
        if cleanup.sweeps_file_contents:
            self._renderer.keep_only(self._journal.state.view)
        self._journal.save_state()

    def _learn_window(self, window_tokens: int, is_named: bool) -> None:
        """Believe the server about its window: for good if it named the figure, else for this session."""
        model = self._profiles.model
        if window_tokens >= model.window_tokens:
            return
        if is_named and not self._access.is_offline:
            self._shared.desk.store.learn(self._access.endpoint, model.id, window_tokens=window_tokens)
        self._profiles.replace(self._profiles.current, replace(model, window_tokens=window_tokens))

    def parts(self) -> ConversationParts:
        options, journal = self._options, self._journal
        runner = ToolRunner(
            self._tools,
            journal=journal,
            emit=self._emit,
            gatekeeper=self._gatekeeper,
            context_for=self._tool_context,
            before_run=self._before_tool,
        )
        turn = TurnParts(
            journal,
            self._sampler,
            self._keeper,
            runner,
            RunLimits(journal.state, options.max_turns, options.max_budget_usd),
            self._emit,
            self._form,
        )

        def with_person(conversation: Conversation) -> TurnParts:
            self._gatekeeper.ask_person = conversation.ask
            self._ask = conversation.ask_questions
            return turn

        return ConversationParts(
            session_id=self._session.session_id,
            journal=journal,
            turn=with_person,
            emit=self._emit,
            prepare_prompt=self._prepare_prompt,
            check_prompt=self._keeper.check_room,
            opened=self._tell_figures,
            commands=self._handlers(),
            permissions=self._gatekeeper,
            close=self._close,
            after_turn=self._after_turn,
            enclose=PromptFiles(
                ReadTool(self._settings),
                gatekeeper=self._gatekeeper,
                context_for=self._tool_context,
                new_uuid=new_uuid,
                emit=self._emit,
            ).enclose,
            shell=OwnShell(
                BashTool(self._settings),
                self._shell,
                journal=journal,
                emit=self._emit,
                context_for=self._tool_context,
                is_answered=self._settings.answers_own_commands,
            ),
            replayed=self._replayed(),
        )

    def _replayed(self) -> tuple[Record, ...]:
        """What a resumed screen shows at first: what stands behind the saved state, and a stretch before it."""
        state, history = self._journal.state, self._session.history
        if not state.is_partial:
            return state.branch
        return (*history.older(), *state.recent)

    async def _after_turn(self) -> None:
        await self._checkpoints.after_turn()
        self._journal.save_state_if_due()

    async def _before_tool(self, name: str, tool_input: JsonObject, is_read_only: bool) -> None:
        if name == RECALL:
            await self._load_history()
        await self._checkpoints.before_tool(name, tool_input, is_read_only)

    def _handlers(self) -> dict[str, CommandHandler]:
        commands = self._commands()
        rewind = RewindCommands(
            journal=self._journal,
            checkpoints=self._checkpoints,
            emit=self._emit,
            load_history=self._load_history,
            summarise=commands.compact,
            moved=self._moved,
        )
        return {
            **commands.handlers(),
            **self._side_commands().handlers(),
            "rewind": rewind.handle,
            "older": lambda argument: self._older(),
            "clear-results": lambda argument: self._keeper.clear_old_results(),
            "branch": self._branch,
            "export": self._export,
            "remember": self._remember,
            "thinking": lambda argument: commands.effort(self._choice.other_thinking()),
        }

    async def _remember(self, argument: str) -> None:
        """Add a line to a memory file; the model is told of it as of any change there."""
        options = self._options
        self._emit(Notice(await asyncio.to_thread(remember, argument, options.cwd, options.home, options.environ)))

    def _side_commands(self) -> SideCommands:
        return SideCommands(
            journal=self._journal,
            emit=self._emit,
            errands=self._errands,
            book=self._shared.book,
            keeper=self._keeper,
            server_clearing=self._server_clearing,
            notes=self._notes,
            gatekeeper=self._gatekeeper,
            places=self._places,
            checkpoints=self._checkpoints,
            side_calls=self._side_calls,
            profiles=self._profiles,
            renderer=self._renderer,
            shell=self._shell,
            tools=self._tools,
            folders=self._folders_with_origins,
            load_history=self._load_history,
        )

    def _allowed_dirs(self) -> tuple[Path, ...]:
        """Where files may be changed."""
        return tuple(folder for folder, _ in self._folders_with_origins())

    def _folders_with_origins(self) -> tuple[tuple[Path, str], ...]:
        origins = self._shared.book.loaded.item_origins.get("additional_dirs", {})
        return (
            (self._options.cwd, "working folder"),
            *((folder, origins.get(str(folder), "settings")) for folder in self._shared.extra_dirs),
            *((folder, "/add-dir") for folder in self._places.added_dirs),
        )

    def _status_line_facts(self) -> JsonObject:
        state, profile = self._journal.state, self._profiles.current
        facts = StatusLineFacts(
            session_id=self._session.session_id,
            transcript_path=str(self._session.transcript_path or ""),
            cwd=str(self._places.cwd),
            project_dir=str(self._options.cwd),
            added_dirs=tuple(str(folder) for folder in self._allowed_dirs()[1:]),
            model=self._access.info.id,
            version=__version__,
            window_tokens=self._keeper.gauge().window_tokens,
            effort=state.settings.get("effort") or self._shared.book.settings.effort,
            has_thinking=(profile.thinking or {}).get("type") not in (None, "disabled"),
            open_for_s=self._open_for_s(),
            mode=self._gatekeeper.engine.mode,
        )
        return status_line_input(facts, state)

    def _open_for_s(self) -> float:
        return (self._shared.clock() - self._shared.started_at).total_seconds()

    def _reports(self) -> SessionReports:
        return SessionReports(
            journal=self._journal,
            session=self._session,
            keeper=self._keeper,
            profiles=self._profiles,
            notes=self._notes,
            server_clearing=self._server_clearing,
            sampler=self._sampler,
            memory=self._memory,
            gatekeeper=self._gatekeeper,
            places=self._places,
            book=self._shared.book,
            access=lambda: self._access,
            open_for_s=self._open_for_s,
            log_path=str(self._options.log_path),
        )

    def _branch(self, argument: str) -> None:
        """`/branch [name]`: go on in a copy; this session stays as it is."""
        if not self._has_prompt:
            raise UsageError("Nothing was said yet that a copy could hold.")
        if self._session.transcript_path is None:
            raise UsageError("This session is not saved, so it cannot be copied.")
        title = " ".join(argument.split())
        self._shared.host.switch_to(ResumedSession(self._session.session_id, is_forked=True, title=title))

    async def _export(self, argument: str) -> None:
        """`/export [file]`: the conversation as .md, .txt, .json or .html."""
        path = export_path(argument, self._options.cwd, self._session.session_id)
        await self._load_history()
        state = self._journal.state
        title = state.settings.get("title") or "Conversation with pyagent"
        await asyncio.to_thread(write_export, path, title, state.branch)
        self._emit(Notice(f"Exported to {path}."))

    @property
    def _has_prompt(self) -> bool:
        """Whether anything was said: a saved state is only written behind something."""
        state = self._journal.state
        return state.is_partial or any(
            isinstance(record.payload, UserEntry) and record.payload.origin == "prompt" for record in state.records
        )

    async def _load_history(self) -> None:
        """For what looks further back than a resume had to read."""
        await self._session.history.complete(self._journal.state)

    async def _older(self) -> None:
        """Answer to `older`: the next stretch of what a resumed screen does not show yet."""
        records = await asyncio.to_thread(self._session.history.older)
        self._emit(OlderRecords(records, has_more=self._session.history.begin_offset > 0))

    def _moved(self) -> None:
        """The conversation stands elsewhere: so do its figures."""
        self._keeper.tell_gauge()
        self._keeper.tell_cost()

    async def _tell_figures(self) -> None:
        """The gauge and the bill as they stand, first from the coarse measure and then from the encoding."""
        self._keeper.tell_gauge()
        self._keeper.tell_cost()
        await self._shared.encoding.ready()
        if self._session.is_read_only:
            self._keeper.tell_gauge()
            return
        await self._settle_model()
        self._keeper.tell_gauge()
        self._anchor.refresh(self._access)
        await self._ask_about_cold_cache()

    async def _ask_about_cold_cache(self) -> None:
        """A long session whose cache is cold: what each way to go on costs, before anything is sent."""
        view, now_at = self._journal.state.view, self._journal.clock()
        used_tokens = self._keeper.gauge().used_tokens
        is_cold = view.last_assistant is not None and self._keeper.cache_expires_in_s() is None
        if self._options.is_headless or not is_cold or used_tokens <= ASK_FROM_TOKENS:
            return
        clearable_tokens, is_by_itself = clearable(self._keeper.context(), self._keeper.sizer)
        start = ColdStart(
            used_tokens, clearable_tokens, is_by_itself, view.idle_s(now_at), self._settings.is_cache_ttl_1h
        )
        given = await self._ask("", (cold_start_question(start, self._access.info),))
        match given.answers:
            case ((choice,),) if choice == COMPACT:
                self._shared.host.send(RunCommand("compact"))
            case ((choice,),) if choice == CLEAR:
                self._shared.host.send(RunCommand("clear-results"))
            case ((choice,),) if choice == GO_ON:
                self._keeper.keeps_old_results = True
            case _:
                pass

    def _tool_context(self, use_id: str, report: Callable[[str], None]) -> ToolContext:
        return ToolContext(
            tool_use_id=use_id,
            cwd=self._places.cwd,
            allowed_dirs=self._allowed_dirs(),
            files=self._journal.state,
            results_dir=self._session.results_dir,
            count_tokens=self._keeper.sizer.text,
            report=report,
            shell=self._shell,
            env=self._settings.env,
            transcript=self._journal.state,
            ask=self._ask,
        )

    def _commands(self) -> SessionCommands:
        host, reports = self._shared.host, self._reports()
        return SessionCommands(
            journal=self._journal,
            keeper=self._keeper,
            emit=self._emit,
            set_mode=lambda mode: self._gatekeeper.set_mode(mode),  # type: ignore[arg-type]  # checked by the command
            set_model=self._set_model,
            set_effort=self._choice.choose_effort,
            reports={"context": reports.context, "cost": reports.cost, "status": reports.status},
            start_over=lambda: host.switch_to(NewSession()),
            resume=lambda wanted: host.switch_to(ResumedSession(wanted)),
            view=lambda wanted: host.switch_to(ResumedSession(wanted, is_read_only=True)),
            cwd=str(self._options.cwd),
            load_history=self._load_history,
        )

    def _set_model(self, name: str) -> str:
        access = self._shared.desk.access(name)
        self._profiles.back_to_main()
        profile = self._choice.profile(access, self._profiles.current)
        self._access = access
        self._model_facts = None
        self._caller.client = access.client
        self._profiles.replace(profile, access.info)
        self._anchor.refresh(access)
        return access.info.id


def now() -> datetime:
    return datetime.now(UTC)


def new_uuid() -> str:
    return str(uuid.uuid4())
