"""Commands of the person's own, typed with `!`: run in the session's shell without a question, shown, and told to the
model unless they were typed with `!!`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from pyagent.agent.journal import Journal
from pyagent.agent.restore_sources import reminder
from pyagent.events import EventSink, ToolFinished, ToolProgress, ToolStarted
from pyagent.log import SettingChanged, ShellRan, UserEntry
from pyagent.messages import JsonObject, TextBlock, scrub_surrogates
from pyagent.tools.bash import BashInput, BashTool
from pyagent.tools.budget import within_cap
from pyagent.tools.shell import ShellSession
from pyagent.tools.tool import ToolContext, ToolResult

INTERRUPTED_TEXT = "[Interrupted by the user]"
TOOL_NAME = "Shell"
"""What the screen calls it: not the model's Bash."""

SHELL_LABEL = "shell"
"""Label of the entry that tells the model of a command."""


class OwnShell:
    """The `PersonShell` of a real conversation."""

    def __init__(
        self,
        bash: BashTool,
        shell: ShellSession,
        *,
        journal: Journal,
        emit: EventSink,
        context_for: Callable[[str, Callable[[str], None]], ToolContext],
        is_answered: bool,
    ) -> None:
        """`is_answered`: the model answers each command at once, instead of being told with the next prompt."""
        self._bash = bash
        self._shell = shell
        self._journal = journal
        self._emit = emit
        self._context_for = context_for
        self._is_answered = is_answered

    async def run(self, command: str, *, is_private: bool) -> str:
        run_id = self._journal.new_uuid()
        shown_so_far: list[str] = []

        def report(text: str) -> None:
            shown_so_far.append(text)
            self._emit(ToolProgress(run_id, text))

        self._emit(ToolStarted(run_id, TOOL_NAME, command, {"command": command}))
        started_at = self._journal.clock()
        private: JsonObject = {"private": True} if is_private else {}
        context = self._context_for(run_id, report)
        is_cancelled = False
        try:
            result = await self._bash.run(BashInput(command=command, description="", timeout=None), context)
            if len(result.text) > self._bash.result_cap_chars:
                result = await asyncio.to_thread(within_cap, result, self._bash, context)
        except asyncio.CancelledError:
            is_cancelled = True
            text = "".join(shown_so_far)[-self._bash.result_cap_chars :]
            result = ToolResult.error("\n".join((*text.splitlines(), INTERRUPTED_TEXT)), display={"interrupted": True})
        result = replace(result, display=result.display | private)
        duration_s = round((self._journal.clock() - started_at).total_seconds(), 3)
        asked = self._record(run_id, command, result, duration_s, is_private=is_private)
        self._emit(ToolFinished(run_id, TOOL_NAME, command, result.is_error, result.text, duration_s, result.display))
        if is_cancelled:
            raise asyncio.CancelledError
        return asked

    def let_run_on(self) -> str:
        tasks = self._shell.let_run_on()
        if not tasks:
            return "No command is running that could go on in the background."
        return f"Goes on in the background: {', '.join(task.id for task in tasks)}."

    def _record(self, run_id: str, command: str, result: ToolResult, duration_s: float, *, is_private: bool) -> str:
        """Write down what came of it; the prompt to send at once, if the model is to answer."""
        told = told_text(command, result.text)
        is_entry = not is_private and not self._is_answered
        output, entry_uuid = scrub_surrogates(result.text), run_id if is_entry else ""
        self._journal.commit(ShellRan(run_id, command, output, result.is_error, duration_s, result.display, entry_uuid))
        if is_entry:
            told_block = TextBlock(scrub_surrogates(reminder(told)))
            self._journal.commit(UserEntry((told_block,), origin="attachment", label=SHELL_LABEL), uuid=run_id)
            for seen in result.files_seen:
                self._journal.commit(replace(seen, shown_by=run_id))
        if result.cwd is not None:
            self._journal.commit(SettingChanged("cwd", str(result.cwd)))
        return told if self._is_answered and not is_private else ""


def told_text(command: str, output: str) -> str:
    """What the model is told of a command."""
    return f"The user ran this command in the shell themselves:\n$ {command}\nIts output:\n{output}"
