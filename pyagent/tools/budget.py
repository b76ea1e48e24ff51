"""A result over its tool's cap goes to a file; head, tail and the path stand in the context."""

from __future__ import annotations

import re
from dataclasses import replace

from pyagent.messages import ResultContent, TextBlock
from pyagent.tools.output import BoundedOutput
from pyagent.tools.tool import AnyTool, ToolContext, ToolResult


def within_cap(result: ToolResult, tool: AnyTool, context: ToolContext) -> ToolResult:
    """The result as it is, or with its text cut and put aside whole. Images and documents stay. May write a file."""
    if len(result.text) <= tool.result_cap_chars:
        return result
    safe_id = re.sub(r"[^A-Za-z0-9_-]", "_", context.tool_use_id)
    output = BoundedOutput(tool.result_cap_chars, lambda: context.results_dir / f"{tool.name}-{safe_id}.txt")
    output.add(result.text)
    output.close()
    rest: tuple[ResultContent, ...] = tuple(part for part in result.content if not isinstance(part, TextBlock))
    display = result.display | ({"full_output": str(output.path)} if output.path is not None else {})
    return replace(result, content=(TextBlock(output.text()), *rest), display=display)
