"""After the terminal has been given back, nothing that other threads draw reaches it."""

from __future__ import annotations

import os
import pty
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from pyagent.ui.last_words import silence_others, write_last
from pyagent.ui.terminal import RESET_SEQUENCE, Watchdog

MOUSE_ON = b"\x1b[?1000h"


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """The two ends of a pseudo-terminal: what the person sees, and what programs write to."""
    seen, written = pty.openpty()
    yield seen, written
    os.close(seen)
    os.close(written)


def fill(fd: int) -> int:
    """Write until the terminal takes no more; gives how many bytes it took."""
    os.set_blocking(fd, False)
    filled_bytes = 0
    with suppress(BlockingIOError):
        while True:
            filled_bytes += os.write(fd, b"x" * 4096)
    return filled_bytes


def test_what_is_drawn_after_a_forced_end_does_not_switch_a_mode_on_again(terminal: tuple[int, int]) -> None:
    seen, written = terminal
    screen = os.dup(written)
    ended: list[int] = []

    def draw_late(exit_code: int) -> None:
        ended.append(exit_code)
        os.write(screen, MOUSE_ON)

    Watchdog(written, leave=draw_late).end_now(143)
    os.close(screen)
    os.write(written, b"end")
    received = b""
    while not received.endswith(b"end"):
        received += os.read(seen, 4096)
    assert ended == [143]
    assert received == RESET_SEQUENCE.encode() + b"end"


def test_other_terminals_and_files_are_left_alone(terminal: tuple[int, int]) -> None:
    _, written = terminal
    other_seen, other_written = pty.openpty()
    read_end, write_end = os.pipe()
    silence_others(written)
    os.write(other_written, b"other")
    os.write(write_end, b"pipe")
    assert os.read(other_seen, 100) == b"other"
    assert os.read(read_end, 100) == b"pipe"
    for fd in (other_seen, other_written, read_end, write_end):
        os.close(fd)


def test_a_terminal_that_is_full_for_a_moment_gets_all_of_it(terminal: tuple[int, int]) -> None:
    seen, written = terminal
    filled_bytes = fill(written)
    received = bytearray()

    def read_all() -> None:
        while not received.endswith(b"the end"):
            received.extend(os.read(seen, 65_536))

    reader = threading.Thread(target=read_all)
    reader.start()
    write_last(written, b"the end")
    reader.join()
    assert len(received) == filled_bytes + len("the end")


def test_a_terminal_that_takes_nothing_or_is_gone_holds_nobody_up(terminal: tuple[int, int]) -> None:
    _, written = terminal
    fill(written)
    write_last(written, b"the end")
    assert os.get_blocking(written)
    seen, gone = pty.openpty()
    os.close(seen)
    write_last(gone, b"the end")
    os.close(gone)
