"""Bash: run a command, show its output as it comes, and leave nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import replace

from pydantic import Field

from pyagent.errors import PyagentError
from pyagent.events import PermissionQuestion
from pyagent.log import FileSeen
from pyagent.messages import JsonObject, TextBlock
from pyagent.settings import Settings
from pyagent.tools.paths import is_folder
from pyagent.tools.seen_by_command import files_seen_by
from pyagent.tools.shell import (
    CANCEL_GRACE_S,
    LIVE_INTERVAL_S,
    QUIET_INTERVALS,
    ShellTask,
    next_directory,
)
from pyagent.tools.shell_syntax import answer_of_exit_code, can_go_on_in_background, session_rule
from pyagent.tools.tool import ToolContext, ToolInput, ToolResult, counted, description_beside

NOTE_CHARS = 2_000
"""Room above the output's own cap for what pyagent adds, so that a capped output is not cut a second time."""
SUMMARY_CHARS = 200


class BashInput(ToolInput):
    command: str
    description: str = Field("", description="What it does, in 5-10 words")
    timeout: int | None = Field(None, description="Milliseconds")
    run_in_background: bool = False


class BashTool:
    name = "Bash"
    input_model = BashInput
    is_read_only = False
    is_compactable = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.result_cap_chars = settings.bash_max_output_chars + NOTE_CHARS

    @property
    def description(self) -> str:
        return description_beside(__file__)

    def summary(self, tool_input: BashInput) -> str:
        first, newline, _ = tool_input.command.strip().partition("\n")
        is_cut = bool(newline) or len(first) > SUMMARY_CHARS
        return f"Bash {first[:SUMMARY_CHARS]}{' …' if is_cut else ''}"

    def permission(self, tool_input: BashInput, context: ToolContext) -> PermissionQuestion | None:
        return PermissionQuestion(
            tool_name=self.name,
            action="command",
            subject=tool_input.command,
            reason="it runs a command",
            session_rule=session_rule(tool_input.command),
            description=tool_input.description,
        )

    async def run(self, tool_input: BashInput, context: ToolContext) -> ToolResult:
        if "\0" in tool_input.command:
            return ToolResult.error("The command holds a NUL character, which no shell can take.")
        notes: list[str] = []
        cwd = context.cwd
        if not is_folder(cwd):
            cwd = context.allowed_dirs[0]
            notes.append(f"The working directory {context.cwd} no longer exists; this ran in {cwd}.")
        try:
            task = await context.shell.start(
                tool_input.command, cwd=cwd, env=context.env, results_dir=context.results_dir
            )
        except PyagentError as error:
            return ToolResult.error(str(error))
        if tool_input.run_in_background:
            context.shell.keep_in_background(task)
            notes.insert(
                0, f"Started in the background as {task.id}. Look at it with BashOutput, stop it with KillShell."
            )
            return ToolResult.of("\n".join(notes), display={"summary": f"in the background as {task.id}"})

        is_timed_out = await self._follow(task, tool_input, context)
        is_let_go = task.let_go.is_set() and not task.done.is_set()
        if (is_timed_out or is_let_go) and task.is_background and task.state == "running":
            reason = "The user" if is_let_go else f"Still running after {self._timeout_s(tool_input):g} s: it"
            notes.append(
                f"{reason} {'moved it to' if is_let_go else 'goes on in'} the background as {task.id}. "
                "Above is its output so far; see the rest with BashOutput, stop it with KillShell."
            )
            task.text.flush_lines()
            text = task.take_unread()
            return ToolResult.of(_joined(text, notes), display={"summary": f"goes on as {task.id}"})

        new_cwd, note = next_directory(task, context)
        if not is_folder(context.cwd) and new_cwd is None:
            new_cwd = cwd
        if note:
            notes.append(note)
        if task.is_background and task.state == "running":
            task.text.flush_lines()
            notes.append(f"Jobs it left behind still run, as background task {task.id}.")
        result = self._result(task, tool_input, notes, is_timed_out)
        seen: tuple[FileSeen, ...] = ()
        if task.exit_code == 0 and not notes:
            seen = await asyncio.to_thread(files_seen_by, tool_input.command, task.output.text(), cwd, context)
        return replace(result, cwd=new_cwd, files_seen=seen)

    def _timeout_s(self, tool_input: BashInput) -> float:
        asked_ms = tool_input.timeout or self._settings.bash_default_timeout_ms
        return min(max(asked_ms, 1), self._settings.bash_max_timeout_ms) / 1000

    async def _follow(self, task: ShellTask, tool_input: BashInput, context: ToolContext) -> bool:
        """Wait for the command, reporting what it writes. True if its time ran out; then it is killed or adopted."""
        reporter = asyncio.create_task(_report(task, context))
        try:
            if await _ended_or_let_go(task, self._timeout_s(tool_input)):
                return False
            if tool_input.timeout is None and can_go_on_in_background(tool_input.command):
                context.shell.keep_in_background(task)
            else:
                await context.shell.stop(task)
            return True
        except asyncio.CancelledError:
            await context.shell.stop(task, grace_s=CANCEL_GRACE_S)
            raise
        finally:
            reporter.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reporter
            if live := task.take_live():
                context.report(live)

    def _result(self, task: ShellTask, tool_input: BashInput, notes: list[str], is_timed_out: bool) -> ToolResult:
        is_failure = False
        exit_code = task.exit_code
        if is_timed_out:
            is_failure = True
            notes.insert(0, f"Killed after {self._timeout_s(tool_input):g} s (timeout), with all its children.")
        elif exit_code is None or exit_code < 0:
            is_failure = True
            name = signal.Signals(-exit_code).name if exit_code else "a signal"
            notes.insert(0, f"The shell was ended by {name}.")
        elif exit_code:
            answer = answer_of_exit_code(tool_input.command, exit_code)
            is_failure = answer is None
            notes.insert(0, f"Exit code {exit_code}" + (f" ({answer})" if answer else ""))
        text = task.output.text()
        lines = task.output.newline_count + (bool(text) and not text.endswith("\n"))
        display: JsonObject = {
            "summary": "timed out" if is_timed_out else counted(lines, "line") if lines else "no output",
            "exit_code": exit_code,
            "lines": lines,
        }
        if task.output.path is not None:
            display["full_output"] = str(task.output.path)
        return ToolResult((TextBlock(_joined(text, notes)),), is_error=is_failure, display=display)


def _joined(text: str, notes: list[str]) -> str:
    text = text.strip("\n") if text.strip() else ""
    return "\n".join(part for part in (text, *notes) if part) or "(no output)"


async def _ended_or_let_go(task: ShellTask, timeout_s: float) -> bool:
    """Whether the command ended, or was left to the background, within the time."""
    waits = [asyncio.create_task(event.wait()) for event in (task.done, task.let_go)]
    try:
        done, _ = await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return bool(done) or task.done.is_set()


async def _report(task: ShellTask, context: ToolContext) -> None:
    quiet_intervals = 0
    while True:
        await asyncio.sleep(LIVE_INTERVAL_S)
        live = task.take_live()
        quiet_intervals = 0 if live else quiet_intervals + 1
        if not live and quiet_intervals == QUIET_INTERVALS:
            live, quiet_intervals = task.take_partial(), 0
        if live:
            context.report(live)
