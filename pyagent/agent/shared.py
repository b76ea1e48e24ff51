"""What all conversations of one program run share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyagent.agent.encoding import LocalEncoding
from pyagent.agent.host import Host
from pyagent.agent.journal import Clock
from pyagent.agent.model_access import ModelDesk
from pyagent.agent.settings_book import SettingsBook
from pyagent.agent.wire.retry import CallWaits
from pyagent.events import EventSink
from pyagent.launch import LaunchOptions
from pyagent.settings import Settings


@dataclass(frozen=True, slots=True)
class Shared:
    """See the module's docstring."""

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

    def open_for_s(self) -> float:
        """Seconds since the program began."""
        return (self.clock() - self.started_at).total_seconds()
