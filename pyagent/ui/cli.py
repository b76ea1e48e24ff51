"""The command line: reads flags, picks the front end, and turns every failure into one clear line.

Nothing heavy is imported here, so `--version` and `--help` answer at once and the first paint is not held up.
"""

from __future__ import annotations

import argparse
import os
import select
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn, TextIO, get_args

from pyagent import __version__
from pyagent.errors import PyagentError, UsageError
from pyagent.launch import AgentHandle, AgentStarter, LaunchOptions
from pyagent.settings import EFFORT_LEVELS, PERMISSION_MODES, PermissionMode

if TYPE_CHECKING:
    from pyagent.events import EventSink

EXIT_FAILURE, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 130, 143

STDIN_CAP_BYTES = 10_000_000
"""More than this on standard input cannot be a prompt for any model; refusing beats filling the memory."""

STDIN_WAIT_S = 3.0
"""How long a prompt waits for piped text to begin. Schedulers often hand down a pipe nobody ever writes to."""

_DUMB_TERMINALS = ("", "dumb", "unknown")

_KNOWN_ELSEWHERE = (
    "--mcp-config",
    "--strict-mcp-config",
    "--json-schema",
    "--agent",
    "--agents",
    "--bare",
    "--safe-mode",
    "--debug",
    "--debug-file",
    "--trust",
    "--autocompact",
    "--ide",
)
"""Flags of other agents that a user may bring along; each is answered by name instead of 'unrecognized arguments'."""


class FrontEnd(StrEnum):
    """The ways to hold a conversation."""

    SCREEN = "screen"
    PLAIN = "plain"
    HEADLESS = "headless"


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


@dataclass(frozen=True, slots=True)
class Invocation:
    """A parsed command line: what the agent is told, and what only the front end needs."""

    options: LaunchOptions
    front_end: FrontEnd
    output_format: OutputFormat = OutputFormat.TEXT
    is_input_stream_json: bool = False
    has_partial_messages: bool = False
    replays_user_messages: bool = False
    is_verbose: bool = False
    """Tool output and thinking unfolded on screens; notices on stderr in headless runs."""
    picks_session: bool = False
    """`--resume` without a name: ask which one."""
    screen_reader_via: str = ""
    """What turned the screen reader mode on (`flag`, `env`); empty if it is off."""
    has_mouse: bool = True


class _Parser(argparse.ArgumentParser):
    """Raises instead of exiting, so that one place prints errors."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message[:1].upper() + message[1:] + ".", hint="See pyagent --help.")


def run(argv: Sequence[str]) -> int:
    """Run pyagent with these arguments and return the exit code. Never raises, never prints a traceback."""
    try:
        if not has_output():
            _complain("Standard output is closed; there is nowhere to answer.")
            return EXIT_FAILURE
        given = [_readable(arg) for arg in argv]
        if given[:2] == ["context", "replay"]:
            from pyagent.ui.replay_command import run_context_command

            return run_context_command(given[1:], os.environ)
        if given == ["reset"]:
            from pyagent.ui.leftovers import reset_command

            return reset_command()
        if given[:2] == ["import", "claude"]:
            if len(given) == 2:
                return _list_importable()
            given = ["--resume", f"claude:{given[2]}", *given[3:]]
        args = parse_arguments(given)
        if args.help:
            print(build_parser().format_help(), end="")
            return 0
        if args.version:
            print(f"pyagent {__version__}")
            return 0
        invocation = build_invocation(args, os.environ)
        return dispatch(invocation, _start_agent)
    except PyagentError as error:
        _complain(str(error))
        return EXIT_USAGE if isinstance(error, UsageError) else EXIT_FAILURE
    except BrokenPipeError:
        silence(sys.stdout)
        return EXIT_FAILURE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except OSError as error:
        _complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.")
        return EXIT_FAILURE


def _list_importable() -> int:
    """Print Claude Code's sessions of this folder, newest first."""
    from datetime import UTC, datetime

    choosing = import_module("pyagent.ui.choosing")
    sessions = choosing.foreign_sessions(os.environ, _current_folder())
    for item in choosing.session_items(sessions, datetime.now(UTC)):
        print(f"{item.id.removeprefix('claude:')}  {item.label}  ({item.detail})")
    if not sessions:
        _complain("Claude Code has no session of this folder.")
    return 0 if sessions else EXIT_FAILURE


def dispatch(invocation: Invocation, starter: AgentStarter) -> int:
    """Run the chosen front end; only its modules are imported."""
    match invocation.front_end:
        case FrontEnd.HEADLESS:
            from pyagent.ui.headless import run_headless

            return run_headless(invocation, starter)
        case FrontEnd.PLAIN:
            from pyagent.ui.plain import run_plain

            return run_plain(invocation, starter)
        case FrontEnd.SCREEN:
            from pyagent.ui.runner import run_screen

            return run_screen(invocation, starter)


def silence(stream: TextIO) -> None:
    """Point a stream whose reader went away at the null device, so that the interpreter's last flush stays quiet."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def has_output() -> bool:
    """Whether standard output is open. The null device takes the place of closed descriptors, or the next file opened
    would get theirs, and what a library prints would land in it."""
    closed = {fd for fd in range(3) if not _is_open(fd)}
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)  # The lowest free number, so one of theirs.
    return 1 not in closed


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def build_parser() -> argparse.ArgumentParser:
    """Every flag here has an effect; see the tests of this module."""
    parser = _Parser(
        prog="pyagent",
        usage="pyagent [options] [prompt]\n       pyagent import claude [session]\n       pyagent reset\n"
        "       pyagent context replay SESSION [--window N] [--set key=value]...",
        description="A coding agent for the terminal. Without -p it opens an interactive session. "
        "`pyagent reset` repairs a terminal after a crash.",
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("prompt", nargs="*", help="first prompt; with -p, standard input is added to it")

    general = parser.add_argument_group("general")
    general.add_argument("-h", "--help", action="store_true", help="show this help and exit")
    general.add_argument("-v", "--version", action="store_true", help="show the version and exit")
    general.add_argument("--verbose", action="store_true", help="show tool output and thinking unfolded")
    general.add_argument("--plain", action="store_true", help="line by line instead of a full screen")
    general.add_argument("--ax-screen-reader", action="store_true", help="plain mode worded for screen readers")
    general.add_argument(
        "--no-mouse", action="store_true", help="leave the mouse to the terminal (or PYAGENT_NO_MOUSE=1)"
    )

    model = parser.add_argument_group("model and prompt")
    model.add_argument("--model", default="", metavar="MODEL", help="model to use; 'offline' needs no key")
    model.add_argument("--fallback-model", default="", metavar="A,B", help="models to try when it is overloaded")
    model.add_argument("--effort", default="", metavar="LEVEL", help=f"how much it thinks: {', '.join(EFFORT_LEVELS)}")
    model.add_argument("--system-prompt", metavar="TEXT", help="replace the system prompt")
    model.add_argument("--system-prompt-file", metavar="FILE", help="replace the system prompt by a file's text")
    model.add_argument("--append-system-prompt", metavar="TEXT", help="add to the system prompt")
    model.add_argument("--append-system-prompt-file", metavar="FILE", help="add a file's text to the system prompt")

    session = parser.add_argument_group("sessions")
    session.add_argument("-c", "--continue", dest="is_continued", action="store_true", help="go on with the newest one")
    session.add_argument("-r", "--resume", nargs="?", const="", metavar="ID|TEXT", help="go on with one, or pick it")
    session.add_argument("--fork-session", action="store_true", help="resume as a copy under a new id")
    session.add_argument("--session-id", default="", metavar="UUID", help="id for the new session")
    session.add_argument("-n", "--name", default="", metavar="TITLE", help="title for the session")
    session.add_argument("--no-session-persistence", action="store_true", help="write nothing of it to disk")

    safety = parser.add_argument_group("permissions and settings")
    safety.add_argument("--permission-mode", metavar="MODE", help=", ".join(PERMISSION_MODES))
    safety.add_argument("--dangerously-skip-permissions", action="store_true", help="never ask (bypassPermissions)")
    for spelling, other, text in (
        ("--allowedTools", "--allowed-tools", "permission rules to allow, as Tool or Tool(specifier)"),
        ("--disallowedTools", "--disallowed-tools", "permission rules to deny"),
    ):
        safety.add_argument(spelling, other, nargs="+", action="extend", metavar="RULE", help=text)
    safety.add_argument("--tools", nargs="*", action="extend", metavar="TOOL", help="offer only these tools")
    safety.add_argument("--add-dir", nargs="+", action="extend", metavar="DIR", help="further folders to work in")
    safety.add_argument("--settings", default="", metavar="FILE|JSON", help="settings on top of the files'")
    safety.add_argument("--setting-sources", metavar="user,project,local", help="which settings files to read")

    headless = parser.add_argument_group("headless runs")
    headless.add_argument("-p", "--print", action="store_true", help="answer the prompt on standard output and exit")
    headless.add_argument(
        "--output-format", choices=[f.value for f in OutputFormat], metavar="text|json|stream-json", help="with -p"
    )
    headless.add_argument("--input-format", choices=["text", "stream-json"], metavar="text|stream-json", help="with -p")
    headless.add_argument("--include-partial-messages", action="store_true", help="stream raw events (stream-json)")
    headless.add_argument("--replay-user-messages", action="store_true", help="repeat prompts too (stream-json)")
    headless.add_argument("--max-turns", metavar="N", help="API rounds a prompt may take")
    headless.add_argument("--max-budget-usd", metavar="USD", help="stop when the run has cost this much")
    return parser


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The parsed flags.

    Raises:
        UsageError: an unknown flag, a missing value, or a flag of another agent that pyagent does not have.
    """
    for arg in argv:
        if arg == "--":
            break
        if arg.split("=", 1)[0] in _KNOWN_ELSEWHERE:
            raise UsageError(f"{arg.split('=', 1)[0]} is not supported by this version.", hint="See pyagent --help.")
    return build_parser().parse_args(list(argv))


def build_invocation(args: argparse.Namespace, environ: Mapping[str, str]) -> Invocation:
    """What the flags and the environment ask for.

    Raises:
        UsageError: flags that contradict each other or cannot be used.
    """
    reader = "flag" if args.ax_screen_reader else "env" if _is_on(environ.get("CLAUDE_AX_SCREEN_READER", "")) else ""
    front_end = choose_front_end(
        is_print=args.print,
        is_plain=args.plain or bool(reader),
        are_ttys=(_is_tty(sys.stdin), _is_tty(sys.stdout), _is_tty(sys.stderr)),
        term=environ.get("TERM", ""),
    )
    if front_end is not FrontEnd.HEADLESS:
        for flag, value in (
            ("--output-format", args.output_format),
            ("--input-format", args.input_format),
            ("--include-partial-messages", args.include_partial_messages),
            ("--replay-user-messages", args.replay_user_messages),
            ("--max-turns", args.max_turns),
        ):
            if value:
                raise UsageError(f"{flag} works only with -p.", hint="Add -p, or leave it out.")
    output_format = OutputFormat(args.output_format or "text")
    is_input_stream_json = args.input_format == "stream-json"
    if is_input_stream_json and output_format is not OutputFormat.STREAM_JSON:
        raise UsageError("--input-format stream-json needs --output-format stream-json.")
    for flag, value in (
        ("--include-partial-messages", args.include_partial_messages),
        ("--replay-user-messages", args.replay_user_messages),
    ):
        if value and output_format is not OutputFormat.STREAM_JSON:
            raise UsageError(f"{flag} needs --output-format stream-json.")
    invocation = Invocation(
        options=_launch_options(args, environ, is_headless=front_end is FrontEnd.HEADLESS),
        front_end=front_end,
        output_format=output_format,
        is_input_stream_json=is_input_stream_json,
        has_partial_messages=args.include_partial_messages,
        replays_user_messages=args.replay_user_messages,
        is_verbose=args.verbose,
        picks_session=args.resume == "",
        screen_reader_via=reader,
        has_mouse=not (args.no_mouse or _is_on(environ.get("PYAGENT_NO_MOUSE", ""))),
    )
    if front_end is FrontEnd.HEADLESS:
        return _with_piped_prompt(invocation)
    return invocation


def choose_front_end(*, is_print: bool, is_plain: bool, are_ttys: tuple[bool, bool, bool], term: str) -> FrontEnd:
    """The front end for these streams (stdin, stdout, stderr).

    Textual draws on stderr and reads keys from stdin whatever they are, so a full screen needs all three.
    """
    if is_print:
        return FrontEnd.HEADLESS
    if is_plain or not all(are_ttys) or term in _DUMB_TERMINALS:
        return FrontEnd.PLAIN
    return FrontEnd.SCREEN


def _launch_options(args: argparse.Namespace, environ: Mapping[str, str], *, is_headless: bool) -> LaunchOptions:
    if args.resume and args.is_continued:
        raise UsageError("--continue and --resume exclude each other.")
    if args.session_id and (args.is_continued or args.resume is not None) and not args.fork_session:
        raise UsageError("--session-id names a new session.", hint="Add --fork-session to resume under that id.")
    if args.fork_session and not args.is_continued and args.resume is None:
        raise UsageError("--fork-session needs --resume or --continue.")
    if args.resume == "" and is_headless:
        raise UsageError("--resume needs a session id or text with -p.")
    return LaunchOptions(
        cwd=_current_folder(),
        home=Path(environ.get("PYAGENT_HOME") or "~/.pyagent").expanduser().absolute(),
        environ=dict(environ),
        model=args.model,
        fallback_models=_listed([args.fallback_model]),
        effort=_effort(args.effort),
        permission_mode=_permission_mode(args),
        is_continued=args.is_continued,
        resume=args.resume or "",
        is_forked=args.fork_session,
        session_id=_uuid(args.session_id),
        name=args.name,
        prompt=" ".join(args.prompt),
        settings_json=args.settings,
        setting_sources=_setting_sources(args.setting_sources),
        allowed_tools=_rules(args.allowedTools or []),
        disallowed_tools=_rules(args.disallowedTools or []),
        tools=None if args.tools is None else _listed(args.tools),
        add_dirs=tuple(_folder(name) for name in args.add_dir or []),
        system_prompt=_text(args.system_prompt, args.system_prompt_file, "--system-prompt"),
        system_prompt_addition=_text(
            args.append_system_prompt, args.append_system_prompt_file, "--append-system-prompt"
        ),
        max_turns=None if args.max_turns is None else int(_number(args.max_turns, "--max-turns", is_whole=True)),
        max_budget_usd=None if args.max_budget_usd is None else _number(args.max_budget_usd, "--max-budget-usd"),
        is_persistent=not args.no_session_persistence,
        is_headless=is_headless,
    )


def _permission_mode(args: argparse.Namespace) -> PermissionMode | None:
    if args.dangerously_skip_permissions:
        return "bypassPermissions"
    if args.permission_mode is None:
        return None
    wanted = "default" if args.permission_mode == "manual" else args.permission_mode
    for mode in get_args(PermissionMode):
        if mode == wanted:
            return mode  # type: ignore[no-any-return]  # a member of the Literal, which get_args types as Any
    raise UsageError(f"Unknown permission mode {wanted!r}.", hint=f"Use one of {', '.join(PERMISSION_MODES)}.")


def _setting_sources(text: str | None) -> tuple[str, ...]:
    known = ("user", "project", "local")
    if text is None:
        return known
    sources = _listed([text])
    for source in sources:
        if source not in known:
            raise UsageError(f"Unknown settings source {source!r}.", hint="Use user, project, local.")
    return sources


def _effort(level: str) -> str:
    if level not in ("", *EFFORT_LEVELS):
        raise UsageError(f"There is no effort {level!r}.", hint=f"Use {', '.join(EFFORT_LEVELS)}.")
    return level


def _listed(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part for text in texts for part in text.replace(",", " ").split())


def _rules(texts: Sequence[str]) -> tuple[str, ...]:
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


def _number(text: str, flag: str, *, is_whole: bool = False) -> float:
    try:
        number = int(text) if is_whole else float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise UsageError(f"{flag} needs a {'whole ' if is_whole else ''}number above 0, not {text!r}.")
    return number


def _uuid(text: str) -> str:
    if not text:
        return ""
    from uuid import UUID

    try:
        return str(UUID(text))
    except ValueError:
        raise UsageError(f"--session-id needs a UUID, not {text!r}.") from None


def _text(text: str | None, file_name: str | None, flag: str) -> str:
    if text is not None and file_name is not None:
        raise UsageError(f"{flag} and {flag}-file exclude each other.")
    if file_name is None:
        return text or ""
    try:
        return Path(file_name).expanduser().read_text("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"Cannot read {file_name}: {error.strerror}.") from error


def _folder(name: str) -> Path:
    folder = Path(name).expanduser().absolute()
    if not folder.is_dir():
        raise UsageError(f"--add-dir {name}: no such folder.")
    return folder


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("The current folder no longer exists.", hint="Change to another one first.") from None


def _with_piped_prompt(invocation: Invocation) -> Invocation:
    """The prompt with what was piped in behind it. Messages of `--input-format stream-json` are read later."""
    options = invocation.options
    if invocation.is_input_stream_json:
        if options.prompt:
            raise UsageError("With --input-format stream-json prompts come from standard input only.")
        return invocation
    piped = "" if _is_tty(sys.stdin) else read_piped(wait_s=STDIN_WAIT_S if options.prompt else None)
    prompt = "\n\n".join(part for part in (options.prompt, piped.strip("\n")) if part.strip())
    if not prompt:
        raise UsageError("No prompt.", hint="Give one as an argument or on standard input.")
    return replace(invocation, options=replace(options, prompt=prompt))


def read_piped(*, wait_s: float | None) -> str:
    """All of standard input as text; empty if nothing begins to arrive within `wait_s` seconds (None: wait for ever).

    Raises:
        UsageError: it is larger than the cap.
    """
    if sys.stdin is None or sys.stdin.closed:
        return ""
    source: BinaryIO = sys.stdin.buffer
    if wait_s is not None and not select.select([source], [], [], wait_s)[0]:
        _complain(f"Nothing came on standard input within {wait_s:.0f} s; going on without it.")
        return ""
    data = source.read(STDIN_CAP_BYTES + 1)
    if len(data) > STDIN_CAP_BYTES:
        raise UsageError("Standard input is larger than 10 MB.", hint="Put it in a file and name the file.")
    return data.decode("utf-8", "replace")


def _start_agent(options: LaunchOptions, sink: EventSink) -> AgentHandle:
    """The real agent. Its modules are imported here, when a front end starts it, and not before."""
    starter: AgentStarter = import_module("pyagent.agent.bootstrap").start_agent
    return starter(options, sink)


def _is_tty(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()


def _is_on(value: str) -> bool:
    return value.strip().lower() not in ("", "0", "false", "no", "off")


def _readable(arg: str) -> str:
    """An argument with bytes that are no UTF-8 replaced, so that it can be printed, logged and sent."""
    return os.fsencode(arg).decode("utf-8", "replace")


def _complain(text: str) -> None:
    """One line on stderr, whatever the text holds."""
    line = " ".join(text.split())
    if sys.stderr is not None:
        print(f"pyagent: {line}", file=sys.stderr)
