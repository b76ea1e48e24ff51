"""The line that searches the transcript: hidden until it is called, gone with Esc."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from pyagent.ui.sign_input import SignInput
from pyagent.ui.transcript import Transcript


class SearchBar(SignInput):
    """Finds while typing; Enter or Up goes to the match before, Down to the one after."""

    DEFAULT_CSS = """
    SearchBar { display: none; height: 1; border: none; padding: 0 1; background: $surface; }
    SearchBar:focus { border: none; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("enter,up", "step(-1)", show=False),
        Binding("down", "step(1)", show=False),
    ]

    class Closed(Message):
        """The search is over; the input line should have the keys again."""

    class Found(Message):
        """How many blocks contain what is typed."""

        def __init__(self, query: str, count: int) -> None:
            super().__init__()
            self.query, self.count = query, count

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(placeholder="Search the transcript · Enter earlier · Down later · Esc closes")
        self._transcript = transcript

    def open(self) -> None:
        """Show the line and take the keys, from the very next one on."""
        self.display = True
        self.screen.set_focus(self, scroll_visible=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if not event.value:
            self._transcript.clear_find()
            self.post_message(self.Found("", 0))
        else:
            self.post_message(self.Found(event.value, self._transcript.find(event.value)))

    def action_step(self, direction: int) -> None:
        self._transcript.action_find_next(direction)

    def action_leave(self) -> None:
        self.display = False
        self.value = ""
        self._transcript.clear_find()
        self.post_message(self.Closed())
