"""What finds room behind a boundary, in the order of its worth.

The last prompt; the current round; what no summary covers; memory files; pins; plan; tasks; the summary; the user's
earlier prompts; subagents; announcements; files; skills; older rounds. What does not fit is cut or named by its path.

Source: architecture, section 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyagent.compaction import restore
from pyagent.compaction.context import Sizer
from pyagent.compaction.plan import SUMMARY_SHARE, CompactionPlan, is_made_by_compaction
from pyagent.compaction.ports import RestoreText
from pyagent.compaction.restore import FoundFile, Material, numbered
from pyagent.compaction.rounds import api_rounds
from pyagent.log import Boundary, FileSeen, UserEntry
from pyagent.messages import TextBlock, ToolResultBlock
from pyagent.view import View

MEMORY_SHARE = 0.25
PINS_SHARE = 0.10
HOOK_SHARE = 0.10
"""Of the budget: a hook that prints without end must not push out what was in use."""
CURRENT_ROUND_SHARE = 0.60
"""Of the budget: results of the current round are cut to this before they crowd out everything else."""
PROMPT_SHARE = 0.50
"""Of the hard limit: a longer prompt is cut, or no compaction could ever bring the view below the trigger."""

MAX_PROMPTS_TOKENS = 20_000
MAX_PROMPTS_WINDOW_SHARE = 0.10
FIRST_PROMPTS_SHARE = 0.10
"""Of the prompts' room, for the first ones, which set the task; the newest get the rest."""
MAX_PROMPT_TOKENS = 2_000
"""Of one earlier prompt: a pasted log is cut in the middle, so that it does not crowd out all others."""

FILES_OF_COVERED_SHARE = 0.40
"""Of the summarised part: in a short conversation, restored files must not outweigh what the summary freed."""

RESULT_CUT_NOTE = "[… cut when the conversation was compacted; run the tool again for the rest …]"
PROMPT_CUT_NOTE = "[… middle of this message cut when the conversation was compacted …]"


@dataclass(frozen=True, slots=True)
class Attachment:
    label: str
    text: str
    seen: FileSeen | None = None
    """For a file: what the model knows of it now. `shown_by` is filled in when the entry has an id."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """What will stand behind the boundary."""

    summary: str
    kept: tuple[str, ...]
    """Uuids of items that stay, in order."""
    replaced: dict[str, str]
    """uuid of the last prompt → its cut text, where it alone was too long."""
    cut_results: dict[str, str]
    """tool_use id → the cut text of a kept result."""
    prompts: tuple[tuple[str, str], ...]
    """(uuid, text) of the user's earlier messages that stay word for word."""
    elided_prompts: int
    attachments: tuple[Attachment, ...]
    referenced: tuple[str, ...]
    """Paths of files and memory that found no room, or only their first page."""
    parts: dict[str, int] = field(default_factory=dict)
    """Tokens by part."""
    head: tuple[str, ...] = ()
    """Uuids of items that stay in front of the summary."""
    contributors: tuple[str, ...] = ()
    """The largest mandatory parts, if these alone broke the budget."""


@dataclass(slots=True)
class _Shelf:
    """Keeps the books while the parts are laid down."""

    limit: int
    parts: dict[str, int] = field(default_factory=dict)

    @property
    def spent(self) -> int:
        return sum(self.parts.values())

    @property
    def room(self) -> int:
        return max(self.limit - self.spent, 0)

    def take(self, name: str, tokens: int) -> None:
        if tokens:
            self.parts[name] = self.parts.get(name, 0) + tokens


def assemble(
    plan: CompactionPlan, summary: str, material: Material, earlier: Sequence[tuple[str, str]], sizer: Sizer
) -> Assembly:
    """Lay everything out within the plan's budget. `earlier` are the user's messages before the kept items."""
    view, budget = plan.view, plan.budget_tokens
    shelf = _Shelf(budget)
    attachments: list[Attachment] = []
    referenced: list[str] = []

    replaced = _cut_last_prompt(plan, sizer)
    keep_prompt = plan.last_prompt is not None and plan.head_end <= plan.last_prompt < plan.keep_from
    if plan.last_prompt is not None and keep_prompt:
        item = view.items[plan.last_prompt]
        shelf.take("last prompt", sizer.text(replaced[item.uuid]) if replaced else sizer.item(view, item))
    cut_results = _cut_results(plan, sizer, int(budget * CURRENT_ROUND_SHARE))
    shelf.take("current round", _kept_tokens(plan, sizer, cut_results, replaced))

    shelf.take("what stands before", sizer.items(view, 0, plan.head_end))
    head = tuple(item.uuid for item in view.items[: plan.head_end])
    in_head = {item.entry.text for item in view.items[: plan.head_end] if item.is_user}

    state = material.state
    room = int(budget * MEMORY_SHARE)
    for piece in state.memory:
        if piece.text in in_head:
            continue
        text = sizer.head(piece.text, room, f"[… the rest is in {_subject(piece)}]")
        room = max(room - sizer.text(text), 0)
        if text is not piece.text:
            referenced.append(_subject(piece))
        _lay(shelf, attachments, "memory", RestoreText(piece.label, text), sizer)
    _lay_capped(shelf, attachments, "pins", state.pins, int(budget * PINS_SHARE), sizer)
    for name, whole in (("plan", state.plan), ("tasks", state.tasks)):
        if whole is not None:
            _lay(shelf, attachments, name, whole, sizer)

    contributors: tuple[str, ...] = ()
    summary_floor = int(budget * SUMMARY_SHARE)
    if shelf.spent + summary_floor > budget:
        largest = sorted(shelf.parts.items(), key=lambda part: -part[1])[:3]
        contributors = tuple(f"{name} ({tokens:,} tokens)" for name, tokens in largest)
        shelf.limit = min(max(shelf.spent + summary_floor, budget), max(plan.hard_limit_tokens, budget))
    summary = sizer.head(summary, max(shelf.room, 1), "[… the end of the summary did not fit]")
    shelf.take("summary", sizer.text(summary))

    prompts_room = min(MAX_PROMPTS_TOKENS, int(plan.window_tokens * MAX_PROMPTS_WINDOW_SHARE), shelf.room)
    prompts = select_prompts(earlier, prompts_room, sizer)
    shelf.take("your earlier messages", sum(sizer.text(text) for _, text in prompts))

    _lay_capped(shelf, attachments, "subagents", state.subagents, shelf.room, sizer)
    _lay_capped(shelf, attachments, "announcements", state.announcements, shelf.room, sizer)
    hooks = tuple(RestoreText("hook:SessionStart", text) for text in material.hook_output)
    hook_attachments: list[Attachment] = []
    _lay_capped(shelf, hook_attachments, "hooks", hooks, min(int(budget * HOOK_SHARE), shelf.room), sizer)
    covered_tokens = sizer.items(view, plan.head_end, plan.covered_end)
    files_room = min(shelf.room, int(covered_tokens * FILES_OF_COVERED_SHARE))
    _lay_files(plan, shelf, attachments, referenced, material.files, sizer, files_room)
    skills_room = min(restore.POST_COMPACT_SKILLS_TOKEN_BUDGET, shelf.room)
    for skill in state.skills:
        text = sizer.head(skill.text, min(restore.POST_COMPACT_MAX_TOKENS_PER_SKILL, skills_room), "[… cut]")
        tokens = sizer.text(text)
        if tokens > skills_room or not text:
            break
        skills_room -= tokens
        _lay(shelf, attachments, "skills", RestoreText(skill.label, text), sizer)

    tail_from = _fitting_tail(plan, shelf, sizer)
    kept = _kept_uuids(plan, tail_from, with_prompt=keep_prompt and (plan.last_prompt or 0) < tail_from)
    stays = {*head, *kept}
    prompts = tuple(prompt for prompt in prompts if prompt[0] not in stays)
    return Assembly(
        summary=summary,
        kept=kept,
        replaced=replaced,
        cut_results=cut_results,
        prompts=prompts,
        elided_prompts=len([1 for uuid, _ in earlier if uuid not in stays]) - len(prompts),
        attachments=(*attachments, *hook_attachments),
        referenced=tuple(referenced),
        parts=shelf.parts,
        head=head,
        contributors=contributors,
    )


def select_prompts(earlier: Sequence[tuple[str, str]], max_tokens: int, sizer: Sizer) -> tuple[tuple[str, str], ...]:
    """The first messages within a tenth of the room and the newest within the rest, in order, each long one cut."""
    texts = [(uuid, sizer.middle_out(text, MAX_PROMPT_TOKENS, PROMPT_CUT_NOTE)) for uuid, text in earlier]
    sizes = [sizer.text(text) for _, text in texts]
    if sum(sizes) <= max_tokens:
        return tuple(texts)
    first, spent = 0, 0
    while first < len(sizes) and spent + sizes[first] <= max_tokens * FIRST_PROMPTS_SHARE:
        spent += sizes[first]
        first += 1
    newest = len(sizes)
    while newest > first and spent + sizes[newest - 1] <= max_tokens:
        newest -= 1
        spent += sizes[newest]
    return (*texts[:first], *texts[newest:])


def _lay(shelf: _Shelf, attachments: list[Attachment], part: str, piece: RestoreText, sizer: Sizer) -> None:
    if piece.text:
        attachments.append(Attachment(piece.label, piece.text))
        shelf.take(part, sizer.text(piece.text))


def _lay_capped(
    shelf: _Shelf,
    attachments: list[Attachment],
    part: str,
    pieces: Sequence[RestoreText],
    max_tokens: int,
    sizer: Sizer,
) -> None:
    for piece in pieces:
        text = sizer.head(piece.text, max_tokens, "[… cut]")
        tokens = sizer.text(text)
        if tokens > max_tokens:
            break
        max_tokens -= tokens
        _lay(shelf, attachments, part, RestoreText(piece.label, text), sizer)


def _lay_files(
    plan: CompactionPlan,
    shelf: _Shelf,
    attachments: list[Attachment],
    referenced: list[str],
    files: Sequence[FoundFile],
    sizer: Sizer,
    room: int,
) -> None:
    window_room = int(plan.window_tokens * restore.POST_COMPACT_WINDOW_SHARE)
    room = min(restore.POST_COMPACT_TOKEN_BUDGET, window_room, room)
    for found in files:
        path, lines = found.seen.path, found.file.line_count
        body = numbered(found.file)
        text = f"Content of {path}, read again after the compaction ({lines:,} lines):\n{body}"
        shown_lines = 0
        if sizer.text(text) > min(restore.POST_COMPACT_MAX_TOKENS_PER_FILE, room):
            page = sizer.head(body, restore.POST_COMPACT_FIRST_PAGE_TOKENS)
            shown_lines = page.count("\n") + 1 if page else 0
            text = (
                f"Beginning of {path} (lines 1 to {shown_lines:,} of {lines:,}; it is too long to be restored whole, "
                f"read the part you need):\n{page}"
            )
            referenced.append(path)
        tokens = sizer.text(text)
        if tokens > room:
            if not shown_lines:
                referenced.append(path)
            continue
        room -= tokens
        seen = FileSeen(
            path=path,
            sha256=found.file.sha256,
            shown_by="",
            how="restore",
            is_partial=shown_lines > 0,
            line_range=(1, shown_lines) if shown_lines else (),
        )
        attachments.append(Attachment(f"file:{path}", text, seen))
        shelf.take("files", tokens)


def _subject(piece: RestoreText) -> str:
    """`memory:<path>` → the path."""
    return piece.label.partition(":")[2] or piece.label


def _cut_last_prompt(plan: CompactionPlan, sizer: Sizer) -> dict[str, str]:
    if plan.last_prompt is None or plan.last_prompt < plan.head_end:
        return {}
    item = plan.view.items[plan.last_prompt]
    max_tokens = int(plan.hard_limit_tokens * PROMPT_SHARE)
    entry = item.record.payload
    if not isinstance(entry, UserEntry) or sizer.text(entry.text) <= max_tokens:
        return {}
    return {item.uuid: sizer.middle_out(entry.text, max_tokens, PROMPT_CUT_NOTE)}


def _cut_results(plan: CompactionPlan, sizer: Sizer, max_tokens: int) -> dict[str, str]:
    """Shorter texts for the largest results from `keep_from` on, if the items there take more than allowed."""
    view = plan.view
    excess = sizer.items(view, plan.keep_from, len(view)) - max_tokens
    if excess <= 0:
        return {}
    results = [
        (block, sizer.text(block.text))
        for item in view.items[plan.keep_from :]
        if item.is_user
        for block in item.user_blocks()
        if isinstance(block, ToolResultBlock) and not view.is_cleared(block.tool_use_id)
    ]
    cap = _level(sorted((size for _, size in results), reverse=True), excess)
    return {
        block.tool_use_id: sizer.middle_out(block.text, cap, RESULT_CUT_NOTE)
        for block, size in results
        if size > cap + sizer.text(RESULT_CUT_NOTE)
    }


def _level(sizes: list[int], excess: int) -> int:
    """The height to which the tallest must be cut so that `excess` comes free; `sizes` descend."""
    freed = 0
    for count, size in enumerate(sizes, start=1):
        following = sizes[count] if count < len(sizes) else 0
        if freed + count * (size - following) >= excess:
            return max(size - -(-(excess - freed) // count), 0)
        freed += count * (size - following)
    return 0


def _kept_tokens(plan: CompactionPlan, sizer: Sizer, cut_results: dict[str, str], replaced: dict[str, str]) -> int:
    view = plan.view
    tokens = sizer.items(view, plan.keep_from, len(view))
    for use_id, text in cut_results.items():
        block = view.result_block(use_id)
        tokens -= (sizer.text(block.text) if block else 0) - sizer.text(text)
    if plan.last_prompt is not None and plan.last_prompt >= plan.keep_from:
        item = view.items[plan.last_prompt]
        if item.uuid in replaced:
            tokens -= sizer.item(view, item) - sizer.text(replaced[item.uuid])
    return max(tokens, 0)


def _fitting_tail(plan: CompactionPlan, shelf: _Shelf, sizer: Sizer) -> int:
    """Where the kept tail starts: as many of the older rounds as there is room for, newest first."""
    view, start = plan.view, plan.keep_from
    for a_round in reversed(api_rounds(view)):
        if a_round.end > start or a_round.start < plan.tail_from:
            continue
        if sizer.items(view, a_round.start, plan.keep_from) > shelf.room:
            break
        start = a_round.start
    shelf.take("newest rounds", sizer.items(view, start, plan.keep_from))
    return start


def _kept_uuids(plan: CompactionPlan, tail_from: int, *, with_prompt: bool) -> tuple[str, ...]:
    view = plan.view
    kept = [view.items[plan.last_prompt].uuid] if with_prompt and plan.last_prompt is not None else []
    kept += [item.uuid for item in view.items[tail_from:] if not is_made_by_compaction(view, item)]
    return tuple(kept)


def prompt_texts(view: View, end: int) -> tuple[tuple[str, str], ...]:
    """(uuid, text) of what a person typed in the items before `end`, after what an earlier boundary preserved."""
    boundary = None if view.boundary is None else view.boundary.payload
    preserved = boundary.checkpoint.get("prompts", []) if isinstance(boundary, Boundary) else []
    texts = {str(uuid): str(text) for uuid, text in preserved}
    for position in view.index.prompts:
        if position < end:
            item = view.items[position]
            text = "\n".join(b.text for b in item.user_blocks() if isinstance(b, TextBlock))
            if text.strip():
                texts[item.uuid] = text
    return tuple(texts.items())
