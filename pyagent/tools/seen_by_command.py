"""Commands that show a file: `cat a.py` counts as having read it, so that an edit needs no second look."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from pathlib import Path

from pyagent.log import FileSeen
from pyagent.tools.editable import EDITABLE_BYTES
from pyagent.tools.paths import is_within, resolve_path
from pyagent.tools.shell_syntax import is_one_plain_command
from pyagent.tools.text_file import detect_encoding
from pyagent.tools.tool import ToolContext

_PARTLY = frozenset({"head", "tail", "sed", "grep", "egrep", "rg", "nl"})
_HAS_EXPANSION = re.compile(r"[$`*?\[{~<>&|;()#]")


def files_seen_by(command: str, output: str, cwd: Path, context: ToolContext) -> tuple[FileSeen, ...]:
    """The one file a plain `cat`, `head`, `tail`, `sed -n`, `grep` or `rg` has shown. Blocks.

    Only a `cat` whose output is the file's text, complete, shows the whole.
    """
    if not output or not is_one_plain_command(command):
        return ()
    try:
        program, *arguments = shlex.split(command)
    except ValueError:
        return ()
    files = [argument for argument in arguments if not argument.startswith("-")]
    is_search = program in ("sed", "grep", "egrep", "rg")
    if program not in _PARTLY | {"cat"} or (program == "sed" and "-n" not in arguments) or not files:
        return ()
    name = files[-1]
    # A pattern may hold anything; a file's name with an expansion in it is not what it seems.
    if len(files) < (2 if is_search else 1) or _HAS_EXPANSION.search(name) or (program == "cat" and len(files) > 1):
        return ()
    path = resolve_path(name, cwd)
    if not is_within(path, context.allowed_dirs) or not os.path.isfile(path):
        return ()
    try:
        if path.stat().st_size > EDITABLE_BYTES:
            return ()
        data = path.read_bytes()
    except OSError:
        return ()
    encoding = detect_encoding(data)
    if encoding is None:
        return ()
    is_whole = program == "cat" and encoding.decode(data).replace("\r\n", "\n").strip("\n") == output.strip("\n")
    sha256 = hashlib.sha256(data).hexdigest()
    known = context.files.known_file(str(path))
    if not is_whole and known is not None and known.seen.sha256 == sha256:
        return ()
    # The result cannot stand for Read's: it has no line numbers, so no range is named.
    return (FileSeen(str(path), sha256, context.tool_use_id, "read", is_partial=not is_whole, line_range=(0, 0)),)
