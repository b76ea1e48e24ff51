"""The words a command's shell is started with, and the file it reads what does not fit there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

INLINE_BYTES = 64 * 1024
"""A longer command goes by the file: one word of a new process may take 128 KB on Linux."""

_SCRIPT = '__pyagent_end() {{ command pwd -P >&{fd}; }} 2>/dev/null; trap __pyagent_end EXIT; eval "$1"'
"""`eval` keeps the command out of the script's own syntax: an unclosed quote is the command's error alone. The trap
tells the directory also after `exit`."""
_READ_BY_BASH = (
    'IFS= read -r -d "" __pyagent_command <&{file}; IFS= read -r -d "" __pyagent_definitions <&{file}; exec {file}<&-; '
    'set -- "$__pyagent_command" "$__pyagent_definitions"; unset __pyagent_command __pyagent_definitions; '
    'eval "$2" >/dev/null 2>&1; set -- "$1"; '
)
_READ_BY_SH = 'set -- "$(command cat /dev/fd/{file})"; '


@dataclass(frozen=True, slots=True)
class ShellWords:
    words: tuple[str, ...]
    file: int | None
    """A descriptor the shell must inherit."""


@contextmanager
def shell_words(command: str, definitions: str, cwd_fd: int) -> Iterator[ShellWords]:
    """How to run `command` after `definitions`; the last working directory is told to `cwd_fd`.

    Raises:
        OSError: a long command could be put nowhere.
    """
    bash = _bash()
    words = (bash, "--noprofile", "--norc", "-c") if bash else ("/bin/sh", "-c")
    script = _SCRIPT.format(fd=cwd_fd)
    data = os.fsencode(command)
    if len(data) <= INLINE_BYTES and not (bash and definitions):
        yield ShellWords((*words, script, "bash", command), None)
        return
    # A file without a name: nobody else can open it, and it is gone with its last reader.
    with tempfile.TemporaryFile() as file:
        file.write(data)
        if bash:
            file.write(b"\0" + os.fsencode(definitions) + b"\0")
        file.flush()
        file.seek(0)
        script = (_READ_BY_BASH if bash else _READ_BY_SH).format(file=file.fileno()) + script
        yield ShellWords((*words, script, "bash"), file.fileno())


@cache
def _bash() -> str | None:
    return shutil.which("bash")
