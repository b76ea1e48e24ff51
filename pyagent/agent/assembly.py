"""Builds conversations from real parts: the one place where everything meets."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pyagent import __version__
from pyagent.agent.checkpoint_keeper import CheckpointKeeper
from pyagent.agent.checkpoints import ShadowRepository, work_tree_of
from pyagent.agent.config import load_settings
from pyagent.agent.context_keeper import PipelineKeeper
from pyagent.agent.context_report import ContextFacts, context_report
from pyagent.agent.conversation import CommandHandler, Conversation, ConversationParts
from pyagent.agent.deferred_sink import DeferredSink
from pyagent.agent.encoding import LocalEncoding
from pyagent.agent.gatekeeper import SessionGatekeeper
from pyagent.agent.git_state import branch_of, git_summary
from pyagent.agent.host import Host, NewSession, Opening, ResumedSession
from pyagent.agent.journal import Journal
from pyagent.agent.long_wait import asks_to_wait
from pyagent.agent.memory_files import load_memory_files
from pyagent.agent.memory_keeper import MemoryKeeper
from pyagent.agent.model_access import ModelAccess, ModelDesk, ModelServer, profile_for
from pyagent.agent.model_choice import ModelChoice, with_effort
from pyagent.agent.permissions import PermissionEngine
from pyagent.agent.pipeline_ports import NoHooks, NoNotes
from pyagent.agent.reports import StatusFacts, breaks_text, cost_report, status_report
from pyagent.agent.restore_sources import DiskSources
from pyagent.agent.rewind import RewindCommands
from pyagent.agent.sampler import MainSampler, ProfileBook
from pyagent.agent.server_tools import WEB_SEARCH_RULE, with_server_tools
from pyagent.agent.session_commands import SessionCommands
from pyagent.agent.session_store import (
    DiscardingSink,
    LoadedSession,
    RecordSink,
    SessionFile,
    find_session,
    list_sessions,
    project_dir,
    read_session,
)
from pyagent.agent.summarizer import ForkSummarizer
from pyagent.agent.system_prompt import Environment, build_system_prompt
from pyagent.agent.tool_runner import ToolRunner
from pyagent.agent.trust import is_trusted
from pyagent.agent.turn import TurnParts
from pyagent.agent.web import WebClient
from pyagent.agent.wire.profile import RENDERER_VERSION, RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.agent.wire.retry import CallWaits
from pyagent.compaction.pipeline import Pipeline
from pyagent.compaction.ports import Ports
from pyagent.compaction.tracking import AutoCompactTracking
from pyagent.errors import SessionError
from pyagent.events import EventSink, Notice, Report, SessionOpened
from pyagent.launch import LaunchOptions
from pyagent.log import SCHEMA_VERSION, AssistantEntry, Record, SessionStarted, SettingChanged
from pyagent.messages import JsonObject
from pyagent.settings import PermissionMode, with_value
from pyagent.state import ConversationState
from pyagent.tools.registry import default_tools, tool_definitions
from pyagent.tools.shell import ShellSession
from pyagent.tools.tool import AnyTool, Asker, ToolContext, nobody


@dataclass(frozen=True, slots=True)
class _Session:
    """Where a conversation is kept and what it starts from."""

    session_id: str
    state: ConversationState
    sink: RecordSink
    transcript_path: Path | None
    results_dir: Path
    problems: tuple[str, ...] = ()
    forked_records: tuple[Record, ...] = ()


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


class Assembly:
    """What all conversations of one program run share, and how each is put together."""

    def __init__(
        self,
        options: LaunchOptions,
        emit: EventSink,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        server: ModelServer | None = None,
    ) -> None:
        """`sleep` is what passes the time between two attempts of a model call; `server` answers in place of the one
        the environment names."""
        self.options = options
        self.emit = emit
        self.is_trusted = is_trusted(options.cwd, options.home)
        loaded = load_settings(options, is_trusted=self.is_trusted)
        self.settings = loaded.settings
        if options.tools is not None and WEB_SEARCH_RULE not in options.tools:
            self.settings = with_value(self.settings, "is_web_search_on", False)
        self._problems = loaded.problems
        self.waits = CallWaits.of(self.settings, sleep)
        self.encoding = LocalEncoding()
        self.desk = ModelDesk(options, self.settings, self.encoding, server)
        self._folder = project_dir(options.home, options.cwd)
        self.started_at = datetime.now(UTC)
        self.host: Host | None = None
        self._background: set[asyncio.Task[None]] = set()

    @property
    def first_opening(self) -> Opening:
        options = self.options
        if options.resume or options.is_continued:
            return ResumedSession(options.resume, options.is_forked)
        return NewSession()

    def attach(self, host: Host) -> None:
        """The host whose conversations these are: `/clear` and `/resume` go through it."""
        self.host = host

    async def close(self) -> None:
        """End what the conversations shared."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.desk.close()

    # ── opening ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self, opening: Opening) -> Conversation:
        """A conversation, ready to run; its events so far (opened, replay) are out.

        Raises:
            PyagentError: it cannot be opened; nothing was changed.
        """
        options = self.options
        session = await asyncio.to_thread(self._session_for, opening)
        state = session.state
        access = self.desk.access(self._model_name(state))
        journal = Journal(state, sink=session.sink, emit=self.emit, clock=_now, new_uuid=_new_uuid)
        is_resumed = bool(state.records)
        mode = self._mode(state)
        cwd = self._cwd(state)
        engine = PermissionEngine(
            self.settings,
            mode,
            home=Path(options.environ.get("HOME") or Path.home()),
            state_home=options.home,
            readable_dirs=(session.results_dir,),
        )
        tools = self._tools(engine)
        branch = branch_of(cwd)
        self.emit(
            SessionOpened(
                session_id=session.session_id,
                transcript_path=str(session.transcript_path or ""),
                cwd=str(cwd),
                model=access.info.id,
                mode=mode,
                git_branch=branch,
                is_offline=access.is_offline,
                is_resumed=is_resumed,
                tool_names=tuple(tools),
            )
        )
        for problem in (*self._problems, *session.problems):
            self.emit(Notice(problem, "warning"))
        self._problems = ()
        definitions = tool_definitions(tools)
        offered = with_server_tools(definitions, self.settings, is_first_party=access.is_first_party)
        chosen_effort = options.effort or state.settings.get("effort", "")
        profile = _recorded_profile(state, access, offered)
        if profile is None:
            settings = replace(self.settings, effort=chosen_effort or self.settings.effort)
            system = await self._system_prompt(cwd)
            profile = profile_for(access, settings, system=system, tools=definitions)
        elif chosen_effort:
            profile = with_effort(profile, access.info, chosen_effort)
        profile = self.desk.store.degraded(access.endpoint, profile)
        if not is_resumed:
            journal.commit(SessionStarted(SCHEMA_VERSION, session.session_id, str(cwd), __version__, branch))
            if options.name:
                journal.commit(SettingChanged("title", options.name))
        if options.effort and options.effort != state.settings.get("effort"):
            journal.commit(SettingChanged("effort", options.effort))
        if options.max_budget_usd is not None and access.info.price is None:
            self.emit(Notice(f"The price of {access.info.id} is not known, so no budget can stop it.", "warning"))
        profiles = ProfileBook(journal, profile, access.info)
        parts = _Builder(self, session, journal, access, profiles, tools, engine).parts()
        conversation = Conversation(parts)
        if is_resumed:
            conversation.replay()
        self._warm_up(access)
        return conversation

    def _session_for(self, opening: Opening) -> _Session:
        options = self.options
        match opening:
            case ResumedSession(wanted=wanted, is_forked=is_forked):
                path = self._path_of(wanted)
                if is_forked:
                    return self._new_session(forked=read_session(path))
                sink = SessionFile(path, on_problem=self._tell_problem) if options.is_persistent else DiscardingSink()
                try:
                    loaded = read_session(path)
                except SessionError:
                    sink.close()
                    raise
                state = ConversationState(loaded.records)
                problems = (*loaded.problems, *_open_transaction_problems(state))
                return _Session(path.stem, state, sink, path, path.with_suffix("") / "tool-results", problems)
            case NewSession():
                return self._new_session()

    def _new_session(self, forked: LoadedSession | None = None) -> _Session:
        session_id = self.options.session_id if forked is None and self.options.session_id else _new_uuid()
        path = self._folder / f"{session_id}.jsonl"
        if self.options.is_persistent and path.exists():
            raise SessionError(
                f"There is a session {session_id} already.", hint=f"Go on with it: pyagent --resume {session_id}"
            )
        sink: RecordSink = DiscardingSink()
        if self.options.is_persistent:
            sink = DeferredSink(lambda: SessionFile(path, on_problem=self._tell_problem), on_problem=self._tell_problem)
        records = forked.records if forked is not None else ()
        for record in records:
            sink.append(record)
        return _Session(
            session_id,
            ConversationState(records),
            sink,
            path if self.options.is_persistent else None,
            path.with_suffix("") / "tool-results",
            forked.problems if forked is not None else (),
        )

    def _path_of(self, wanted: str) -> Path:
        if wanted:
            return find_session(self._folder, wanted).path
        sessions = list_sessions(self._folder)
        if not sessions:
            raise SessionError("There is no earlier session in this folder.", hint="Start one with: pyagent")
        return sessions[0].path

    def _model_name(self, state: ConversationState) -> str:
        """The flag, else what the resumed session used, else the settings."""
        return self.options.model or state.settings.get("model", "") or self.settings.model

    def _mode(self, state: ConversationState) -> PermissionMode:
        if self.options.permission_mode is not None:
            return self.options.permission_mode
        kept = state.settings.get("mode", "")
        # Switching every question off is never taken over from an earlier run.
        return kept if kept in ("default", "acceptEdits", "plan") else self.settings.permission_mode  # type: ignore[return-value]  # narrowed by the tuple

    def _cwd(self, state: ConversationState) -> Path:
        kept = state.settings.get("cwd", "")
        return Path(kept) if kept and Path(kept).is_dir() else self.options.cwd

    def _tools(self, engine: PermissionEngine) -> dict[str, AnyTool]:
        tools = default_tools(self.settings, WebClient(self.options.environ))
        if self.options.tools is not None:
            tools = {name: tool for name, tool in tools.items() if name in self.options.tools}
        removed = engine.removed_tools(tools)
        return {name: tool for name, tool in tools.items() if name not in removed}

    async def _system_prompt(self, cwd: Path) -> str:
        options = self.options
        environment = Environment(
            cwd,
            datetime.now().astimezone().date(),
            Path(options.environ.get("SHELL", "")).name,
            await git_summary(cwd),
            self.extra_dirs(),
        )
        return build_system_prompt(environment, replaced=options.system_prompt, appended=options.system_prompt_addition)

    def extra_dirs(self) -> tuple[Path, ...]:
        return tuple(Path(folder) for folder in self.settings.additional_dirs)

    def _tell_problem(self, text: str) -> None:
        self.emit(Notice(text, "warning"))

    def _warm_up(self, access: ModelAccess) -> None:
        """Load encoding and SDK behind the person's first keystrokes."""

        async def warm_up() -> None:
            await self.encoding.ready()
            if not access.is_offline:
                # What fails here fails again, with its reason, when the first request is made.
                with contextlib.suppress(Exception):
                    await self.desk.warm_up()

        task = asyncio.create_task(warm_up())
        self._background.add(task)
        task.add_done_callback(self._background.discard)


class _Builder:
    """Puts one conversation together."""

    def __init__(
        self,
        shared: Assembly,
        session: _Session,
        journal: Journal,
        access: ModelAccess,
        profiles: ProfileBook,
        tools: dict[str, AnyTool],
        engine: PermissionEngine,
    ) -> None:
        self._shared = shared
        self._options, self._settings, self._emit = shared.options, shared.settings, shared.emit
        self._session, self._journal, self._access = session, journal, access
        self._profiles, self._tools = profiles, tools
        self._source = "sdk" if self._options.is_headless else "repl_main_thread"
        self._shell = ShellSession(self._settings, environ=self._options.environ)
        self._renderer = Renderer(lambda data: shared.encoding.count(data.decode("utf-8", "replace")))
        self._memory = MemoryKeeper(
            lambda: load_memory_files(
                self._options.cwd, self._options.home, self._options.environ, is_trusted=shared.is_trusted
            ),
            journal=journal,
            emit=self._emit,
        )
        self._checkpoints = CheckpointKeeper(
            self._open_shadow if self._settings.has_file_checkpoints and self._options.is_persistent else None,
            journal=journal,
            emit=self._emit,
        )
        self._gatekeeper = SessionGatekeeper(engine)
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
        self._sampler = MainSampler(
            access.client,
            journal=journal,
            profiles=profiles,
            renderer=self._renderer,
            emit=self._emit,
            source=self._source,
            sends_wire_events=self._options.is_headless,
            store=shared.desk.store,
            base_url=access.endpoint,
            reports_cache_breaks=reports_breaks,
            waits=waits,
            fallbacks=self._choice.fallbacks,
            sends_diagnostics=reports_breaks and access.is_first_party,
        )
        self._keeper = self._make_keeper()
        self._model_facts: asyncio.Task[None] | None = None

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
        await self._shell.close()

    def _make_keeper(self) -> PipelineKeeper:
        journal, encoding = self._journal, self._shared.encoding
        self._summarizer = ForkSummarizer(
            self._access.client,
            journal=journal,
            profiles=self._profiles,
            renderer=self._renderer,
            emit=self._emit,
            waits=self._shared.waits,
        )
        ports = Ports(
            summarizer=self._summarizer,
            sources=DiskSources(
                journal.state, load_memory=self._memory.load_for_restore, is_memory=self._memory.is_memory
            ),
            hooks=NoHooks(),
            notes=NoNotes(),
            new_uuid=_new_uuid,
            clock=_now,
            emit=self._emit,
        )
        return PipelineKeeper(
            Pipeline.resumed(encoding, AutoCompactTracking.from_json(journal.state.tracking)),
            ports,
            journal=journal,
            profiles=self._profiles,
            settings=self._settings.compaction,
            emit=self._emit,
            source=self._source,
            transcript_path=str(self._session.transcript_path or ""),
            encoding_ready=encoding.ready,
            after_boundary=self._memory.after_boundary,
            learn_window=self._learn_window,
        )

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
            before_run=self._checkpoints.before_tool,
        )
        turn = TurnParts(
            journal,
            self._sampler,
            self._keeper,
            runner,
            RunLimits(journal.state, options.max_turns, options.max_budget_usd),
            self._emit,
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
            after_turn=self._checkpoints.after_turn,
        )

    def _handlers(self) -> dict[str, CommandHandler]:
        commands = self._commands()
        rewind = RewindCommands(
            journal=self._journal,
            checkpoints=self._checkpoints,
            emit=self._emit,
            load_history=self._load_history,
            summarise_upto=commands.compact_upto,
            moved=self._moved,
        )
        return {**commands.handlers(), "rewind": rewind.handle}

    async def _load_history(self) -> None:
        """All of the session is in memory already."""

    def _moved(self) -> None:
        """The conversation stands elsewhere: so do its figures."""
        self._keeper.tell_gauge()
        self._keeper.tell_cost()

    async def _tell_figures(self) -> None:
        """The gauge and the bill as they stand, first from the coarse measure and then from the encoding."""
        self._keeper.tell_gauge()
        self._keeper.tell_cost()
        await self._shared.encoding.ready()
        await self._settle_model()
        self._keeper.tell_gauge()

    def _tool_context(self, use_id: str, report: Callable[[str], None]) -> ToolContext:
        cwd = Path(self._journal.state.settings.get("cwd") or self._options.cwd)
        return ToolContext(
            tool_use_id=use_id,
            cwd=cwd,
            allowed_dirs=(self._options.cwd, *self._shared.extra_dirs()),
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
        host = self._shared.host
        assert host is not None
        return SessionCommands(
            journal=self._journal,
            keeper=self._keeper,
            emit=self._emit,
            set_mode=lambda mode: self._gatekeeper.set_mode(mode),  # type: ignore[arg-type]  # checked by the command
            set_model=self._set_model,
            set_effort=self._choice.choose_effort,
            reports={"context": self._context_report, "cost": self._cost_report, "status": self._status_report},
            start_over=lambda: host.switch_to(NewSession()),
            resume=lambda wanted: host.switch_to(ResumedSession(wanted)),
        )

    def _set_model(self, name: str) -> str:
        access = self._shared.desk.access(name)
        self._profiles.back_to_main()
        profile = self._choice.profile(access, self._profiles.current)
        self._access = access
        self._model_facts = None
        self._sampler.client = self._summarizer.client = access.client
        self._profiles.replace(profile, access.info)
        return access.info.id

    def _context_report(self, argument: str) -> Report:
        keeper = self._keeper
        context, sizer = keeper.context(), keeper.sizer
        expires_in_s = keeper.cache_expires_in_s()
        tools = {str(tool["name"]): sizer.text(str(tool)) for tool in self._profiles.current.tools}
        facts = ContextFacts(
            view=self._journal.state.view,
            gauge=keeper.gauge(),
            thresholds=context.thresholds,
            model=self._access.info.id,
            system_tokens=sizer.text(self._profiles.current.system),
            tool_tokens=tools,
            branch=self._journal.state.branch,
            gates=self._settings.compaction.gates,
            cache_text=("cold" if expires_in_s is None else f"warm for another {expires_in_s / 60:.0f} min")
            + breaks_text(self._sampler.cache_breaks),
        )
        return context_report(facts, sizer, is_full=argument == "all")

    def _cost_report(self, argument: str) -> Report:
        open_for_s = (_now() - self._shared.started_at).total_seconds()
        return cost_report(self._journal.state, open_for_s, self._sampler.cache_breaks)

    def _status_report(self, argument: str) -> Report:
        state = self._journal.state
        facts = StatusFacts(
            version=__version__,
            session_id=self._session.session_id,
            title=state.settings.get("title", ""),
            transcript_path=str(self._session.transcript_path or ""),
            model=self._access.info.id,
            endpoint=self._access.endpoint,
            mode=self._gatekeeper.engine.mode,
            cwd=state.settings.get("cwd") or str(self._options.cwd),
            git_branch=branch_of(self._options.cwd),
            context_files=[file.path for file in self._memory.load_for_restore()],
        )
        return status_report(facts)


def _recorded_profile(
    state: ConversationState, access: ModelAccess, tools: tuple[JsonObject, ...]
) -> RequestProfile | None:
    """The profile a resumed session used last: kept byte for byte, so that its cache and its thinking stay good."""
    for record in reversed(state.branch):
        if isinstance(record.payload, AssistantEntry) and record.payload.profile_id in state.profiles:
            profile = RequestProfile.from_json(state.profiles[record.payload.profile_id])
            if profile.model != access.info.id:
                # A fallback stood in, or the model was switched for a while.
                continue
            is_same = profile.renderer_version == RENDERER_VERSION
            # Another set of tools (a flag, a new version) is another profile: calls must match what is there.
            names = [tool.get("name") for tool in profile.tools]
            return profile if is_same and names == [tool["name"] for tool in tools] else None
    return None


def _open_transaction_problems(state: ConversationState) -> tuple[str, ...]:
    if not state.open_transactions:
        return ()
    return ("A compaction was broken off when pyagent ended last time; the conversation is as it was before it.",)


def _now() -> datetime:
    return datetime.now(UTC)


def _new_uuid() -> str:
    return str(uuid.uuid4())
