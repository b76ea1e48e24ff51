"""Write: a file's whole content, new or replaced."""

from __future__ import annotations

import os

from pyagent.events import PermissionQuestion
from pyagent.tools.editable import (
    Change,
    carry_out_plan,
    check_creatable,
    check_writable,
    encoded,
    load_original,
    shown_to_user,
)
from pyagent.tools.paths import printable_name, resolve_path, write_question
from pyagent.tools.text_file import Encoding
from pyagent.tools.tool import RefusedError, ToolContext, ToolInput, ToolResult, counted, description_beside


class WriteInput(ToolInput):
    file_path: str
    content: str


class WriteTool:
    name = "Write"
    input_model = WriteInput
    is_read_only = False
    is_compactable = True
    result_cap_chars = 20_000

    @property
    def description(self) -> str:
        return description_beside(__file__)

    def summary(self, tool_input: WriteInput) -> str:
        lines = tool_input.content.count("\n") + (not tool_input.content.endswith("\n"))
        return f"Write {tool_input.file_path} ({counted(lines, 'line')})"

    def permission(self, tool_input: WriteInput, context: ToolContext) -> PermissionQuestion | None:
        change = plan_write(tool_input, context)
        old_text, new_text = shown_to_user(change, change.old_text, change.new_text)
        return write_question(self.name, change.path, context, old_text=old_text, new_text=new_text)

    async def run(self, tool_input: WriteInput, context: ToolContext) -> ToolResult:
        return await carry_out_plan(lambda: plan_write(tool_input, context), context)


def plan_write(tool_input: WriteInput, context: ToolContext) -> Change:
    """The change in full.

    Raises:
        RefusedError: the file exists and the model does not know what it would replace.
    """
    path = resolve_path(tool_input.file_path, context.cwd)
    name = printable_name(path)
    content = tool_input.content
    if not os.path.exists(path):
        check_creatable(path)
        data = encoded(content, Encoding("utf-8"), path)
        return Change(path, None, data, "", content, "write", False, f"Created {name}.")
    original = load_original(path, context)
    if original.is_changed:
        raise RefusedError(f"{name} has changed since it was read. Read it again before replacing it.")
    if original.known.seen.is_partial:
        raise RefusedError(f"Only a part of {name} was read. Read all of it before replacing it, or use Edit.")
    check_writable(path)
    notes = ""
    if "\r" not in content and _has_only_crlf(original.text):
        content = content.replace("\n", "\r\n")
        notes += " Its CRLF line ends were kept."
    encoding = original.encoding
    try:
        data = encoded(content, encoding, path)
    except RefusedError:
        data = encoded(content, Encoding("utf-8"), path)
        notes += f" It was {encoding.codec}, which lacks some of these characters; it is UTF-8 now."
    return Change(path, original.data, data, original.text, content, "write", False, f"Wrote {name}.{notes}")


def _has_only_crlf(text: str) -> bool:
    return "\r\n" in text and text.count("\r\n") == text.count("\n")
