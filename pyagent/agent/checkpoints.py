"""Snapshots of a work tree in a shadow repository, and the way back to them.

The repository lies under pyagent's own folder, with its own object store and one index per session; nothing in it is
shared with a repository of the user's, whose `.git`, index, HEAD, stash and hooks are neither read nor written (but
for its list of excluded files). Everything here blocks: call it on a thread.

A snapshot's commit holds two things: `files`, the tree, and `modes`, the permission bits that Git does not keep.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pyagent.agent.session_store import project_dir
from pyagent.agent.shadow_git import ATTRIBUTES, CheckpointError, CheckpointsUnavailableError, ShadowGit

MAX_FILE_BYTES = 10_000_000
"""Larger files are data or build products: they would fill the disk at every change."""

MAX_NEW_BYTES = 500_000_000
MAX_NEW_FILES = 50_000
"""More than this in one snapshot is a folder that nobody meant to have saved, such as a home or a disk."""

PRUNE_AFTER = "1.day.ago"
"""Younger objects may belong to a snapshot that another session is just taking."""

MAX_DIFF_CHARS = 50_000
"""Of one file's diff shown before restoring; a person reads less."""

_DEFAULT_MODES = {0o100644: 0o644, 0o100755: 0o755}
_SYMLINK, _GITLINK = 0o120000, 0o160000

PACKED_FROM_FILES = 100
"""A snapshot of so many new files writes one pack; packs of a few files each would slow every look-up down."""

ChangeKind: TypeAlias = Literal["create", "change", "delete"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A saved state of the work tree. `skipped` are paths that are not in it, for their size or permissions."""

    commit: str
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileChange:
    """What going from one snapshot to another does to a path (relative, as the bytes on the disk)."""

    path: bytes
    kind: ChangeKind
    mode: int
    """Git's mode in the target; 0 when the path is not there."""
    blob: str

    @property
    def shown_path(self) -> str:
        """For people: odd bytes and control characters escaped."""
        text = self.path.decode("utf-8", "backslashreplace")
        return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did, and the paths it left alone because their content is saved nowhere."""

    changed: tuple[FileChange, ...]
    left_alone: tuple[FileChange, ...]


@dataclass(frozen=True, slots=True)
class _Listing:
    tracked: list[bytes]
    changed: list[bytes]
    """Tracked paths that differ or are gone, and new ones."""
    nested: list[bytes]
    """Folders with a repository of their own, not looked into yet."""


def work_tree_of(cwd: Path, user_home: Path) -> Path:
    """What is saved for a working folder: the whole repository it lies in, else the folder itself."""
    folder = cwd.resolve()
    home = user_home.resolve()
    for candidate in (folder, *folder.parents):
        if home.is_relative_to(candidate):
            break
        # `Path.exists` raises where the folder may not be read.
        if os.path.exists(candidate / ".git"):
            return candidate
    return folder


def shadow_dir(home: Path, work_tree: Path) -> Path:
    return project_dir(home, work_tree) / "checkpoints"


def forget_sessions(home: Path, cwd: Path, session_ids: Collection[str], *, user_home: Path) -> None:
    """Let go of deleted sessions' snapshots, and of what nothing else needs of them."""
    work_tree = work_tree_of(cwd, user_home)
    folder = shadow_dir(home, work_tree)
    if not session_ids or not folder.is_dir():
        return
    with contextlib.suppress(OSError, CheckpointError):
        shadow = ShadowRepository(home, work_tree, "cleanup", user_home=user_home)
        for session_id in (*session_ids, "cleanup"):
            (folder / f"index-{session_id}").unlink(missing_ok=True)
            (folder / "refs" / "sessions" / session_id).unlink(missing_ok=True)
        shadow.prune()


class ShadowRepository:
    """The snapshots of one work tree, for one session. Not for two threads at once.

    Raises:
        CheckpointsUnavailableError: there is no git binary, or the folder is one that nobody means to have saved.
    """

    def __init__(self, home: Path, work_tree: Path, session_id: str, *, user_home: Path) -> None:
        """`home` is pyagent's own folder."""
        self.work_tree = work_tree.resolve()
        if self.work_tree == Path(self.work_tree.anchor) or user_home.resolve().is_relative_to(self.work_tree):
            raise CheckpointsUnavailableError(
                f"File checkpoints are off in {self.work_tree}.", hint="Start pyagent inside a project's folder."
            )
        self._dir = shadow_dir(home, self.work_tree)
        self._session_id = session_id
        self._index = self._dir / f"index-{session_id}"
        self._shared_index = self._dir / "index"
        self._last: tuple[str, bytes] | None = None
        """Newest commit of this session, and its modes."""
        self._git = ShadowGit(self._dir, self.work_tree, self._index)
        self._prepare()

    # ── taking ──

    def snapshot(self, message: str) -> Snapshot:
        """Save the work tree as it is now.

        Raises:
            CheckpointError: it cannot be read, or is too large.
        """
        self._unlock()
        try:
            return self._taken(message)
        except CheckpointsUnavailableError:
            raise
        except CheckpointError:
            # A damaged index, or one that names objects no longer there: it is made anew from the files themselves.
            self._index.unlink(missing_ok=True)
            return self._taken(message)

    def _taken(self, message: str) -> Snapshot:
        listing = self._list()
        nested = listing.nested
        new = list(listing.changed)
        while nested:
            found = [self._list_nested(folder) for folder in nested]
            new += [path for inner in found for path in inner.changed]
            nested = [path for inner in found for path in inner.nested]
        kept, gone, skipped = self._weighed(new, set(listing.tracked))
        if kept or gone:
            self._update_index(kept, gone)
        gone_set = set(gone)
        tracked = sorted({path for path in (*listing.tracked, *kept) if path not in gone_set})
        modes = self._modes(tracked)
        if self._last is None or kept or gone or modes != self._last[1]:
            self._commit(message, modes)
        assert self._last is not None
        return Snapshot(self._last[0], tuple(_shown(path) for path in skipped))

    def _list(self) -> _Listing:
        """What the index and the work tree hold, ignored files aside."""
        output = self._git.run("ls-files", "-z", "-t", "-c", "-o", "-m", "-d", "--exclude-standard")
        tracked, changed, nested = [], [], []
        for entry in output.split(b"\0"):
            tag, path = entry[:1], entry[2:]
            if tag == b"H":
                tracked.append(path)
            elif tag == b"?" and path.endswith(b"/"):
                nested.append(path)
            elif tag:
                changed.append(path)
        return _Listing(tracked, list(dict.fromkeys(changed)), nested)

    def _list_nested(self, folder: bytes) -> _Listing:
        """The files of a repository inside the work tree (a submodule, a clone), as if it had none of its own."""
        inside = os.path.join(os.fsencode(self.work_tree), folder)
        output = self._git.run(
            *("ls-files", "-z", "-o", "--exclude-standard"),
            env={"GIT_WORK_TREE": os.fsdecode(inside), "GIT_INDEX_FILE": str(self._dir / "no-index")},
            cwd=os.fsdecode(inside),
        )
        paths = [folder + path for path in output.split(b"\0") if path]
        return _Listing(
            [], [path for path in paths if not path.endswith(b"/")], [path for path in paths if path.endswith(b"/")]
        )

    def _weighed(
        self, paths: Iterable[bytes], tracked: Collection[bytes]
    ) -> tuple[list[bytes], list[bytes], list[bytes]]:
        """Paths to save, paths to forget, and paths that are left out."""
        kept, gone, skipped = [], [], []
        total_bytes = 0
        root = os.fsencode(self.work_tree)
        for path in paths:
            full = os.path.join(root, path)
            try:
                found = os.lstat(full)
            except OSError:
                gone.append(path)
                continue
            is_link = stat.S_ISLNK(found.st_mode)
            if not is_link and not stat.S_ISREG(found.st_mode):
                gone.append(path)
            elif not is_link and (found.st_size > MAX_FILE_BYTES or not os.access(full, os.R_OK)):
                skipped.append(path)
            else:
                kept.append(path)
                total_bytes += found.st_size
        if total_bytes > MAX_NEW_BYTES or len(kept) > MAX_NEW_FILES:
            raise CheckpointsUnavailableError(
                f"File checkpoints are off: {self.work_tree} holds too much "
                f"({len(kept):,} files, {total_bytes / 1_000_000:,.0f} MB that no .gitignore leaves out).",
                hint="List what is not source in a .gitignore.",
            )
        return kept, [*gone, *(path for path in skipped if path in tracked)], skipped

    def _update_index(self, kept: Sequence[bytes], gone: Sequence[bytes]) -> None:
        if gone:
            zero = b"0" * 40
            self._git.run("update-index", "-z", "--index-info", given=b"".join(b"0 %b\t%b\0" % (zero, p) for p in gone))
        if kept:
            names = b"".join(path + b"\0" for path in kept)
            # What Git takes for big goes straight into one pack: a thousand files of their own take seconds to create
            # on a busy disk.
            packed = ("-c", "core.bigFileThreshold=1") if len(kept) >= PACKED_FROM_FILES else ()
            self._git.run(*packed, "update-index", "-z", "--add", "--remove", "--replace", "--stdin", given=names)

    def _modes(self, paths: Iterable[bytes]) -> bytes:
        """The permissions that Git would not bring back, one `octal path NUL` each."""
        root = os.fsencode(self.work_tree)
        lines: list[bytes] = []
        for path in paths:
            try:
                mode = os.lstat(os.path.join(root, path)).st_mode
            except OSError:
                continue
            bits = stat.S_IMODE(mode)
            if stat.S_ISREG(mode) and bits not in (0o644, 0o755):
                lines.append(b"%o %b\0" % (bits, path))
        return b"".join(lines)

    def _commit(self, message: str, modes: bytes) -> None:
        files = self._git.text("write-tree")
        tree = self._git.write_tree({"files": ("40000", files), "modes": ("100644", self._git.write("blob", modes))})
        commit = self._git.write_commit(tree, self._last[0] if self._last is not None else "", message)
        self._git.set_ref(f"refs/sessions/{self._session_id}", commit)
        self._last = (commit, modes)
        self._share_index()

    def _share_index(self) -> None:
        """Another session of this folder starts from here and reads only what has changed since."""
        with contextlib.suppress(OSError):
            temporary = self._dir / f"index-new-{self._session_id}"
            shutil.copyfile(self._index, temporary)
            os.replace(temporary, self._shared_index)

    def _unlock(self) -> None:
        """A git that was killed leaves its locks; nobody but this session's one writer ever holds these."""
        for lock in (
            Path(f"{self._index}.lock"),
            self._dir / "refs" / "sessions" / f"{self._session_id}.lock",
        ):
            with contextlib.suppress(OSError):
                lock.unlink(missing_ok=True)

    # ── looking ──

    def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """What differs between two snapshots, as going from `before` to `after`."""
        output = self._git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", f"{before}:files", f"{after}:files")
        found = {change.path: change for change in _raw_changes(output)}
        old, new = self._saved_modes(before), self._saved_modes(after)
        moved = {path for path in {*old, *new} if old.get(path) != new.get(path)} - found.keys()
        if moved:
            entries = self._git.run("ls-tree", "-r", "-z", f"{after}:files")
            for entry in entries.split(b"\0"):
                fields, _, path = entry.partition(b"\t")
                if path in moved:
                    mode, _, blob = fields.split(b" ")
                    found[path] = FileChange(path, "change", int(mode, 8), blob.decode())
        return tuple(found[path] for path in sorted(found))

    def diffs(self, before: str, after: str) -> dict[bytes, str]:
        """The textual diff of each path that differs in content, from one snapshot to another; cut where very long."""
        trees = (f"{before}:files", f"{after}:files")
        plain = ("diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
        paths = [change.path for change in _raw_changes(self._git.run(*plain, "-z", "--raw", *trees))]
        text = "\n" + self._git.run(*plain, "-p", *trees).decode("utf-8", "replace")
        # No line of a file can begin so: each has a sign in front.
        parts = text.split("\ndiff --git ")[1:]
        return {path: f"diff --git {_cut(part)}\n" for path, part in zip(paths, parts, strict=False)}

    # ── going back ──

    def restore(self, current: str, target: str, paths: Collection[bytes] | None = None) -> Restored:
        """Make the paths (None: all that differ) what they are in `target`. `current` must be the newest snapshot.

        Raises:
            CheckpointError: a file could not be written; those before it are.
        """
        todo = [c for c in self.changes(current, target) if paths is None or c.path in paths]
        modes = self._saved_modes(target)
        done: list[FileChange] = []
        left_alone: list[FileChange] = []
        try:
            for change in todo:
                if change.kind == "delete":
                    self._delete(change.path)
                    done.append(change)
            writes = [change for change in todo if change.kind != "delete"]
            for change, content in zip(writes, self._contents([c.blob for c in writes]), strict=True):
                if self._is_in_the_way(change):
                    left_alone.append(change)
                    continue
                self._write(change, content, modes.get(change.path, _DEFAULT_MODES.get(change.mode, 0o644)))
                done.append(change)
        except OSError as error:
            raise CheckpointError(
                f"{len(done)} of {len(todo)} files were restored, then one could not be written: {error}.",
                hint="Make room or allow writing there, then run /rewind again.",
            ) from error
        return Restored(tuple(done), tuple(left_alone))

    def _is_in_the_way(self, change: FileChange) -> bool:
        """Whether something lies there that no snapshot holds (ignored, too large), so that writing would lose it."""
        full = os.path.join(os.fsencode(self.work_tree), change.path)
        is_there = os.path.lexists(full)
        return is_there and (change.kind == "create" or (os.path.isdir(full) and not os.path.islink(full)))

    def _is_inside(self, full: bytes) -> bool:
        root = os.path.realpath(os.fsencode(self.work_tree))
        return os.path.realpath(os.path.dirname(full)).startswith(root)

    def _delete(self, path: bytes) -> None:
        root = os.fsencode(self.work_tree)
        full = os.path.join(root, path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(full)
        parent = os.path.dirname(path)
        while parent:
            try:
                os.rmdir(os.path.join(root, parent))
            except OSError:
                return
            parent = os.path.dirname(parent)

    def _write(self, change: FileChange, content: bytes, mode: int) -> None:
        full = os.path.join(os.fsencode(self.work_tree), change.path)
        folder = os.path.dirname(full)
        os.makedirs(folder, exist_ok=True)
        if not self._is_inside(full):
            raise OSError(f"{change.shown_path} leads out of the work tree")
        temporary = os.path.join(folder, b".pyagent-restore-%d" % os.getpid())
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        try:
            if change.mode == _SYMLINK:
                os.symlink(content, temporary)
            else:
                with open(temporary, "xb") as file:
                    file.write(content)
                os.chmod(temporary, mode)
            os.replace(temporary, full)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise

    def _contents(self, blobs: Sequence[str]) -> Iterator[bytes]:
        """The blobs' bytes, in order, one at a time."""
        if not blobs:
            return
        with tempfile.TemporaryFile() as output:
            self._git.run("cat-file", "--batch", given="".join(f"{blob}\n" for blob in blobs).encode(), output=output)
            output.seek(0)
            for blob in blobs:
                header = output.readline().split()
                if len(header) != 3 or header[1] != b"blob":
                    raise CheckpointError(f"The checkpoint has lost the object {blob}.")
                content = output.read(int(header[2]))
                output.read(1)
                yield content

    def _saved_modes(self, commit: str) -> dict[bytes, int]:
        data = self._git.run("cat-file", "blob", f"{commit}:modes")
        pairs = (line.split(b" ", 1) for line in data.split(b"\0") if line)
        return {path: int(bits, 8) for bits, path in pairs}

    def _prepare(self) -> None:
        try:
            self._dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (self._dir / "HEAD").exists():
                self._git.make()
            (self._dir / "info").mkdir(exist_ok=True)
            (self._dir / "info" / "attributes").write_bytes(ATTRIBUTES)
            (self._dir / "info" / "exclude").write_bytes(self._users_excludes() + self._own_exclude())
            if not self._index.exists() and self._shared_index.exists():
                shutil.copyfile(self._shared_index, self._index)
        except OSError as error:
            raise CheckpointsUnavailableError(f"File checkpoints are off: {error.strerror}: {self._dir}.") from error
        ref = (
            self._git.run("for-each-ref", "--format=%(objectname)", f"refs/sessions/{self._session_id}")
            .decode()
            .strip()
        )
        if ref:
            self._last = (ref, self._git.run("cat-file", "blob", f"{ref}:modes"))

    def prune(self) -> None:
        """Drop what no session's snapshot needs any more. Slow on a large store."""
        # It may name objects that only a deleted session's snapshots held.
        self._shared_index.unlink(missing_ok=True)
        self._git.run("prune", f"--expire={PRUNE_AFTER}")

    def _users_excludes(self) -> bytes:
        """What the user's own repository leaves out besides its `.gitignore` files."""
        try:
            return (self.work_tree / ".git" / "info" / "exclude").read_bytes()
        except OSError:
            return b""

    def _own_exclude(self) -> bytes:
        """pyagent's own folder, should it lie in the work tree."""
        home = self._dir.parents[2].resolve()
        if not home.is_relative_to(self.work_tree):
            return b""
        return b"\n/" + os.fsencode(home.relative_to(self.work_tree)) + b"/\n"


def _raw_changes(output: bytes) -> Iterator[FileChange]:
    """The entries of `git diff-tree --raw -z`."""
    fields = iter(output.split(b"\0"))
    for head in fields:
        if not head:
            continue
        _, new_mode, _, new_blob, status = head.lstrip(b":").split(b" ")
        kind: ChangeKind = {b"A": "create", b"D": "delete"}.get(status[:1], "change")  # type: ignore[assignment]  # the table holds only members of the Literal
        yield FileChange(next(fields), kind, int(new_mode, 8), new_blob.decode())


def _cut(text: str) -> str:
    return text if len(text) <= MAX_DIFF_CHARS else text[:MAX_DIFF_CHARS] + "\n… cut"


def _shown(path: bytes) -> str:
    return FileChange(path, "change", 0, "").shown_path
