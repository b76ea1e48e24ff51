"""Extractive summaries: what was asked, what was done, what went wrong, in the words of the conversation."""

from __future__ import annotations

import re

from pyagent.agent.offline_request import Call, Exchange, OfflineRequest
from pyagent.agent.offline_results import SIGNATURE, exit_code_of, first_line
from pyagent.wording import plural

TITLES = (
    "Primary request and intent",
    "Key technical concepts",
    "Files and code sections",
    "Errors and fixes",
    "Problem solving",
    "All user messages",
    "Pending tasks",
    "Current work",
    "Optional next step",
)

_RULE = re.compile(r"[^.!?\n]*\b(?:only|never|always|don't|do not|must|without|prefer)\b[^.!?\n]*[.!?]?", re.IGNORECASE)
_TARGET = re.compile(r"under about ([\d,]+) tokens")
CHARS_PER_TOKEN = 3
"""On the careful side, so that the summary stays below its target."""
DEFAULT_TARGET_TOKENS = 4_000
EARLIER_SHARE = 0.4
"""Of the summary, at most this much is carried over from an earlier one."""
EXCERPT_LINES = 12


def is_summary_instruction(text: str) -> bool:
    """Whether a text is pyagent's own request for a summary."""
    return "<summary>" in text and "nine sections" in text


def is_notes_instruction(text: str) -> bool:
    """Whether a text is pyagent's own request to bring the session's notes up to date."""
    return "<notes>" in text and "notes of this session" in text


def nine_sections(request: OfflineRequest) -> str:
    """The answer to a summary request: a short draft, then the nine sections."""
    target = _TARGET.search(request.prompt)
    budget = (int(target[1].replace(",", "")) if target else DEFAULT_TARGET_TOKENS) * CHARS_PER_TOKEN
    exchanges = request.exchanges[:-1]
    bodies = _bodies(request, exchanges, budget)
    sections = "\n\n".join(
        f"## {n}. {title}\n{body}" for n, (title, body) in enumerate(zip(TITLES, bodies, strict=True), 1)
    )
    calls = sum(len(exchange.calls) for exchange in exchanges)
    return (
        f"<analysis>\nExtracted by the offline model from {plural(len(exchanges), 'prompt')} and "
        f"{plural(calls, 'tool call')}.\n</analysis>\n\n<summary>\n{sections}\n</summary>"
    )


def short_summary(request: OfflineRequest) -> str:
    """The conversation so far for a person: sections that hold nothing are left out."""
    exchanges = request.exchanges[:-1]
    if not exchanges and not request.earlier_summary:
        return "Nothing has happened yet: this is the first message of the conversation."
    bodies = _bodies(request, exchanges, DEFAULT_TARGET_TOKENS * CHARS_PER_TOKEN)
    parts = [
        f"**{n}. {title}**\n{body}"
        for n, (title, body) in enumerate(zip(TITLES, bodies, strict=True), 1)
        if not body.startswith("None")
    ]
    return "The conversation so far, extracted word for word:\n\n" + "\n\n".join(parts)


def _bodies(request: OfflineRequest, exchanges: tuple[Exchange, ...], budget_chars: int) -> tuple[str, ...]:
    share = max(400, budget_chars // 6)
    prompts = [*request.earlier_prompts, *(exchange.prompt for exchange in exchanges)]
    calls = [call for exchange in exchanges for call in exchange.calls]
    last = exchanges[-1] if exchanges else None
    return (
        _intent(request, prompts, share),
        _concepts(calls),
        _files(calls, share * 2),
        _errors(calls, share),
        _solving(request, exchanges, int(budget_chars * EARLIER_SHARE)),
        _numbered([_clip(prompt, 1_000) for prompt in prompts], share * 2) or "None.",
        _pending(exchanges),
        _current(last),
        _next(last),
    )


def _clip(text: str, limit: int) -> str:
    text = text.strip()
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]} […] {text[-limit // 3 :]}"


def _numbered(items: list[str], limit: int) -> str:
    """Numbered items; if they do not fit, the first ones and the newest."""
    lines = [f"{n}. {item}" for n, item in enumerate(items, 1)]
    while len(lines) > 4 and sum(map(len, lines)) > limit:
        middle = len(lines) // 2
        del lines[middle - 1 : middle + 1]
        if not any(line.startswith("[…") for line in lines):
            lines.insert(middle - 1, "[… some left out …]")
    return "\n".join(lines)


def _intent(request: OfflineRequest, prompts: list[str], limit: int) -> str:
    if not prompts:
        return "None."
    rules = [rule.strip() for prompt in prompts for rule in _RULE.findall(prompt) if rule.strip()]
    text = f"First asked: {_clip(prompts[0], limit // 2)}"
    if len(prompts) > 1:
        text += f"\nLatest request: {_clip(prompts[-1], limit // 2)}"
    if rules:
        text += "\nRules the user set:\n" + "\n".join(f"- {_clip(rule, 300)}" for rule in dict.fromkeys(rules))
    return text


def _concepts(calls: list[Call]) -> str:
    endings = {match[1] for call in calls for match in re.finditer(r"[\w/-]+\.([a-z]{1,5})\b", call.path)}
    commands = {
        str(call.input.get("command", "")).split()[0] for call in calls if str(call.input.get("command", "")).split()
    }
    patterns = {str(call.input["pattern"]) for call in calls if call.name == "Grep" and call.input.get("pattern")}
    lines = []
    if endings:
        lines.append("File types: " + ", ".join(sorted(endings)))
    if commands:
        lines.append("Programs used: " + ", ".join(f"`{name}`" for name in sorted(commands)))
    if patterns:
        lines.append("Searched for: " + ", ".join(f"`{_clip(text, 80)}`" for text in sorted(patterns)[:10]))
    return "\n".join(lines) or "None."


def _files(calls: list[Call], limit: int) -> str:
    touched: dict[str, list[str]] = {}
    for call in calls:
        if not call.path or call.is_error or call.name not in ("Read", "Edit", "Write", "NotebookEdit"):
            continue
        notes = touched.pop(call.path, [])
        if call.name == "Edit":
            old, new = str(call.input.get("old_string", "")), str(call.input.get("new_string", ""))
            notes = [*notes, f"edited: `{_clip(old, 200)}` → `{_clip(new, 200)}`"]
        elif call.name == "Write":
            excerpt = "\n".join(str(call.input.get("content", "")).splitlines()[:EXCERPT_LINES])
            notes = [*notes, f"written:\n```\n{_clip(excerpt, 600)}\n```"]
        elif "read" not in notes:
            notes = [*notes, "read"]
        touched[call.path] = notes
    lines: list[str] = []
    for path, notes in reversed(touched.items()):
        line = f"- {path}: {'; '.join(dict.fromkeys(notes))}"
        if sum(map(len, lines)) + len(line) > limit and lines:
            line = f"- {path}"
        lines.append(line)
    return "\n".join(lines) or "None."


def _errors(calls: list[Call], limit: int) -> str:
    lines = []
    for at, call in enumerate(calls):
        if not (call.is_error or (call.name == "Bash" and exit_code_of(call))):
            continue
        what = str(call.input.get("command") or call.path or call.name)
        is_fixed = any(
            later.name == call.name and later.input == call.input and not later.is_error for later in calls[at + 1 :]
        )
        state = "the same call succeeded later" if is_fixed else "open"
        lines.append(f"- {call.name} `{_clip(what, 160)}`: {_clip(first_line(call.result or ''), 300)} ({state})")
    return _clip("\n".join(lines), limit) or "None."


def _solving(request: OfflineRequest, exchanges: tuple[Exchange, ...], limit: int) -> str:
    lines = []
    if request.earlier_summary:
        inner = request.earlier_summary.partition("summarised here:")[2] or request.earlier_summary
        lines.append(f"From the earlier summary:\n{_clip(inner, limit)}")
    for exchange in exchanges[-8:]:
        answer = _said(exchange)
        if answer:
            lines.append(f"- “{_clip(exchange.prompt, 120)}” → {_clip(' '.join(answer.split()), 300)}")
    return "\n".join(lines) or "None."


def _said(exchange: Exchange) -> str:
    return exchange.answer.replace(SIGNATURE, "").strip()


def _pending(exchanges: tuple[Exchange, ...]) -> str:
    open_prompts = [exchange.prompt for exchange in exchanges if not exchange.answer.strip() or _is_open(exchange)]
    finished = len(exchanges) - len(open_prompts)
    lines = [f"- in progress: {_clip(prompt, 200)}" for prompt in open_prompts]
    if finished:
        lines.append(f"Finished: {plural(finished, 'request')}; see section 6.")
    return "\n".join(lines) or "None."


def _is_open(exchange: Exchange) -> bool:
    """Whether the exchange ends with a call that has no answer yet."""
    return bool(exchange.calls) and exchange.calls[-1].result is None


def _current(last: Exchange | None) -> str:
    if last is None:
        return "None."
    lines = [f"The latest request: “{_clip(last.prompt, 300)}”"]
    if last.calls:
        call = last.calls[-1]
        what = str(call.input.get("command") or call.path or call.input.get("pattern") or "")
        lines.append(
            f"The last call: {call.name} `{_clip(what, 200)}` →"
            f" {_clip(first_line(call.result or 'no result yet'), 200)}"
        )
    if last.answer:
        lines.append(f"The last words: {_clip(_said(last), 500)}")
    return "\n".join(lines)


def _next(last: Exchange | None) -> str:
    if last is None or not (_is_open(last) or not last.answer.strip()):
        return "None: wait for the user."
    return f"Go on with “{_clip(last.prompt, 300)}”."


_NOTES = re.compile(r"<notes>\n?(.*)\n?</notes>", re.DOTALL)


def updated_notes(request: OfflineRequest) -> str:
    """The session's notes, each known section filled anew from the conversation; others stay as they are."""
    found = _NOTES.search(request.prompt)
    notes = found[1] if found else ""
    exchanges = request.exchanges[:-1]
    calls = [call for exchange in exchanges for call in exchange.calls]
    last = exchanges[-1] if exchanges else None
    commands = dict.fromkeys(str(call.input["command"]) for call in calls if call.input.get("command"))
    fresh = {
        "current state": _current(last),
        "task": _intent(request, [exchange.prompt for exchange in exchanges], 2_000),
        "files and functions": _files(calls, 3_000),
        "workflow and commands": "\n".join(f"- `{_clip(command, 200)}`" for command in commands) or "None.",
        "errors and corrections": _errors(calls, 2_000),
        "key results": _solving(request, exchanges, 2_000),
        "worklog": _numbered([_clip(exchange.prompt, 160) for exchange in exchanges], 2_000),
    }
    out: list[str] = []
    for section in re.split(r"(?m)^(?=# )", notes):
        heading, _, body = section.partition("\n")
        text = fresh.get(heading.removeprefix("# ").strip().lower(), body.strip())
        if heading.strip():
            out.append(f"{heading}\n{'' if text.startswith('None') else text}".rstrip())
    return "<notes>\n" + "\n\n".join(out) + "\n</notes>"
