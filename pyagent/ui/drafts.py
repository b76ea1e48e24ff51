"""What stands in the input line outlives a crash: written down while it is typed, one file per running program."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pyagent.ui.images import FoundImage

SAVE_AFTER_S = 0.4
"""Time after an edit until it is written: a burst of keys is written once, and a crash costs a word at most."""

MAX_DRAFT_BYTES = 4_000_000
"""A larger draft is not read back: something else stands under that name."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An input line as it stood, with what its chips stand for and what was put aside."""

    shown: str = ""
    pastes: dict[str, str] = field(default_factory=dict)
    images: dict[str, FoundImage] = field(default_factory=dict)
    stashed: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.shown.strip() and not self.stashed.strip()


class DraftFile:
    """The draft of this program, and what programs that are gone have left behind in the same project."""

    def __init__(self, history: Path) -> None:
        """`history`: the project's history file; drafts stand beside it."""
        self._folder = history.parent.parent / "drafts"
        self._stem = history.stem
        self._path = self._folder / f"{self._stem}.{os.getpid()}.json"
        self._written = Draft()

    def save(self, draft: Draft) -> None:
        """Write it down if it changed; an empty one takes the file away. A disk that refuses is no error: the draft
        still stands on the screen."""
        if draft == self._written or (draft.is_empty and self._written.is_empty):
            return
        self._written = draft
        try:
            if draft.is_empty:
                self._path.unlink(missing_ok=True)
                return
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = self._path.with_suffix(".tmp")
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(json.dumps(asdict(draft), ensure_ascii=True))
            fresh.replace(self._path)
        except OSError:
            return

    def take_left_behind(self) -> Draft | None:
        """The newest draft of a program that no longer runs; it is this program's from then on. Older ones wait for
        the next start."""
        try:
            files = [path for path in self._folder.glob("*.json") if path.name.startswith(f"{self._stem}.")]
            files = [path for path in files if not _is_running(path.suffixes[-2:-1])]
            files.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
        except OSError:
            return None
        for path in files:
            try:
                # Renamed first: of two programs that start at once only one gets it, and a crash loses nothing.
                path.rename(self._path)
                draft = _read(self._path)
            except OSError:
                continue
            if draft is not None and not draft.is_empty:
                self._written = draft
                return draft
            self._path.unlink(missing_ok=True)
        return None


def _is_running(suffixes: list[str]) -> bool:
    """Whether the program that wrote `….<pid>.json` still runs."""
    number = suffixes[0].removeprefix(".") if suffixes else ""
    if not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _read(path: Path) -> Draft | None:
    if path.stat().st_size > MAX_DRAFT_BYTES:
        return None
    try:
        raw = json.loads(path.read_bytes())
        images = {str(number): FoundImage(**image) for number, image in raw["images"].items()}
        pastes = {str(number): str(text) for number, text in raw["pastes"].items()}
        return Draft(str(raw["shown"]), pastes, images, str(raw["stashed"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
