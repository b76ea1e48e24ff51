"""Jupyter notebooks as text: cells with their ids and outputs."""

from __future__ import annotations

import json
from typing import Any

from pyagent.messages import JsonObject

OUTPUT_CHARS = 4_000
"""Of each output; the rest is cut, since data frames and logs repeat themselves."""


def joined(source: Any) -> str:
    """A notebook's multi-line string, which is a string or a list of them."""
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")


def cell_id(cell: JsonObject, index: int) -> str:
    """The cell's own id, or `cell-N` (from 0) in notebooks older than those."""
    return str(cell.get("id") or f"cell-{index}")


def notebook_text(text: str) -> str | None:
    """The cells as the model reads them; None if this is no notebook."""
    try:
        notebook = json.loads(text)
        cells = notebook["cells"]
        parts = []
        for index, cell in enumerate(cells):
            kind = cell["cell_type"]
            parts.append(f'<cell id="{cell_id(cell, index)}" type="{kind}">\n{joined(cell.get("source"))}\n</cell>')
            outputs = [shown for output in cell.get("outputs") or () if (shown := _output(output))]
            if outputs:
                parts.append("<output>\n" + "\n".join(outputs) + "\n</output>")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return "\n".join(parts) + "\n" if parts else "(a notebook without cells)\n"


def _output(output: JsonObject) -> str:
    match output.get("output_type"):
        case "stream":
            text = joined(output.get("text"))
        case "error":
            text = f"{output.get('ename')}: {output.get('evalue')}"
        case _:
            data = output.get("data") or {}
            text = joined(data.get("text/plain")) or f"({', '.join(data)})"
    text = text.rstrip("\n")
    return (
        text
        if len(text) <= OUTPUT_CHARS
        else f"{text[:OUTPUT_CHARS]}\n[… {len(text) - OUTPUT_CHARS:,} characters more]"
    )
