"""A conversation as a document: Markdown, plain text, JSON or one HTML page. All of it, across compactions."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pyagent.errors import UsageError
from pyagent.log import AssistantEntry, Boundary, Record, ShellRan, UserEntry
from pyagent.messages import TextBlock, ToolResultBlock, ToolUseBlock, parse_block, text_of
from pyagent.record_lines import record_to_line

Speaker: TypeAlias = Literal["You", "Assistant", "Tool call", "Tool result", "Compaction"]


@dataclass(frozen=True, slots=True)
class Part:
    """Something that was said or done. `text` is literal; of calls and results it is verbatim output."""

    speaker: Speaker
    text: str
    detail: str = ""

    @property
    def is_verbatim(self) -> bool:
        return self.speaker in ("Tool call", "Tool result")


def parts_of(records: Iterable[Record]) -> Iterator[Part]:
    """What a reader wants to see of a branch, in order: no reminders, no thinking, no bookkeeping."""
    for record in records:
        match record.payload:
            case UserEntry(origin="prompt") as entry if not record.tx:
                yield Part("You", entry.text)
            case UserEntry(origin="tool_results") as entry:
                for block in entry.content:
                    if isinstance(block, ToolResultBlock):
                        yield Part("Tool result", text_of(block.content), "error" if block.is_error else "")
            case UserEntry(origin="summary") as entry:
                yield Part("Compaction", entry.text, "what the model was given instead of the above")
            case AssistantEntry() as answer:
                for raw in answer.content:
                    match parse_block(raw):
                        case TextBlock(text=text) if text.strip():
                            yield Part("Assistant", text)
                        case ToolUseBlock(name=name, input=arguments):
                            yield Part("Tool call", json.dumps(arguments, ensure_ascii=False, indent=2), name)
                        case _:
                            pass
            case ShellRan(command=command, output=output):
                yield Part("Tool call", command, "run by you")
                yield Part("Tool result", output, "error" if record.payload.is_error else "")
            case Boundary() as boundary:
                figures = f"{boundary.pre_tokens:,} → {boundary.post_tokens:,} tokens"
                yield Part("Compaction", f"The conversation was compacted: {figures}.")
            case _:
                pass


def as_markdown(title: str, records: Iterable[Record]) -> str:
    lines = [f"# {title}", ""]
    for part in parts_of(records):
        heading = f"## {part.speaker}" + (f" ({part.detail})" if part.detail else "")
        body = _fenced(part.text) if part.is_verbatim else part.text
        lines += [heading, "", body, ""]
    return "\n".join(lines)


def as_text(title: str, records: Iterable[Record]) -> str:
    lines = [title, "=" * len(title), ""]
    for part in parts_of(records):
        detail = f" ({part.detail})" if part.detail else ""
        lines += [f"{part.speaker}{detail}:", *(f"  {line}" for line in part.text.split("\n")), ""]
    return "\n".join(lines)


def as_json(title: str, records: Iterable[Record]) -> str:
    """The records themselves, nothing left out."""
    return json.dumps({"title": title, "records": [json.loads(record_to_line(r)) for r in records]}, indent=1) + "\n"


def as_html(title: str, records: Iterable[Record]) -> str:
    """One page without scripts, styles or pictures from elsewhere; everything said is escaped."""
    sections = []
    for part in parts_of(records):
        heading = html.escape(part.speaker + (f" ({part.detail})" if part.detail else ""))
        body = f"<pre>{html.escape(part.text)}</pre>"
        if part.is_verbatim:
            body = f"<details><summary>{len(part.text):,} characters</summary>{body}</details>"
        kind = part.speaker.lower().replace(" ", "-")
        sections.append(f'<section class="{kind}"><h2>{heading}</h2>{body}</section>')
    return _PAGE.format(title=html.escape(title), body="\n".join(sections))


FORMATS: Mapping[str, Callable[[str, Iterable[Record]], str]] = {
    "md": as_markdown,
    "txt": as_text,
    "json": as_json,
    "html": as_html,
}


def export_path(argument: str, cwd: Path, session_id: str) -> Path:
    """Where an export goes: `argument` is a file name, a format, or empty for Markdown in the working folder.

    Raises:
        UsageError: the file's ending is no format, or something is there already.
    """
    wanted = argument.strip()
    name = f"conversation-{session_id[:8]}.{wanted or 'md'}" if wanted in ("", *FORMATS) else wanted
    path = cwd / Path(os.path.expanduser(name))
    if path.suffix.lstrip(".") not in FORMATS:
        raise UsageError(f"{path.name} names no format.", hint=f"End it with {', '.join('.' + f for f in FORMATS)}.")
    if path.exists():
        raise UsageError(f"There is a file {path} already.", hint="Name another: /export <file>")
    return path


def write_export(path: Path, title: str, records: Iterable[Record]) -> None:
    """Write the document, readable for its owner only: it may hold what tools have shown.

    Raises:
        UsageError: it cannot be written.
    """
    text = FORMATS[path.suffix.lstrip(".")](title, records)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.", hint="Name another: /export <file>") from error


def _fenced(text: str) -> str:
    """As a code block that nothing in the text can end."""
    fence = "`" * 3
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font-family: system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
h2 {{ font-size: 0.9rem; margin-bottom: 0; }}
section {{ border-left: 3px solid #ccc; padding-left: 1rem; margin: 1rem 0; }}
section.you {{ border-color: #36c; }}
section.compaction {{ border-color: #c90; }}
</style></head>
<body><h1>{title}</h1>
{body}
</body></html>
"""
