"""Whether the instant prompt may stand on the screen, and how: told from arguments, variables and a few files.

What it says is a guess made in a millisecond; the real reading of flags and settings comes later and has the last word.
Loaded before everything else, so it imports nothing slow.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SWITCH = "PYAGENT_INSTANT_PROMPT"
"""The environment variable that turns it off (`0`)."""

SCREEN_FLAGS = frozenset(
    {
        "--verbose",
        "--no-mouse",
        "--model",
        "--fallback-model",
        "--effort",
        "--system-prompt",
        "--system-prompt-file",
        "--append-system-prompt",
        "--append-system-prompt-file",
        "-c",
        "--continue",
        "-r",
        "--resume",
        "--fork-session",
        "--view",
        "--tui",
        "--session-id",
        "-n",
        "--name",
        "--no-session-persistence",
        "--permission-mode",
        "--dangerously-skip-permissions",
        "--allowedTools",
        "--allowed-tools",
        "--disallowedTools",
        "--disallowed-tools",
        "--tools",
        "--add-dir",
        "--settings",
        "--setting-sources",
        "--max-budget-usd",
        "--debug",
        "--debug-file",
        "--autocompact",
        "--trust",
        "--safe-mode",
        "--bare",
    }
)
"""The flags that leave it a full screen. Any other argument with a dash, known or not, is left to the parser."""

_PLAIN_VARIABLES = ("CLAUDE_AX_SCREEN_READER", "CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN")

_OTHER_COMMANDS = (["context", "replay"], ["import", "claude"], ["reset"], ["doctor"])

MAX_SETTINGS_BYTES = 100_000
"""A larger file is cut, hence no JSON, here as where Textual's first frame gets its theme from."""


def will_be_a_screen(argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether these arguments, streams and variables lead to the full screen. In doubt, not."""
    for arg in argv:
        if arg == "--":
            break
        if arg.startswith("-") and arg.partition("=")[0] not in SCREEN_FLAGS:
            return False
    wanted = flag_value("--tui", argv)
    return (
        wanted in ("", "fullscreen")
        and all(list(argv[: len(command)]) != command for command in _OTHER_COMMANDS)
        and all(_is_off_or_unset(environ.get(name, "")) for name in _PLAIN_VARIABLES)
        and (SWITCH not in environ or not _is_off_or_unset(environ[SWITCH]))
        and environ.get("TERM", "") not in ("", "dumb", "unknown")
        and environ.get("TEXTUAL_COLOR_SYSTEM", "auto") == "auto"
        and all(os.isatty(fd) for fd in range(3))
        and (wanted == "fullscreen" or not _may_be_set_to_plain(argv, environ))
        and not os.path.exists(_mark_of_a_killed_program(environ))
    )


def _mark_of_a_killed_program(environ: Mapping[str, str]) -> str:
    """What a killed pyagent leaves for this terminal: then it has to be cured before anything is drawn."""
    return os.path.join(_home(environ), "terminals", os.ttyname(2).strip("/").replace("/", "-"))


def _may_be_set_to_plain(argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether settings of the user, the project or the command line speak of another front end."""
    folders = (_home(environ), _claude_home(environ), ".pyagent", ".claude")
    for folder in folders:
        for name in ("settings.json", "settings.local.json"):
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    content = file.read(MAX_SETTINGS_BYTES)
            except OSError:
                continue
            if _speaks_of_plain(content):
                return True
    return any(_speaks_of_plain(os.fsencode(arg)) for arg in argv)


def _speaks_of_plain(settings: bytes) -> bool:
    return b'"axScreenReader"' in settings or (b'"tui"' in settings and b'"plain"' in settings)


def _home(environ: Mapping[str, str]) -> str:
    return os.path.expanduser(environ.get("PYAGENT_HOME") or "~/.pyagent")


def theme_setting(environ: Mapping[str, str]) -> str:
    """The theme in the user's settings. Few have set one, and only they wait for a reader of JSON to be loaded."""
    try:
        with open(os.path.join(_home(environ), "settings.json"), "rb") as file:
            data = file.read(MAX_SETTINGS_BYTES)
    except OSError:
        return ""
    if b'"theme"' not in data:
        return ""
    import json

    content = json.loads(data)
    theme = content.get("theme") if isinstance(content, dict) else ""
    return theme if isinstance(theme, str) else ""


def has_own_keys(environ: Mapping[str, str]) -> bool:
    """Whether a file gives keys other meanings; what it says is read later."""
    folders = (_home(environ), _claude_home(environ))
    return any(os.path.exists(os.path.join(folder, "keybindings.json")) for folder in folders)


def _claude_home(environ: Mapping[str, str]) -> str:
    return environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")


def picks_session(argv: Sequence[str]) -> bool:
    """Whether a list of sessions comes first: `--resume` without a name."""
    return "--resume=" in argv or any(
        arg in ("-r", "--resume") and (at + 1 == len(argv) or argv[at + 1].startswith("-"))
        for at, arg in enumerate(argv)
    )


def _is_off_or_unset(value: str) -> bool:
    return value.strip().lower() in ("", "0", "false", "no", "off")


def flag_value(flag: str, argv: Sequence[str]) -> str:
    """The last value given to a flag; empty if there is none."""
    found = ""
    for at, arg in enumerate(argv):
        if arg == "--":
            break
        if arg.startswith(f"{flag}="):
            found = arg.partition("=")[2]
        elif arg == flag and at + 1 < len(argv):
            found = argv[at + 1]
    return found
