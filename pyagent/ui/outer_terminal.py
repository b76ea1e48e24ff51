"""The terminal around the screen, as the app uses it: clipboard, window title, notifications, and less motion."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyagent.events import Event, SessionOpened
from pyagent.ui.attention import Attention
from pyagent.ui.clipboard import clipboard_routes, copy_by_program, copy_sequences
from pyagent.ui.status import SessionStatus

if TYPE_CHECKING:
    from pyagent.ui.app import PyagentApp

REMARK_S = 4.0
"""Time to read that something could not be copied."""


class OuterTerminal:
    """Writes to the terminal what is no part of the screen."""

    def __init__(self, app: PyagentApp, environ: Mapping[str, str], clock: Callable[[], float]) -> None:
        """`clock` gives seconds."""
        self._app = app
        self._environ = environ
        self.attention = Attention(
            notify=self.write,
            set_title=self._set_title,
            environ=environ,
            has_focus=lambda: app.has_focus_reported,
            untouched_s=lambda: time.monotonic() - app.last_key_s,
            clock=clock,
        )

    def write(self, sequence: str) -> None:
        """Write a control sequence of our own, if the screen is up."""
        if (driver := self._app.terminal_driver) is not None:
            driver.write(sequence)

    def _set_title(self, title: str) -> None:
        if (driver := self._app.terminal_driver) is not None:
            driver.set_title(title)

    def take(self, event: Event, status: SessionStatus) -> None:
        """Tell the terminal of what has happened."""
        if isinstance(event, SessionOpened):
            self.attention.settings = event.terminal
        self.attention.take(event, status)

    def show(self, status: SessionStatus) -> None:
        """Bring the window's title up to date."""
        self.attention.show(status)

    def copy(self, text: str) -> None:
        """Put the text on the clipboard by every way there is, and say how that went."""
        routes = clipboard_routes(self._environ)
        if routes.sequences:
            for sequence in copy_sequences(self._environ, text):
                self.write(sequence)
        self._app.show_hint(routes.remark(len(text)), lasting_s=REMARK_S)
        if routes.command:
            self._app.run_worker(self._copy_by_program(routes.command, text, routes.failed_remark()), group="clipboard")

    async def _copy_by_program(self, command: tuple[str, ...], text: str, failed_remark: str) -> None:
        has_copied = await asyncio.to_thread(copy_by_program, command, text, self._environ)
        if not has_copied and failed_remark:
            self._app.show_hint(failed_remark, lasting_s=REMARK_S)
