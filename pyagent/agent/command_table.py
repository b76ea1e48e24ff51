"""Which part of a session answers which command."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from pyagent.agent.checkpoint_keeper import CheckpointKeeper
from pyagent.agent.context_keeper import PipelineKeeper
from pyagent.agent.conversation import CommandHandler
from pyagent.agent.errands import Errands
from pyagent.agent.gatekeeper import SessionGatekeeper
from pyagent.agent.host import NewSession, ResumedSession
from pyagent.agent.journal import Journal
from pyagent.agent.memory_edit import remember
from pyagent.agent.memory_keeper import MemoryKeeper
from pyagent.agent.notes import NotesKeeper
from pyagent.agent.permission_commands import PermissionCommands
from pyagent.agent.place_commands import PlaceCommands, TaskCommands
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.rewind import RewindCommands
from pyagent.agent.server_clearing import ServerClearing
from pyagent.agent.session_commands import SessionCommands
from pyagent.agent.session_folders import SessionFolders
from pyagent.agent.session_model import SessionModel
from pyagent.agent.session_reports import SessionReports
from pyagent.agent.setting_commands import SettingCommands
from pyagent.agent.shared import Shared
from pyagent.agent.side_calls import SideCalls
from pyagent.agent.side_question import SideQuestion
from pyagent.agent.transcript_commands import TranscriptCommands
from pyagent.agent.turn_diffs import DiffCommand
from pyagent.agent.wire.render import Renderer
from pyagent.events import EventSink, Notice
from pyagent.settings import Settings
from pyagent.tools.shell import ShellSession
from pyagent.tools.tool import AnyTool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTable:
    """The parts of one session that commands act on; remembers nothing of its own."""

    shared: Shared
    journal: Journal
    keeper: PipelineKeeper
    model: SessionModel
    profiles: ProfileBook
    renderer: Renderer
    side_calls: SideCalls
    memory: MemoryKeeper
    checkpoints: CheckpointKeeper
    gatekeeper: SessionGatekeeper
    folders: SessionFolders
    transcript: TranscriptCommands
    reports: SessionReports
    tools: Mapping[str, AnyTool]
    shell: ShellSession
    errands: Errands
    notes: NotesKeeper
    server_clearing: ServerClearing
    emit: EventSink

    def handlers(self) -> dict[str, CommandHandler]:
        commands, places, beside = self._session_commands(), self._places(), self.errands.handler
        return {
            **commands.handlers(),
            **places.handlers(),
            **self.transcript.handlers(),
            **SettingCommands(self.shared.book, emit=self.emit, apply=self.use_settings).handlers(),
            "permissions": self._permissions().handle,
            "rewind": self._rewind(commands).handle,
            "diff": beside(self._diff().show),
            "btw": beside(self._side_question().ask),
            "memory": beside(places.memory),
            "tasks": beside(TaskCommands(self.shell, emit=self.emit).handle),
            "clear-results": lambda argument: self.keeper.clear_old_results(),
            "remember": self._remember,
            "thinking": lambda argument: commands.effort(self.model.choice.other_thinking()),
        }

    def use_settings(self, settings: Settings) -> None:
        """Have the running session follow changed settings, as far as it can."""
        self.gatekeeper.use(settings)
        self.keeper.settings = settings.compaction
        self.server_clearing.use(settings.compaction)
        self.notes.use(settings.compaction)
        self.keeper.tell_gauge()

    async def _remember(self, argument: str) -> None:
        """Add a line to a memory file; the model is told of it as of any change there."""
        options = self.shared.options
        self.emit(Notice(await asyncio.to_thread(remember, argument, options.cwd, options.home, options.environ)))

    def _session_commands(self) -> SessionCommands:
        host, reports = self.shared.host, self.reports
        return SessionCommands(
            journal=self.journal,
            keeper=self.keeper,
            emit=self.emit,
            set_mode=self.gatekeeper.set_mode,
            set_model=self.model.switch,
            set_effort=self.model.choice.choose_effort,
            reports={"context": reports.context, "cost": reports.cost, "status": reports.status},
            start_over=lambda: host.switch_to(NewSession()),
            resume=lambda wanted: host.switch_to(ResumedSession(wanted)),
            view=lambda wanted: host.switch_to(ResumedSession(wanted, is_read_only=True)),
            cwd=str(self.folders.start),
            load_history=self.transcript.load_history,
        )

    def _places(self) -> PlaceCommands:
        return PlaceCommands(
            journal=self.journal,
            emit=self.emit,
            send=self.shared.host.send,
            folders=self.folders,
            memory=self.memory.look,
            count_tokens=lambda text: self.keeper.sizer.text(text),
            state_home=self.shared.options.home,
        )

    def _permissions(self) -> PermissionCommands:
        return PermissionCommands(
            self.shared.book,
            gatekeeper=self.gatekeeper,
            tools=self.tools,
            emit=self.emit,
            apply=self.use_settings,
            folders=self.folders.with_origins,
            cwd=lambda: self.folders.cwd,
        )

    def _rewind(self, commands: SessionCommands) -> RewindCommands:
        return RewindCommands(
            journal=self.journal,
            checkpoints=self.checkpoints,
            emit=self.emit,
            load_history=self.transcript.load_history,
            summarise=commands.compact,
            moved=self.keeper.tell_figures,
        )

    def _diff(self) -> DiffCommand:
        return DiffCommand(
            journal=self.journal,
            checkpoints=self.checkpoints,
            emit=self.emit,
            load_history=self.transcript.load_history,
            cwd=lambda: self.folders.cwd,
        )

    def _side_question(self) -> SideQuestion:
        return SideQuestion(
            self.side_calls,
            journal=self.journal,
            profiles=self.profiles,
            renderer=self.renderer,
            emit=self.emit,
        )
