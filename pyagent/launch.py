"""What a front end hands to the agent at its start, and what it holds of it afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # Read before the first paint: the events alone would take a tenth of the time to it.
    from pyagent.choices import PermissionMode
    from pyagent.commands import Command
    from pyagent.events import EventSink


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """How this run was asked for: command line, environment and working directory, read once and never again."""

    cwd: Path
    home: Path
    """pyagent's own folder (`$PYAGENT_HOME`): sessions, settings, logs."""
    environ: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    fallback_models: tuple[str, ...] = ()
    effort: str = ""
    """How much the model thinks; empty for what the session or the settings say."""
    permission_mode: PermissionMode | None = None
    """None means: as the settings have it."""
    is_continued: bool = False
    """Go on with the newest session of this folder."""
    resume: str = ""
    """Session id, or text of a title or first prompt; empty for a new session."""
    is_read_only: bool = False
    """The resumed session is only looked at."""
    is_forked: bool = False
    """A resumed session goes on under a new id; the old file stays as it is."""
    session_id: str = ""
    name: str = ""
    """Title of the session."""
    prompt: str = ""
    """First prompt; the front end submits it once the session is open."""
    settings_json: str = ""
    """`--settings`: a JSON object, or the path of a file that holds one."""
    setting_sources: tuple[str, ...] = ("user", "project", "local")
    has_memory_files: bool = True
    """False: no CLAUDE.md or AGENTS.md is read."""
    has_settings_env: bool = True
    """False: the `env` of the settings files does not count."""
    has_git_state: bool = True
    """False: the model is not told of branch and changes."""
    is_trusted: bool = False
    """This folder's own settings count in this run, whether it was trusted before or not."""
    window_tokens: int | None = None
    """The context window to assume (`--autocompact`); None for the settings' or the model's."""
    json_schema: str = ""
    """JSON Schema of the answer; empty for an answer in words. Only in headless runs."""
    allowed_tools: tuple[str, ...] = ()
    """Permission rules that allow, as `Tool` or `Tool(specifier)`."""
    disallowed_tools: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    """The only tools offered to the model; None for all."""
    add_dirs: tuple[Path, ...] = ()
    system_prompt: str = ""
    """Replaces the built-in system prompt; empty for the built-in one."""
    system_prompt_addition: str = ""
    max_turns: int | None = None
    """API rounds one prompt may take; only in headless runs."""
    max_budget_usd: float | None = None
    is_persistent: bool = True
    """False: nothing of the session is written to disk."""
    is_headless: bool = False
    """No person can answer a dialog."""

    @property
    def log_path(self) -> Path:
        """Where errors, crashes and stray output go."""
        return self.home / "logs" / "pyagent.log"


class AgentHandle(Protocol):
    """The running agent as a front end sees it. Both methods may be called from any thread."""

    def send(self, command: Command) -> None:
        """Put a command into the conversation's mailbox and return at once."""
        ...

    def close(self, timeout_s: float) -> None:
        """Ask for an orderly end and wait for it, at most `timeout_s` seconds."""
        ...


class AgentStarter(Protocol):
    """Starts an agent on its own thread; its events go to `sink`, on that thread."""

    def __call__(self, options: LaunchOptions, sink: EventSink) -> AgentHandle: ...
