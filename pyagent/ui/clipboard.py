"""The second way to the clipboard, beside the terminal's own (OSC 52), which many terminals switch off."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

_TIMEOUT_S = 2.0
"""A clipboard tool without its display server waits for ever."""


def clipboard_command(environ: Mapping[str, str]) -> list[str] | None:
    """The program that sets this desktop's clipboard from its standard input; None if there is none."""
    for name, arguments, needs in (
        ("pbcopy", [], ""),
        ("wl-copy", [], "WAYLAND_DISPLAY"),
        ("xclip", ["-selection", "clipboard"], "DISPLAY"),
        ("xsel", ["--clipboard", "--input"], "DISPLAY"),
        ("clip.exe", [], ""),
    ):
        if needs and not environ.get(needs):
            continue
        path = shutil.which(name, path=environ.get("PATH"))
        if path:
            return [path, *arguments]
    return None


def copy_by_program(text: str) -> bool:
    """Copy with the desktop's program; False if that did not work. May take 2 s: not for the screen's thread."""
    command = clipboard_command(os.environ)
    if command is None:
        return False
    try:
        done = subprocess.run(
            command,
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
