"""What must survive a compaction, found without a model: paths, numbers, errors, rules and open questions.

After a compaction the anchors of the summarised part are looked for in the new view; what is missing is appended as a
short ledger, so that a summary's omission costs a line and not an afternoon.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyagent.log import UserEntry
from pyagent.messages import TextBlock, ToolResultBlock, ToolUseBlock
from pyagent.view import View, ViewItem

MAX_ANCHORS_PER_KIND = 12
MAX_ANCHOR_CHARS = 240
MIN_PATH_MENTIONS = 2
"""A path mentioned once in passing is no anchor unless a tool touched it."""

MAX_SCANNED_CHARS = 20_000
"""Of one text: what a person means to be kept is not in the middle of a pasted log."""

_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?!\s|$))+[.!?\n]?")
_RULE_WORD = re.compile(r"\b(?:do not|don't|never|only|always|must not|must|instead of|without)\b", re.IGNORECASE)
_PATH = re.compile(
    r"(?<![\w/.-])(?:~?/|\.{1,2}/)?(?:[\w.-]+/)+[\w.-]*\w|(?<![\w/.-])[\w-]+\.(?:py|js|ts|go|rs|md|toml|json|ya?ml|c|h|cpp|java|rb|sh|sql)\b"
)
_CODE = re.compile(r"\b(?:[A-Z][A-Za-z]*(?:Error|Exception)|E\d{3,5}|[A-Z]{2,}-\d{2,}|errno \d+)\b")
_NUMBER = re.compile(
    r"(?<![\w.])\d[\d,._]*(?:\.\d+)?\s?(?:%|ms|s|MB|GB|KB|kB|px|tokens?|bytes?|requests?|users?|port)?(?!\w)"
)


@dataclass(frozen=True, slots=True)
class Anchor:
    kind: str
    """`rule`, `path`, `error`, `number`, `command` or `question`."""
    text: str


@dataclass(frozen=True, slots=True)
class AnchorCheck:
    checked: int
    missing: tuple[Anchor, ...]

    @property
    def text(self) -> str:
        return f"kept {self.checked - len(self.missing)} of {self.checked}"


def anchors_of(items: Iterable[ViewItem]) -> tuple[Anchor, ...]:
    """The anchors of a stretch of conversation, the newest of each kind, in the order they appeared."""
    found: dict[str, dict[str, None]] = {
        kind: {} for kind in ("rule", "path", "error", "number", "command", "question")
    }
    mentions: Counter[str] = Counter()
    touched: set[str] = set()
    commands: dict[str, str] = {}
    for item in items:
        for block in item.blocks():
            match block:
                case TextBlock(text=text) if item.is_prompt:
                    text = text[:MAX_SCANNED_CHARS]
                    sentences = [sentence.strip() for sentence in _SENTENCE.findall(text)]
                    _note(found["rule"], (s.rstrip(".!") for s in sentences if _RULE_WORD.search(s)))
                    _note(found["number"], (m.strip() for m in _NUMBER.findall(text) if len(m.strip()) > 1))
                    _note(found["question"], (s for s in sentences if s.endswith("?")))
                    mentions.update(dict.fromkeys(_PATH.findall(text), MIN_PATH_MENTIONS))
                    _note(found["path"], _PATH.findall(text))
                case TextBlock(text=text) if not _is_own(item):
                    paths = _PATH.findall(text[:MAX_SCANNED_CHARS])
                    mentions.update(paths)
                    _note(found["path"], paths)
                case ToolUseBlock(id=use_id, name=name, input=given):
                    path = given.get("file_path")
                    if isinstance(path, str) and name in ("Edit", "Write"):
                        touched.add(path)
                        _note(found["path"], [path])
                    command = given.get("command")
                    if isinstance(command, str):
                        commands[use_id] = command.strip()
                case ToolResultBlock(tool_use_id=use_id, is_error=True):
                    _note(found["error"], _CODE.findall(block.text[-MAX_SCANNED_CHARS:]))
                    if commands.get(use_id):
                        _note(found["command"], [commands[use_id]])
                case _:
                    pass
    found["path"] = {p: None for p in found["path"] if p in touched or mentions[p] >= MIN_PATH_MENTIONS}
    return tuple(Anchor(kind, text) for kind, texts in found.items() for text in list(texts)[-MAX_ANCHORS_PER_KIND:])


def check_anchors(anchors: Sequence[Anchor], new_text: str) -> AnchorCheck:
    """Which anchors the new view's text lacks. White space does not count, letter case does not for rules."""
    flat = " ".join(new_text.split())
    folded = flat.casefold()

    def stands(anchor: Anchor) -> bool:
        text = " ".join(anchor.text.split())
        if anchor.kind in ("rule", "question"):
            return text.casefold() in folded
        if anchor.kind == "path":
            return text in flat or text.rsplit("/", 1)[-1] in flat
        return text in flat

    return AnchorCheck(len(anchors), tuple(anchor for anchor in anchors if not stands(anchor)))


def ledger(missing: Sequence[Anchor]) -> str:
    """A few lines that name what the summary left out; empty if nothing is missing."""
    if not missing:
        return ""
    titles = {
        "rule": "The user's rules",
        "path": "Files",
        "error": "Errors",
        "number": "Numbers the user gave",
        "command": "Commands that failed",
        "question": "The user's questions",
    }
    lines = ["Also mentioned before, and not in the summary:"]
    for kind, title in titles.items():
        texts = [anchor.text for anchor in missing if anchor.kind == kind]
        if texts:
            lines.append(f"- {title}: " + "; ".join(texts))
    return "\n".join(lines)


def view_text(view: View) -> str:
    """All text of a view, as far as a model reads it."""
    parts: list[str] = []
    for item in view.items:
        for block in item.blocks():
            match block:
                case TextBlock(text=text):
                    parts.append(text)
                case ToolResultBlock():
                    parts.append(block.text)
                case ToolUseBlock(input=given):
                    parts.extend(value for value in given.values() if isinstance(value, str))
                case _:
                    pass
    return "\n".join(parts)


def _note(seen: dict[str, None], texts: Iterable[str]) -> None:
    """Add texts, a repeated one moving to the end."""
    for text in texts:
        text = text[:MAX_ANCHOR_CHARS]
        seen.pop(text, None)
        seen[text] = None


def _is_own(item: ViewItem) -> bool:
    """Text of pyagent's own: summaries and attachments are not where anchors come from."""
    entry = item.record.payload
    return isinstance(entry, UserEntry) and entry.origin in ("attachment", "reminder", "continuation")
