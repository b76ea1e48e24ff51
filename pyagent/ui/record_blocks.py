"""What single records look like in the transcript: their words and figures. `reduce` orders them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pyagent.log import Boundary, ClearResults, CompactionFailed, Fold, ShellRan, Snip, TurnEnded, UserEntry
from pyagent.messages import DocumentBlock, ImageBlock, JsonObject, ToolResultBlock
from pyagent.ui.blocks import Block, BlockKind, BlockState, DiffLine
from pyagent.ui.diff import Hunk, patch_lines
from pyagent.ui.gauge import short_tokens

MAX_DETAIL_CHARS = 200_000
"""Of a result kept for the pager. Tools cap their results far below; a foreign session may not."""

_LAYER_WORDS = {
    "full": "summary",
    "session_memory": "session memory",
    "draft": "prepared summary",
    "reactive": "after a refusal of the server",
    "extractive": "extract, no model",
    "server": "by the server",
}

QUIET_REASONS = frozenset({"", "end_turn", "completed", "stop_sequence", "tool_use", "refused_by_user"})
"""Ends of a turn that need no row of their own: the reader sees them in what stands above."""

OWN_SHELL = "Shell"
_SHOWN_TOOLS = frozenset({"TodoWrite", OWN_SHELL})
"""Tools whose result is for the person as much as for the model."""

_TASK_MARKS = {"completed": "[x]", "in_progress": "[~]"}

_REASON_WORDS = {
    "interrupted": "Interrupted",
    "max_turns": "Stopped: the limit of API rounds for one prompt is reached",
    "budget": "Stopped: the budget of this run is spent",
    "loop": "Stopped: the model went round in circles",
    "max_tokens": "Stopped: the answer reached the model's output limit",
    "refusal": "The model refused to answer; /rewind goes back before the prompt",
}


def user_blocks(uuid: str, entry: UserEntry) -> list[Block]:
    """A prompt as typed, and a row for each image or document that came with it."""
    blocks = [Block(f"user:{uuid}", BlockKind.USER, text=entry.display or entry.text)]
    for index, part in enumerate(entry.content):
        match part:
            case ImageBlock(width_px=width_px, height_px=height_px):
                size = f"{width_px}×{height_px}" if width_px and height_px else ""
                blocks.append(Block(f"user:{uuid}.{index}", BlockKind.IMAGE, text=size, title="image"))
            case DocumentBlock(title=title, page_count=page_count):
                pages = f"{page_count} pages" if page_count else ""
                blocks.append(Block(f"user:{uuid}.{index}", BlockKind.IMAGE, text=pages, title=title or "document"))
            case _:
                pass
    return blocks


def boundary_block(uuid: str, boundary: Boundary, summary: str) -> Block:
    """`167k → 24k tokens · session memory · no API call · 0.3 s`, unfolding to the summary and the receipt."""
    receipt = boundary.receipt
    facts = [_LAYER_WORDS.get(boundary.layer, boundary.layer)]
    calls = receipt.get("calls")
    if isinstance(calls, int):
        facts.append("no API call" if calls == 0 else "1 API call" if calls == 1 else f"{calls} API calls")
    duration_s = receipt.get("duration_s")
    if isinstance(duration_s, int | float):
        facts.append(f"{duration_s:.1f} s")
    cost_usd = receipt.get("cost_usd")
    if isinstance(cost_usd, int | float) and cost_usd > 0:
        facts.append(f"${cost_usd:.4f}".rstrip("0").rstrip("."))
    headline = f"{short_tokens(boundary.pre_tokens)} → {short_tokens(boundary.post_tokens)} tokens"
    rest = [
        f"- {_words(key)}: {_value(receipt[key])}" for key in receipt if key not in ("calls", "duration_s", "cost_usd")
    ]
    rows = [f"- Cause: {'asked for' if boundary.trigger == 'manual' else 'automatic'}"]
    if boundary.messages_summarized:
        rows.append(f"- Messages summarised: {boundary.messages_summarized}")
    rows += rest
    detail = "\n\n".join(part for part in (summary.strip(), "\n".join(rows)) if part)
    return Block(f"boundary:{uuid}", BlockKind.BOUNDARY, text=headline, detail=detail, facts=tuple(facts))


def _words(key: str) -> str:
    text = key.removesuffix("_tokens").replace("_", " ")
    return text[:1].upper() + text[1:] + (" (tokens)" if key.endswith("_tokens") else "")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    if isinstance(value, list):
        return ", ".join(_value(item) for item in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{_words(str(key))} {_value(item)}" for key, item in value.items()) or "none"
    return str(value)


def cleared_block(uuid: str, op: ClearResults | Snip | Fold, tool_names: Iterable[str]) -> Block:
    """What an op took out of the model's view. The transcript above still shows it all."""
    freed = f"{short_tokens(op.freed_tokens)} tokens freed" if op.freed_tokens else ""
    match op:
        case ClearResults(placeholders=placeholders, reason=reason):
            text = _count(len(placeholders), "old tool result") + " cleared for the model"
            detail = ", ".join(tool_names)
        case Snip(uuids=uuids, reason=reason):
            text, detail = _count(len(uuids), "old message") + " left out for the model", ""
        case Fold(uuids=uuids, text=folded):
            text, detail, reason = _count(len(uuids), "message") + " folded for the model", folded, ""
    facts = tuple(fact for fact in (freed, reason) if fact)
    return Block(f"cleared:{uuid}", BlockKind.CLEARED, text=text, detail=detail, facts=facts)


def compaction_failed_block(uuid: str, failed: CompactionFailed) -> Block:
    if failed.is_cancel:
        return Block(f"compaction:{uuid}", BlockKind.NOTICE, text="Compaction cancelled; nothing was changed")
    text = f"Compaction did not succeed: {failed.reason}"
    return Block(f"compaction:{uuid}", BlockKind.NOTICE, text=text, facts=("the conversation is as it was",))


def turn_end_block(block_id: str, ended: TurnEnded) -> Block | None:
    """The row for a turn that did not end by itself; None where nothing needs saying."""
    if ended.reason in QUIET_REASONS:
        return None
    if ended.reason in _REASON_WORDS:
        return Block(block_id, BlockKind.NOTICE, text=_REASON_WORDS[ended.reason], detail=ended.detail)
    return Block(block_id, BlockKind.ERROR, text=ended.detail or f"The turn ended: {ended.reason}")


def tool_block(block_id: str, name: str, text: str = "", state: BlockState = BlockState.DONE) -> Block:
    """The row of a call, folded unless what it shows is meant for the reader."""
    return Block(block_id, BlockKind.TOOL, text, name, state=state, collapsed=False if name in _SHOWN_TOOLS else None)


def shell_block(ran: ShellRan) -> Block:
    """A command of the person's own, with its output in sight: that is what it was run for."""
    block = tool_block(f"tool:{ran.run_id}", OWN_SHELL, ran.command)
    block = with_result(block, ran.output, is_error=ran.is_error)
    return with_display(block, ran.command, ran.duration_s, ran.display)


def tool_line(name: str, arguments: JsonObject) -> str:
    """The one line that says what a call does, from its input alone."""
    for key in ("command", "file_path", "pattern", "path", "url", "query", "description", "prompt"):
        value = arguments.get(key)
        if isinstance(value, str) and value:
            place = arguments.get("path")
            return f"{value} in {place}" if key == "pattern" and isinstance(place, str) and place else value
    return ", ".join(f"{key}: {value}" for key, value in arguments.items() if isinstance(value, str | int | float))


def with_result(block: Block, text: str, *, is_error: bool) -> Block:
    """The tool call with its result, as the model got it. A diff says more than the words that report it."""
    state = BlockState.FAILED if is_error else BlockState.OK
    detail = "" if block.diff and not is_error else text[:MAX_DETAIL_CHARS]
    line_count = text.count("\n") + 1 if text.strip() else 0
    facts = block.facts
    if not facts and line_count > 1 and not block.diff and not is_error:
        facts = (f"{line_count} lines",)
    return replace(block, state=state, detail=detail, facts=facts)


def with_display(block: Block, summary: str, duration_s: float, display: JsonObject) -> Block:
    """The tool call with what only the screen is told: its diff, exit code, duration."""
    diff = patch_diff(display.get("patch"))
    tasks = _task_lines(display.get("tasks"))
    was_interrupted = bool(display.get("interrupted"))
    return replace(
        block,
        state=BlockState.INTERRUPTED if was_interrupted else block.state,
        text=_without_name(summary, block.title) or block.text,
        elapsed_s=duration_s or None,
        diff=diff or block.diff,
        detail="" if diff and block.state is BlockState.OK else tasks or block.detail,
        facts=_display_facts(display) or (() if diff else block.facts),
    )


def _task_lines(tasks: Any) -> str:
    """The task list as the person sees it; empty for anything else."""
    if not isinstance(tasks, list):
        return ""
    return "\n".join(
        f"{_TASK_MARKS.get(str(task.get('status')), '[ ]')} {' '.join(str(task.get('content', '')).split())}"
        for task in tasks
        if isinstance(task, dict)
    )


def _without_name(summary: str, name: str) -> str:
    """The summary without the tool's name in front, which stands on the row already."""
    return summary.removeprefix(name).lstrip(" :")


def _display_facts(display: JsonObject) -> tuple[str, ...]:
    facts = []
    summary, line_count = display.get("summary"), display.get("lines")
    if display.get("patch"):
        pass
    elif isinstance(summary, str) and summary:
        facts.append(summary)
    elif isinstance(line_count, int):
        facts.append(_count(line_count, "line"))
    if display.get("private"):
        facts.append("not told to the model")
    if display.get("denied"):
        facts.append("not allowed")
    exit_code = display.get("exit_code")
    if isinstance(exit_code, int) and exit_code != 0:
        facts.append(f"exit {exit_code}")
    return tuple(facts)


def patch_diff(patch: Any) -> tuple[DiffLine, ...]:
    """The lines of a structured patch (`[{oldStart, newStart, lines}]`); empty for anything else."""
    if not isinstance(patch, list):
        return ()
    hunks = [
        Hunk(_line_number(raw, "oldStart"), _line_number(raw, "newStart"), tuple(map(str, raw.get("lines") or ())))
        for raw in patch
        if isinstance(raw, dict)
    ]
    return patch_lines(hunks)


def _line_number(raw: JsonObject, key: str) -> int:
    value = raw.get(key)
    return value if isinstance(value, int) else 1


def result_texts(entry: UserEntry) -> list[tuple[str, str, bool]]:
    """(tool_use id, text, is error) of each result; images and documents are named."""
    texts = []
    for part in entry.content:
        if isinstance(part, ToolResultBlock):
            pieces = [part.text] if part.text else []
            pieces += ["[image]" for item in part.content if isinstance(item, ImageBlock)]
            pieces += ["[document]" for item in part.content if isinstance(item, DocumentBlock)]
            texts.append((part.tool_use_id, "\n".join(pieces), part.is_error))
    return texts


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
