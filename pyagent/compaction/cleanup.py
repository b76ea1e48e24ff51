"""What is forgotten after a compaction, and what never is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What the conversation must reset once a boundary stands in the log. Idempotent.

    Never reset, and so not named: the content of invoked skills and the record of skills already announced.
    """

    resets_microcompact: bool = True
    resets_permission_cache: bool = True
    resets_tracing: bool = True
    resets_notes: bool = True
    """The notes' last covered entry: it stands before the boundary now."""
    resets_collapse: bool = False
    resets_user_context: bool = False
    resets_memory_files: bool = False
    sweeps_file_contents: bool = False


def is_main_thread(query_source: str | None) -> bool:
    """Whether a request is the conversation's own and not a subagent's or a fork's."""
    return query_source is None or query_source == "sdk" or query_source.startswith("repl_main_thread")


def cleanup_after(query_source: str | None, *, has_commit_attribution: bool) -> Cleanup:
    """What to reset after a compaction. A fork never resets what the main thread relies on."""
    is_main = is_main_thread(query_source)
    return Cleanup(
        resets_notes=is_main,
        resets_collapse=is_main,
        resets_user_context=is_main,
        resets_memory_files=is_main,
        sweeps_file_contents=has_commit_attribution,
    )
