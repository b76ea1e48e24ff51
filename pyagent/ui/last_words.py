"""The last bytes to a terminal on which other threads still draw: nothing of theirs may come after a reset.

Loaded with the instant prompt, so it imports nothing slow.
"""

from __future__ import annotations

import os

LIMIT_S = 0.2
"""How long a busy or stalled terminal is tried: a write of another thread that is under way takes far less."""

_PAUSE_S = 0.005


def silence_others(fd: int) -> None:
    """Let every other descriptor of the terminal behind `fd` lead nowhere, whoever holds it. For the end only."""
    try:
        terminal = os.fstat(fd).st_rdev
        nowhere = os.open(os.devnull, os.O_RDWR)
        others = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return
    for other in others:
        try:
            if other not in (fd, nowhere) and os.isatty(other) and os.fstat(other).st_rdev == terminal:
                os.dup2(nowhere, other)
        except OSError:
            continue  # The descriptor of the listing itself, or one closed since.


def write_last(fd: int, data: bytes) -> None:
    """Write without waiting for a terminal that takes nothing. One that is gone, or stalled, is no error."""
    from select import select
    from time import monotonic

    until_s = monotonic() + LIMIT_S
    try:
        os.set_blocking(fd, False)
        while data and monotonic() < until_s:
            try:
                data = data[os.write(fd, data) :]
            except BlockingIOError:  # Full, or in the middle of another write.
                select([], [], [], _PAUSE_S)
        os.set_blocking(fd, True)  # The shell has the same terminal.
    except OSError:
        return
