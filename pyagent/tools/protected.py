"""Files that decide what else may run: changing them is always asked about, whatever the rules allow."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROTECTED_FOLDERS = _names(
    ".git .vscode .idea .husky .cargo .devcontainer .yarn .mvn .claude .pyagent .ssh .gnupg .githooks"
)
PROTECTED_FILES = _names(
    ".gitconfig .gitmodules .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pypirc .netrc .pre-commit-config.yaml "
    ".ripgreprc .mcp.json .claude.json .envrc .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile "
    ".login .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .inputrc .vimrc .tmux.conf"
)
PROTECTED_PAIRS = ((".config", "git"), (".config", "fish"), (".config", "pyagent"))
UNPROTECTED_PAIRS = ((".claude", "worktrees"), (".pyagent", "worktrees"))
"""Whole checkouts live there; they are work, not settings."""


def protected_reason(path: Path, *, state_home: Path | None = None) -> str:
    """Why changing this absolute path is always asked about; "" if it is not.

    Names are compared without regard to case: `.GIT` is `.git` on the file systems of macOS and Windows.
    """
    parts = [part.casefold() for part in path.parts]
    if state_home is not None and path.is_relative_to(state_home):
        return "it holds pyagent's own settings"
    pairs = list(pairwise(parts))
    for pair in pairs:
        if pair in PROTECTED_PAIRS:
            return f"{pair[0]}/{pair[1]} decides what other programs run"
    for at, part in enumerate(parts):
        if part in PROTECTED_FOLDERS and not (at < len(pairs) and pairs[at] in UNPROTECTED_PAIRS):
            return f"{part} decides what other programs run"
    if parts and parts[-1] in PROTECTED_FILES:
        return f"{parts[-1]} decides what other programs run"
    return ""
