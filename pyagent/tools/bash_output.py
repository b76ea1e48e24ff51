"""BashOutput: what a background task has written since the last look."""

from __future__ import annotations

import re

from pydantic import Field

from pyagent.events import PermissionQuestion
from pyagent.tools.shell import ShellSession, ShellTask
from pyagent.tools.tool import ToolContext, ToolInput, ToolResult, description_beside


class BashOutputInput(ToolInput):
    bash_id: str
    filter: str | None = Field(None, description="Regular expression")


class BashOutputTool:
    name = "BashOutput"
    input_model = BashOutputInput
    is_read_only = True
    is_compactable = True
    result_cap_chars = 32_000

    @property
    def description(self) -> str:
        return description_beside(__file__)

    def summary(self, tool_input: BashOutputInput) -> str:
        return f"BashOutput {tool_input.bash_id}"

    def permission(self, tool_input: BashOutputInput, context: ToolContext) -> PermissionQuestion | None:
        return None

    async def run(self, tool_input: BashOutputInput, context: ToolContext) -> ToolResult:
        task = context.shell.task(tool_input.bash_id)
        if task is None:
            return ToolResult.error(unknown_task_text(tool_input.bash_id, context.shell))
        keep = None
        if tool_input.filter:
            try:
                keep = re.compile(tool_input.filter)
            except re.error as error:
                return ToolResult.error(f"`filter` is not a regular expression: {error}.")
        text = task.take_unread()
        if keep is not None:
            text = "\n".join(line for line in text.split("\n") if keep.search(line))
        body = text.strip("\n") or "(no new output)"
        parts = [body, state_text(task)]
        if task.output.path is not None:
            parts.append(f"All its output is in {task.output.path}{task.output.file_problem}.")
        return ToolResult.of("\n".join(parts), display={"summary": task.state, "exit_code": task.exit_code})


def state_text(task: ShellTask) -> str:
    match task.state:
        case "running" if task.exit_code is not None:
            return f"{task.id}: the shell has exited ({task.exit_code}); jobs it started still run."
        case "running":
            return f"{task.id} is still running."
        case "killed":
            return f"{task.id} was killed."
        case _:
            return f"{task.id} has finished with exit code {task.exit_code}."


def unknown_task_text(task_id: str, shell: ShellSession) -> str:
    known = ", ".join(f"{task.id} ({task.state})" for task in shell.tasks) or "none"
    return f"There is no background task {task_id}. Known: {known}."
