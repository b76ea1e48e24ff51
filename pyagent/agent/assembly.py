"""Builds conversations from real parts: the one place where everything meets."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from pyagent import __version__
from pyagent.agent.answer_form import STRUCTURED_OUTPUT_TOOL, AnswerForm, FreeForm
from pyagent.agent.answer_schema import AnswerSchema
from pyagent.agent.claude_import import claude_folder
from pyagent.agent.conversation import Conversation
from pyagent.agent.conversation_builder import ConversationBuilder
from pyagent.agent.encoding import LocalEncoding
from pyagent.agent.git_state import branch_of, git_summary
from pyagent.agent.host import Host, NewSession, Opening, ResumedSession
from pyagent.agent.journal import Clock, Journal, new_uuid, now
from pyagent.agent.model_access import ModelAccess, ModelDesk, ModelServer, profile_for
from pyagent.agent.model_choice import with_effort
from pyagent.agent.permissions import PermissionEngine
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.read_only import Reading
from pyagent.agent.server_tools import WEB_SEARCH_RULE, with_server_tools
from pyagent.agent.session_cleanup import delete_old_sessions
from pyagent.agent.session_place import SessionOpener, SessionPlace
from pyagent.agent.session_store import SessionDisk, project_dir
from pyagent.agent.settings_book import SettingsBook
from pyagent.agent.shared import Shared
from pyagent.agent.system_prompt import Environment, build_system_prompt
from pyagent.agent.trust import is_trusted
from pyagent.agent.web import WebClient
from pyagent.agent.wire.profile import RENDERER_VERSION, RequestProfile
from pyagent.agent.wire.retry import CallWaits
from pyagent.choices import PermissionMode
from pyagent.events import EventSink, Notice, SessionOpened
from pyagent.launch import LaunchOptions
from pyagent.log import AssistantEntry, SessionStarted, SettingChanged
from pyagent.messages import JsonObject
from pyagent.record_lines import SCHEMA_VERSION
from pyagent.settings import Settings, with_value
from pyagent.state import ConversationState
from pyagent.tools.registry import default_tools, tool_definitions
from pyagent.tools.tool import AnyTool


class Assembly:
    """What all conversations of one program run share, and how each is put together."""

    def __init__(
        self,
        options: LaunchOptions,
        emit: EventSink,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Clock = now,
        server: ModelServer | None = None,
        disk: SessionDisk | None = None,
    ) -> None:
        """`sleep` is what passes the time between two attempts of a model call; `clock` says what time it is;
        `server` answers in place of the one the environment names; `disk` writes the session files."""
        self.options = options
        self.emit = emit
        self.is_trusted = options.is_trusted or is_trusted(options.cwd, options.home)
        self.book = SettingsBook(options, is_trusted=self.is_trusted)
        self._problems = self.book.loaded.problems
        self.waits = CallWaits.of(self.settings, sleep)
        self.encoding = LocalEncoding()
        self.desk = ModelDesk(options, self.settings, self.encoding, server)
        self._sessions = SessionOpener(
            project_dir(options.home, options.cwd),
            is_persistent=options.is_persistent,
            tell_problem=self._tell_problem,
            new_id=new_uuid,
            claude_folder=claude_folder(options.environ, options.cwd),
            disk=disk,
        )
        self._session_id = options.session_id
        self._clock = clock
        self.started_at = clock()
        self.host: Host | None = None
        self._background: set[asyncio.Task[None]] = set()

    @property
    def settings(self) -> Settings:
        """The settings as they are now; a conversation follows those it was opened with."""
        options, settings = self.options, self.book.settings
        if options.tools is not None and WEB_SEARCH_RULE not in options.tools:
            return with_value(settings, "is_web_search_on", False)
        return settings

    @property
    def first_opening(self) -> Opening:
        options = self.options
        if options.resume or options.is_continued:
            return ResumedSession(options.resume, options.is_forked, is_read_only=options.is_read_only)
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
        journal = Journal(state, sink=session.sink, emit=self.emit, clock=self._clock, new_uuid=new_uuid)
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
        definitions = tool_definitions(tools)
        form = FreeForm()
        if options.json_schema:
            form = AnswerForm(AnswerSchema.parse(options.json_schema))
            tools[form.tool.name] = form.tool
            definitions = (*definitions, form.tool.definition)
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
                is_read_only=session.is_read_only,
                tool_names=tuple(tools),
                has_older=session.history.begin_offset > 0,
                terminal=self.settings.terminal,
                is_vim=self.settings.is_vim,
                insert_remaps=tuple(self.settings.insert_remaps.items()),
                effort=options.effort or state.settings.get("effort", "") or self.settings.effort,
                theme=self.settings.theme,
            )
        )
        for problem in (*self._problems, *session.problems):
            self.emit(Notice(problem, "warning"))
        self._problems = ()
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
        if not is_resumed or session.forked_from:
            started = SessionStarted(
                SCHEMA_VERSION, session.session_id, str(cwd), __version__, branch, session.forked_from
            )
            journal.commit(started)
        title = opening.title if isinstance(opening, ResumedSession) and opening.title else options.name
        if title and title != state.settings.get("title"):
            journal.commit(SettingChanged("title", title))
        if options.effort and options.effort != state.settings.get("effort"):
            journal.commit(SettingChanged("effort", options.effort))
        if options.max_budget_usd is not None and access.info.price is None:
            self.emit(Notice(f"The price of {access.info.id} is not known, so no budget can stop it.", "warning"))
        profiles = ProfileBook(journal, profile, access.info)
        parts = ConversationBuilder(self._shared(), session, journal, access, profiles, tools, engine, form).parts()
        if session.is_read_only:
            is_locked = isinstance(opening, ResumedSession) and opening.is_locked
            assert self.host is not None
            reading = Reading(session.session_id, is_locked=is_locked, host=self.host, emit=self.emit)
            parts = reading.parts(parts)
        conversation = Conversation(parts)
        if is_resumed:
            conversation.replay()
        self._warm_up(access)
        return conversation

    def _session_for(self, opening: Opening) -> SessionPlace:
        match opening:
            case ResumedSession(wanted=wanted, is_read_only=True):
                return self._sessions.viewed(wanted)
            case ResumedSession(wanted=wanted, is_forked=True):
                return self._sessions.forked(wanted, self._take_session_id())
            case ResumedSession(wanted=wanted):
                return self._sessions.resumed(wanted)
            case NewSession():
                return self._sessions.new(self._take_session_id())

    def _take_session_id(self) -> str:
        """The id asked for on the command line; it is for one session only."""
        session_id, self._session_id = self._session_id, ""
        return session_id

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
            await git_summary(cwd) if options.has_git_state else "",
            self._shared().extra_dirs,
        )
        return build_system_prompt(environment, replaced=options.system_prompt, appended=options.system_prompt_addition)

    def _shared(self) -> Shared:
        assert self.host is not None
        return Shared(
            self.options,
            self.settings,
            self.book,
            self.emit,
            self.is_trusted,
            self.encoding,
            self.desk,
            self.waits,
            self._clock,
            self.started_at,
            self.host,
        )

    def _tell_problem(self, text: str) -> None:
        self.emit(Notice(text, "warning"))

    def _delete_old_sessions(self) -> None:
        options = self.options
        delete_old_sessions(
            options.home,
            project_dir(options.home, options.cwd),
            options.cwd,
            days=self.settings.cleanup_period_days,
            now_s=time.time(),
            user_home=Path(options.environ.get("HOME") or Path.home()),
        )

    def _warm_up(self, access: ModelAccess) -> None:
        """Load encoding and SDK behind the person's first keystrokes."""

        async def warm_up() -> None:
            await self.encoding.ready()
            if self.options.is_persistent:
                await asyncio.to_thread(self._delete_old_sessions)
            if not access.is_offline:
                # What fails here fails again, with its reason, when the first request is made.
                with contextlib.suppress(Exception):
                    await self.desk.warm_up()

        task = asyncio.create_task(warm_up())
        self._background.add(task)
        task.add_done_callback(self._background.discard)


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
            return profile if is_same and _what_counts(profile.tools) == _what_counts(tools) else None
    return None


def _what_counts(tools: tuple[JsonObject, ...]) -> list[object]:
    """A tool's name says which it is, except where the user gave its schema."""
    return [tool if tool.get("name") == STRUCTURED_OUTPUT_TOOL else tool.get("name") for tool in tools]
