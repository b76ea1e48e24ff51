"""What a tool is: its declaration, what it is given when it runs, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator

from pyagent.commands import NOBODY_ANSWERS, AnswerQuestion
from pyagent.events import PermissionQuestion, Question
from pyagent.log import FileSeen, Record
from pyagent.messages import JsonObject, ResultContent, TextBlock, scrub_json
from pyagent.state import ConversationState, KnownFile
from pyagent.view import View

if TYPE_CHECKING:
    from pyagent.tools.shell import ShellSession


class ToolInput(BaseModel):
    """Base of all tool inputs: unknown fields are refused, so that a misspelt one is told to the model."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _scrub(cls, data: Any) -> Any:
        """No lone surrogate reaches a file name, a process or a file: none of them can take one."""
        return scrub_json(data)


class FileMemory(Protocol):
    """What the model was shown of files, as far as it still stands in its view."""

    def known_file(self, path: str) -> KnownFile | None: ...


class Transcript(Protocol):
    """What was said so far, whether it still stands in the model's view or not."""

    @property
    def branch(self) -> tuple[Record, ...]:
        """All records, oldest first."""
        ...

    @property
    def view(self) -> View: ...


class Asker(Protocol):
    """Puts the model's questions to a person."""

    async def __call__(self, tool_use_id: str, questions: tuple[Question, ...], /) -> AnswerQuestion:
        """The answers; without any, the reason why."""
        ...


async def nobody(tool_use_id: str, questions: tuple[Question, ...]) -> AnswerQuestion:
    """The asker of a conversation that no person sits at."""
    return AnswerQuestion("", reason=NOBODY_ANSWERS)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a call is given. Paths are absolute."""

    tool_use_id: str
    cwd: Path
    """Where relative paths start; Bash moves it through `ToolResult.cwd`."""
    allowed_dirs: tuple[Path, ...]
    """The project folder and those added by the user; the first is the project's."""
    files: FileMemory
    results_dir: Path
    """The session's folder for outputs too long for the context; made when first needed."""
    count_tokens: Callable[[str], int]
    """Estimate for the model in use; never raises."""
    report: Callable[[str], None]
    """Takes new output for the screen while the tool runs."""
    shell: ShellSession
    env: Mapping[str, str] = field(default_factory=dict)
    """Extra environment for child processes, from the user's settings."""
    transcript: Transcript = field(default_factory=ConversationState)
    ask: Asker = nobody


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What goes back to the model (`content`), to the screen (`display`), and into the log (`files_seen`, `cwd`)."""

    content: tuple[ResultContent, ...]
    is_error: bool = False
    display: JsonObject = field(default_factory=dict)
    """For the screen only. Known keys: `summary` (str), `patch` (list of hunks as in `pyagent.tools.patch`),
    `exit_code` (int), `lines` (int), `path` (str), `full_output` (path of a file), `tasks` (list of to-dos)."""
    files_seen: tuple[FileSeen, ...] = ()
    cwd: Path | None = None

    @classmethod
    def of(cls, text: str, *, display: JsonObject | None = None, files_seen: tuple[FileSeen, ...] = ()) -> ToolResult:
        return cls((TextBlock(text),) if text else (), display=display or {}, files_seen=files_seen)

    @classmethod
    def error(cls, text: str, *, display: JsonObject | None = None) -> ToolResult:
        return cls((TextBlock(text),), is_error=True, display=display or {})

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.content if isinstance(part, TextBlock))


def counted(number: int, noun: str) -> str:
    """Such as `1 line` or `1,024 lines`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


class RefusedError(Exception):
    """A call that cannot succeed as it stands; the message is for the model, and nobody is asked for permission."""


InputT = TypeVar("InputT", bound=ToolInput)


class Tool(Protocol, Generic[InputT]):
    """One tool: one file, one class, one line in the registry."""

    name: str
    input_model: type[InputT]
    is_read_only: bool
    """Read-only tools of one response run side by side."""
    is_compactable: bool
    """Whether old results may be cleared from the view."""
    result_cap_chars: int
    """A longer text result is written to a file and stands in the context as head, tail and path."""

    @property
    def description(self) -> str:
        """For the model; the text of the `.md` file beside the tool's module."""
        ...

    def summary(self, tool_input: InputT) -> str:
        """One line for the screen, such as `Read src/app.py (lines 1-80)`. Plain text."""
        ...

    def permission(self, tool_input: InputT, context: ToolContext) -> PermissionQuestion | None:
        """What to ask before running, or None if this call is harmless by nature. May read files; changes nothing.

        Raises:
            RefusedError: the call cannot succeed, so there is nothing to ask and nothing to run.
        """
        ...

    async def run(self, tool_input: InputT, context: ToolContext) -> ToolResult:
        """Do it. Failures the model can act on are error results; only a cancel or a programming mistake is raised."""
        ...


AnyTool = Tool[Any]


@cache
def description_beside(module_file: str) -> str:
    """The text of the `.md` file that stands beside a tool's module."""
    return Path(module_file).with_suffix(".md").read_text(encoding="utf-8").strip()


def input_schema(model: type[ToolInput]) -> JsonObject:
    """The JSON Schema of a tool's input as sent to the API: by wire names, without pydantic's titles.

    An optional field is simply absent from `required`: its null alternative and empty default are left out, since
    every word here is paid for in each request.
    """

    def simplified(node: Any) -> Any:
        if isinstance(node, list):
            return [simplified(item) for item in node]
        if not isinstance(node, dict):
            return node
        kept = {k: simplified(v) for k, v in node.items() if not (k == "title" and isinstance(v, str))}
        options = kept.get("anyOf")
        if isinstance(options, list) and len(options) == 2 and {"type": "null"} in options:
            kept.pop("anyOf")
            kept = next(option for option in options if option != {"type": "null"}) | kept
        if "default" in kept and kept["default"] in (None, "", False):
            kept.pop("default")
        return kept

    schema: JsonObject = simplified(model.model_json_schema(by_alias=True))
    schema.pop("description", None)
    return schema
