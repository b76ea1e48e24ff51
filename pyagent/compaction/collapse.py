"""Context collapse (gate `context_collapse`): what was done for an earlier prompt stands as one line.

Prompts stay; the newest stretches stay; each fold says what was touched and concluded, and can be taken back.
"""

from __future__ import annotations

from itertools import pairwise

from pyagent.compaction.context import Sizer
from pyagent.compaction.rounds import api_rounds
from pyagent.log import Fold
from pyagent.messages import TextBlock, ToolUseBlock
from pyagent.view import View, ViewItem

KEEP_PROMPTS = 2
"""The newest prompts whose work stays unfolded: what the user may still be referring to."""

MIN_FOLD_TOKENS = 2_000
"""A shorter stretch is not worth its line."""

MAX_CONCLUSION_CHARS = 600


def collapse_finished(view: View, sizer: Sizer) -> tuple[Fold, ...] | str:
    """One fold for each finished stretch between two prompts, or why there is none."""
    prompts = [position for position in view.index.prompts if position < len(view)]
    if len(prompts) <= KEEP_PROMPTS:
        return "no stretch is old enough to fold"
    limit = prompts[-KEEP_PROMPTS]
    rounds = api_rounds(view)
    clean_cuts = {r.end for r in rounds}
    open_at = [r.start for r in rounds if not r.is_complete]
    folds: list[Fold] = []
    for first, following in pairwise(prompts):
        if following > limit:
            break
        is_finished = following in clean_cuts and not any(first <= start < following for start in open_at)
        if not is_finished or (first > 0 and first not in clean_cuts):
            continue
        items = [item for item in view.items[first + 1 : following] if not item.is_prompt and _is_foldable(item)]
        tokens = sum(sizer.item(view, item) for item in items)
        text = _text(items)
        if items and tokens >= MIN_FOLD_TOKENS and (freed := tokens - sizer.text(text)) > 0:
            folds.append(Fold(tuple(item.uuid for item in items), text, freed))
    return tuple(folds) or "no finished stretch is long enough to fold"


def _is_foldable(item: ViewItem) -> bool:
    return item.overlay.folded_text is None


def _text(items: list[ViewItem]) -> str:
    touched: dict[str, None] = {}
    commands: list[str] = []
    conclusion = ""
    for item in items:
        for block in item.blocks():
            if isinstance(block, ToolUseBlock):
                path = block.input.get("file_path")
                command = block.input.get("command")
                if isinstance(path, str):
                    touched[f"{block.name} {path}"] = None
                elif isinstance(command, str):
                    commands.append(" ".join(command.split())[:100])
            elif isinstance(block, TextBlock) and not item.is_user and block.text.strip():
                conclusion = " ".join(block.text.split())
    parts = ["[Finished and folded to save room."]
    if touched:
        parts.append("Touched: " + ", ".join(list(touched)[-12:]) + ".")
    if commands:
        parts.append("Ran: " + "; ".join(commands[-6:]) + ".")
    if conclusion:
        parts.append("Concluded: " + conclusion[:MAX_CONCLUSION_CHARS])
    return " ".join(parts) + "]"
