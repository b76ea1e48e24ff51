"""KillShell: end a background task."""

from __future__ import annotations

from pyagent.events import PermissionQuestion
from pyagent.tools.bash_output import unknown_task_text
from pyagent.tools.tool import ToolContext, ToolInput, ToolResult, description_beside


class KillShellInput(ToolInput):
    shell_id: str


class KillShellTool:
    name = "KillShell"
    input_model = KillShellInput
    is_read_only = False
    is_compactable = False
    result_cap_chars = 4_000

    @property
    def description(self) -> str:
        return description_beside(__file__)

    def summary(self, tool_input: KillShellInput) -> str:
        return f"KillShell {tool_input.shell_id}"

    def permission(self, tool_input: KillShellInput, context: ToolContext) -> PermissionQuestion | None:
        return None

    async def run(self, tool_input: KillShellInput, context: ToolContext) -> ToolResult:
        task = context.shell.task(tool_input.shell_id)
        if task is None:
            return ToolResult.error(unknown_task_text(tool_input.shell_id, context.shell))
        if task.state != "running":
            return ToolResult.of(f"{task.id} had already ended ({task.state}, exit code {task.exit_code}).")
        survivors = await context.shell.stop(task)
        if survivors:
            return ToolResult.error(f"{survivors} processes of {task.id} could not be killed.")
        return ToolResult.of(f"{task.id} was killed: {task.command}")
