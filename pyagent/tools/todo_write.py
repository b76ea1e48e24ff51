"""TodoWrite: the list of tasks the user sees and a compaction keeps."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pyagent.events import PermissionQuestion
from pyagent.tools.tool import ToolContext, ToolInput, ToolResult, description_beside


class Todo(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    content: str
    status: Literal["pending", "in_progress", "completed"]
    active_form: str = Field("", alias="activeForm", description="Such as: Running tests")


class TodoWriteInput(ToolInput):
    todos: list[Todo]


class TodoWriteTool:
    name = "TodoWrite"
    input_model = TodoWriteInput
    is_read_only = False
    is_compactable = False
    result_cap_chars = 20_000

    @property
    def description(self) -> str:
        return description_beside(__file__)

    def summary(self, tool_input: TodoWriteInput) -> str:
        done = sum(todo.status == "completed" for todo in tool_input.todos)
        return f"TodoWrite {done}/{len(tool_input.todos)} done"

    def permission(self, tool_input: TodoWriteInput, context: ToolContext) -> PermissionQuestion | None:
        return None

    async def run(self, tool_input: TodoWriteInput, context: ToolContext) -> ToolResult:
        tasks = [todo.model_dump(by_alias=True) for todo in tool_input.todos]
        done = sum(todo.status == "completed" for todo in tool_input.todos)
        return ToolResult.of(
            f"The list has {len(tasks)} tasks, {done} of them completed.",
            display={"tasks": tasks, "summary": f"{done}/{len(tasks)} done"},
        )
