"""The log file: where errors, crashes and stray output go instead of the screen. Owner-only, small, without secrets."""

from __future__ import annotations

import faulthandler
import io
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from pyagent.errors import PyagentError

MAX_LOG_BYTES = 1_000_000
"""Above this the older part goes: the log is there for the last crash, not for the year."""

KEPT_LOG_BYTES = MAX_LOG_BYTES // 4
"""What stays of a log that has grown too large: enough for what led up to this moment."""

MIN_SECRET_CHARS = 8
"""A shorter value of a variable named like a secret is a placeholder, and would black out half of every line."""

REDACTED = "[redacted]"

_SECRET_NAME = r"(?i)(^|_)(API_?KEY|TOKEN|SECRET|PASS(WD|WORD|PHRASE)?|PRIVATE_KEY|CREDENTIALS?)S?(_|$)"
_SECRET_TEXT = (
    r"sk-[A-Za-z0-9_-]{16,}"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{8,}"
    r"|(?<=x-api-key: )\S+"
    r"|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"
)
"""Keys as the API hands them out, authorization headers, and passwords inside addresses."""

_log = logging.getLogger("pyagent")


class LogFile(io.TextIOWrapper):
    """The open log. What is written through it is cleaned of secrets, and the file is kept small."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        """Raises OSError if the file cannot be written."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.fchmod(fd, 0o600)
        super().__init__(
            io.BufferedWriter(io.FileIO(fd, "a")), encoding="utf-8", errors="backslashreplace", line_buffering=True
        )
        self._environ = environ
        self.shrink()

    @cached_property
    def _secrets(self) -> tuple[str, ...]:
        """Looked for when there is something to write: the screen does not wait for it."""
        return secret_values(self._environ)

    def write(self, text: str) -> int:
        self.shrink()
        super().write(without_secrets(text, self._secrets))
        return len(text)

    def shrink(self) -> None:
        """Drop the older part of a log that has grown too large. Every writer appends, so none is confused by it."""
        with suppress(OSError):
            size_bytes = os.fstat(self.fileno()).st_size
            if size_bytes > MAX_LOG_BYTES:
                kept = os.pread(self.fileno(), KEPT_LOG_BYTES, size_bytes - KEPT_LOG_BYTES)
                os.ftruncate(self.fileno(), 0)
                os.write(self.fileno(), kept.partition(b"\n")[2])


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables that are named like secrets, longest first."""
    values = {
        value for name, value in environ.items() if len(value) >= MIN_SECRET_CHARS and re.search(_SECRET_NAME, name)
    }
    return tuple(sorted(values, key=len, reverse=True))


def without_secrets(text: str, secrets: tuple[str, ...] = ()) -> str:
    """The text with these values, and whatever looks like a key, blacked out."""
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    return re.sub(_SECRET_TEXT, REDACTED, text)


def open_log(path: Path, environ: Mapping[str, str]) -> LogFile | None:
    """The log file, in a folder of its own; None if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return LogFile(path, environ)
    except OSError:
        return None


@contextmanager
def errors_to_log(path: Path, environ: Mapping[str, str]) -> Iterator[None]:
    """While inside, uncaught exceptions, crashes and log records go to the log file.

    Raises:
        PyagentError: instead of an exception that only a mistake of pyagent's explains; its trace stands in the log.
    """
    log = open_log(path, environ)
    if log is None:
        yield
        return
    handler = logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    handler.setLevel(logging.WARNING)  # A debug log beside this one wants more of the loggers.
    root.addHandler(handler)
    faulthandler.enable(log)
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook

    def log_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _log.critical("uncaught exception", exc_info=(kind, error, trace))

    def log_thread_exception(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            where = args.thread.name if args.thread is not None else "a thread"
            trace = (args.exc_type, args.exc_value, args.exc_traceback)
            _log.critical("uncaught exception in the thread %s", where, exc_info=trace)

    def log_unraisable(args: sys.UnraisableHookArgs) -> None:
        if args.exc_value is not None:
            trace = (args.exc_type, args.exc_value, args.exc_traceback)
            _log.error("%s: %r", args.err_msg or "exception ignored in", args.object, exc_info=trace)

    sys.excepthook, threading.excepthook, sys.unraisablehook = log_exception, log_thread_exception, log_unraisable
    try:
        yield
    except (PyagentError, OSError):
        raise
    except Exception as error:
        _log.critical("ended by a mistake of pyagent's", exc_info=error)
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise PyagentError(f"pyagent made a mistake and cannot go on: {what}", hint=f"See {path}.") from error
    finally:
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
        faulthandler.disable()
        root.removeHandler(handler)
        log.close()


@contextmanager
def streams_guarded(path: Path, environ: Mapping[str, str]) -> Iterator[None]:
    """While inside, what writes to descriptors 1 and 2 (a library, a child process) ends in the log, not on the screen.

    The screen itself is drawn on private copies, which become `sys.__stdout__` and `sys.__stderr__`. A program that
    is to have the terminal (an editor) must be given these as its streams. Without a log it is lost: still better than
    on the screen.
    """
    log: TextIO = open_log(path, environ) or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    before = sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__
    private_out, private_err = os.dup(1), os.dup(2)
    sys.stdout.flush()
    sys.stderr.flush()
    screen_out = os.fdopen(private_out, "w", encoding="utf-8", errors="replace", closefd=False)
    screen_err = os.fdopen(private_err, "w", encoding="utf-8", errors="replace", closefd=False)
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    _set_streams(log, log, screen_out, screen_err)
    try:
        yield
    finally:
        for stream in (screen_out, screen_err):
            with suppress(OSError):
                stream.flush()
        os.dup2(private_out, 1)
        os.dup2(private_err, 2)
        os.close(private_out)
        os.close(private_err)
        _set_streams(*before)
        log.close()


def _set_streams(out: TextIO, err: TextIO, original_out: Any, original_err: Any) -> None:
    sys.stdout, sys.stderr = out, err
    sys.__stdout__, sys.__stderr__ = original_out, original_err  # type: ignore[misc]  # Textual draws on these
