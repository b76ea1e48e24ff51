"""Brings reports to the screen: a new one over the conversation, the answer to an open one's keys into that one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyagent.events import Report
from pyagent.ui.dialogs.browser import BrowserScreen, SendCommand
from pyagent.ui.dialogs.page_screens import PageScreen, screen_for
from pyagent.ui.editor import edited_in_place

if TYPE_CHECKING:
    from pyagent.ui.app import PyagentApp


def show_report(app: PyagentApp, report: Report, send: SendCommand) -> None:
    """Open the report's screen, or bring an open one of its kind up to date."""
    top = app.screen
    if report.page is not None and isinstance(top, BrowserScreen | PageScreen) and top.accepts(report.page):
        top.show(report.page)
        return

    def edit(path: str) -> str:
        with app.suspend():
            problem = edited_in_place(Path(path), app.environ)
        app.refresh(layout=True)
        return problem

    app.push_screen(screen_for(report, send, edit))


def say_in_dialog(app: PyagentApp, words: str) -> None:
    """Say what went wrong in the open page, if one is open: the transcript is behind it."""
    if isinstance(app.screen, BrowserScreen):
        app.screen.say(words)
