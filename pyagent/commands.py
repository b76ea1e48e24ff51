"""What front ends may say to a conversation: the commands its mailbox takes.

What it tells them in turn are the events of `pyagent.events`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class SubmitPrompt:
    """A prompt. While a turn runs it is queued. `display` is what was typed, if the model gets more than that."""

    text: str
    display: str = ""
    images: tuple[str, ...] = ()
    """Paths of images that go with it."""


@dataclass(frozen=True, slots=True)
class RunShell:
    """A command of the person's own, run unasked in the session's shell. The model is told of it unless it is private;
    while work is under way it waits its turn like a prompt."""

    command: str
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class LetRunOn:
    """The command that is running goes on in the background."""


@dataclass(frozen=True, slots=True)
class TakeBackQueued:
    """The newest queued prompt goes back to the input line (`PromptReturned`)."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Esc: stop what runs now."""


@dataclass(frozen=True, slots=True)
class VimModeMoved:
    """The input line's vim mode changed; empty: it is no longer edited as vim does."""

    mode: str


@dataclass(frozen=True, slots=True)
class RunCommand:
    """A slash command the agent answers: `compact`, `context`, `cost`, `clear`, `model`, `mode`, `rename` …"""

    name: str
    argument: str = ""


@dataclass(frozen=True, slots=True)
class AnswerPermission:
    request_id: str
    answer: Literal["once", "session", "no"]
    feedback: str = ""
    """With `no`: what the model should do instead; `NOBODY_DECIDES` where no person was asked."""


NOBODY_DECIDES = "Nobody is here to be asked; go on without it or say what would be needed."
"""The feedback where no person sits at the front end."""


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    request_id: str
    answers: tuple[tuple[str, ...], ...] = ()
    """For each question the labels chosen, or the person's own words; empty if they were not answered."""
    reason: str = ""
    """Why they were not answered, for the model."""


NOBODY_ANSWERS = "Nobody is here to answer. Decide yourself, and say in your answer what you decided and why."
"""The reason where no person sits at the front end."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Finish up: stop the turn, end background tasks, close the log."""

    reason: str = "exit"


Command: TypeAlias = (
    SubmitPrompt
    | RunShell
    | LetRunOn
    | TakeBackQueued
    | Interrupt
    | VimModeMoved
    | RunCommand
    | AnswerPermission
    | AnswerQuestion
    | Shutdown
)
