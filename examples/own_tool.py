"""A tool of your own: one class. It is declared, validated and run like the built-in ones.

Run it: python examples/own_tool.py
"""

import asyncio
import tempfile
from pathlib import Path

from pydantic import Field

from pyagent.events import PermissionQuestion
from pyagent.state import ConversationState
from pyagent.tools.registry import tool_definitions
from pyagent.tools.shell import ShellSession
from pyagent.tools.tool import ToolContext, ToolInput, ToolResult


class CountInput(ToolInput):
    file_path: str = Field(description="File to count")


class CountLines:
    """Says how many lines a file has."""

    name = "CountLines"
    input_model = CountInput
    is_read_only = True
    is_compactable = True
    result_cap_chars = 1_000
    description = "Counts the lines of a file."

    def summary(self, tool_input: CountInput) -> str:
        return f"Count {tool_input.file_path}"

    def permission(self, tool_input: CountInput, context: ToolContext) -> PermissionQuestion | None:
        return None

    async def run(self, tool_input: CountInput, context: ToolContext) -> ToolResult:
        path = context.cwd / tool_input.file_path
        try:
            count = len(path.read_bytes().splitlines())
        except OSError as error:
            return ToolResult.error(f"{path.name}: {error.strerror}")
        return ToolResult.of(f"{path.name} has {count} lines")


async def main() -> None:
    """Show the declaration the model would get, then run the tool."""
    tool = CountLines()
    print(tool_definitions({tool.name: tool})[0])
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "notes.txt").write_text("one\ntwo\nthree\n")
        context = ToolContext(
            tool_use_id="toolu_example",
            cwd=Path(folder),
            allowed_dirs=(Path(folder),),
            files=ConversationState(),
            results_dir=Path(folder) / "results",
            count_tokens=len,
            report=print,
            shell=ShellSession(),
        )
        for name in ("notes.txt", "missing.txt"):
            result = await tool.run(CountInput(file_path=name), context)
            print("error:" if result.is_error else "result:", result.text)


if __name__ == "__main__":
    asyncio.run(main())
