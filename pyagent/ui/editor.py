"""Writing a prompt in the user's own editor."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path


def edited_text(text: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """The text as the editor left it, and why it could not be edited (empty if it could).

    The screen must be suspended: the editor gets the terminal's own streams.
    """
    command = shlex.split(environ.get("VISUAL") or environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="pyagent-") as folder:
        path = Path(folder) / "prompt.md"
        path.write_text(text, "utf-8")
        try:
            done = subprocess.run(
                [*command, str(path)],
                stdin=sys.__stdin__,
                stdout=sys.__stdout__,
                stderr=sys.__stderr__,
                check=False,
            )
        except OSError as error:
            return text, f"Cannot start {command[0]}: {error.strerror}. Set $EDITOR to another one."
        if done.returncode != 0:
            return text, f"{command[0]} ended with code {done.returncode}; the text is as it was."
        return path.read_text("utf-8", "replace").removesuffix("\n"), ""
