"""Commands about what was said so far, as a whole: more of it for the screen, a copy of it, a file of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pyagent.agent.conversation import CommandHandler
from pyagent.agent.export import export_path, write_export
from pyagent.agent.host import Host, ResumedSession
from pyagent.agent.journal import Journal
from pyagent.agent.session_place import SessionPlace
from pyagent.errors import UsageError
from pyagent.events import EventSink, Notice, OlderRecords
from pyagent.log import Record, UserEntry


class TranscriptCommands:
    """Handlers of `older`, `/branch`, `/export`, and what others need of the session's past."""

    def __init__(self, session: SessionPlace, *, journal: Journal, emit: EventSink, host: Host, cwd: Path) -> None:
        """`cwd` is where files without a folder go."""
        self._session = session
        self._journal = journal
        self._emit = emit
        self._host = host
        self._cwd = cwd

    def handlers(self) -> dict[str, CommandHandler]:
        return {"older": lambda argument: self.older(), "branch": self.branch, "export": self.export}

    def replayed(self) -> tuple[Record, ...]:
        """What a resumed screen shows at first: what stands behind the saved state, and a stretch before it."""
        state, history = self._journal.state, self._session.history
        if not state.is_partial:
            return state.branch
        return (*history.older(), *state.recent)

    async def load_history(self) -> None:
        """For what looks further back than a resume had to read."""
        await self._session.history.complete(self._journal.state)

    async def older(self) -> None:
        """The next stretch of what a resumed screen does not show yet."""
        records = await asyncio.to_thread(self._session.history.older)
        self._emit(OlderRecords(records, has_more=self._session.history.begin_offset > 0))

    def branch(self, argument: str) -> None:
        """`/branch [name]`: go on in a copy; this session stays as it is."""
        if not self._has_prompt:
            raise UsageError("Nothing was said yet that a copy could hold.")
        if self._session.transcript_path is None:
            raise UsageError("This session is not saved, so it cannot be copied.")
        title = " ".join(argument.split())
        self._host.switch_to(ResumedSession(self._session.session_id, is_forked=True, title=title))

    async def export(self, argument: str) -> None:
        """`/export [file]`: the conversation as .md, .txt, .json or .html."""
        path = export_path(argument, self._cwd, self._session.session_id)
        await self.load_history()
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
