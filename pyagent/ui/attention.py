"""Tells a person who looks elsewhere: the window's title, and a notification when they are wanted.

Never while the terminal has the focus. Not every terminal says whether it has; there, a reply is worth a notification
only if it took long, and nothing is if a key was pressed a moment ago.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath

from pyagent.choices import TerminalSettings
from pyagent.events import Event, PermissionNeeded, QuestionAsked, TurnFailed, TurnFinished, TurnStarted
from pyagent.ui.sequences import BELL, notification_sequence, through
from pyagent.ui.status import Phase, SessionStatus
from pyagent.ui.terminal_kind import multiplexer, notification_channel, takes_sequences

RECENT_KEY_S = 5.0
"""Whoever pressed a key within this time is still there."""

WORKING, WAITING = "●", "?"
"""Marks in the title; an idle session has none."""


class Attention:
    """Follows the session and says what the terminal is to be told."""

    def __init__(
        self,
        *,
        notify: Callable[[str], None],
        set_title: Callable[[str], None],
        environ: Mapping[str, str],
        has_focus: Callable[[], bool | None],
        untouched_s: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        """`notify` writes a sequence, `set_title` takes the title's words. `has_focus` says whether the terminal is
        looked at, None if it never told; `untouched_s` gives the seconds since the last key, `clock` those of now."""
        self.settings: TerminalSettings | None = None
        """None until the session is open: before that nothing is said."""
        self._notify = notify
        self._set_title = set_title
        self._environ = environ
        self._has_focus = has_focus
        self._untouched_s = untouched_s
        self._clock = clock
        self._began_s = clock()
        self._title = ""

    def take(self, event: Event, status: SessionStatus) -> None:
        """Notify of what has happened, if it is worth it."""
        match event:
            case TurnStarted():
                self._began_s = self._clock()
            case PermissionNeeded(question=question):
                self._call(f"Permission needed: {question.tool_name} {question.subject}", is_urgent=True)
            case QuestionAsked(questions=questions):
                self._call(questions[0].text if questions else "The agent has a question", is_urgent=True)
            case TurnFinished() if not status.queued:
                self._call(f"The reply in {_name(status)} is there", is_urgent=False)
            case TurnFailed(message=message):
                self._call(message, is_urgent=False)
            case _:
                pass

    def show(self, status: SessionStatus) -> None:
        """Bring the title up to date."""
        if self.settings is None or not self.settings.has_title or not takes_sequences(self._environ):
            return
        mark = ""
        if status.phase is Phase.ASKING:
            mark = f"{WAITING} "
        elif status.is_busy:
            mark = f"{WORKING} "
        title = f"{mark}{_name(status)} – pyagent"
        if title != self._title:
            self._title = title
            self._set_title(title)

    def _call(self, text: str, *, is_urgent: bool) -> None:
        if self.settings is not None and self._is_worth_it(self.settings, is_urgent=is_urgent):
            for sequence in notification(self.settings.notification_channel, self._environ, text):
                self._notify(sequence)

    def _is_worth_it(self, settings: TerminalSettings, *, is_urgent: bool) -> bool:
        has_focus = self._has_focus()
        if has_focus is not None:
            return not has_focus
        if self._untouched_s() < RECENT_KEY_S:
            return False
        return is_urgent or self._clock() - self._began_s >= settings.notify_after_s


def notification(channel: str, environ: Mapping[str, str], text: str) -> list[str]:
    """The sequences that notify by a channel of the settings. Behind a multiplexer the bell rings too: whether that
    hands anything through is its own setting, but the bell it knows."""
    if channel == "none":
        return []
    if channel == "auto":
        channel = notification_channel(environ)
    between = multiplexer(environ)
    rings_too = channel.endswith("_with_bell") or (between and channel != "bell")
    sequence = notification_sequence(channel.removesuffix("_with_bell"), "pyagent", text)
    if sequence != BELL:
        sequence = through(between, sequence)
    return [sequence, BELL] if rings_too else [sequence]


def _name(status: SessionStatus) -> str:
    return status.title or PurePath(status.cwd).name or status.cwd
