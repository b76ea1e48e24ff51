"""`--debug`: a file that tells, line by line, what front end and agent said to each other, and what modules log.

It names what happened and how large it was. Texts of the conversation and tool inputs stay out of it, and so do
keys: what the SDK logs about its requests never gets there.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyagent.errors import UsageError
from pyagent.launch import AgentHandle, AgentStarter, LaunchOptions
from pyagent.ui.log_file import without_secrets

if TYPE_CHECKING:
    from pyagent.commands import Command
    from pyagent.events import Event, EventSink

_ROOT = "pyagent"
_events = logging.getLogger("pyagent.debug.events")
_commands = logging.getLogger("pyagent.debug.commands")

_TOO_MANY = ("TextDelta", "ThinkingDelta", "ToolInputDelta", "WireEvent", "ToolProgress", "CompactionProgress")
"""Come by the thousand; their sum stands in the record that follows."""


class _CleanFormatter(logging.Formatter):
    """Blacks out what looks like a key."""

    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


@contextmanager
def debug_log(path: Path, categories: str) -> Iterator[None]:
    """While inside, what pyagent's modules log goes to the file too.

    `categories` are words of module names (`wire`, `tools`, `events` …), comma-separated; those with `!` in front are
    left out. None means all.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        stream = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write the debug log {path}: {error.strerror}.") from error
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_CleanFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(category_filter(categories))
    logger = logging.getLogger(_ROOT)
    level_before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.setLevel(level_before)
        logger.removeHandler(handler)
        stream.close()


def category_filter(categories: str) -> Callable[[logging.LogRecord], bool]:
    """Whether a record belongs to what was asked for."""
    words = [word for word in categories.replace(",", " ").split() if word]
    left_out = {word[1:] for word in words if word.startswith("!")}
    wanted = {word for word in words if not word.startswith("!")}

    def is_wanted(record: logging.LogRecord) -> bool:
        parts = set(record.name.split("."))
        return not parts & left_out and (not wanted or bool(parts & wanted))

    return is_wanted


def logging_starter(starter: AgentStarter) -> AgentStarter:
    """The starter, with every event and command in the log."""

    def start(options: LaunchOptions, sink: EventSink) -> AgentHandle:
        def log_and_pass(event: Event) -> None:
            if type(event).__name__ not in _TOO_MANY:
                _events.debug("%s", described(event))
            sink(event)

        return _LoggingHandle(starter(options, log_and_pass))

    return start


class _LoggingHandle:
    def __init__(self, handle: AgentHandle) -> None:
        self._handle = handle

    def send(self, command: Command) -> None:
        _commands.debug("%s", described(command))
        self._handle.send(command)

    def close(self, timeout_s: float) -> None:
        self._handle.close(timeout_s)


def described(fact: Event | Command) -> str:
    """Name and figures of an event or command: numbers and short names as they are, texts by their length."""
    parts = [f"{field.name}={_short(field.name, getattr(fact, field.name))}" for field in fields(fact)]
    return f"{type(fact).__name__} {' '.join(parts)}".rstrip()


_PLAIN_NAMES = frozenset(
    {"name", "kind", "layer", "trigger", "outcome", "state", "level", "mode", "model", "stop_reason", "source"}
)


def _short(name: str, value: Any) -> str:
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, str):
        is_plain = name in _PLAIN_NAMES or name.endswith("_id")
        return value if is_plain else f"<{len(value)} chars>"
    if isinstance(value, dict | list | tuple):
        return f"<{len(value)} items>"
    payload = getattr(value, "payload", None)
    return f"{payload.kind}#{value.seq}" if payload is not None else type(value).__name__
