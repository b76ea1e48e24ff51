"""Deletes sessions that were not used for a long time, with what lies beside them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

from pyagent.agent.checkpoints import forget_sessions
from pyagent.agent.session_shelf import empty_trash, trash_dir

SECONDS_A_DAY = 86_400.0


def delete_old_sessions(home: Path, folder: Path, cwd: Path, *, days: int, now_s: float, user_home: Path) -> int:
    """Delete the sessions of a project folder not written for `days` days (0: keep all); how many went.

    A session that is open somewhere stays, whatever its age. What cannot be deleted stays for the next time. What a
    person deleted that many days ago leaves the trash too.
    """
    if days <= 0:
        return 0
    gone: list[str] = []
    for path in folder.glob("*.jsonl"):
        with contextlib.suppress(OSError):
            if now_s - path.stat().st_mtime > days * SECONDS_A_DAY and _delete(path):
                gone.append(path.stem)
    trashed = empty_trash(trash_dir(home, folder.name), days=days, now_s=now_s)
    forget_sessions(home, cwd, [*gone, *trashed], user_home=user_home)
    return len(gone)


def _delete(path: Path) -> bool:
    """Whether nobody had it open and it is gone."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
        shutil.rmtree(path.with_suffix(""), ignore_errors=True)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
