"""Handing text to the user's own programs: the prompt to an editor, the transcript to whatever reads."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyagent.ui.terminal import interrupts_left_to_others


def edited_text(text: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """The text as the editor left it, and why it could not be edited (empty if it could).

    The screen must be suspended: the editor gets the terminal's own streams.
    """
    command = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    return _run(command, "prompt.md", text, "EDITOR")


def read_text(text: str, environ: Mapping[str, str]) -> str:
    """Open a text for reading; why that could not be done (empty if it could). The screen must be suspended."""
    named = next((name for name in ("VISUAL", "EDITOR", "PAGER") if environ.get(name)), "")
    return _run(environ[named] if named else "less", "transcript.md", text, named or "PAGER")[1]


def edited_in_place(path: Path, environ: Mapping[str, str]) -> str:
    """Let the person edit a file; why that failed, empty if it did not. The screen must be suspended."""
    return _start(environ.get("VISUAL") or environ.get("EDITOR") or "vi", path, "EDITOR")


def _run(command: str, name: str, text: str, variable: str) -> tuple[str, str]:
    """Run a command on a file with the text; what the file holds afterwards, and what went wrong."""
    with tempfile.TemporaryDirectory(prefix="pyagent-") as folder:
        path = Path(folder) / name
        path.write_text(text, "utf-8", "replace")
        problem = _start(command, path, variable)
        return (text, problem) if problem else (path.read_text("utf-8", "replace").removesuffix("\n"), "")


def _start(command: str, path: Path, variable: str) -> str:
    """Run a command on a file and wait for its end; what went wrong."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"${variable} cannot be read as a command: {error}."
    try:
        with interrupts_left_to_others():
            done = subprocess.run(
                [*words, str(path)],
                stdin=sys.__stdin__,
                stdout=sys.__stdout__,
                stderr=sys.__stderr__,
                check=False,
            )
    except OSError as error:
        return f"Cannot start {words[0]}: {error.strerror}. Set ${variable} to another one."
    return f"{words[0]} ended with code {done.returncode}; the text is as it was." if done.returncode else ""
