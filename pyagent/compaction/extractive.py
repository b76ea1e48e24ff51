"""The compaction that needs no model: nine sections made from the transcript itself, the same each time.

It is the last resort (offline, refused, circuit open), so it may not fail: whatever the conversation holds, its
outcome stands within the budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pyagent.compaction.context import Sizer
from pyagent.log import UserEntry
from pyagent.messages import TextBlock, ToolResultBlock, ToolUseBlock
from pyagent.view import ViewItem

MAX_LINE_CHARS = 300
MAX_LISTED = 15
"""Of each kind: the newest are the ones still needed."""
OLD_SUMMARY_SHARE = 0.40
"""Of the room, for what an earlier summary said of the time before."""

_HEADINGS = (
    "1. Primary request and intent",
    "2. Key technical concepts",
    "3. Files and code sections",
    "4. Errors and fixes",
    "5. Problem solving",
    "6. All user messages",
    "7. Pending tasks",
    "8. Current work",
    "9. Optional next step",
)


def extractive_summary(items: Iterable[ViewItem], max_tokens: int, sizer: Sizer, *, tasks: str = "") -> str:
    """The nine sections from these items in at most `max_tokens`. The user's words stand beside it, not in it."""
    prompts: list[str] = []
    said: list[str] = []
    errors: list[str] = []
    commands: dict[str, str] = {}
    reads: Counter[str] = Counter()
    edits: Counter[str] = Counter()
    searches: list[str] = []
    old_summary = ""
    for item in items:
        for block in item.blocks():
            match block:
                case TextBlock(text=text) if _origin(item) == "summary":
                    old_summary += text + "\n"
                case TextBlock(text=text) if item.is_prompt:
                    prompts.append(_line(text))
                case TextBlock(text=text) if not item.is_user or _origin(item) == "":
                    said.append(_line(text))
                case ToolUseBlock(id=use_id, name=name, input=given):
                    path, command = given.get("file_path"), given.get("command")
                    if isinstance(path, str):
                        (edits if name in ("Edit", "Write", "NotebookEdit") else reads)[path] += 1
                    elif isinstance(command, str):
                        commands[use_id] = f"`{_line(command)}`"
                    elif isinstance(given.get("pattern"), str):
                        searches.append(f"{name} for `{_line(given['pattern'])}`")
                case ToolResultBlock(tool_use_id=use_id, is_error=is_error):
                    if use_id in commands:
                        commands[use_id] += " failed" if is_error else " succeeded"
                    if is_error:
                        errors.append(f"{commands.get(use_id, 'A tool')}: {_line(_last_line(block.text))}")
                case _:
                    pass
    sections: tuple[list[str], ...] = (
        [f"The task began with: {prompts[0]}"] + ([f"The latest request: {prompts[-1]}"] if prompts[1:] else [])
        if prompts
        else [],
        [],
        [f"- {path} (changed {count} ×)" for path, count in list(edits.items())[-MAX_LISTED:]]
        + [f"- {path} (read)" for path in list(reads)[-MAX_LISTED:] if path not in edits],
        [f"- {error}" for error in errors[-MAX_LISTED:]],
        [f"- {text}" for text in (said[-6:-1] + searches[-5:])],
        [f"- {prompt}" for prompt in prompts[-MAX_LISTED:]],
        [tasks.strip()] if tasks.strip() else [],
        ([f"Last said: {said[-1]}"] if said else []) + [f"- {text}" for text in list(commands.values())[-5:]],
        ["Go on from the latest request and the last commands above; read a file again before changing it."],
    )
    parts = ["This summary was put together from the transcript without a model: it lists, it does not explain."]
    for heading, lines in zip(_HEADINGS, sections, strict=True):
        parts.append(f"## {heading}\n" + ("\n".join(lines) or "None recorded."))
    text = "\n\n".join(parts)
    if old_summary:
        room = int(max_tokens * OLD_SUMMARY_SHARE)
        text += "\n\n## Before that\n" + sizer.head(old_summary.strip(), room, "[… cut]")
    return sizer.head(text, max_tokens, "[… cut]")


def _origin(item: ViewItem) -> str:
    entry = item.record.payload
    return entry.origin if isinstance(entry, UserEntry) and item.overlay.folded_text is None else ""


def _line(text: str) -> str:
    flat = " ".join(text[: MAX_LINE_CHARS * 4].split())
    return flat if len(flat) <= MAX_LINE_CHARS else flat[: MAX_LINE_CHARS - 1] + "…"


def _last_line(text: str) -> str:
    """Where an error's message mostly stands."""
    lines = [line for line in text[-4 * MAX_LINE_CHARS :].split("\n") if line.strip()]
    return lines[-1] if lines else "no output"
