"""What the user's login shell sets up, asked once: its environment, and the aliases and functions commands may use."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field

LOGIN_TIMEOUT_S = 10.0
"""Longest wait for the login shell's start-up files; slow ones (version managers) take 1 to 3 s."""
CHECK_TIMEOUT_S = 5.0
"""Longest wait for a shell that only reads the definitions once."""
DEFINITIONS_BYTES = 512 * 1024
"""Most that every command reads before it runs (some ms); start-up files with more lose their definitions."""

_MARK = "\x01pyagent-login-shell\x01"

_PRINT_ENVIRONMENT = "command env -0"
_PRINT_OF_BASH = """
    case $- in *i*)
        # A login shell reads ~/.bashrc only if a profile says so.
        for profile in ~/.bash_profile ~/.bash_login ~/.profile; do [ -r "$profile" ] && break; done
        [ -r "$profile" ] || [ ! -r ~/.bashrc ] || . ~/.bashrc
    esac >/dev/null 2>&1 </dev/null
    unset profile
"""
_DEFINITIONS_OF: Mapping[str, str] = {
    # Completion functions begin with one underscore; no command calls them.
    "bash": """
        shopt -p extglob
        for name in $(compgen -A function); do
            case $name in __*) declare -f -- "$name" ;; _*) ;; *) declare -f -- "$name" ;; esac
        done
        alias -p
    """,
    # Its functions are of another language than the commands, which bash runs; its plain aliases are not.
    "zsh": "alias -rL",
}

_ASKS = re.compile(r"alias (?:-- )?(?:rm|cp|mv|ln)=.*(?: -\w*[iI]| --interactive)")
"""`alias rm='rm -i'`: nobody is there to answer, and the file would quietly stay."""


@dataclass(frozen=True, slots=True)
class LoginShell:
    environment: Mapping[str, str] = field(default_factory=dict)
    definitions: str = ""
    """Aliases and functions as bash reads them; empty if there are none, or if they do not read well."""


async def ask_login_shell(base: Mapping[str, str], timeout_s: float = LOGIN_TIMEOUT_S) -> LoginShell:
    """What it sets; nothing if it cannot say in time."""
    shell = base.get("SHELL") or "/bin/sh"
    kind = os.path.basename(shell)
    mark = f"printf '{_MARK.encode('unicode_escape').decode().replace(chr(92) + 'x', chr(92) + '0')}'"
    script = "\n".join(
        [
            _PRINT_OF_BASH if kind == "bash" else "",
            f"{mark}; {_PRINT_ENVIRONMENT}; {mark}",
            _DEFINITIONS_OF.get(kind, ""),
            mark,
        ]
    )
    flags = "-lic" if kind in ("bash", "zsh") else "-lc"
    output = await _output_of([shell, flags, script], dict(base) | {"TERM": "dumb"}, timeout_s)
    parts = output.split(_MARK.encode())
    if len(parts) < 4:
        return LoginShell()
    pairs = (item.partition(b"=") for item in parts[1].split(b"\0") if b"=" in item)
    environment = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    return LoginShell(environment, await _checked(parts[2]))


async def _checked(output: bytes) -> str:
    """The definitions, if bash takes them without a word."""
    lines = os.fsdecode(output).split("\n")
    definitions = "\n".join(line for line in lines if not _ASKS.match(line)).strip()
    bash = shutil.which("bash")
    if not definitions or bash is None or "\0" in definitions or len(definitions) > DEFINITIONS_BYTES:
        return ""
    # Functions were written with the options that hold at their end, aliases last so that no function is changed.
    definitions = f"shopt -s extglob expand_aliases\n{definitions}\n"
    words = [bash, "--noprofile", "--norc", "-c", 'eval "$(command cat)" && printf good']
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    answer = await _output_of(words, environment, CHECK_TIMEOUT_S, definitions, is_with_errors=True)
    return definitions if answer == b"good" else ""


async def _output_of(
    words: list[str], environment: Mapping[str, str], timeout_s: float, text: str = "", *, is_with_errors: bool = False
) -> bytes:
    """What it printed within the time; nothing if it could not be started or did not end."""
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE if text else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT if is_with_errors else asyncio.subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError:
        return b""
    try:
        output, _ = await asyncio.wait_for(process.communicate(os.fsencode(text) if text else None), timeout_s)
    except TimeoutError:
        return b""
    finally:
        # Start-up files may leave agents behind that hold the pipe, or hang: none of them outlives the question.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.returncode is None:
            await process.wait()
    return output
