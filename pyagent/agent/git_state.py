"""What git says about the working folder: the branch for the screen, a summary for the model."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from pyagent.agent.background import in_daemon_thread
from pyagent.agent.user_git import GitSilentError, UserGit
from pyagent.messages import JsonObject

MAX_STATUS_PATHS = 20
"""Paths of the summary: enough to see what is going on, few enough for a work tree in which everything changed."""
RECENT_COMMITS = 5
MAX_SUBJECT_CHARS = 120
SUMMARY_TIMEOUT_S = 3.0
"""The first prompt waits for the summary, so a huge or remote work tree has to do without."""
SHORT_HASH_CHARS = 8
MAX_HEAD_BYTES = 4_096

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

_REMOTE = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^/@]*@)?|(?:[\w.-]+@)(?=[^/]*:))(?P<host>[^/:@]+)(?::\d+(?=/))?[:/]/?"
    r"(?P<owner>[^:]+)/(?P<name>[^/]+?)(?:\.git)?/?"
)
"""`https://host/owner/name.git`, `ssh://git@host:22/owner/name`, `git@host:owner/name`; groups of groups are owners."""


def branch_of(cwd: Path) -> str:
    """The branch checked out where `cwd` lies, a short hash when detached, empty outside a repository.

    Reads two small files and runs nothing. Never raises.
    """
    try:
        folder = Path(os.path.abspath(cwd))
        for candidate in (folder, *folder.parents):
            git = candidate / ".git"
            if git.is_dir():
                return _branch_in(_small_text(git / "HEAD"))
            if git.is_file():
                # A work tree or a submodule: the file names the real folder.
                pointer = _small_text(git)
                if not pointer.startswith("gitdir:"):
                    return ""
                return _branch_in(_small_text(candidate / pointer.removeprefix("gitdir:").strip() / "HEAD"))
    except (OSError, ValueError):
        return ""
    return ""


def _small_text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MAX_HEAD_BYTES).decode("utf-8", "replace").strip()


def _branch_in(head: str) -> str:
    if head.startswith("ref:"):
        name = head.removeprefix("ref:").strip().removeprefix("refs/heads/")
        # `.invalid` is what HEAD holds where the references are kept in another format.
        return "" if name == ".invalid" else name
    return head[:SHORT_HASH_CHARS] if _HASH.fullmatch(head) else ""


async def git_summary(cwd: Path, *, timeout_s: float = SUMMARY_TIMEOUT_S) -> str:
    """Branch, changed paths and recent commits as text for the model.

    Empty without git or a repository, where git refuses (a folder of another user's) or takes too long. Never raises.
    """
    deadline = time.monotonic() + timeout_s
    work = in_daemon_thread(lambda: _summary(cwd, deadline), name="git-summary")
    try:
        return await asyncio.wait_for(asyncio.wrap_future(work), timeout_s)
    except TimeoutError:
        return ""


async def git_place(cwd: Path, *, timeout_s: float = SUMMARY_TIMEOUT_S) -> JsonObject:
    """`repo` with `host`, `owner` and `name` of the remote `origin`, and `git_worktree`, the name of a linked work
    tree: as far as there are any. Never raises."""
    deadline = time.monotonic() + timeout_s
    work = in_daemon_thread(lambda: _place(cwd, deadline), name="git-place")
    try:
        return await asyncio.wait_for(asyncio.wrap_future(work), timeout_s)
    except TimeoutError:
        return {}


def _place(cwd: Path, deadline: float) -> JsonObject:
    place: JsonObject = {}
    try:
        git = UserGit(cwd, deadline)
        folder = Path(_text(git.run("rev-parse", "--absolute-git-dir")))
        if folder.parent.name == "worktrees":
            place["git_worktree"] = folder.name
        if repo := repo_of(_text(git.run("config", "--get", "remote.origin.url"))):
            place["repo"] = repo
    except GitSilentError:
        return place
    return place


def repo_of(url: str) -> JsonObject:
    """Host, owner and name in the address of a remote; empty for a path and anything else without them."""
    found = _REMOTE.fullmatch(url)
    return {} if found is None else found.groupdict()


def _summary(cwd: Path, deadline: float) -> str:
    try:
        git = UserGit(cwd, deadline)
        status = _text(git.run("status", "--porcelain=v1", "--branch", "-z", "--ignore-submodules=dirty"))
    except GitSilentError:
        return ""
    try:
        log = _text(git.run("log", f"--max-count={RECENT_COMMITS}", "--format=%h %s", "--no-color", "--no-decorate"))
    except GitSilentError:
        # No commit yet, or no time left: the status alone is worth telling.
        log = ""
    return _as_text(branch_of(cwd), status.split("\0"), log.splitlines())


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace").removesuffix("\n")


def _as_text(branch: str, fields: Sequence[str], commits: Sequence[str]) -> str:
    changes = _changes(fields)
    lines = [f"Branch: {branch}"] if branch else []
    if changes:
        lines.append(f"Changed paths ({len(changes):,}):")
        lines += [f"  {change}" for change in changes[:MAX_STATUS_PATHS]]
        if len(changes) > MAX_STATUS_PATHS:
            lines.append(f"  … and {len(changes) - MAX_STATUS_PATHS:,} more")
    else:
        lines.append("Work tree clean.")
    if commits:
        lines.append("Recent commits:")
        lines += [f"  {commit[:MAX_SUBJECT_CHARS]}" for commit in commits]
    return "\n".join(lines)


def _changes(fields: Sequence[str]) -> list[str]:
    """The entries of `git status --porcelain -z`, one line each."""
    changes = []
    rest = iter(fields)
    for entry in rest:
        if len(entry) < 4 or entry.startswith("## "):
            continue
        if entry[0] in "RC" or entry[1] in "RC":
            # The old name follows as a field of its own.
            changes.append(_one_line(f"{entry} (was {next(rest, '')})"))
        else:
            changes.append(_one_line(entry))
    return changes


def _one_line(text: str) -> str:
    """A path may hold line breaks and other control characters; shown escaped, as git itself would."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
