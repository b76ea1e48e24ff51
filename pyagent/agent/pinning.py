"""`/pin` and `/unpin`: a message, lines of a file, a file, or a rule stays word for word behind every compaction."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from pyagent.agent.context_keeper import PipelineKeeper
from pyagent.agent.journal import Journal
from pyagent.agent.restore_sources import reminder
from pyagent.errors import UsageError
from pyagent.events import EventSink, Notice, Report
from pyagent.log import Pin, Unpin, UserEntry
from pyagent.messages import TextBlock, scrub_surrogates, text_of
from pyagent.view import ViewItem

_MESSAGE = re.compile(r"last|(prompt|answer)\s+(\d+)")
_LINES = re.compile(r"@(.+?)(?:#L|:)(\d+)(?:-L?(\d+))?")
MAX_LISTED_CHARS = 200
"""Of a pin in the list; the whole of it is in the conversation."""


class Pinning:
    """What the person wants kept, written as records; the next compaction lays it out."""

    def __init__(self, journal: Journal, keeper: PipelineKeeper, emit: EventSink, cwd: Callable[[], str]) -> None:
        self._journal = journal
        self._keeper = keeper
        self._emit = emit
        self._cwd = cwd

    def pin(self, argument: str) -> Coroutine[Any, Any, None] | None:
        """`/pin` lists what is pinned. `/pin last` takes the last answer, `/pin prompt N` and `/pin answer N` what you
        said or were told there (counted from 1 in the view, like `/compact upto N`), `/pin @FILE#L10-20` these lines as
        they are now, `/pin @FILE` the file as it will be then; anything else is a rule."""
        text = scrub_surrogates(argument.strip())
        if text:
            return self._add(text)
        pins = self._journal.state.pins
        if pins:
            self._emit(Report("Pinned", "\n".join(f"{n}. {_listed(pin)}" for n, pin in enumerate(pins, start=1))))
        else:
            hint = "Pin a rule with /pin TEXT, a file with /pin @PATH, the last answer with /pin last."
            self._emit(Notice("Nothing is pinned.", hint=hint))
        return None

    def unpin(self, argument: str) -> None:
        """Take the Nth pin back: the model keeps it until the next compaction."""
        pins = self._journal.state.pins
        number = int(argument) if argument.strip().isdecimal() else 0
        if not 1 <= number <= len(pins):
            raise UsageError(f"There is no pin {argument.strip()!r}.", hint="/pin lists them with their numbers.")
        self._journal.commit(Unpin(pins[number - 1].pin_id))
        self._emit(Notice(f"No longer pinned: {' '.join(pins[number - 1].text.split())[:80]}"))

    async def _add(self, text: str) -> None:
        """Between turns, so that what the model is told never stands between a tool call and its result."""
        state = self._journal.state
        pin = await self._pin_of(text)
        is_known = pin.is_file or any(pin.text in item.entry.text for item in state.view if _is_said(item))
        if not is_known:
            told = reminder(f"The user pinned this; it holds from now on:\n{pin.text}")
            self._journal.commit(UserEntry((TextBlock(told),), origin="attachment", label="pin"))
        self._journal.commit(pin)
        self._emit(Notice(f"Pinned; it stays word for word behind every compaction ({len(state.pins)} in all)."))
        self._keeper.tell_gauge()

    async def _pin_of(self, text: str) -> Pin:
        pin_id = self._journal.new_uuid()
        if message := _MESSAGE.fullmatch(text):
            source, said = self._message(message[1] or "", int(message[2] or 0))
            return Pin(pin_id, said, source=source)
        if not text.startswith("@") or len(text) == 1:
            return Pin(pin_id, text)
        path = self._path(text[1:])
        if await asyncio.to_thread(os.path.isfile, path):
            return Pin(pin_id, path, is_file=True)
        if lines := _LINES.fullmatch(text):
            path, first, last = self._path(lines[1]), int(lines[2]), int(lines[3] or lines[2])
            said = await asyncio.to_thread(_lines_of, path, first, last)
            if said.strip():
                return Pin(pin_id, said, source=f"{path}:{first}" + (f"-{last}" if last > first else ""))
            raise UsageError(f"There is nothing to pin at lines {first} to {last} of {path}.")
        raise UsageError(f"There is no file {path}.", hint="Pin a rule without the @.")

    def _message(self, side: str, number: int) -> tuple[str, str]:
        """(where it was said, its words) of a message in the view."""
        items = self._journal.state.view.items
        prompts = [at for at, item in enumerate(items) if item.is_prompt]
        if side and not 1 <= number <= len(prompts):
            raise UsageError(
                f"There is no prompt {number}.", hint=f"The view holds {len(prompts)} of your prompts, counted from 1."
            )
        if side == "prompt":
            return f"your prompt {number}", text_of(items[prompts[number - 1]].blocks())
        first = prompts[number - 1] if side else 0
        end = prompts[number] if side and number < len(prompts) else len(items)
        answers = (text_of(item.blocks()) for item in reversed(items[first:end]) if not item.is_user)
        said = next((answer for answer in answers if answer.strip()), "")
        if not said:
            raise UsageError("There is no answer to pin there.")
        return f"the answer to prompt {number}" if side else "the last answer", said

    def _path(self, name: str) -> str:
        return os.path.abspath(os.path.join(self._cwd(), os.path.expanduser(name)))


def _is_said(item: ViewItem) -> bool:
    """Whether the model sees the item's text as the person's or as its own."""
    return item.is_prompt or not item.is_user


def _lines_of(path: str, first: int, last: int) -> str:
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from error
    return "\n".join(lines[max(first - 1, 0) : last])


def _listed(pin: Pin) -> str:
    if pin.is_file:
        return f"file: {pin.text}"
    words = pin.text if len(pin.text) <= MAX_LISTED_CHARS else f"{pin.text[:MAX_LISTED_CHARS]} …"
    return f"{pin.source}: {words}" if pin.source else words
