"""git on a repository of pyagent's own, away from all configuration of the user's, and the objects written without it.

A process costs some 10 ms and more on a busy machine, so what is a few bytes long is written here.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Literal

from pyagent.errors import PyagentError

GIT_TIMEOUT_S = 20.0
"""A work tree that takes longer to look through would hold up every turn."""

_CONFIG = (
    # Without hooks, helpers and conversions: what is stored is what lies on the disk, byte for byte.
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.autocrlf", "false"),
    ("core.safecrlf", "false"),
    ("core.symlinks", "true"),
    ("core.fileMode", "true"),
    ("core.ignoreCase", "false"),
    ("core.protectNTFS", "false"),
    ("core.protectHFS", "false"),
    ("core.sparseCheckout", "false"),
    ("core.excludesFile", os.devnull),
    ("core.attributesFile", os.devnull),
    ("core.looseCompression", "1"),
    ("core.untrackedCache", "true"),
    ("gc.auto", "0"),
    ("diff.renames", "false"),
)

ATTRIBUTES = b"* -text -ident -filter !eol !working-tree-encoding !diff !merge\n"
"""Stands above every `.gitattributes` of the work tree: no filter, no line ending, no encoding is applied."""

_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
    "GIT_DEFAULT_HASH": "sha1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "pyagent",
    "GIT_AUTHOR_EMAIL": "pyagent@localhost",
    "GIT_COMMITTER_NAME": "pyagent",
    "GIT_COMMITTER_EMAIL": "pyagent@localhost",
    "LC_ALL": "C",
    # git takes and frees memory for each file it packs, and glibc gives it back to the system each time: more than half
    # of what storing 3,000 files cost was that. Other allocators do not read these.
    "MALLOC_TRIM_THRESHOLD_": str(64 * 1024 * 1024),
    "MALLOC_TOP_PAD_": str(4 * 1024 * 1024),
}


class CheckpointError(PyagentError):
    """No snapshot could be taken, or one could not be restored."""


class CheckpointsUnavailableError(CheckpointError):
    """Snapshots cannot work here at all: no git binary, or a folder too large."""


class ShadowGit:
    """Runs git with the work tree and index given, on the bare repository at `folder`.

    Raises:
        CheckpointsUnavailableError: there is no git binary.
    """

    def __init__(self, folder: Path, work_tree: Path, index: Path) -> None:
        self._dir, self._work_tree, self._index = folder, work_tree, index
        try:
            # Found only here: importing GitPython looks for the git binary, and fails without one.
            import git
        except ImportError as error:
            raise CheckpointsUnavailableError(
                "There is no git on this machine, so /rewind cannot bring files back.",
                hint="Everything else works. Install git for file checkpoints.",
            ) from error
        self._git = git

    def make(self) -> None:
        """Make the repository."""
        self.run("init", "--quiet", "--bare", str(self._dir), env={"GIT_TEMPLATE_DIR": ""}, is_placed=False)

    def write(self, kind: Literal["blob", "tree", "commit"], data: bytes) -> str:
        """Store an object; its id."""
        whole = b"%s %d\0%s" % (kind.encode(), len(data), data)
        name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        path = self._dir / "objects" / name[:2] / name[2:]
        if not path.exists():
            _replace(path, zlib.compress(whole, 1))
        return name

    def write_tree(self, entries: Mapping[str, tuple[str, str]]) -> str:
        """A folder of entries given in order of their names, each with mode and id."""
        lines = (b"%s %s\0%s" % (mode.encode(), n.encode(), bytes.fromhex(i)) for n, (mode, i) in entries.items())
        return self.write("tree", b"".join(lines))

    def write_commit(self, tree: str, parent: str, message: str) -> str:
        who = f"pyagent <pyagent@localhost> {int(time.time())} +0000"
        parents = f"parent {parent}\n" if parent else ""
        text = f"tree {tree}\n{parents}author {who}\ncommitter {who}\n\n{message}\n"
        return self.write("commit", text.encode("utf-8", "replace"))

    def set_ref(self, ref: str, name: str) -> None:
        _replace(self._dir / ref, f"{name}\n".encode())

    def text(self, *arguments: str, given: bytes = b"") -> str:
        return self.run(*arguments, given=given).decode().strip()

    def run(
        self,
        *arguments: str,
        given: bytes = b"",
        output: BinaryIO | None = None,
        env: dict[str, str] | None = None,
        cwd: str = "",
        is_placed: bool = True,
    ) -> bytes:
        """What a git command prints.

        Raises:
            CheckpointError: it failed, or took too long.
        """
        settings = [part for name, value in _CONFIG for part in ("-c", f"{name}={value}")]
        places = {
            "GIT_DIR": str(self._dir),
            "GIT_WORK_TREE": str(self._work_tree),
            "GIT_INDEX_FILE": str(self._index),
            "GIT_OBJECT_DIRECTORY": str(self._dir / "objects"),
        }
        if not is_placed:
            places = {}
        try:
            with tempfile.TemporaryFile() as source:
                source.write(given)
                source.seek(0)
                result = self._git.Git(cwd or str(self._work_tree)).execute(
                    ["git", "--no-pager", "--literal-pathspecs", *settings, *arguments],
                    istream=source,
                    output_stream=output,
                    stdout_as_string=False,
                    strip_newline_in_stdout=False,
                    kill_after_timeout=None if output is not None else GIT_TIMEOUT_S,
                    env={**_ENVIRONMENT, **places, **(env or {})},
                )
        except (self._git.exc.GitError, OSError, ValueError) as error:
            told = getattr(error, "stderr", "") or error
            raise CheckpointError(f"A file checkpoint failed: {' '.join(str(told).split())[:300]}") from error
        return result or b""


def _replace(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all.

    Raises:
        CheckpointError: it cannot be written.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except OSError as error:
        raise CheckpointError(f"A file checkpoint failed: {error.strerror}: {path}") from error
