"""Small ways of saying things that several screens share."""

from __future__ import annotations

import os

PLACEHOLDER = "Ask, or / for commands, @ for files, ? for help"
"""What stands in the empty prompt."""
STARTING = "starting …"
"""What stands in place of a session until there is one."""


def short_path(path: str) -> str:
    """The path with the home folder as `~`."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path


MODE_CYCLE = ("default", "acceptEdits", "plan")
"""What Shift+Tab goes through. Never bypassPermissions: that takes a command or a flag."""


def next_mode(mode: str) -> str:
    """The permission mode after this one."""
    return MODE_CYCLE[(MODE_CYCLE.index(mode) + 1) % len(MODE_CYCLE)] if mode in MODE_CYCLE else MODE_CYCLE[0]
