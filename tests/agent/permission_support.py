"""A project, an engine over it, and what it says to a call."""

from __future__ import annotations

from pathlib import Path

from pyagent.agent.permissions import Decision, PermissionEngine
from pyagent.choices import PermissionMode
from pyagent.events import PermissionQuestion
from pyagent.messages import JsonObject
from pyagent.settings import Settings


def make_project(tmp_path: Path) -> Path:
    """A project with a few files, and beside it a home and a folder that is neither."""
    folder = tmp_path / "project"
    for name in ("src", "secrets", ".git"):
        (folder / name).mkdir(parents=True)
    (folder / ".env").write_text("KEY=1\n")
    (folder / "src" / "a.py").write_text("x = 1\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "outside").mkdir()
    return folder


def engine(
    project: Path,
    *,
    allow: tuple[str, ...] = (),
    ask: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    mode: PermissionMode = "default",
    session: tuple[str, ...] = (),
) -> PermissionEngine:
    settings = Settings(allow_rules=allow, ask_rules=ask, deny_rules=deny)
    return PermissionEngine(settings, mode, session, home=project.parent / "home")


def decide(
    given_engine: PermissionEngine,
    project: Path,
    tool: str,
    tool_input: JsonObject,
    *,
    question: PermissionQuestion | None = None,
    is_read_only: bool = False,
    cwd: Path | None = None,
) -> Decision:
    return given_engine.decide(tool, tool_input, question, is_read_only, cwd or project, (project,))


def verdict(decision: Decision) -> str:
    return type(decision).__name__.lower()


def bash(given_engine: PermissionEngine, project: Path, command: str) -> str:
    return verdict(decide(given_engine, project, "Bash", {"command": command}))
