"""`/rewind`: back to a prompt, with the conversation, the files, or both; and the way forward again.

The conversation moves by a `SetHead` record, so nothing said is lost; files come from the checkpoints. What a person
changed themselves since then is left alone unless they ask for it by name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pyagent.agent.checkpoint_keeper import CheckpointKeeper
from pyagent.agent.checkpoints import FileChange, ShadowRepository
from pyagent.agent.journal import Journal
from pyagent.agent.shadow_git import CheckpointError
from pyagent.errors import UsageError
from pyagent.events import EventSink, Notice, PromptReturned, RewindFile, RewindOffered, RewindPlanned, RewindPoint
from pyagent.log import CheckpointTaken, Record, Rewound, SetHead, UserEntry
from pyagent.messages import TextBlock, scrub_surrogates
from pyagent.state import ConversationState
from pyagent.wording import plural

WAYS = ("both", "conversation", "code", "file", "upto", "from")
MAX_TOLD_PATHS = 20
"""Files named in what the model is told; more would be a list nobody reads."""

_USAGE = "For example: /rewind 1 both, /rewind 2 code, /rewind 1 file 3, /rewind redo. Add 'own' to replace your edits."


@dataclass(frozen=True, slots=True)
class _Files:
    """What restoring to a point means, as of now."""

    target: str
    current: str
    changes: tuple[FileChange, ...]
    own: frozenset[bytes]
    """Paths that the person changed themselves since then."""
    skipped: tuple[str, ...]


class RewindCommands:
    """The handler of `/rewind`."""

    def __init__(
        self,
        *,
        journal: Journal,
        checkpoints: CheckpointKeeper,
        emit: EventSink,
        load_history: Callable[[], Coroutine[Any, Any, None]],
        summarise: Callable[[str], Coroutine[Any, Any, None]],
        moved: Callable[[], None],
    ) -> None:
        """`load_history` brings in what a resume left on the disk; `summarise` is `/compact`; `moved` is told when the
        conversation stands elsewhere."""
        self._journal = journal
        self._checkpoints = checkpoints
        self._emit = emit
        self._load_history = load_history
        self._summarise = summarise
        self._moved = moved
        self._seen_own: dict[int, frozenset[bytes]] = {}
        """Own edits as the person was shown them, by the prompt they would go back to."""

    def handle(self, argument: str) -> Coroutine[Any, Any, None]:
        """`/rewind`, `/rewind N`, `/rewind N <way> [own]`, `/rewind redo`."""
        words = argument.split()
        if words == ["redo"]:
            return self._redo()
        if not words:
            return self._offer()
        number = int(words[0]) if words[0].isdecimal() else 0
        if number < 1 or (len(words) > 1 and words[1] not in WAYS):
            raise UsageError("That is no way to rewind.", hint=_USAGE)
        if len(words) == 1:
            return self._plan(number)
        takes_own = words[-1] == "own"
        if words[1] != "file":
            return self._go(number, words[1], takes_own=takes_own)
        if len(words) < 3 or not words[2].isdecimal():
            raise UsageError("Say which file, by its number.", hint=_USAGE)
        return self._go(number, "file", takes_own=takes_own, file_number=int(words[2]))

    # ── choosing ──

    async def _offer(self) -> None:
        await self._load_history()
        points = rewind_points(self._journal.state)
        if not points:
            self._emit(Notice("There is no prompt to go back to yet."))
            return
        self._emit(RewindOffered(points, can_redo=self._redoable() is not None))

    async def _plan(self, number: int) -> None:
        point = await self._point(number)
        problem = ""
        files: tuple[RewindFile, ...] = ()
        skipped: tuple[str, ...] = ()
        try:
            found = await self._files(point)
        except CheckpointError as error:
            problem = error.message
        else:
            self._seen_own[point.seq] = found.own
            skipped = found.skipped
            diffs = await self._checkpoints.with_shadow(lambda shadow: shadow.diffs(found.current, found.target))
            files = tuple(
                RewindFile(change.shown_path, change.kind, change.path in found.own, diffs.get(change.path, ""))
                for change in found.changes
            )
        can_summarise = self._position_in_view(point) > 0
        self._emit(RewindPlanned(point, files, skipped, problem, can_summarise))

    async def _point(self, number: int) -> RewindPoint:
        await self._load_history()
        points = rewind_points(self._journal.state)
        if number > len(points):
            raise UsageError(f"There is no prompt {number} to go back to: the session has {len(points)}.", hint=_USAGE)
        return points[number - 1]

    def _position_in_view(self, point: RewindPoint) -> int:
        """Which of the prompts in view it is, from 1; 0 if it is not there."""
        prompts = [item.record.seq for item in self._journal.state.view if item.is_prompt]
        return prompts.index(point.seq) + 1 if point.seq in prompts else 0

    async def _files(self, point: RewindPoint) -> _Files:
        records = self._journal.state.records
        target = checkpoint_before(records, point.seq)
        if target is None:
            raise CheckpointError("The files were not saved before this prompt.")
        later = [r.payload for r in records if r.seq >= target.seq and isinstance(r.payload, CheckpointTaken)]
        saved = target.payload
        assert isinstance(saved, CheckpointTaken)

        def look(shadow: ShadowRepository) -> _Files:
            now = shadow.snapshot("rewind")
            own: set[bytes] = set()
            chain = [(c.commit, c.reason) for c in later] + [(now.commit, "rewind")]
            for (before, _), (after, reason) in pairwise(chain):
                if before != after and reason in ("turn", "rewind"):
                    own.update(change.path for change in shadow.changes(before, after))
            unsaved = {*saved.skipped, *now.skipped}
            changes = tuple(c for c in shadow.changes(now.commit, saved.commit) if c.shown_path not in unsaved)
            mine = frozenset(change.path for change in changes if change.path in own)
            return _Files(saved.commit, now.commit, changes, mine, tuple(sorted(unsaved)))

        return await self._checkpoints.with_shadow(look)

    # ── going ──

    async def _go(self, number: int, way: str, *, takes_own: bool, file_number: int = 0) -> None:
        point = await self._point(number)
        if way in ("upto", "from"):
            position = self._position_in_view(point)
            if not position:
                raise UsageError("This prompt is summarised already.")
            await self._summarise(f"{way} {position}")
            return
        head_seq = self._journal.state.head_seq
        before, after, told = "", "", ""
        if way != "conversation":
            before, after, told = await self._restore(point, takes_own=takes_own, file_number=file_number)
        if way in ("conversation", "both"):
            entry = self._journal.state.record(point.seq)
            assert entry is not None
            assert isinstance(entry.payload, UserEntry)
            self._journal.commit(SetHead(self._journal.state.parent_of(point.seq), reason="rewind"))
            self._journal.commit(Rewound(head_seq, before, after))
            self._emit(PromptReturned(entry.payload.text))
            told = f"Back before prompt {point.number}; its text is in the input line. {told}".rstrip()
            self._moved()
        elif before:
            self._journal.commit(Rewound(-1, before, after))
        self._emit(Notice(f"{told} /rewind redo takes this back." if told else "Nothing had to be restored."))

    async def _restore(self, point: RewindPoint, *, takes_own: bool, file_number: int) -> tuple[str, str, str]:
        """Commits before and after, and a sentence for the person; all empty if nothing was restored."""
        found = await self._files(point)
        paths = {change.path for change in found.changes}
        if file_number:
            if not 1 <= file_number <= len(found.changes):
                raise UsageError(f"There is no file {file_number}; {len(found.changes)} would change.", hint=_USAGE)
            paths = {found.changes[file_number - 1].path}
        # What the person changed after they were shown the list was never agreed to.
        spared = found.own - self._seen_own.get(point.seq, frozenset()) if takes_own else found.own
        spared &= paths
        paths -= spared
        return await self._restore_paths(found.target, paths, spared)

    async def _restore_paths(self, target: str, paths: set[bytes], spared: frozenset[bytes]) -> tuple[str, str, str]:
        kept_text = f" {len(spared)} that you changed yourself were left alone." if spared else ""
        if not paths:
            return "", "", kept_text.strip()
        before = (await self._checkpoints.now("rewind")).commit
        restored = await self._checkpoints.with_shadow(lambda shadow: shadow.restore(before, target, paths))
        after = (await self._checkpoints.now("turn_end")).commit
        self._tell_model(restored.changed)
        if restored.left_alone:
            kept_text += f" {len(restored.left_alone)} stand in the way of files that no checkpoint holds."
        return before, after, f"{plural(len(restored.changed), 'file')} restored.{kept_text}"

    def _tell_model(self, changes: Sequence[FileChange]) -> None:
        """The model must not go on believing in files that are no longer so."""
        if not changes:
            return
        names = [f"- {change.shown_path} ({_DONE[change.kind]})" for change in changes[:MAX_TOLD_PATHS]]
        if len(changes) > MAX_TOLD_PATHS:
            names.append(f"- and {len(changes) - MAX_TOLD_PATHS} more")
        text = "The user has set these files back to an earlier state; read them again before relying on them:\n"
        block = TextBlock(f"<system-reminder>\n{text}{scrub_surrogates(chr(10).join(names))}\n</system-reminder>")
        self._journal.commit(UserEntry((block,), origin="reminder", label="rewind"))

    # ── and back again ──

    def _redoable(self) -> Record | None:
        """The last rewind, if nothing was said since."""
        for record in reversed(self._journal.state.records):
            if isinstance(record.payload, Rewound):
                return record
            if isinstance(record.payload, UserEntry) and record.payload.origin == "prompt":
                return None
        return None

    async def _redo(self) -> None:
        await self._load_history()
        record = self._redoable()
        if record is None:
            raise UsageError("There is no rewind to take back, or something was said since.")
        rewound = record.payload
        assert isinstance(rewound, Rewound)
        before, after, told = "", "", ""
        if rewound.before_commit:

            def look(shadow: ShadowRepository) -> tuple[set[bytes], frozenset[bytes]]:
                now = shadow.snapshot("rewind")
                paths = {change.path for change in shadow.changes(rewound.after_commit, rewound.before_commit)}
                own = {change.path for change in shadow.changes(rewound.after_commit, now.commit)}
                return paths - own, frozenset(paths & own)

            paths, spared = await self._checkpoints.with_shadow(look)
            before, after, told = await self._restore_paths(rewound.before_commit, paths, spared)
        head_seq = -1
        if rewound.head_seq >= 0:
            head_seq = self._journal.state.head_seq
            self._journal.commit(SetHead(rewound.head_seq, reason="redo"))
            self._moved()
        self._journal.commit(Rewound(head_seq, before, after))
        self._emit(Notice(f"The rewind is taken back. {told}".rstrip()))


_DONE = {"create": "brought back", "change": "changed back", "delete": "removed again"}


def rewind_points(state: ConversationState) -> tuple[RewindPoint, ...]:
    """The prompts of the current branch, newest first."""
    in_view = {item.uuid for item in state.view}
    prompts = [
        record
        for record in state.branch
        if isinstance(record.payload, UserEntry) and record.payload.origin == "prompt" and not record.tx
    ]
    points = []
    for number, record in enumerate(reversed(prompts), start=1):
        entry = record.payload
        assert isinstance(entry, UserEntry)
        has_files = checkpoint_before(state.records, record.seq) is not None
        text = entry.display or entry.text
        points.append(RewindPoint(number, record.seq, text, record.at, has_files, record.uuid in in_view))
    return tuple(points)


def checkpoint_before(records: Sequence[Record], seq: int) -> Record | None:
    """The record of the work tree as it was when the prompt at `seq` was sent."""
    for position in range(_position(records, seq) - 1, -1, -1):
        payload = records[position].payload
        if isinstance(payload, CheckpointTaken) and payload.reason == "turn":
            return records[position]
        if isinstance(payload, UserEntry) and payload.origin == "prompt":
            return None
    return None


def _position(records: Sequence[Record], seq: int) -> int:
    """Index of a record; the sequence numbers rise but may have gaps where lines could not be read."""
    return bisect_left(records, seq, key=lambda record: record.seq)
