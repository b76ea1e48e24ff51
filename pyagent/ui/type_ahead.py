"""Keys that come before there is a session: passed on in their order, each as soon as it can be understood."""

from __future__ import annotations

import logging
import string
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from textual import events

if TYPE_CHECKING:
    from pyagent.ui.app import PyagentApp
    from pyagent.ui.busy import QueuePanel
    from pyagent.ui.instant import InstantPrompt
    from pyagent.ui.prompt import Prompt

_log = logging.getLogger(__name__)

_LETTERS = frozenset(string.ascii_letters + string.digits)
"""What an empty prompt takes as text, whatever its first sign may come to mean."""


class TypeAhead:
    """Holds keys back. Text goes to the prompt once it is painted, everything else waits for the session."""

    def __init__(
        self,
        app: PyagentApp,
        pass_on: Callable[[events.Event], Awaitable[None]],
        *,
        instant: InstantPrompt | None,
        drops_enter: bool,
    ) -> None:
        """`pass_on` handles an event as if it came just now. With `drops_enter`, no Enter typed ahead is a key: a list
        of sessions comes first, for which it was not meant."""
        self._app, self._pass_on, self._drops_enter = app, pass_on, drops_enter
        self.sent: tuple[str, ...] = ()
        """Prompts that were sent from the instant prompt, oldest first."""
        self._instant = instant
        self._waiting: deque[events.Event] = deque()
        self._prompt: Prompt | None = None
        self._has_session = False
        self._is_on_its_way = False
        # Unless the instant prompt read it, the terminal made a newline of Enter before it was switched to single keys.
        self._has_newline_for_enter = instant is None

    @property
    def is_over(self) -> bool:
        """Whether all that was typed ahead has been passed on, so that keys take their usual way."""
        return self._has_session and not self._waiting and not self._is_on_its_way

    @property
    def is_waiting(self) -> bool:
        """Whether anything waits to be passed on."""
        return bool(self._waiting)

    def take_over(self, prompt: Prompt, queue: QueuePanel) -> float:
        """Show what was typed into the instant prompt as it stood there; gives when the last key came."""
        if self._instant is None:
            return float("-inf")
        ahead = self._instant.hand_over()
        if self._instant.failure is not None:
            _log.warning("the instant prompt stopped showing keys", exc_info=self._instant.failure)
        self.sent = ahead.queued
        queue.show((), ahead.queued, is_open=False)
        prompt.begin_with(ahead.draft, ahead.cuts)
        return ahead.last_key_s

    async def add(self, event: events.Event) -> None:
        """A key or a paste has come."""
        self._waiting.append(event)
        await self._release()

    async def prompt_is_painted(self, prompt: Prompt) -> None:
        """Text can be shown from now on."""
        self._prompt = prompt
        await self._release()

    async def session_is_there(self) -> None:
        """Everything can be acted upon from now on."""
        self._has_session = True
        await self._release()

    async def _release(self) -> None:
        while self._waiting and self._prompt is not None and not self._is_on_its_way:
            event = self._waiting[0]
            is_text = self._is_text(event, self._prompt)
            if not (self._has_session or is_text):
                return
            self._waiting.popleft()
            if isinstance(event, events.Key):
                if event.key == "ctrl+j" and self._has_newline_for_enter:
                    event = events.Key("enter", "\r")
                if event.key == "enter" and self._drops_enter:
                    continue
            self._is_on_its_way = not is_text
            await self._pass_on(event)
            if self._is_on_its_way:
                # A key the prompt does not handle itself comes back up to the app, whose bindings act on it. The next
                # one must not overtake it.
                self._prompt.call_later(self._app.screen.call_later, self._app.call_later, self._arrived)

    async def _arrived(self) -> None:
        self._is_on_its_way = False
        await self._release()

    @staticmethod
    def _is_text(event: events.Event, prompt: Prompt) -> bool:
        """Whether a key only writes or deletes in the prompt, which needs no session for that."""
        if not isinstance(event, events.Key):
            return False
        return event.key == "backspace" or (event.is_printable and (bool(prompt.text) or event.key in _LETTERS))
