"""Looks into the user's own repository with git: writes nothing there, waits for no lock, and runs no program that the
repository's configuration names."""

from __future__ import annotations

import time
from pathlib import Path

_GIT = (
    "git",
    "--no-pager",
    # Never waits for, or takes, a lock that a git command of the user's may want.
    "--no-optional-locks",
    # Programs a repository's own configuration could have run by merely looking at it.
    "-c",
    "core.fsmonitor=false",
    "-c",
    "log.showSignature=false",
)


class GitSilentError(Exception):
    """git refused, or took too long; the text is what it said."""


class GitMissingError(GitSilentError):
    """There is no git binary."""


class UserGit:
    """Runs git in a folder, until a deadline by `time.monotonic`.

    Raises:
        GitMissingError: there is no git binary.
    """

    def __init__(self, cwd: Path, deadline: float) -> None:
        self._cwd, self._deadline = cwd, deadline
        try:
            # Found only here: importing GitPython looks for the git binary, and fails without one.
            import git
        except ImportError as error:
            raise GitMissingError("There is no git here.") from error
        self._git = git

    def run(self, *arguments: str) -> bytes:
        """What a git command prints.

        Raises:
            GitSilentError: it failed, or there is no time left.
        """
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise GitSilentError("there was no time left")
        try:
            output = self._git.Git(str(self._cwd)).execute(
                # Named to git itself: where the folder is gone, GitPython would look at the process's own instead.
                [*_GIT, "-C", str(self._cwd), *arguments],
                kill_after_timeout=left_s,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                env={"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            )
        except (self._git.exc.GitError, OSError, ValueError) as error:
            raise GitSilentError(" ".join(str(getattr(error, "stderr", "") or error).split())) from error
        assert isinstance(output, bytes)
        return output
