"""Where the prompt cache is written: a pure function of the conversation.

The server writes an entry at each mark and, on reading, looks back 20 blocks from a mark for an earlier entry. So the
newest message carries a mark, and so does the place the previous request ended at: a turn may add any number of blocks
and the entry written before it is still found. One more stands behind system and tools and survives a compaction.
"""

from __future__ import annotations

from pyagent.agent.wire.body import Marks
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import RenderedConversation, RenderedMessage

MAX_MARKS_COUNT = 4
"""The API refuses a request with more."""
MOVING_MARKS_COUNT = 3
"""The newest user message and the ends of the two requests before; the fourth mark stands behind the system text."""


def place_marks(profile: RequestProfile, rendered: RenderedConversation) -> Marks:
    """At most four marks, none on thinking, all of one lifetime."""
    if profile.cache_ttl == "off":
        return Marks()
    places: list[tuple[int, int]] = []
    for at in range(len(rendered.messages) - 1, -1, -1):
        message = rendered.messages[at]
        if message.role != "user":
            continue
        block = _last_markable(message)
        if block is not None:
            places.append((at, block))
        if len(places) == MOVING_MARKS_COUNT:
            break
    return Marks(tuple(reversed(places)), bool(profile.system_bytes or profile.tools), profile.cache_ttl)


def _last_markable(message: RenderedMessage) -> int | None:
    """Blank text never gets this far, so only thinking is passed over."""
    for position in range(len(message.parts) - 1, -1, -1):
        if not message.parts[position].is_thinking:
            return position
    return None
