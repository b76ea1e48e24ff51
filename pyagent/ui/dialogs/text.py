"""A page of Markdown or text over the conversation, for reports such as /context and /cost."""

from __future__ import annotations

from pyagent.ui.dialogs.pager import PagerScreen, markdown_layout, text_layout


class TextScreen(PagerScreen):
    """Shows a report until q or Esc."""

    def __init__(self, title: str, source: str, *, is_markdown: bool = True) -> None:
        super().__init__(title, markdown_layout(source) if is_markdown else text_layout(source))
