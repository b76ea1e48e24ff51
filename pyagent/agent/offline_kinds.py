"""The kinds of instruction the offline model knows, one class each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Layout:
    """Explain what is where."""


@dataclass(frozen=True, slots=True)
class ListFiles:
    pattern: str
    what: str


@dataclass(frozen=True, slots=True)
class Find:
    """Find a word. `is_definition` looks for where it is defined first."""

    words: str
    is_definition: bool
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Show:
    path: str
    first: int | None = None
    last: int | None = None
    is_tail: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """Files, lines, definitions or occurrences of a word (`pattern`), in files that match `glob`."""

    what: Literal["files", "lines", "matches"]
    glob: str
    pattern: str
    noun: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Explain:
    name: str


@dataclass(frozen=True, slots=True)
class Replace:
    old: str
    new: str
    path: str = ""
    """Empty: everywhere."""


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    content: str
    is_run: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    command: str


@dataclass(frozen=True, slots=True)
class RunTests:
    target: str = ""


@dataclass(frozen=True, slots=True)
class Summarise:
    pass


@dataclass(frozen=True, slots=True)
class Help:
    """Greeting, thanks, or the question what it can do."""

    kind: Literal["greeting", "help", "thanks"]


@dataclass(frozen=True, slots=True)
class Unknown:
    pass


Intent: TypeAlias = (
    Layout | ListFiles | Find | Show | Count | Explain | Replace | Create | Run | RunTests | Summarise | Help | Unknown
)
