"""Shows text in the terminal's normal screen, where its own search, selection and scrolling work."""

from __future__ import annotations

import os
import sys
import termios
import tty
from collections.abc import Iterable
from contextlib import suppress

_WAY_BACK = "\x1b[7m Any key goes back to pyagent \x1b[0m"


def show_in_scrollback(rows: Iterable[str]) -> None:
    """Print rows and wait for a key. The screen must be suspended: this is the terminal's own."""
    out, source = sys.__stdout__, sys.__stdin__
    if out is None or source is None:
        return
    # A terminal that has gone away is found out by the screen, once it is back.
    with suppress(OSError):
        out.write("\n".join([*rows, "", _WAY_BACK]))
        out.flush()
        wait_for_key(source.fileno())
        out.write("\r\x1b[2K")
        out.flush()


def wait_for_key(tty_fd: int) -> None:
    """Wait for any key; Ctrl+C and Ctrl+Z are keys here, for a signal would hit the program behind.

    Raises:
        OSError: the terminal went away.
    """
    try:
        before = termios.tcgetattr(tty_fd)
        tty.setraw(tty_fd)
    except termios.error as error:
        raise OSError(*error.args) from error
    try:
        os.read(tty_fd, 1024)
    finally:
        with suppress(termios.error):
            termios.tcsetattr(tty_fd, termios.TCSAFLUSH, before)
