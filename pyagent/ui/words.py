"""Small ways of saying things that several screens share."""

from __future__ import annotations

import os


def short_path(path: str) -> str:
    """The path with the home folder as `~`."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
