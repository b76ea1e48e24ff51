"""Puts one conversation together from its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyagent import __version__
from pyagent.agent.answer_form import FreeForm
from pyagent.agent.caller import ModelCaller
from pyagent.agent.checkpoint_keeper import CheckpointKeeper
from pyagent.agent.checkpoints import ShadowRepository, work_tree_of
from pyagent.agent.command_table import CommandTable
from pyagent.agent.context_keeper import PipelineKeeper
from pyagent.agent.conversation import Conversation, ConversationParts
from pyagent.agent.errands import Errands
from pyagent.agent.first_words import FirstWords
from pyagent.agent.gatekeeper import SessionGatekeeper
from pyagent.agent.git_state import git_place
from pyagent.agent.journal import Journal, new_uuid
from pyagent.agent.long_wait import asks_to_wait
from pyagent.agent.memory_files import LoadedMemory, load_memory_files
from pyagent.agent.memory_keeper import MemoryKeeper
from pyagent.agent.mentions import PromptFiles
from pyagent.agent.model_access import ModelAccess
from pyagent.agent.notes import DRAFT_SOURCE, NotesKeeper
from pyagent.agent.own_shell import OwnShell
from pyagent.agent.permissions import PermissionEngine
from pyagent.agent.pipeline_ports import NoHooks, TimelyHooks
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.restore_sources import DiskSources
from pyagent.agent.run_limits import RunLimits
from pyagent.agent.sampler import MainSampler
from pyagent.agent.server_clearing import ServerClearing
from pyagent.agent.session_folders import SessionFolders
from pyagent.agent.session_model import SessionModel
from pyagent.agent.session_place import SessionPlace
from pyagent.agent.session_reports import SessionReports
from pyagent.agent.shared import Shared
from pyagent.agent.side_calls import SideCalls
from pyagent.agent.signing_server import SummarySigner
from pyagent.agent.status_line import StatusLine, StatusLineFacts, status_line_input
from pyagent.agent.summarizer import SOURCE as SUMMARY_SOURCE
from pyagent.agent.summarizer import ForkSummarizer
from pyagent.agent.token_anchor import TokenAnchor
from pyagent.agent.tool_runner import ToolRunner
from pyagent.agent.transcript_commands import TranscriptCommands
from pyagent.agent.turn import TurnParts
from pyagent.agent.wire.render import Renderer
from pyagent.compaction.cleanup import cleanup_after
from pyagent.compaction.pipeline import Pipeline
from pyagent.compaction.ports import Ports
from pyagent.compaction.tracking import AutoCompactTracking
from pyagent.events import Event, EventSink, Notice, TasksMoved
from pyagent.log import Boundary
from pyagent.messages import JsonObject
from pyagent.tools.bash import BashTool
from pyagent.tools.read import ReadTool
from pyagent.tools.recall import RECALL
from pyagent.tools.shell import ShellSession
from pyagent.tools.tool import AnyTool, Asker, ToolContext, nobody


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
        self._session, self._journal = session, journal
        self._profiles, self._tools = profiles, tools
        self._source = "sdk" if self._options.is_headless else "repl_main_thread"
        self._folders = SessionFolders(shared, journal)
        self._vim_mode = ""
        self._git_places: dict[Path, JsonObject] = {}
        self._status_line = StatusLine(
            command=lambda: "" if shared.options.is_headless else shared.book.settings.status_line_command,
            facts=self._status_line_facts,
            environ=shared.options.environ,
            cwd=lambda: self._folders.cwd,
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
        self._model = SessionModel(
            access,
            desk=shared.desk,
            settings=self._settings,
            profiles=profiles,
            journal=journal,
            described=lambda: self._keeper.tell_gauge(),
            switched=self._follow_model,
        )
        for problem in self._model.choice.problems():
            self._emit(Notice(problem, "warning"))
        reports_breaks = self._settings.compaction.gates.prompt_cache_break_detection
        self._server_clearing = ServerClearing(
            profiles=profiles,
            store=shared.desk.store,
            settings=self._settings.compaction,
            endpoint=self._model.endpoint,
            cache_edit_servers=self._settings.cache_edit_servers,
        )
        self._caller = ModelCaller(
            access.client,
            journal=journal,
            profiles=profiles,
            store=shared.desk.store,
            endpoint=self._model.endpoint,
            waits=waits,
            emit=self._emit,
            fallbacks=self._model.choice.fallbacks,
        )
        self._sampler = MainSampler(
            self._caller,
            journal=journal,
            profiles=profiles,
            renderer=self._renderer,
            emit=self._emit,
            source=self._source,
            sends_wire_events=self._options.is_headless,
            sends_diagnostics=lambda: reports_breaks and self._model.takes_diagnostics(),
            reports_cache_breaks=reports_breaks,
            extra_fields=lambda: self._server_clearing.extra_fields(self._keeper.context()),
        )
        self._keeper: PipelineKeeper = self._make_keeper()
        self._anchor = TokenAnchor(
            self._keeper, journal=journal, profiles=profiles, store=shared.desk.store, emit=self._emit
        )
        self._transcript = TranscriptCommands(
            session, journal=journal, emit=self._emit, host=shared.host, cwd=self._options.cwd
        )

    def _memory_files(self) -> LoadedMemory:
        options = self._options
        if not options.has_memory_files:
            return LoadedMemory()
        return load_memory_files(options.cwd, options.home, options.environ, is_trusted=self._shared.is_trusted)

    def _tell(self, event: Event) -> None:
        """Pass an event on to the front end; what moves figures may call for the user's own status line."""
        self._shared.emit(event)
        self._status_line.watch(event)

    def _follow_model(self, access: ModelAccess) -> None:
        self._caller.client = access.client
        self._anchor.refresh(access)

    async def _prepare_prompt(self) -> None:
        self._model.choice.new_prompt()
        await self._model.settle()
        await self._memory.before_prompt()
        await self._checkpoints.before_prompt()

    def _open_shadow(self) -> ShadowRepository:
        options = self._options
        user_home = Path(options.environ.get("HOME") or Path.home())
        tree = work_tree_of(options.cwd, user_home)
        return ShadowRepository(options.home, tree, self._session.session_id, user_home=user_home)

    async def _close(self) -> None:
        await self._model.close()
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
                endpoint=self._model.endpoint,
                emit=self._emit,
                clock=self._journal.clock,
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
            learn_window=self._model.learn_window,
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
        self._anchor.refresh(self._model.access)
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
            opened=self._first_words().say,
            commands=self._commands().handlers(),
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
            stop_errands=self._errands.stop,
            show_vim_mode=self._show_vim_mode,
            replayed=self._transcript.replayed(),
        )

    def _first_words(self) -> FirstWords:
        return FirstWords(
            journal=self._journal,
            keeper=self._keeper,
            model=self._model,
            anchor=self._anchor,
            ask=lambda: self._ask,
            send=self._shared.host.send,
            is_cache_ttl_1h=self._settings.is_cache_ttl_1h,
            is_read_only=self._session.is_read_only,
            is_headless=self._options.is_headless,
        )

    async def _after_turn(self) -> None:
        await self._checkpoints.after_turn()
        self._journal.save_state_if_due()

    async def _before_tool(self, name: str, tool_input: JsonObject, is_read_only: bool) -> None:
        if name == RECALL:
            await self._transcript.load_history()
        await self._checkpoints.before_tool(name, tool_input, is_read_only)

    def _commands(self) -> CommandTable:
        return CommandTable(
            shared=self._shared,
            journal=self._journal,
            keeper=self._keeper,
            model=self._model,
            profiles=self._profiles,
            renderer=self._renderer,
            side_calls=self._side_calls,
            memory=self._memory,
            checkpoints=self._checkpoints,
            gatekeeper=self._gatekeeper,
            folders=self._folders,
            transcript=self._transcript,
            reports=self._reports(),
            tools=self._tools,
            shell=self._shell,
            errands=self._errands,
            notes=self._notes,
            server_clearing=self._server_clearing,
            emit=self._emit,
        )

    def _show_vim_mode(self, mode: str) -> None:
        self._vim_mode = mode
        self._status_line.run_soon()

    async def _git_place(self) -> JsonObject:
        """Asked once for each folder: the status line runs after every answer, and a remote seldom moves."""
        cwd = self._folders.cwd
        if cwd not in self._git_places:
            self._git_places[cwd] = await git_place(cwd)
        return self._git_places[cwd]

    async def _status_line_facts(self) -> JsonObject:
        state, profile = self._journal.state, self._profiles.current
        facts = StatusLineFacts(
            session_id=self._session.session_id,
            transcript_path=str(self._session.transcript_path or ""),
            cwd=str(self._folders.cwd),
            project_dir=str(self._options.cwd),
            added_dirs=tuple(str(folder) for folder in self._folders.allowed()[1:]),
            model=self._model.access.info.id,
            version=__version__,
            window_tokens=self._keeper.gauge().window_tokens,
            effort=state.settings.get("effort") or self._shared.book.settings.effort,
            has_thinking=(profile.thinking or {}).get("type") not in (None, "disabled"),
            open_for_s=self._shared.open_for_s(),
            mode=self._gatekeeper.engine.mode,
            git_place=await self._git_place(),
            vim_mode=self._vim_mode,
        )
        return status_line_input(facts, state)

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
            folders=self._folders,
            book=self._shared.book,
            access=lambda: self._model.access,
            open_for_s=self._shared.open_for_s,
            log_path=str(self._options.log_path),
        )

    def _tool_context(self, use_id: str, report: Callable[[str], None]) -> ToolContext:
        return ToolContext(
            tool_use_id=use_id,
            cwd=self._folders.cwd,
            allowed_dirs=self._folders.allowed(),
            files=self._journal.state,
            results_dir=self._session.results_dir,
            count_tokens=self._keeper.sizer.text,
            report=report,
            shell=self._shell,
            env=self._settings.env,
            transcript=self._journal.state,
            ask=self._ask,
        )
