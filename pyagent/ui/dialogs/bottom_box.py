"""The frame of a dialog at the lower edge. What was said last stays in sight above it: the words before a question are
often why it is asked."""

from __future__ import annotations

from textual.containers import Vertical

from pyagent.ui.transcript import Transcript


class BottomBox(Vertical):
    """Has the transcripts behind its dialog end where it begins."""

    def on_resize(self) -> None:
        self._cover_rows(self.outer_size.height)

    def on_unmount(self) -> None:
        self._cover_rows(0)

    def _cover_rows(self, row_count: int) -> None:
        for screen in self.app.screen_stack:
            for transcript in screen.query(Transcript):
                transcript.end_above(row_count)
