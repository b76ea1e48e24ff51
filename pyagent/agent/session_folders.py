"""The folders a session works in, and where each comes from."""

from __future__ import annotations

from pathlib import Path

from pyagent.agent.journal import Journal
from pyagent.agent.shared import Shared

ADDED_DIRS = "added_dirs"
"""Name of the session setting that holds the folders added with `/add-dir`, one a line."""


class SessionFolders:
    """Reads them anew from the log and the settings each time: commands change both."""

    def __init__(self, shared: Shared, journal: Journal) -> None:
        self._shared = shared
        self._journal = journal

    @property
    def start(self) -> Path:
        """Where the session began."""
        return self._shared.options.cwd

    @property
    def cwd(self) -> Path:
        """Where commands and relative paths start."""
        return Path(self._journal.state.settings.get("cwd") or self.start)

    @property
    def added(self) -> tuple[Path, ...]:
        """Those it was given beside those it began with."""
        return tuple(Path(line) for line in self._journal.state.settings.get(ADDED_DIRS, "").splitlines() if line)

    def allowed(self) -> tuple[Path, ...]:
        """Where files may be changed."""
        return tuple(folder for folder, _ in self.with_origins())

    def with_origins(self) -> tuple[tuple[Path, str], ...]:
        """Where files may be changed, and why there."""
        origins = self._shared.book.loaded.item_origins.get("additional_dirs", {})
        return (
            (self.start, "working folder"),
            *((folder, origins.get(str(folder), "settings")) for folder in self._shared.extra_dirs),
            *((folder, "/add-dir") for folder in self.added),
        )
