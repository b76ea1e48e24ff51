"""Which lines a page is made of, whatever it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from pyagent.pages import (
    AnswerPage,
    CompactionsPage,
    ContextPage,
    CostPage,
    DiffPage,
    MemoryPage,
    Page,
    PermissionsPage,
    SettingsPage,
    TasksPage,
)
from pyagent.ui.lines import Line
from pyagent.ui.pages.context import context_lines
from pyagent.ui.pages.cost import cost_lines
from pyagent.ui.pages.records import answer_lines, compactions_lines, diff_page_lines, memory_lines, tasks_lines
from pyagent.ui.pages.rules import permissions_lines, settings_lines

TEXT_CELLS = 100
"""Width of a page as text: what most terminals and mails show without breaking lines."""


def page_layout(page: Page) -> Callable[[int], Sequence[Line]]:
    """Makes the lines of a page for a width."""
    return lambda width_cells: page_lines(page, width_cells - 1)


def page_text(page: Page, width_cells: int = TEXT_CELLS) -> str:
    """A page as plain text."""
    return "\n".join(line.text.rstrip() for line in page_lines(page, width_cells)).strip("\n")


def page_lines(page: Page, width_cells: int) -> Sequence[Line]:
    match page:
        case ContextPage():
            return context_lines(page, width_cells)
        case CostPage():
            return cost_lines(page, width_cells)
        case CompactionsPage():
            return compactions_lines(page, width_cells)
        case DiffPage():
            return diff_page_lines(page, width_cells)
        case SettingsPage():
            return settings_lines(page, width_cells)
        case PermissionsPage():
            return permissions_lines(page, width_cells)
        case TasksPage():
            return tasks_lines(page, width_cells)
        case MemoryPage():
            return memory_lines(page, width_cells)
        case AnswerPage():
            return answer_lines(page, width_cells)
        case _ as never:
            assert_never(never)
