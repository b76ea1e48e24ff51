"""The tools there are: one line each."""

from __future__ import annotations

from collections.abc import Mapping

from pyagent.messages import JsonObject
from pyagent.settings import Settings
from pyagent.tools.ask_user_question import AskUserQuestionTool
from pyagent.tools.bash import BashTool
from pyagent.tools.bash_output import BashOutputTool
from pyagent.tools.edit import EditTool
from pyagent.tools.glob import GlobTool
from pyagent.tools.grep import GrepTool
from pyagent.tools.kill_shell import KillShellTool
from pyagent.tools.notebook_edit import NotebookEditTool
from pyagent.tools.read import ReadTool
from pyagent.tools.recall import RecallTool
from pyagent.tools.todo_write import TodoWriteTool
from pyagent.tools.tool import AnyTool, input_schema
from pyagent.tools.web import Fetcher
from pyagent.tools.web_fetch import WebFetchTool
from pyagent.tools.write import WriteTool


def default_tools(settings: Settings, fetcher: Fetcher | None = None) -> dict[str, AnyTool]:
    """The built-in tools by name, in the order the API gets them. Without a `fetcher` there is no WebFetch."""
    tools: tuple[AnyTool, ...] = (
        ReadTool(settings),
        BashTool(settings),
        GrepTool(),
        GlobTool(),
        EditTool(),
        WriteTool(),
        NotebookEditTool(),
        BashOutputTool(),
        KillShellTool(),
        TodoWriteTool(),
        AskUserQuestionTool(),
        RecallTool(),
        *((WebFetchTool(fetcher),) if fetcher is not None else ()),
    )
    return {tool.name: tool for tool in tools}


def tool_definitions(tools: Mapping[str, AnyTool]) -> tuple[JsonObject, ...]:
    """What the API is told. The order is that of the mapping, always: tools begin the cached prefix."""
    return tuple(
        {"name": tool.name, "description": tool.description, "input_schema": input_schema(tool.input_model)}
        for tool in tools.values()
    )
