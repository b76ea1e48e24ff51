"""The local encoding: tokens of any text, without the network and without delaying the start."""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyagent import data
from pyagent.agent.background import in_daemon_thread
from pyagent.compaction.count import BYTES_PER_TOKEN

if TYPE_CHECKING:
    from tiktoken import Encoding

ENCODING = "o200k_base"
ENCODING_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"
"""The name tiktoken looks for in its cache: the SHA-1 of the address it would download from."""
ENCODING_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

CHUNK_CHARS = 10_000
"""Longest text encoded in one go, so that the time for a line of millions of letters grows only with its length
(measured: 0.3 s a million at worst). A cut costs at most one token."""

CACHE_VARIABLE = "TIKTOKEN_CACHE_DIR"

_environment_lock = threading.Lock()


class LocalEncoding:
    """Counts tokens of o200k, once it is loaded; until then, and if it can't be loaded, in bytes ÷ 2.3.

    `is_ready` becomes true when the load has *ended*, well or badly: after a failure decisions must still be taken,
    so they are taken on the guess. It is high for the local encoding, so that compaction comes early and not too
    late, and the calibration by real usage brings it down within a few responses. `is_exact` and `problem` say
    which of the two it is. All members may be used from any thread.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` holds the encoding's file; the packaged one by default. Nothing is read yet."""
        self._folder = folder or Path(next(iter(data.__path__)))
        self._lock = threading.Lock()
        self._load_future: Future[None] | None = None
        self._encoding: Encoding | None = None
        self._problem = ""

    @property
    def is_ready(self) -> bool:
        """Whether counts will not change any more: the load has ended."""
        return self._load_future is not None and self._load_future.done()

    @property
    def is_exact(self) -> bool:
        """Whether counts come from the encoding."""
        return self.is_ready and self._encoding is not None

    @property
    def problem(self) -> str:
        """Why the encoding could not be loaded, in one sentence; empty while there is nothing to say."""
        return self._problem

    def start(self) -> Future[None]:
        """Begin to load on a thread, if that has not happened yet. The future never fails."""
        with self._lock:
            if self._load_future is None:
                self._load_future = in_daemon_thread(self._load, name="encoding")
            return self._load_future

    async def ready(self) -> None:
        """Wait for the end of the load, and begin it if need be. Returns after a failure too."""
        await asyncio.wrap_future(self.start())

    def count(self, text: str) -> int:
        encoding = self._encoding if self.is_ready else None
        if encoding is None:
            return _guess(text)
        return sum(_count_chunk(encoding, text[at : at + CHUNK_CHARS]) for at in range(0, len(text), CHUNK_CHARS))

    def _load(self) -> None:
        try:
            self._check_file()
            with _cache_folder(self._folder):
                import tiktoken

                self._encoding = tiktoken.get_encoding(ENCODING)
        except Exception as error:
            reason = error.strerror if isinstance(error, OSError) else None
            self._problem = f"Token counts are rough guesses: the encoding could not be loaded ({reason or error})."

    def _check_file(self) -> None:
        # tiktoken would delete a file that is not the expected one, and download it.
        path = self._folder / ENCODING_FILE
        if hashlib.sha256(path.read_bytes()).hexdigest() != ENCODING_SHA256:
            raise ValueError(f"{path.name} is damaged")


@contextmanager
def _cache_folder(folder: Path) -> Iterator[None]:
    """tiktoken reads its files from `folder`. The process's environment is as before afterwards."""
    with _environment_lock:
        before = os.environ.get(CACHE_VARIABLE)
        os.environ[CACHE_VARIABLE] = str(folder)
        try:
            yield
        finally:
            if before is None:
                os.environ.pop(CACHE_VARIABLE, None)
            else:
                os.environ[CACHE_VARIABLE] = before


def _count_chunk(encoding: Encoding, chunk: str) -> int:
    try:
        return len(encoding.encode_ordinary(chunk))
    except Exception:
        # The encoder is foreign code; a text it can't take must not end the turn.
        return _guess(chunk)


def _guess(text: str) -> int:
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN)
