"""The list of sessions line by line, in which they can also be renamed, deleted and brought back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyagent.errors import PyagentError

if TYPE_CHECKING:
    from pyagent.ui.dialogs.session_picker import Sessions

MAX_ROWS = 30
"""Rows of the list; the command takes an id or text for everything beyond."""

HOW = "A number takes a session; r and a number renames it, d and a number deletes it, u brings back what was deleted."

_ANSWER = re.compile(r"([rd]?)\s*(\d+)|(u)", re.IGNORECASE)


def choose_session(
    sessions: Sessions, read: Callable[[str], str | None], say: Callable[[str], None], *, count: int = MAX_ROWS
) -> str:
    """The id of the session the person takes; empty for none. `read` asks for a line, None at the end of input."""
    rows = _listed(sessions, say, count)
    if not rows:
        say("There is nothing to choose from.")
        return ""
    say(HOW)
    while True:
        line = (read("Enter selection: ") or "").strip()
        if not line:
            return ""
        answer = _ANSWER.fullmatch(line)
        if answer is None or (answer[2] and not 1 <= int(answer[2]) <= len(rows)):
            numbers = f"a number from 1 to {len(rows)}, one behind r or d, " if rows else ""
            say(f"Type {numbers}u, or nothing.")
            continue
        verb = (answer[1] or answer[3] or "").lower()
        chosen = rows[int(answer[2]) - 1] if answer[2] else ""
        if not verb:
            return chosen
        try:
            done = _changed(sessions, verb, chosen, read)
        except PyagentError as error:
            say(str(error))
            continue
        if done:
            say(done)
            rows = _listed(sessions, say, count)


def _listed(sessions: Sessions, say: Callable[[str], None], count: int) -> Sequence[str]:
    items = list(sessions.items())[:count]
    for number, item in enumerate(items, start=1):
        say(f"{number}. {item.label} ({item.detail})")
    return [item.id for item in items]


def _changed(sessions: Sessions, verb: str, session_id: str, read: Callable[[str], str | None]) -> str:
    """Do it; what was done, empty for nothing. Raises PyagentError."""
    match verb:
        case "r":
            old = sessions.name(session_id)
            title = (read(f"New name for {old}: ") or "").strip()
            if not title:
                return ""
            sessions.rename(session_id, title)
            return f"Renamed: {title}."
        case "d":
            name = sessions.name(session_id)
            sessions.delete(session_id)
            return f"Deleted: {name}. u brings it back."
        case _:
            restored = sessions.restore()
            return f"Brought back: {sessions.name(restored)}."
