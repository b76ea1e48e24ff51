"""What is put back behind a boundary: files that were in use, memory files, plan, tasks, skills and the like.

Everything slow happens here, before anything is decided or written; how much of it finds room is `budget`'s work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyagent.compaction.ports import CompactionHooks, FileText, History, RestorableState, RestoreSources
from pyagent.log import FileSeen
from pyagent.view import View

POST_COMPACT_MAX_FILES_TO_RESTORE = 5
POST_COMPACT_MAX_TOKENS_PER_FILE = 5_000
POST_COMPACT_FIRST_PAGE_TOKENS = 1_000
"""Of a file over the limit: enough to recognise it by, the rest is one Read away."""
POST_COMPACT_TOKEN_BUDGET = 50_000
POST_COMPACT_WINDOW_SHARE = 0.25
"""The files' budget is the smaller of the two, so that a small window keeps room for work."""
POST_COMPACT_MAX_TOKENS_PER_SKILL = 5_000
POST_COMPACT_SKILLS_TOKEN_BUDGET = 25_000

MAX_FILES_TRIED = 12
"""Files that are gone or unreadable make room for older ones, but not endlessly."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    seen: FileSeen
    file: FileText


@dataclass(frozen=True, slots=True)
class Material:
    """All that could be restored, before any limit but the number of files."""

    state: RestorableState
    files: tuple[FoundFile, ...] = ()
    """Most recently used first."""
    hook_output: tuple[str, ...] = ()


async def gather(
    view: View,
    keep_from: int,
    history: History,
    sources: RestoreSources,
    hooks: CompactionHooks,
    *,
    hook_output: tuple[str, ...] | None = None,
) -> Material:
    """Read everything that may be restored. Files the kept items show whole are left out.

    `hook_output` is what the SessionStart hooks have said already; None runs them.
    """
    state = await sources.state()
    if hook_output is None:
        hook_output = await hooks.session_start()
    shown = _shown_by(view, keep_from)
    files: list[FoundFile] = []
    for seen in _candidates(history.files_by_use(), shown):
        file = await sources.read_file(seen.path)
        if file is not None:
            files.append(FoundFile(seen, file))
        if len(files) == POST_COMPACT_MAX_FILES_TO_RESTORE:
            break
    return Material(state, tuple(files), hook_output)


def _candidates(files: Iterable[FileSeen], shown: frozenset[str]) -> tuple[FileSeen, ...]:
    """Files worth reading again: an edit shows only its place, and a part of a file is not the file."""
    return tuple(seen for seen in files if seen.is_partial or seen.how == "edit" or seen.shown_by not in shown)[
        :MAX_FILES_TRIED
    ]


def _shown_by(view: View, keep_from: int) -> frozenset[str]:
    """Ids of results and entries that stand word for word in the kept items."""
    shown = {item.uuid for item in view.items[keep_from:]}
    results = view.index.results
    shown.update(
        use_id for use_id, at in results.items() if keep_from <= at < len(view) and not view.is_cleared(use_id)
    )
    return frozenset(shown)


def numbered(file: FileText) -> str:
    """The text with line numbers, as the model knows it from reading."""
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(file.text.split("\n"), start=1))
