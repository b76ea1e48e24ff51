"""What `/rewind` offers a person: prompts first, then the ways back with what each would do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyagent.events import RewindFile, RewindOffered, RewindPlanned, RewindPoint
from pyagent.ui.rewinding import point_items, way_items, way_preview

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
POINT = RewindPoint(2, 7, "fix the\nparser", NOW - timedelta(hours=3), has_files=True, is_in_view=True)
PLANNED = RewindPlanned(
    POINT,
    (
        RewindFile("a.py", "change", is_own_edit=False, diff="diff --git a/a.py b/a.py\n-1\n+2\n"),
        RewindFile("mine.py", "create", is_own_edit=True, diff="diff --git a/mine.py b/mine.py\n+````\n"),
    ),
    skipped=("huge.bin",),
    can_summarise=True,
)


def test_prompts_are_listed_with_age_and_what_can_come_back() -> None:
    old = RewindPoint(3, 1, "start", NOW - timedelta(days=4), has_files=False, is_in_view=False)
    items = point_items(RewindOffered((POINT, old), can_redo=True), NOW)
    assert [(item.id, item.label) for item in items] == [
        ("redo", "Take the last rewind back"),
        ("2", "fix the parser"),
        ("3", "start"),
    ]
    assert items[1].detail == "3 h ago · files too"
    assert items[2].detail == "4 days ago · conversation only · before the last compaction"


def test_own_edits_are_replaced_only_where_the_row_says_so() -> None:
    by_id = {item.id: item for item in way_items(PLANNED)}
    assert list(by_id) == [
        *(
            "2 both",
            "2 conversation",
            "2 code",
            "2 both own",
            "2 code own",
            "2 upto",
            "2 from",
            "2 file 1",
            "2 file 2 own",
        ),
    ]
    assert by_id["2 both"].detail == "1 file restored; 1 file you changed yourself stay"
    assert "you changed it yourself" in by_id["2 file 2 own"].detail


def test_the_preview_shows_the_diff_of_all_or_of_one_and_what_no_checkpoint_holds() -> None:
    assert "-1" in way_preview(PLANNED, "2 both")
    assert "huge.bin" in way_preview(PLANNED, "2 both")
    one = way_preview(PLANNED, "2 file 2 own")
    assert "a.py" not in one
    assert one.endswith("`````")
    assert way_preview(PLANNED, "2 conversation") == "    fix the\n    parser"


def test_without_files_only_the_conversation_is_offered() -> None:
    planned = RewindPlanned(POINT, (), (), problem="No git.")
    assert [item.id for item in way_items(planned)] == ["2 conversation"]
