"""The commands beside the conversation, put together: settings, permissions, diffs, side questions, memory, tasks."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyagent.agent.checkpoint_keeper import CheckpointKeeper
from pyagent.agent.context_keeper import PipelineKeeper
from pyagent.agent.conversation import CommandHandler
from pyagent.agent.errands import Errands
from pyagent.agent.gatekeeper import SessionGatekeeper
from pyagent.agent.journal import Journal
from pyagent.agent.notes import NotesKeeper
from pyagent.agent.permission_commands import PermissionCommands
from pyagent.agent.place_commands import PlaceCommands, TaskCommands
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.server_clearing import ServerClearing
from pyagent.agent.setting_commands import SettingCommands
from pyagent.agent.settings_book import SettingsBook
from pyagent.agent.side_calls import SideCalls
from pyagent.agent.side_question import SideQuestion
from pyagent.agent.turn_diffs import DiffCommand
from pyagent.agent.wire.render import Renderer
from pyagent.events import EventSink
from pyagent.settings import Settings
from pyagent.tools.shell import ShellSession
from pyagent.tools.tool import AnyTool


@dataclass(frozen=True, slots=True)
class SideCommands:
    """What those commands work on."""

    journal: Journal
    emit: EventSink
    errands: Errands
    book: SettingsBook
    keeper: PipelineKeeper
    server_clearing: ServerClearing
    notes: NotesKeeper
    gatekeeper: SessionGatekeeper
    places: PlaceCommands
    checkpoints: CheckpointKeeper
    side_calls: SideCalls
    profiles: ProfileBook
    renderer: Renderer
    shell: ShellSession
    tools: dict[str, AnyTool]
    folders: Callable[[], tuple[tuple[Path, str], ...]]
    """Where files may be changed, each with where that comes from."""
    load_history: Callable[[], Coroutine[Any, Any, None]]

    def handlers(self) -> dict[str, CommandHandler]:
        """Handlers by name."""
        permissions = PermissionCommands(
            self.book,
            gatekeeper=self.gatekeeper,
            tools=self.tools,
            emit=self.emit,
            apply=self.use_settings,
            folders=self.folders,
            cwd=lambda: self.places.cwd,
        )
        diff = DiffCommand(
            journal=self.journal,
            checkpoints=self.checkpoints,
            emit=self.emit,
            load_history=self.load_history,
            cwd=lambda: self.places.cwd,
        )
        side_question = SideQuestion(
            self.side_calls, journal=self.journal, profiles=self.profiles, renderer=self.renderer, emit=self.emit
        )
        beside = self.errands.handler
        return {
            **self.places.handlers(),
            **SettingCommands(self.book, emit=self.emit, apply=self.use_settings).handlers(),
            "permissions": permissions.handle,
            "diff": beside(diff.show),
            "btw": beside(side_question.ask),
            "memory": beside(self.places.memory),
            "tasks": beside(TaskCommands(self.shell, emit=self.emit).handle),
        }

    def use_settings(self, settings: Settings) -> None:
        """Have the running session follow changed settings, as far as it can."""
        self.gatekeeper.use(settings)
        self.keeper.settings = settings.compaction
        self.server_clearing.use(settings.compaction)
        self.notes.use(settings.compaction)
        self.keeper.tell_gauge()
