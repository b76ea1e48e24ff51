"""The system prompt: built once a session, since a changed byte would cost the cache and the thinking."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Environment:
    """The facts about the place a session starts in that the model is told."""

    cwd: Path
    today: date
    shell: str
    git_summary: str
    """Branch, status and recent commits as text; empty outside a repository."""
    additional_dirs: tuple[Path, ...] = ()


def build_system_prompt(environment: Environment, *, replaced: str = "", appended: str = "") -> str:
    """The whole system text. `replaced` stands in for pyagent's own instructions, `appended` follows everything."""
    instructions = replaced or (files("pyagent.agent") / "prompts" / "system.md").read_text("utf-8").strip()
    return "\n\n".join(part for part in (instructions, _environment_text(environment), appended.strip()) if part)


def _environment_text(environment: Environment) -> str:
    lines = [
        "# Environment",
        f"Working folder: {environment.cwd}",
        *(f"Also allowed: {folder}" for folder in environment.additional_dirs),
        f"System: {platform.system()} {platform.machine()}, shell {environment.shell or 'sh'}",
        f"Date at the start of the session: {environment.today.isoformat()}",
    ]
    if environment.git_summary:
        lines += ["", "Git state at the start of the session:", environment.git_summary.strip()]
    else:
        lines.append("The working folder is not in a git repository.")
    return "\n".join(lines)
