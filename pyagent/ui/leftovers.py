"""Cures a terminal whose pyagent was killed: by `pyagent reset`, and by the next start in the same terminal.

A process that gets kill -9 restores nothing. So while the screen holds the terminal a mark stands in pyagent's folder;
a start that finds a dead process's mark for its own terminal puts things right before it does anything else.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyagent.errors import UsageError
from pyagent.ui.terminal import RESET_SEQUENCE


def reset_command() -> int:
    """`pyagent reset`: repair the controlling terminal, whatever the standard streams are; gives the exit code."""
    try:
        tty_fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        raise UsageError("There is no terminal to reset.", hint="Type it in the terminal that needs it.") from None
    reset_terminal(tty_fd)
    os.close(tty_fd)
    return 0


def reset_terminal(tty_fd: int) -> None:
    """Switch every mode of the screen off and bring the line discipline back to lines with echo."""
    sane = sane_modes(termios.tcgetattr(tty_fd))
    termios.tcsetattr(tty_fd, termios.TCSANOW, sane)
    os.write(tty_fd, RESET_SEQUENCE.encode("ascii"))


def sane_modes(modes: list[int | list[bytes | int]]) -> list[int | list[bytes | int]]:
    """Terminal attributes as a shell hands them out: lines, echo, signals, Enter as a newline."""
    in_flags, out_flags, control, local, in_speed, out_speed, characters = modes
    assert isinstance(in_flags, int) and isinstance(out_flags, int) and isinstance(local, int)  # noqa: PT018
    in_flags = (in_flags | termios.ICRNL | termios.IXON) & ~(termios.INLCR | termios.IGNCR)
    out_flags |= termios.OPOST | termios.ONLCR
    local |= termios.ICANON | termios.ECHO | termios.ECHOE | termios.ECHOK | termios.ISIG | termios.IEXTEN
    return [in_flags, out_flags, control, local, in_speed, out_speed, characters]


def _mark_path(home: Path, tty_fd: int) -> Path:
    return home / "terminals" / os.ttyname(tty_fd).strip("/").replace("/", "-")


def _identity(tty_fd: int) -> str:
    """Tells a terminal from a later one that got the same name."""
    facts = os.fstat(tty_fd)
    return f"{facts.st_rdev}-{facts.st_ctime_ns}"


@contextmanager
def terminal_marked(home: Path, tty_fd: int) -> Iterator[Path | None]:
    """While inside, a mark says that the screen of this process holds the terminal; gives the mark's path."""
    try:
        path = _mark_path(home, tty_fd)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(f"{os.getpid()} {_identity(tty_fd)}\n", "ascii")
    except OSError:
        yield None  # The program works without a mark; only the cure of a kill -9 does not.
        return
    try:
        yield path
    finally:
        with suppress(OSError):
            path.unlink()


def cure_terminal(home: Path, tty_fd: int) -> bool:
    """Reset the terminal if a pyagent that held it died without giving it back; whether that was so."""
    try:
        path = _mark_path(home, tty_fd)
        pid, _, identity = path.read_text("ascii").strip().partition(" ")
        if _is_running(int(pid)):
            return False
        path.unlink()
        if identity != _identity(tty_fd):
            return False
        reset_terminal(tty_fd)
    except (OSError, ValueError, termios.error):
        return False
    return True


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
