"""What is forgotten after a compaction, and what never is.

Most state needs no cleanup: folds, cleared results and pins are records, pending cache edits are reset by the pipeline
with the records of the compaction, known files are those the view still shows, and permissions are decided anew each
time. What is left are caches of this process, and what the main thread read at its start.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What the conversation must reset once a boundary stands in the log. Idempotent.

    Never reset, and so not named: the content of invoked skills and the record of skills already announced.
    """

    resets_notes: bool
    """The notes' last covered entry: it stands before the boundary now."""
    resets_memory_files: bool
    """Read from disk again, and with them all that the first message told of the user's folder."""
    forgets_measures: bool = True
    """Token counts of messages that are no longer sent."""
    sweeps_file_contents: bool = False
    """Rendered messages that are no longer sent, file contents among them; else they are kept for an undo until
    they are much."""


def is_main_thread(query_source: str | None) -> bool:
    """Whether a request is the conversation's own and not a subagent's or a fork's."""
    return query_source is None or query_source == "sdk" or query_source.startswith("repl_main_thread")


def cleanup_after(query_source: str | None, *, has_commit_attribution: bool) -> Cleanup:
    """What to reset after a compaction. A fork never resets what the main thread relies on."""
    is_main = is_main_thread(query_source)
    return Cleanup(resets_notes=is_main, resets_memory_files=is_main, sweeps_file_contents=has_commit_attribution)
