"""The values of command-line flags: from the text that was typed to what the program is told, or one clear line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyagent.choices import EFFORT_LEVELS, MIN_WINDOW_TOKENS, PERMISSION_MODES, PermissionMode, permission_mode_named
from pyagent.errors import UsageError
from pyagent.launch import LaunchOptions


def launch_options(args: argparse.Namespace, environ: Mapping[str, str], *, is_headless: bool) -> LaunchOptions:
    """What the agent is told of the command line.

    Raises:
        UsageError: flags that contradict each other or cannot be used.
    """
    if args.resume and args.is_continued:
        raise UsageError("--continue and --resume exclude each other.")
    if args.session_id and (args.is_continued or args.resume is not None) and not args.fork_session:
        raise UsageError("--session-id names a new session.", hint="Add --fork-session to resume under that id.")
    if args.fork_session and not args.is_continued and args.resume is None:
        raise UsageError("--fork-session needs --resume or --continue.")
    if args.view and (args.is_continued or args.resume is not None or is_headless or args.no_session_persistence):
        raise UsageError("--view is for reading: it goes with no -p, --resume, --continue, --no-session-persistence.")
    if args.resume == "" and is_headless:
        raise UsageError("--resume needs a session id or text with -p.")
    return LaunchOptions(
        cwd=current_folder(),
        home=Path(environ.get("PYAGENT_HOME") or "~/.pyagent").expanduser().absolute(),
        environ=dict(environ),
        model=args.model,
        fallback_models=listed([args.fallback_model]),
        effort=effort(args.effort),
        permission_mode=permission_mode(args),
        is_continued=args.is_continued,
        resume=args.view or args.resume or "",
        is_read_only=bool(args.view),
        is_forked=args.fork_session,
        session_id=uuid(args.session_id),
        name=args.name,
        prompt=" ".join(args.prompt),
        settings_json=args.settings,
        setting_sources=() if args.bare else setting_sources(args.setting_sources),
        has_memory_files=not (args.bare or args.safe_mode),
        has_settings_env=not args.safe_mode,
        has_git_state=not args.bare,
        is_trusted=args.trust,
        window_tokens=window_tokens(args.autocompact),
        json_schema=json_schema(args.json_schema),
        allowed_tools=rules(args.allowedTools or []),
        disallowed_tools=rules(args.disallowedTools or []),
        tools=None if args.tools in (None, ["default"]) else listed(args.tools),
        add_dirs=tuple(folder(name) for name in args.add_dir or []),
        system_prompt=text(args.system_prompt, args.system_prompt_file, "--system-prompt"),
        system_prompt_addition=text(
            args.append_system_prompt, args.append_system_prompt_file, "--append-system-prompt"
        ),
        max_turns=None if args.max_turns is None else int(number(args.max_turns, "--max-turns", is_whole=True)),
        max_budget_usd=None if args.max_budget_usd is None else number(args.max_budget_usd, "--max-budget-usd"),
        is_persistent=not args.no_session_persistence,
        is_headless=is_headless,
    )


def permission_mode(args: argparse.Namespace) -> PermissionMode | None:
    """None for the settings' mode."""
    if args.dangerously_skip_permissions:
        return "bypassPermissions"
    if args.permission_mode is None:
        return None
    mode = permission_mode_named(args.permission_mode)
    if mode is None:
        hint = f"Use one of {', '.join(PERMISSION_MODES)}."
        raise UsageError(f"Unknown permission mode {args.permission_mode!r}.", hint=hint)
    return mode


def setting_sources(text: str | None) -> tuple[str, ...]:
    known = ("user", "project", "local")
    if text is None:
        return known
    sources = listed([text])
    for source in sources:
        if source not in known:
            raise UsageError(f"Unknown settings source {source!r}.", hint="Use user, project, local.")
    return sources


def effort(level: str) -> str:
    if level not in ("", *EFFORT_LEVELS):
        raise UsageError(f"There is no effort {level!r}.", hint=f"Use {', '.join(EFFORT_LEVELS)}.")
    return level


def listed(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part for text in texts for part in text.replace(",", " ").split())


def rules(texts: Sequence[str]) -> tuple[str, ...]:
    """Rules separated by commas or spaces; what stands in parentheses (`Bash(git log *)`) is never cut."""
    rules: list[str] = []
    for text in texts:
        depth, current = 0, ""
        for char in text:
            depth += {"(": 1, ")": -1}.get(char, 0)
            if char in ", \t\n" and depth <= 0:
                rules.append(current)
                current = ""
            else:
                current += char
        rules.append(current)
    return tuple(rule for rule in rules if rule)


def number(text: str, flag: str, *, is_whole: bool = False) -> float:
    try:
        number = int(text) if is_whole else float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise UsageError(f"{flag} needs a {'whole ' if is_whole else ''}number above 0, not {text!r}.")
    return number


def window_tokens(text: str | None) -> int | None:
    """The window of `--autocompact`; None for the settings' or the model's."""
    if text is None or text == "auto":
        return None
    tokens = int(number(text, "--autocompact", is_whole=True))
    if tokens < MIN_WINDOW_TOKENS:
        raise UsageError(f"--autocompact takes 'auto' or at least {MIN_WINDOW_TOKENS:,} tokens.")
    return tokens


def json_schema(given: str | None) -> str:
    """The schema of `--json-schema` as JSON text, checked; empty for none."""
    if given is None:
        return ""
    from pyagent.agent.answer_schema import AnswerSchema  # Only then: the validator takes a while to load.

    is_inline = given.lstrip().startswith("{")
    schema = given if is_inline else text(None, given, "--json-schema")
    AnswerSchema.parse(schema, name="--json-schema" if is_inline else given)
    return schema


def uuid(text: str) -> str:
    if not text:
        return ""
    from uuid import UUID

    try:
        return str(UUID(text))
    except ValueError:
        raise UsageError(f"--session-id needs a UUID, not {text!r}.") from None


def text(text: str | None, file_name: str | None, flag: str) -> str:
    if text is not None and file_name is not None:
        raise UsageError(f"{flag} and {flag}-file exclude each other.")
    if file_name is None:
        return text or ""
    try:
        return Path(file_name).expanduser().read_text("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"Cannot read {file_name}: {error.strerror}.") from error


def folder(name: str) -> Path:
    folder = Path(name).expanduser().absolute()
    if not folder.is_dir():
        raise UsageError(f"--add-dir {name}: no such folder.")
    return folder


def current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("The current folder no longer exists.", hint="Change to another one first.") from None
