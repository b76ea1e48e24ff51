"""Edit: replace one text by another, and nothing else in the file."""

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
from pyagent.tools.matching import MatchError, replace_text
from pyagent.tools.paths import missing_file_text, printable_name, resolve_path, write_question
from pyagent.tools.text_file import Encoding
from pyagent.tools.tool import RefusedError, ToolContext, ToolInput, ToolResult, description_beside


class EditInput(ToolInput):
    file_path: str
    old_string: str
    new_string: str
    replace_all: bool = False


class EditTool:
    name = "Edit"
    input_model = EditInput
    is_read_only = False
    is_compactable = True
    result_cap_chars = 20_000

    @property
    def description(self) -> str:
        return description_beside(__file__)

    def summary(self, tool_input: EditInput) -> str:
        return f"Edit {tool_input.file_path}"

    def permission(self, tool_input: EditInput, context: ToolContext) -> PermissionQuestion | None:
        change = plan_edit(tool_input, context)
        old_text, new_text = shown_to_user(change, tool_input.old_string, tool_input.new_string)
        return write_question(self.name, change.path, context, old_text=old_text, new_text=new_text)

    async def run(self, tool_input: EditInput, context: ToolContext) -> ToolResult:
        return await carry_out_plan(lambda: plan_edit(tool_input, context), context)


def plan_edit(tool_input: EditInput, context: ToolContext) -> Change:
    """The change in full, or why it cannot be made.

    Raises:
        RefusedError: see its message.
    """
    path = resolve_path(tool_input.file_path, context.cwd)
    name = printable_name(path)
    old, new = tool_input.old_string, tool_input.new_string
    if old == new:
        raise RefusedError("old_string and new_string are the same: there is nothing to change.")
    if not os.path.exists(path):
        if old:
            raise RefusedError(missing_file_text(path, context))
        check_creatable(path)
        return Change(path, None, encoded(new, Encoding("utf-8"), path), "", new, "edit", False, f"Created {name}.")
    if path.suffix == ".ipynb":
        raise RefusedError(f"{name} is a notebook: use NotebookEdit.")
    original = load_original(path, context)
    check_writable(path)
    if not old:
        if original.text:
            raise RefusedError(f"{name} exists and is not empty: give the text to replace, or use Write.")
        data = encoded(new, original.encoding, path)
        return Change(path, original.data, data, "", new, "edit", False, f"Wrote the empty file {name}.")
    try:
        # A file that changed under us is edited only where there can be no doubt what is meant.
        replacement = replace_text(
            original.text,
            old,
            new,
            replace_all=tool_input.replace_all and not original.is_changed,
            allow_tolerant=not original.is_changed,
        )
    except MatchError as error:
        if original.is_changed:
            raise RefusedError(
                f"{name} has changed since it was read, and {_lowered(str(error))} Read it again."
            ) from error
        raise RefusedError(str(error)) from error
    if replacement.text == original.text:
        raise RefusedError("The file already reads so: only whitespace differed, and the file keeps its own.")
    data = encoded(replacement.text, original.encoding, path)
    places = f"{replacement.count} places" if replacement.count > 1 else f"line {replacement.first_line}"
    done = f"Edited {name} at {places}."
    if not replacement.is_exact:
        done += " old_string differed from the file in whitespace only; the file's own indentation was kept."
    if original.is_changed:
        done += (
            " The file was also changed by somebody else since it was read: read it again before relying on the rest."
        )
    is_partial = original.known.seen.is_partial or original.is_changed
    return Change(path, original.data, data, original.text, replacement.text, "edit", is_partial, done)


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
