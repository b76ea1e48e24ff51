"""The slash commands the agent answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from pyagent.agent.context_keeper import PipelineKeeper
from pyagent.agent.conversation import CommandHandler
from pyagent.agent.journal import Journal
from pyagent.agent.pinning import Pinning
from pyagent.agent.receipts import receipt_lines, rereads
from pyagent.agent.spending_pages import compactions_page
from pyagent.choices import EFFORT_LEVELS, PERMISSION_MODES, PermissionMode, permission_mode_named
from pyagent.compaction.outcome import Declined
from pyagent.errors import UsageError
from pyagent.events import EventSink, Notice, Report, SettingMoved
from pyagent.log import Boundary, SettingChanged

_PART = re.compile(r"(upto|from)\s+(\d+)")


class SessionCommands:
    """Handlers by name. What concerns other objects (reports, model and mode switches) is passed in."""

    def __init__(
        self,
        *,
        journal: Journal,
        keeper: PipelineKeeper,
        emit: EventSink,
        set_mode: Callable[[PermissionMode], None],
        set_model: Callable[[str], str],
        set_effort: Callable[[str], str],
        reports: Mapping[str, Callable[[str], Report]],
        start_over: Callable[[], None],
        resume: Callable[[str], None],
        view: Callable[[str], None],
        cwd: str,
        load_history: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        """`load_history` brings in what a resume left on the disk."""
        self._journal = journal
        self._keeper = keeper
        self._emit = emit
        self._set_mode = set_mode
        self._set_model = set_model
        self._set_effort = set_effort
        self._reports = reports
        self._start_over = start_over
        self._resume = resume
        self._view = view
        self._pinning = Pinning(journal, keeper, emit, lambda: journal.state.settings.get("cwd") or cwd)
        self._load_history = load_history

    def handlers(self) -> dict[str, CommandHandler]:
        return {
            "compact": self.compact,
            "compactions": self._with_history(self.compactions),
            "pin": self._pinning.pin,
            "unpin": self._pinning.unpin,
            "mode": self.mode,
            "model": self.model,
            "effort": self.effort,
            "rename": self.rename,
            "clear": lambda argument: self._start_over(),
            "resume": self.resume,
            "view": self.view,
            **{name: self._reporter(make) for name, make in self._reports.items()},
            "context": self._with_history(self._reporter(self._reports["context"])),
            "cost": self._with_history(self._reporter(self._reports["cost"])),
        }

    def _reporter(self, make: Callable[[str], Report]) -> CommandHandler:
        def handle(argument: str) -> None:
            self._emit(make(argument.strip()))

        return handle

    def _with_history(self, tell: CommandHandler) -> CommandHandler:
        """What looks at the whole session: at once where all of it is read, also while a turn runs; else once it is."""

        async def read_first(argument: str) -> None:
            await self._load_history()
            tell(argument)

        def handle(argument: str) -> Coroutine[Any, Any, None] | asyncio.Task[None] | None:
            return read_first(argument) if self._journal.state.is_partial else tell(argument)

        return handle

    def compact(self, argument: str) -> Coroutine[Any, Any, None]:
        """`/compact [instructions]`; `undo`, `preview`, `upto N` (what stands before the Nth prompt in view), `from N`
        (that prompt and what came after it).

        The words are subcommands only when they are all there is, so that "undo the last edit, then …" stays an
        instruction.
        """
        words = argument.strip()
        if words == "undo":
            return self._undo()
        if words == "preview":
            return self._preview()
        is_preview = words.startswith("preview ")
        part = _PART.fullmatch(words.removeprefix("preview ").strip())
        if part is None:
            return self._keeper.compact(words)
        act = self._preview if is_preview else partial(self._keeper.compact, "")
        position = self._prompt_position(int(part[2]), is_first_allowed=part[1] == "from")
        return act(upto=position) if part[1] == "upto" else act(start=position)

    async def _undo(self) -> None:
        await self._load_history()
        self._emit(Notice(self._keeper.undo()))

    def _prompt_position(self, number: int, *, is_first_allowed: bool = False) -> int:
        prompts = [at for at, item in enumerate(self._journal.state.view) if item.is_prompt]
        if not (1 if is_first_allowed else 2) <= number <= len(prompts):
            raise UsageError(
                f"There is no prompt {number}" + ("." if is_first_allowed else " with something before it to compact."),
                hint=f"The view holds {len(prompts)} of your prompts, counted from 1.",
            )
        return prompts[number - 1]

    async def _preview(self, *, upto: int | None = None, start: int = 0) -> None:
        preview = await self._keeper.preview(upto=upto, start=start)
        if isinstance(preview, Declined):
            self._emit(Notice(preview.reason))
        else:
            self._emit(Report("What /compact would do", preview.text))

    def compactions(self, argument: str) -> None:
        """List the compactions in force with their receipts."""
        boundaries = self._journal.state.boundaries
        if not boundaries:
            self._emit(Notice("Nothing was compacted in this session yet."))
            return
        lines: list[str] = []
        for number, record in enumerate(boundaries, start=1):
            boundary = record.payload
            assert isinstance(boundary, Boundary)
            reads = rereads(self._journal.state.branch, record.seq)
            lines += receipt_lines(number, record.at, boundary, reads)
        page = compactions_page(self._journal.state)
        self._emit(Report("Compactions", "\n".join(lines), page=page))

    def mode(self, argument: str) -> None:
        """Set the permission mode."""
        wanted = permission_mode_named(argument.strip())
        if wanted is None:
            raise UsageError(f"There is no mode {argument!r}.", hint=f"The modes are {', '.join(PERMISSION_MODES)}.")
        self._set_mode(wanted)
        self.changed("mode", wanted)

    def model(self, argument: str) -> None:
        """Switch the model from the next request on."""
        if not argument.strip():
            raise UsageError("Say which model.", hint="For example: /model opus, or /model offline.")
        self.changed("model", self._set_model(argument.strip()))
        self._keeper.tell_figures()

    def effort(self, argument: str) -> None:
        """Set how much the model thinks, from the next prompt on."""
        if not argument.strip():
            now = self._journal.state.settings.get("effort") or "the model's own default"
            raise UsageError(f"The effort is {now}.", hint=f"Set it with /effort and {', '.join(EFFORT_LEVELS)}.")
        self.changed("effort", self._set_effort(argument))

    def rename(self, argument: str) -> None:
        """Give the session a title."""
        title = " ".join(argument.split())
        if not title:
            raise UsageError("Say the new title.", hint="For example: /rename Parser work")
        self.changed("title", title)

    def resume(self, argument: str) -> None:
        """Go on with another session."""
        if not argument.strip():
            raise UsageError("Say which session.", hint="An id, or words of its title or first prompt.")
        self._resume(argument.strip())

    def view(self, argument: str) -> None:
        """Look at another session without changing it."""
        if not argument.strip():
            raise UsageError("Say which session.", hint="An id, or words of its title or first prompt.")
        self._view(argument.strip())

    def changed(self, name: str, value: str) -> None:
        """Record a session setting and tell of it."""
        self._journal.commit(SettingChanged(name, value))
        self._emit(SettingMoved(name, value))
