"""A bare app around one widget, for tests of widgets without the application."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widget import Widget

from pyagent.ui.theme import DARK, THEMES


class Stage(App[None]):
    """Shows the given widgets."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, *widgets: Widget, theme_name: str = DARK) -> None:
        super().__init__()
        self._widgets = widgets
        self._theme_name = theme_name

    def compose(self) -> ComposeResult:
        yield from self._widgets

    def on_mount(self) -> None:
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = self._theme_name


def rows(widget: Widget) -> list[str]:
    """The text of each row of a widget, right blanks cut."""
    return [widget.render_line(y).text.rstrip() for y in range(widget.size.height)]


def shown(widget: Widget) -> str:
    """All text of a widget."""
    return "\n".join(rows(widget))
