"""`/tui`: one session goes on in the other front end.

Two toolkits must not share a process and its terminal, so the program starts itself anew in its own place: the session
is closed, resumed from its file with the model and mode it had, and what stood on the input line is handed along.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias

from pyagent.launch import LaunchOptions
from pyagent.ui.cli import Invocation

FrontEndName: TypeAlias = Literal["fullscreen", "plain"]

HANDOVER_VARIABLE = "PYAGENT_HANDOVER"
"""Path of the file with the draft; it is read once."""


@dataclass(frozen=True, slots=True)
class Handover:
    """What the next front end is to show."""

    to: FrontEndName
    model: str
    mode: str
    session_id: str = ""
    """Empty if nothing was said yet, so that there is nothing to resume."""
    draft: str = ""


def refusal(options: LaunchOptions, *, is_busy: bool, is_there: bool) -> str:
    """Why `/tui` cannot be done now; empty if it can."""
    if is_there:
        return "This front end is the one that is running."
    if is_busy:
        return "The agent is at work: stop it or let it end, then use /tui again."
    if not options.is_persistent:
        return "This session is not saved, so no other front end can go on with it."
    return ""


def target(argument: str, *, here: FrontEndName) -> FrontEndName | None:
    """The front end that `/tui` names; without a name the other one. None if there is no such front end."""
    wanted = argument.strip().lower()
    match wanted:
        case "":
            return "plain" if here == "fullscreen" else "fullscreen"
        case "fullscreen" | "default":
            return "fullscreen"
        case "plain":
            return "plain"
        case _:
            return None


def arguments(handover: Handover, invocation: Invocation) -> list[str]:
    """The command line that goes on where this one stands."""
    options = invocation.options
    line = ["--tui", handover.to, "--model", handover.model, "--permission-mode", handover.mode]
    if handover.session_id:
        line += ["--resume", handover.session_id]
    for flag, value in (
        ("--effort", options.effort),
        ("--fallback-model", ",".join(options.fallback_models)),
        ("--settings", options.settings_json),
        ("--system-prompt", options.system_prompt),
        ("--append-system-prompt", options.system_prompt_addition),
        ("--autocompact", str(options.window_tokens or "")),
        ("--max-budget-usd", str(options.max_budget_usd or "")),
        ("--debug-file", invocation.debug_file),
    ):
        line += [f"{flag}={value}"] if value else []
    for flag, is_on in (
        ("--verbose", invocation.is_verbose),
        ("--no-mouse", not invocation.has_mouse),
        ("--trust", options.is_trusted),
        ("--bare", not options.has_git_state),
        ("--safe-mode", not options.has_settings_env),
    ):
        line += [flag] if is_on else []
    if invocation.debug is not None:
        line.append(f"--debug={invocation.debug}")
    line.append(f"--setting-sources={','.join(options.setting_sources)}")
    for flag, values in (
        ("--allowedTools", options.allowed_tools),
        ("--disallowedTools", options.disallowed_tools),
        ("--add-dir", tuple(map(str, options.add_dirs))),
    ):
        line += [flag, *values] if values else []
    if options.tools is not None:
        line.append(f"--tools={','.join(options.tools)}")
    return line


def hand_over(handover: Handover, invocation: Invocation) -> NoReturn:
    """Start the other front end in this program's place. Raises OSError if that fails."""
    environ = dict(os.environ)
    environ.pop(HANDOVER_VARIABLE, None)
    if handover.draft:
        path = invocation.options.home / "drafts" / f"handover.{os.getpid()}.json"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({"draft": handover.draft}, file)
        environ[HANDOVER_VARIABLE] = str(path)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execve(sys.executable, [sys.executable, "-m", "pyagent", *arguments(handover, invocation)], environ)


def handed_draft(environ: Mapping[str, str]) -> str:
    """The draft this program was started with; empty if none was, or when it was read before."""
    name = environ.get(HANDOVER_VARIABLE)
    if not name:
        return ""
    path = Path(name)
    try:
        draft = json.loads(path.read_text("utf-8"))["draft"]
        path.unlink()
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return draft if isinstance(draft, str) else ""
