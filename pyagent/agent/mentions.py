"""What a prompt brings along: files named with `@path` or `@path#L3-9`, read as the Read tool reads them; images."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyagent.agent.conversation import Enclosed
from pyagent.agent.permissions import Deny
from pyagent.agent.restore_sources import reminder
from pyagent.agent.tool_runner import Gatekeeper
from pyagent.commands import SubmitPrompt
from pyagent.errors import UsageError
from pyagent.events import EventSink, Notice
from pyagent.log import Payload, UserEntry
from pyagent.messages import DocumentBlock, ImageBlock, TextBlock
from pyagent.tools.image_file import image_result
from pyagent.tools.paths import resolve_path
from pyagent.tools.read import ReadInput, ReadTool
from pyagent.tools.tool import ToolContext

MAX_MENTIONS = 20
"""Files attached to one prompt; the Read tool is there for more."""

_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"(#L\d+(?:-L?\d+)?)?|([^\s"]\S*))', re.MULTILINE)
_LINES = re.compile(r"#L(\d+)(?:-L?(\d+))?$")
_SENTENCE_END = ".,;:!?)]}'\""


@dataclass(frozen=True, slots=True)
class Mention:
    """A file named in a prompt; lines from 1, 0 for all of it."""

    path: str
    first: int = 0
    last: int = 0


def mentions_in(text: str) -> tuple[Mention, ...]:
    """The `@path` words of a text, each once. A quoted one may hold blanks; `#L3`, `#L3-9` and `#L3-L9` name lines,
    inside or behind the quotes, and `#L9-3` the same as `#L3-9`."""
    found: dict[Mention, None] = {}
    for match in _MENTION.finditer(text):
        name = f"{match[1]}{match[2] or ''}" if match[1] is not None else match[3].rstrip(_SENTENCE_END)
        lines = _LINES.search(name)
        first, last = sorted((int(lines[1]), int(lines[2] or lines[1]))) if lines else (0, 0)
        path = name[: lines.start()] if lines else name
        if path and (not lines or first):
            found[Mention(path, first, last)] = None
    return tuple(found)


class PromptFiles:
    """Reads what a prompt names. What cannot be read is said and stays a word of the prompt."""

    def __init__(
        self,
        read: ReadTool,
        *,
        gatekeeper: Gatekeeper,
        context_for: Callable[[str, Callable[[str], None]], ToolContext],
        new_uuid: Callable[[], str],
        emit: EventSink,
    ) -> None:
        self._read = read
        self._gatekeeper = gatekeeper
        self._context_for = context_for
        self._new_uuid = new_uuid
        self._emit = emit

    async def enclose(self, prompt: SubmitPrompt) -> Enclosed:
        """The files as entries to stand before the prompt, the images as blocks of it.

        Only what was typed is searched for names: a pasted log may hold any.
        """
        before: list[tuple[str, Payload]] = []
        mentions = mentions_in(prompt.display or prompt.text)
        for mention in mentions[:MAX_MENTIONS]:
            before += await self._attached(mention)
        if len(mentions) > MAX_MENTIONS:
            self._emit(Notice(f"Only the first {MAX_MENTIONS} files named with @ are attached.", "warning"))
        images = tuple([await self._image(path) for path in prompt.images])
        return Enclosed(tuple(before), images)

    async def _attached(self, mention: Mention) -> list[tuple[str, Payload]]:
        uuid = self._new_uuid()
        context = self._context_for(uuid, lambda text: None)
        path = resolve_path(mention.path, context.cwd)
        if not await asyncio.to_thread(os.path.isfile, path):
            return []
        asked = {"file_path": str(path)}
        tool_input = ReadInput(
            file_path=str(path),
            offset=mention.first or None,
            limit=mention.last - mention.first + 1 if mention.first else None,
        )
        decision = self._gatekeeper.decide(self._read, asked, self._read.permission(tool_input, context), context)
        if isinstance(decision, Deny):
            self._emit(Notice(f"@{mention.path} is not attached: {decision.reason}", "warning"))
            return []
        result = await self._read.run(tool_input, context)
        if result.is_error:
            self._emit(Notice(f"@{mention.path} is not attached: {result.text}", "warning"))
            return []
        lines = f", lines {mention.first} to {mention.last}" if mention.first else ""
        head = f"The user named this file in the prompt that follows. {path}{lines}:"
        rest = tuple(part for part in result.content if isinstance(part, ImageBlock | DocumentBlock))
        content = (TextBlock(reminder(f"{head}\n{result.text}".rstrip())), *rest)
        entry = UserEntry(content, origin="attachment", label=f"file:{path}")
        return [(uuid, entry), *(("", seen) for seen in result.files_seen)]

    async def _image(self, path: str) -> ImageBlock:
        """The image, made smaller where it must be.

        Raises:
            UsageError: it cannot be sent.
        """
        context = self._context_for("", lambda text: None)
        try:
            result = await asyncio.to_thread(image_result, Path(path), context)
        except OSError as error:
            raise UsageError(f"The image {path} cannot be read: {error.strerror}.", hint="Paste it again.") from error
        block = next((part for part in result.content if isinstance(part, ImageBlock)), None)
        if block is None:
            raise UsageError(result.text, hint="Take it out of the prompt, or give a smaller one.")
        return block
