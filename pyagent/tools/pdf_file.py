"""PDF files as document blocks; a choice of pages needs pypdf."""

from __future__ import annotations

import base64
import importlib
import io
import re
from pathlib import Path

from pyagent.messages import DocumentBlock
from pyagent.tools.paths import printable_name, short_path
from pyagent.tools.tool import ToolContext, ToolResult, counted

MAX_PDF_BYTES = 20 * 1024 * 1024
"""A request may have 32 MB, base64 adds a third, and there must be room for the rest of the conversation."""
WHOLE_PAGES = 10
"""Longer documents are read in parts: a page costs 1,500 to 3,000 tokens."""
MAX_PAGES = 20

_PAGE_OBJECT = re.compile(rb"/Type\s*/Page\b(?!s)")


def is_pdf(start: bytes) -> bool:
    return start.startswith(b"%PDF-")


def pdf_result(path: Path, pages: str | None, context: ToolContext) -> ToolResult:
    """The document, or the pages asked for. Blocks."""
    name = printable_name(path)
    size = path.stat().st_size
    if size > MAX_PDF_BYTES:
        return ToolResult.error(
            f"{name} has {size:,} bytes; at most {MAX_PDF_BYTES:,} can be sent. Try pdftotext in Bash."
        )
    data = path.read_bytes()
    try:
        pypdf = importlib.import_module("pypdf")
    except ImportError:
        count = len(_PAGE_OBJECT.findall(data))
        if pages:
            return ToolResult.error(
                f"Single pages of {name} need the package pypdf. Read it whole, or use pdftotext in Bash."
            )
        if count > MAX_PAGES:
            return ToolResult.error(f"{name} has {count} pages; at most {MAX_PAGES} are sent. Use pdftotext in Bash.")
        return _document(path, data, count, context)
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        count = len(reader.pages)
        if not pages:
            if count > WHOLE_PAGES:
                return ToolResult.error(
                    f'{name} has {count} pages. Choose at most {MAX_PAGES} with `pages`, such as "1-{WHOLE_PAGES}".'
                )
            return _document(path, data, count, context)
        chosen = page_range(pages, count)
        if isinstance(chosen, str):
            return ToolResult.error(chosen)
        writer = pypdf.PdfWriter()
        for index in chosen:
            writer.add_page(reader.pages[index - 1])
        buffer = io.BytesIO()
        writer.write(buffer)
    except pypdf.errors.PyPdfError as error:
        return ToolResult.error(f"{name} cannot be read as PDF: {error}.")
    return _document(path, buffer.getvalue(), len(chosen), context)


def page_range(pages: str, count: int) -> range | str:
    """The pages `3`, `2-5` or `7-` stand for, or what is wrong with them."""
    match = re.fullmatch(r"\s*(\d+)\s*(?:(-)\s*(\d*)\s*)?", pages)
    if match is None:
        return f'`pages` must be such as "3" or "2-5", not {pages!r}.'
    first = int(match[1])
    last = int(match[3]) if match[3] else (count if match[2] else first)
    if not 1 <= first <= last or first > count:
        return f"The document has pages 1 to {count}."
    if last - first >= MAX_PAGES:
        return f"At most {MAX_PAGES} pages at once."
    return range(first, min(last, count) + 1)


def _document(path: Path, data: bytes, count: int, context: ToolContext) -> ToolResult:
    source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(data).decode("ascii")}
    display = {"summary": f"PDF, {counted(count, 'page')}", "path": short_path(path, context.cwd)}
    return ToolResult((DocumentBlock(source, title=printable_name(path.name), page_count=count),), display=display)
