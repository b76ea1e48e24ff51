"""A program in a pseudo-terminal, its output kept as bytes: emulating a screen would cost more than is measured."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_ANSWERS = {b"\x1b[?2026$p": b"\x1b[?2026;2$y"}
"""Synchronised updates are answered for, so that every frame begins with a mark that can be counted."""
FRAME = b"\x1b[?2026h"


class RawTerminal:
    """Runs a command until `close`. Output is kept up to `kept_bytes`."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        *,
        columns: int = 120,
        lines: int = 40,
        kept_bytes: int = 4_000_000,
    ) -> None:
        self._kept_bytes = kept_bytes
        self._output = bytearray()
        self._dropped = 0
        self._changed = threading.Condition()
        self._is_closed = False
        self.frame_count = 0
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.chdir(cwd)
            os.execve(argv[0], list(argv), dict(env))
        threading.Thread(target=self._read, name="terminal", daemon=True).start()

    def _read(self) -> None:
        tail = b""
        while True:
            try:
                data = os.read(self._fd, 1 << 16)
            except OSError:
                data = b""
            with self._changed:
                self._output += data
                seen, tail = tail + data, data[-len(FRAME) + 1 :]
                self.frame_count += seen.count(FRAME)
                surplus = len(self._output) - self._kept_bytes
                if surplus > self._kept_bytes // 2:
                    del self._output[:surplus]
                    self._dropped += surplus
                self._is_closed = not data
                self._changed.notify_all()
            if not data:
                return
            for query, answer in _ANSWERS.items():
                if query in seen:
                    self.send(answer)

    @property
    def written(self) -> int:
        """Bytes written so far."""
        with self._changed:
            return self._dropped + len(self._output)

    def since(self, offset: int) -> bytes:
        """What was written from an offset on."""
        with self._changed:
            return bytes(self._output[max(0, offset - self._dropped) :])

    def send(self, data: bytes | str) -> None:
        left = data.encode() if isinstance(data, str) else data
        while left:
            left = left[os.write(self._fd, left) :]

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_for(self, wanted: bytes | str, offset: int, *, limit_s: float = 60.0) -> float:
        """Wait until bytes were written after an offset; gives the monotonic time. TimeoutError, EOFError."""
        needle = wanted.encode() if isinstance(wanted, str) else wanted
        deadline_s = time.monotonic() + limit_s
        with self._changed:
            while self._output.find(needle, max(0, offset - self._dropped)) < 0:
                left_s = deadline_s - time.monotonic()
                if self._is_closed:
                    raise EOFError(f"the program ended; its last output was {bytes(self._output[-800:])!r}")
                if left_s <= 0:
                    last = bytes(self._output[-2_000:])
                    raise TimeoutError(f"no {needle!r} within {limit_s:g} s; the last output was {last!r}")
                self._changed.wait(left_s)
        return time.monotonic()

    def settle(self, quiet_s: float = 0.25, limit_s: float = 60.0) -> None:
        """Wait until nothing was written for a while."""
        deadline_s = time.monotonic() + limit_s
        with self._changed:
            while self._changed.wait(quiet_s) and time.monotonic() < deadline_s:
                pass

    def cpu_s(self) -> float:
        """CPU time the program has used, in s."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def starved_s(self) -> float:
        """How long the program's main thread was ready to run and had no processor, in s."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[1]) / 1e9

    def rss_mb(self) -> float:
        """Memory of the program, in MB."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) / 1_024 if found else 0.0

    def wait_for_exit(self, limit_s: float = 30.0) -> int:
        """The exit code."""
        deadline_s = time.monotonic() + limit_s
        while time.monotonic() < deadline_s:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            select.select([], [], [], 0.05)
        raise TimeoutError("the program did not end")

    def close(self) -> None:
        """End the program."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
