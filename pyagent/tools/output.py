"""Long output kept small: its head and tail in memory, the whole of it in a file, both with a hard limit."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

FILE_CAP_BYTES = 64 * 1024 * 1024
"""Most that one output may take on disk. Nobody reads more; `yes` would fill the disk within minutes."""


class BoundedOutput:
    """Text that comes in pieces. Up to `cap_chars` it is kept whole; beyond, head and tail are, and a file has it all.

    `file_path` is asked once, when the cap is passed; what cannot be written there is left out and said so.
    """

    def __init__(self, cap_chars: int, file_path: Callable[[], Path] | None = None) -> None:
        self._cap_chars, self._file_path = cap_chars, file_path
        self._head: list[str] = []
        self._head_chars = 0
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._file: BinaryIO | None = None
        self._written_bytes = 0
        self.total_chars = 0
        self.newline_count = 0
        self.path: Path | None = None
        self.file_problem = ""

    @property
    def is_over(self) -> bool:
        return self.total_chars > self._cap_chars

    def add(self, text: str) -> None:
        was_over = self.is_over
        self.total_chars += len(text)
        self.newline_count += text.count("\n")
        if self.is_over and not was_over:
            self._open_file()
        if self.is_over:
            self._write(text)
        room = self._cap_chars // 2 - self._head_chars
        if room > 0:
            self._head.append(text[:room])
            self._head_chars += len(self._head[-1])
            text = text[room:]
        if text:
            tail_cap = self._cap_chars - self._cap_chars // 2
            self._tail.append(text[-tail_cap:])
            self._tail_chars += len(self._tail[-1])
            while self._tail_chars - len(self._tail[0]) >= tail_cap:
                self._tail_chars -= len(self._tail.popleft())

    def text(self) -> str:
        """All of it, or head and tail with a line between that says what is left out and where it is."""
        head, tail = "".join(self._head), "".join(self._tail)
        if not self.is_over:
            return head + tail
        tail = tail[-(self._cap_chars - self._cap_chars // 2) :]
        # Cut at line ends where that costs little: half lines mislead.
        head_cut = head.rfind("\n") + 1
        head = head[:head_cut] if head_cut > len(head) // 2 else head
        tail_cut = tail.find("\n") + 1
        tail = tail[tail_cut:] if 0 < tail_cut < len(tail) // 2 else tail
        left_out = self.total_chars - len(head) - len(tail)
        separator = "" if head.endswith("\n") else "\n"
        return f"{head}{separator}[… {left_out:,} characters left out here; {self.where()} …]\n{tail}"

    def where(self) -> str:
        if self.path is None:
            return f"they are not kept here{self.file_problem}"
        return f"the whole output is in {self.path}{self.file_problem}"

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open_file(self) -> None:
        if self._file_path is None:
            return
        try:
            path = self._file_path()
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self.file_problem = f" ({error.strerror})"
            return
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        self.path = path
        self._write("".join(self._head) + "".join(self._tail))

    def _write(self, text: str) -> None:
        if self._file is None:
            return
        data = text.encode("utf-8", "replace")[: FILE_CAP_BYTES - self._written_bytes]
        try:
            self._file.write(data)
        except OSError as error:
            self.file_problem = f", up to an error: {error.strerror}"
            self.close()
            return
        self._written_bytes += len(data)
        if self._written_bytes >= FILE_CAP_BYTES:
            self.file_problem = f", of which the first {FILE_CAP_BYTES // 2**20} MB"
            self.close()
