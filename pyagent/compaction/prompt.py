"""The summary prompt, and what an answer to it is worth."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias

from pyagent.compaction.ports import SummaryAnswer
from pyagent.messages import TextBlock, ToolUseBlock, parse_block

Fault: TypeAlias = Literal[
    "tool_call", "empty", "only_thinking", "only_draft", "cut_off", "refused", "api_error", "overflow"
]

FAULT_TEXTS: dict[Fault, str] = {
    "tool_call": "the model called a tool instead of writing a summary",
    "empty": "the model's answer was empty",
    "only_thinking": "the model only thought and wrote nothing",
    "only_draft": "the model wrote a draft but no summary",
    "cut_off": "the summary was cut off at its length limit",
    "refused": "the model refused to summarise",
    "api_error": "the answer was an error message",
    "overflow": "the summary request filled the context window",
}

_ANALYSIS = re.compile(r"<analysis>.*?(?:</analysis>|(?=<summary>)|\Z)", re.DOTALL | re.IGNORECASE)
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL | re.IGNORECASE)
_OPEN_SUMMARY = re.compile(r"<summary>(.*)\Z", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Unusable:
    fault: Fault

    @property
    def text(self) -> str:
        return FAULT_TEXTS[self.fault]


@cache
def prompt_text(name: str) -> str:
    """The text of one of the prompt files, without its last newline."""
    return files("pyagent.compaction.prompts").joinpath(f"{name}.md").read_text("utf-8").rstrip("\n")


def summary_instruction(target_tokens: int, instructions: Iterable[str] = (), fault: Fault | None = None) -> str:
    """The last message of a summary request.

    `instructions` are the user's own and those of hooks; `fault` is what was wrong with the answer before.
    """
    parts = [prompt_text("summary")]
    own = [text.strip() for text in instructions if text.strip()]
    if own:
        parts.append(
            "Instructions for this summary from the user; follow them in what you keep and stress:\n" + "\n".join(own)
        )
    match fault:
        case "empty" | "only_thinking" | "only_draft" | "api_error":
            parts.append(prompt_text("retry_empty"))
        case "cut_off":
            parts.append(prompt_text("retry_shorter"))
        case "tool_call":
            parts.append(prompt_text("retry_tool_call"))
        case _:
            pass
    parts.append(prompt_text("summary_end").replace("{target_tokens}", f"{target_tokens:,}"))
    return "\n\n".join(parts)


def parse_summary(answer: SummaryAnswer) -> str | Unusable:
    """The summary's text without its draft, or what is wrong with the answer."""
    if answer.stop_reason == "refusal":
        return Unusable("refused")
    if answer.stop_reason == "model_context_window_exceeded":
        return Unusable("overflow")
    blocks = tuple(parse_block(raw) for raw in answer.content)
    text = "\n".join(block.text for block in blocks if isinstance(block, TextBlock)).strip()
    closed = _SUMMARY.findall(text)
    if closed and closed[-1].strip():
        return str(closed[-1]).strip()
    text = _SUMMARY.sub("", text).strip()
    if any(isinstance(block, ToolUseBlock) for block in blocks):
        return Unusable("tool_call")
    if answer.stop_reason == "max_tokens":
        return Unusable("cut_off")
    if not text:
        return Unusable("only_thinking" if blocks and not any(isinstance(b, TextBlock) for b in blocks) else "empty")
    if text.lower().startswith("api error"):
        return Unusable("api_error")
    opened = _OPEN_SUMMARY.search(text)
    summary = opened[1].strip() if opened else _ANALYSIS.sub("", text).strip()
    return summary or Unusable("only_draft")
