"""NotebookEdit: replace, insert or delete a cell, leaving the rest of the notebook as it is."""

from __future__ import annotations

import json
import os
import re
import secrets
from typing import Any, Literal

from pydantic import Field

from pyagent.events import PermissionQuestion
from pyagent.messages import JsonObject
from pyagent.tools.editable import Change, carry_out_plan, encoded, load_original
from pyagent.tools.notebook import cell_id, joined
from pyagent.tools.paths import missing_file_text, printable_name, resolve_path, write_question
from pyagent.tools.tool import RefusedError, ToolContext, ToolInput, ToolResult, description_beside


class NotebookEditInput(ToolInput):
    notebook_path: str
    cell_id: str | None = None
    new_source: str = ""
    cell_type: Literal["code", "markdown"] | None = Field(None, description="For insert; default: as before, or code")
    edit_mode: Literal["replace", "insert", "delete"] = "replace"


class NotebookEditTool:
    name = "NotebookEdit"
    input_model = NotebookEditInput
    is_read_only = False
    is_compactable = True
    result_cap_chars = 20_000

    @property
    def description(self) -> str:
        return description_beside(__file__)

    def summary(self, tool_input: NotebookEditInput) -> str:
        return f"NotebookEdit {tool_input.notebook_path} ({tool_input.edit_mode} {tool_input.cell_id or 'at the top'})"

    def permission(self, tool_input: NotebookEditInput, context: ToolContext) -> PermissionQuestion | None:
        path = plan_cell_edit(tool_input, context).path
        old_source = ""
        if tool_input.edit_mode != "insert":
            cells = json.loads(load_original(path, context).text)["cells"]
            old_source = joined(cells[_position(cells, tool_input.cell_id)].get("source"))
        new_source = "" if tool_input.edit_mode == "delete" else tool_input.new_source
        return write_question(self.name, path, context, old_text=old_source, new_text=new_source)

    async def run(self, tool_input: NotebookEditInput, context: ToolContext) -> ToolResult:
        return await carry_out_plan(lambda: plan_cell_edit(tool_input, context), context)


def plan_cell_edit(tool_input: NotebookEditInput, context: ToolContext) -> Change:
    """The notebook with one cell changed.

    Raises:
        RefusedError: no notebook, not read or changed since, or no such cell.
    """
    path = resolve_path(tool_input.notebook_path, context.cwd)
    name = printable_name(path)
    if not os.path.exists(path):
        raise RefusedError(missing_file_text(path, context))
    original = load_original(path, context)
    if original.is_changed:
        raise RefusedError(f"{name} has changed since it was read. Read it again.")
    try:
        notebook = json.loads(original.text)
        found: Any = notebook["cells"]
        if not isinstance(found, list) or not all(isinstance(cell, dict) for cell in found):
            raise TypeError("cells")
        cells: list[JsonObject] = found
        has_ids = (notebook.get("nbformat", 4), notebook.get("nbformat_minor", 0)) >= (4, 5)
    except (ValueError, KeyError, TypeError) as error:
        raise RefusedError(f"{name} is not a Jupyter notebook.") from error
    source = tool_input.new_source
    match tool_input.edit_mode:
        case "delete":
            del cells[_position(cells, tool_input.cell_id)]
        case "insert":
            position = _position(cells, tool_input.cell_id) + 1 if tool_input.cell_id else 0
            cells.insert(position, _new_cell(tool_input.cell_type or "code", source, has_id=has_ids))
        case "replace":
            cell = cells[_position(cells, tool_input.cell_id)]
            cell["source"] = _lines(source)
            if tool_input.cell_type and tool_input.cell_type != cell.get("cell_type"):
                fresh = _new_cell(tool_input.cell_type, source, has_id=False)
                kept = {key: cell[key] for key in ("id", "metadata") if key in cell}
                cell.clear()
                cell.update(fresh | kept)
            if cell.get("cell_type") == "code":
                # The outputs belong to the old source.
                cell["outputs"], cell["execution_count"] = [], None
    new_text = _dumped(notebook, original.text)
    data = encoded(new_text, original.encoding, path)
    is_partial = original.known.seen.is_partial
    done = f"{tool_input.edit_mode.capitalize()} done in {name}; it has {len(cells)} cells now."
    return Change(path, original.data, data, original.text, new_text, "edit", is_partial, done)


def _position(cells: list[JsonObject], wanted: str | None) -> int:
    for index, cell in enumerate(cells):
        if cell_id(cell, index) == wanted:
            return index
    known = ", ".join(cell_id(cell, index) for index, cell in enumerate(cells[:20]))
    raise RefusedError(f"There is no cell {wanted!r}. Cells: {known or 'none'}.")


def _new_cell(kind: str, source: str, *, has_id: bool) -> JsonObject:
    cell: JsonObject = {"cell_type": kind}
    if has_id:
        cell["id"] = secrets.token_hex(4)
    cell |= {"metadata": {}, "source": _lines(source)}
    return cell | {"execution_count": None, "outputs": []} if kind == "code" else cell


def _lines(source: str) -> list[str]:
    return [line for line in re.split(r"(?<=\n)", source) if line]


def _dumped(notebook: Any, old_text: str) -> str:
    """In the style the file has: its indentation, and a final newline or not."""
    indent = re.match(r"\s*\{\r?\n( +|\t+)", old_text)
    is_ascii = old_text.isascii() and "\\u" in old_text
    text = json.dumps(notebook, indent=indent[1] if indent else None, ensure_ascii=is_ascii)
    text += "\n" if old_text.endswith("\n") else ""
    return text.replace("\n", "\r\n") if "\r\n" in old_text else text
