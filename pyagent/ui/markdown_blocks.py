"""Block-level Markdown tokens to lines: a pure function of tokens, source lines and width."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len

from pyagent.ui.highlight import CodeHighlighter, highlighter
from pyagent.ui.lines import BLANK_LINE, Line, Span, expand_tabs, wrap_spans
from pyagent.ui.markdown_inline import inline_lines
from pyagent.ui.markdown_table import Table, table_lines

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markdown_it.tree import SyntaxTreeNode

_NARROWEST_CONTENT_CELLS = 8
"""Nested content never gets less: deep nesting in a narrow window gives up indentation before legibility."""
_BULLETS = ("•", "◦", "▪")
_TASKS = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}


@lru_cache(maxsize=1)
def parser() -> MarkdownIt:
    """CommonMark with tables and strikethrough. HTML stays literal text; link definitions are off because one at
    the end of an answer would change lines already shown."""
    from markdown_it import MarkdownIt

    return (
        MarkdownIt("commonmark", {"html": False, "maxNesting": 12})
        .enable(["table", "strikethrough"])
        .disable(["reference", "html_block", "html_inline"])
    )


def parse(source: str) -> list[SyntaxTreeNode]:
    """The top-level blocks."""
    from markdown_it.tree import SyntaxTreeNode

    return SyntaxTreeNode(parser().parse(source)).children


def first_line(node: SyntaxTreeNode) -> int:
    """The block's first source line, from 0."""
    return node.map[0] if node.map else 0


def has_gap_before(node: SyntaxTreeNode, source_lines: Sequence[str]) -> bool:
    """Whether the source has a blank line before the block; so streamed and whole text agree."""
    start = first_line(node)
    return start > 0 and not source_lines[start - 1].strip(" \t>")


class FenceLines:
    """The lines of one code block, made one at a time."""

    def __init__(self, info: str, width_cells: int) -> None:
        self.language = info.split()[0].strip("{}.") if info.split() else ""
        self._width_cells = max(_NARROWEST_CONTENT_CELLS, width_cells)
        self._highlighter: CodeHighlighter = highlighter(self.language)

    def label(self) -> list[Line]:
        """The language's name above the code, if one was given."""
        if not self.language:
            return []
        text = f" {self.language}"
        return [Line((Span(text, "code.label"),), gutter_chars=len(text), fill="fill.code")]

    def add(self, text: str) -> list[Line]:
        """The next finished line of code."""
        return self._wrapped(self._highlighter.line(expand_tabs(text)))

    def peek(self, text: str) -> list[Line]:
        """A line of code still being written."""
        return self._wrapped(self._highlighter.peek(expand_tabs(text)))

    def _wrapped(self, spans: tuple[Span, ...]) -> list[Line]:
        gutter = (Span(" "),)
        rows = wrap_spans(spans, self._width_cells - 2)
        return [Line((*gutter, *row.spans), 1, row.joint, "fill.code") for row in rows]


class BlockRenderer:
    """Renders block nodes to a width, given the source lines their maps count in."""

    def __init__(self, source_lines: Sequence[str]) -> None:
        self.source_lines = source_lines

    def children(self, nodes: Sequence[SyntaxTreeNode], width_cells: int, depth: int) -> list[Line]:
        """Blocks inside a container, blank rows where the source has them."""
        lines: list[Line] = []
        for index, node in enumerate(nodes):
            if index and has_gap_before(node, self.source_lines):
                lines.append(BLANK_LINE)
            lines += self.block(node, width_cells, depth)
        return lines

    def block(self, node: SyntaxTreeNode, width_cells: int, depth: int = 0) -> list[Line]:
        """One block."""
        width_cells = max(_NARROWEST_CONTENT_CELLS, width_cells)
        match node.type:
            case "heading":
                return self._paragraph(node, width_cells, "heading1" if node.tag == "h1" else "heading")
            case "paragraph":
                return self._paragraph(node, width_cells)
            case "bullet_list" | "ordered_list":
                return self._list(node, width_cells, depth)
            case "blockquote":
                return self._quote(node, width_cells, depth)
            case "fence" | "code_block":
                return _code(node, width_cells)
            case "table":
                return table_lines(_table(node), width_cells)
            case "hr":
                return [Line((Span("─" * min(width_cells, 40), "rule"),))]
            case _:
                return [line for text in node.content.split("\n") for line in wrap_spans((Span(text),), width_cells)]

    def _paragraph(self, node: SyntaxTreeNode, width_cells: int, role: str = "") -> list[Line]:
        lines: list[Line] = []
        for inline in node.children:
            for spans in inline_lines(_tokens(inline), role):
                lines += wrap_spans([span._replace(text=expand_tabs(span.text)) for span in spans], width_cells)
        return lines

    def _list(self, node: SyntaxTreeNode, width_cells: int, depth: int) -> list[Line]:
        lines: list[Line] = []
        for index, item in enumerate(node.children):
            if index and has_gap_before(item, self.source_lines):
                lines.append(BLANK_LINE)
            lines += self.item(item, list_marker(node, index, depth), width_cells, depth)
        return lines

    def item(self, item: SyntaxTreeNode, marker: str, width_cells: int, depth: int) -> list[Line]:
        """One list item behind its marker, the rest of it hanging."""
        indent_cells = cell_len(marker)
        lines = self.children(item.children, width_cells - indent_cells, depth + 1) or [BLANK_LINE]
        task = next((sign for source, sign in _TASKS.items() if lines[0].content.startswith(source)), "")
        if task:
            lines[0] = _without_head(lines[0], 4)
            marker = task
        first = lines[0]
        head = Line((Span(marker, "bullet"), *first.spans), first.gutter_chars, None, first.fill)
        hanging = (Span(" " * indent_cells),)
        return [head, *(_hanging(line, hanging) for line in lines[1:])]

    def _quote(self, node: SyntaxTreeNode, width_cells: int, depth: int) -> list[Line]:
        bar = (Span("│ ", "rule"),)
        inner = self.children(node.children, width_cells - 2, depth)
        return [_quoted(line).indented(bar) for line in inner]


def list_marker(node: SyntaxTreeNode, index: int, depth: int, first_number: int | None = None) -> str:
    """The sign before an item: a bullet by depth, or its number."""
    if node.type == "bullet_list":
        return f"{_BULLETS[min(depth, len(_BULLETS) - 1)]} "
    start = first_number if first_number is not None else int(node.attrs.get("start", 1))
    return f"{start + index}. "


def _hanging(line: Line, indent: tuple[Span, ...]) -> Line:
    """The line under its item's text. The indent of a wrapped row is furniture; that of a real line is content."""
    if line.is_soft_wrap or line.gutter_chars:
        return line.indented(indent)
    if not line.spans:
        return line
    return Line((*indent, *line.spans), 0, line.joint, line.fill)


def _quoted(line: Line) -> Line:
    return Line(tuple(span._replace(role=f"quote {span.role}".strip()) for span in line.spans), *_rest(line))


def _rest(line: Line) -> tuple[int, str | None, str]:
    return line.gutter_chars, line.joint, line.fill


def _without_head(line: Line, chars: int) -> Line:
    spans: list[Span] = []
    for span in line.spans:
        cut = min(chars, len(span.text))
        chars -= cut
        if span.text[cut:]:
            spans.append(span._replace(text=span.text[cut:]))
    return Line(tuple(spans), *_rest(line))


def _code(node: SyntaxTreeNode, width_cells: int) -> list[Line]:
    fence = FenceLines(node.info if node.type == "fence" else "", width_cells)
    lines = fence.label()
    for text in node.content.removesuffix("\n").split("\n"):
        lines += fence.add(text)
    return lines


def _tokens(inline: SyntaxTreeNode) -> Sequence[Token]:
    return inline.token.children or () if inline.token else ()


def _table(node: SyntaxTreeNode) -> Table:
    rows: list[list[list[Span]]] = []
    aligns: list[str] = []
    for section in node.children:
        for row in section.children:
            cells: list[list[Span]] = []
            for cell in row.children:
                spans = [span for inline in cell.children for line in inline_lines(_tokens(inline)) for span in line]
                cells.append([span._replace(text=expand_tabs(span.text)) for span in spans])
                if not rows:
                    aligns.append(str(cell.attrs.get("style", "")).rpartition(":")[2] or "left")
            rows.append(cells)
    count = len(rows[0])
    body = [(row + [[]] * count)[:count] for row in rows[1:]]
    return Table(rows[0], body, aligns)
