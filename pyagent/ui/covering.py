"""Room for a dialog: a widget ends above the rows that are covered, so that its last rows stay in sight."""

from __future__ import annotations

from textual.widget import Widget


def end_above(widget: Widget, covered_rows: int) -> None:
    """Let the widget end above that many of the screen's lowest rows, with at least one row left; 0 takes that back.

    To be called again with each resize of the widget: until the layout has followed, it counts from the one before.
    """
    inline = widget.styles.inline
    if covered_rows:
        margin = widget.styles.margin.bottom
        rows_below = widget.screen.size.height - widget.region.bottom - margin
        wanted = max(0, min(covered_rows - rows_below, widget.region.height + margin - 1))
        if wanted != margin or not inline.has_rule("margin"):
            widget.styles.margin = (0, 0, wanted, 0)
    elif inline.has_rule("margin"):
        inline.clear_rule("margin")
        widget.refresh(layout=True)
