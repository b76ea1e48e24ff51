"""Settings: their defaults, and how JSON files, environment and flags override them.

Reading the files is `pyagent.agent.config`'s work; here values are only checked and merged. A value that cannot be
used is reported once in words and then ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from pyagent.choices import MIN_WINDOW_TOKENS, PermissionMode, TerminalSettings

CompactionStrategy: TypeAlias = Literal["client", "server"]
COMPACTION_STRATEGIES: tuple[str, ...] = get_args(CompactionStrategy)
CompactionPolicy: TypeAlias = Literal["window", "economy"]
COMPACTION_POLICIES: tuple[str, ...] = get_args(CompactionPolicy)
ApiClearing: TypeAlias = Literal["results", "uses"]
API_CLEARINGS: tuple[str, ...] = get_args(ApiClearing)


@dataclass(frozen=True, slots=True)
class Gates:
    """Switches of the context pipeline. Those off by default stay off until measurement says otherwise."""

    cached_microcompact: bool = False
    history_snip: bool = False
    context_collapse: bool = False
    reactive_compact: bool = True
    reactive_only: bool = False
    prompt_cache_break_detection: bool = True
    session_memory: bool = True
    api_context_management: bool = False
    compact_cache_prefix: bool = True
    compact_streaming_retry: bool = True
    commit_attribution: bool = False
    time_based_microcompact: bool = True


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """What a person may set about the context window. None means: as the model and the defaults have it."""

    is_disabled: bool = False
    """`DISABLE_COMPACT`: nothing compacts, `/compact` says why."""
    is_auto_disabled: bool = False
    """`DISABLE_AUTO_COMPACT` or the user's setting: nothing compacts by itself."""
    window_tokens: int | None = None
    """The context window to assume, from 8,000; never above the model's."""
    trigger_percent: float | None = None
    """Trigger as a percentage of the effective window; can only lower it."""
    blocking_tokens: int | None = None
    warning_buffer_tokens: int = 20_000
    error_buffer_tokens: int = 20_000
    gap_minutes: float = 60.0
    keep_recent: int = 5
    api_trigger_tokens: int = 180_000
    api_target_tokens: int = 40_000
    api_clearing: ApiClearing = "results"
    """What API-native clearing takes: old results of the tools that can be run again, or all uses but edits."""
    policy: CompactionPolicy = "window"
    """`window` compacts when the window is nearly full; `economy` where the bill is least, if that is earlier."""
    strategy: CompactionStrategy = "client"
    """Who writes the summary: the model on pyagent's own instruction, or the server with a block it signs, behind which
    kept thinking stays valid. Where the server has no such thing, or fails, it is always the former."""
    notes_first_percent: float = 40.0
    notes_second_percent: float = 65.0
    """Of the trigger: where the session's notes are brought up to date early; the last update comes before the trigger.
    Each reads the whole context from the cache, so more of them would cost more than the summaries they save."""
    notes_min_tool_calls: int = 3
    """Since the last update: after less, there is hardly anything to note."""
    gates: Gates = field(default_factory=Gates)


NOTIFICATION_CHANNELS = ("auto", "none", "bell", "osc9", "osc99", "osc777", "osc9_with_bell")
"""How a terminal is told that the person is wanted; `auto` is what this terminal is known to take, else the bell."""


@dataclass(frozen=True, slots=True)
class Settings:
    model: str = ""
    fallback_models: tuple[str, ...] = ()
    effort: str = ""
    permission_mode: PermissionMode = "default"
    allow_rules: tuple[str, ...] = ()
    ask_rules: tuple[str, ...] = ()
    deny_rules: tuple[str, ...] = ()
    additional_dirs: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    theme: str = ""
    is_vim: bool = False
    """Whether the input line is edited as vim does."""
    insert_remaps: Mapping[str, str] = field(default_factory=dict)
    """Sequences of vim's insert mode and what they stand for: `jj` → `<Esc>`."""
    status_line_command: str = ""
    """The user's own program for the bottom rows: facts of the session on its standard input, rows out."""
    max_output_tokens: int | None = None
    is_cache_ttl_1h: bool = False
    max_retries: int | None = None
    """How often a failed call is made again; None for the built-in number."""
    api_timeout_ms: int | None = None
    """Until a response's headers come; None for what suits the server."""
    stream_idle_timeout_ms: int | None = None
    """Between two events of a response; None for what suits the server."""
    bash_default_timeout_ms: int = 120_000
    bash_max_timeout_ms: int = 600_000
    bash_max_output_chars: int = 30_000
    bash_allowed_secrets: tuple[str, ...] = ()
    """Names of environment variables that Bash may see although they look like secrets, such as `GH_TOKEN`."""
    answers_own_commands: bool = False
    """Whether the model answers a command typed with `!` at once, instead of being told of it with the next prompt."""
    read_max_tokens: int = 25_000
    cache_edit_servers: tuple[str, ...] = ()
    """Base URLs of servers that take `cache_edits`; no other server ever sees that field."""
    has_file_checkpoints: bool = True
    """Whether the work tree is saved before each prompt, so that `/rewind` can bring files back."""
    cleanup_period_days: int = 30
    """Sessions not used for this long are deleted at start; 0 keeps them for ever."""
    is_web_search_on: bool = False
    """Offer the server's own web search. Off unless asked for: each search costs beside the tokens it brings in."""
    terminal: TerminalSettings = field(default_factory=TerminalSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)


_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


def _bool(text: str) -> bool:
    if text.strip().lower() in _TRUE:
        return True
    if text.strip().lower() in _FALSE:
        return False
    raise ValueError("use 1 or 0")


def _off(text: str) -> bool:
    return not _bool(text)


def _whole(minimum: int, maximum: int | None = None) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.strip().isdecimal():
            raise ValueError("use a whole number")
        number = int(text)
        if number < minimum or (maximum is not None and number > maximum):
            raise ValueError(f"use a number from {minimum:,}" + (f" to {maximum:,}" if maximum is not None else " up"))
        return number

    return parse


def _one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.strip() not in choices:
            raise ValueError(f"use {' or '.join(choices)}")
        return text.strip()

    return parse


def _percent(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError("use a percentage from 1 to 100") from None
    if not 1 <= number <= 100:
        raise ValueError("use a percentage from 1 to 100")
    return number


_ENVIRONMENT: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    ("DISABLE_COMPACT", "compaction.is_disabled", _bool),
    ("DISABLE_AUTO_COMPACT", "compaction.is_auto_disabled", _bool),
    ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "compaction.window_tokens", _whole(MIN_WINDOW_TOKENS)),
    ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "compaction.trigger_percent", _percent),
    ("CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE", "compaction.blocking_tokens", _whole(1)),
    ("API_MAX_INPUT_TOKENS", "compaction.api_trigger_tokens", _whole(1)),
    ("API_TARGET_INPUT_TOKENS", "compaction.api_target_tokens", _whole(1)),
    ("PYAGENT_COMPACTION_POLICY", "compaction.policy", _one_of(COMPACTION_POLICIES)),
    ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "max_output_tokens", _whole(1)),
    ("ENABLE_PROMPT_CACHING_1H", "is_cache_ttl_1h", _bool),
    ("CLAUDE_CODE_MAX_RETRIES", "max_retries", _whole(0, 100)),
    ("API_TIMEOUT_MS", "api_timeout_ms", _whole(1)),
    ("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "stream_idle_timeout_ms", _whole(1)),
    ("BASH_DEFAULT_TIMEOUT_MS", "bash_default_timeout_ms", _whole(1)),
    ("BASH_MAX_TIMEOUT_MS", "bash_max_timeout_ms", _whole(1)),
    ("BASH_MAX_OUTPUT_LENGTH", "bash_max_output_chars", _whole(1_000, 150_000)),
    ("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "read_max_tokens", _whole(1_000)),
    ("ANTHROPIC_MODEL", "model", str),
    ("CLAUDE_CODE_DISABLE_TERMINAL_TITLE", "terminal.has_title", _off),
    ("PYAGENT_REDUCED_MOTION", "terminal.is_motion_reduced", _bool),
    ("PYAGENT_NOTIF_CHANNEL", "terminal.notification_channel", _one_of(NOTIFICATION_CHANNELS)),
)
"""(variable, setting, parser). For each, a twin with the prefix `PYAGENT_` wins (see `twin_of`)."""


def twin_of(variable: str) -> str:
    """pyagent's own name for a variable: `CLAUDE_CODE_AUTO_COMPACT_WINDOW` → `PYAGENT_AUTO_COMPACT_WINDOW`."""
    for prefix in ("CLAUDE_CODE_", "CLAUDE_", "ANTHROPIC_"):
        if variable.startswith(prefix):
            return "PYAGENT_" + variable.removeprefix(prefix)
    return "PYAGENT_" + variable


def environment_values(environ: Mapping[str, str]) -> tuple[dict[str, tuple[str, Any]], tuple[str, ...]]:
    """Setting → (variable, value) for each override, and one sentence for each value that was ignored."""
    values: dict[str, tuple[str, Any]] = {}
    problems: list[str] = []
    gates = tuple(("PYAGENT_" + f.name.upper(), f"compaction.gates.{f.name}", _bool) for f in fields(Gates))
    for variable, path, parse in (*_ENVIRONMENT, *gates):
        twin = variable if variable.startswith("PYAGENT_") else twin_of(variable)
        for name in dict.fromkeys((twin, variable)):
            if name not in environ:
                continue
            try:
                value = parse(environ[name])
            except ValueError as error:
                problems.append(f"{name}={environ[name]!r} is ignored: {error}.")
                continue
            values[path] = name, value
            break
    return values, tuple(problems)


def with_value(settings: Settings, path: str, value: Any) -> Settings:
    """The settings with the field at a dotted path replaced."""
    return _replaced(settings, path.split("."), value)


NodeT = TypeVar("NodeT", Settings, CompactionSettings, TerminalSettings, Gates)


def _replaced(node: NodeT, path: list[str], value: Any) -> NodeT:
    changes = {path[0]: value if len(path) == 1 else _replaced(getattr(node, path[0]), path[1:], value)}
    return replace(node, **changes)
