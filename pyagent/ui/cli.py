"""The command line: reads flags, picks the front end, and turns every failure into one clear line.

Nothing heavy is imported here, so `--version` and `--help` answer at once and the first paint is not held up.
"""

from __future__ import annotations

import argparse
import os
import select
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn, TextIO

from pyagent import __version__
from pyagent.choices import EFFORT_LEVELS, PERMISSION_MODES
from pyagent.errors import PyagentError, UsageError
from pyagent.launch import AgentHandle, AgentStarter, LaunchOptions
from pyagent.ui import flag_values
from pyagent.ui.front_settings import front_end_settings

if TYPE_CHECKING:
    from pyagent.events import EventSink
    from pyagent.ui.instant import InstantPrompt

EXIT_FAILURE, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 130, 143

STDIN_CAP_BYTES = 10_000_000
"""More than this on standard input cannot be a prompt for any model; refusing beats filling the memory."""

STDIN_WAIT_S = 3.0
"""How long a prompt waits for piped text to begin. Schedulers often hand down a pipe nobody ever writes to."""

_DUMB_TERMINALS = ("", "dumb", "unknown")

_COMMANDS_ELSEWHERE = (("mcp", "add"), ("mcp", "list"), ("mcp", "remove"), ("mcp", "get"), ("project", "purge"))
"""Sub-commands of other agents: sent to a model as a prompt they would only puzzle it."""

_KNOWN_ELSEWHERE = (
    "--mcp-config",
    "--strict-mcp-config",
    "--agent",
    "--agents",
    "--ide",
    "--include-hook-events",
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
    asks_on_stdin: bool = False
    """Open questions go to the other end of standard input as control requests."""
    debug: str | None = None
    """Categories of the debug log, comma-separated; empty for all, None for no such log."""
    debug_file: str = ""


class _Parser(argparse.ArgumentParser):
    """Raises instead of exiting, so that one place prints errors."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message[:1].upper() + message[1:] + ".", hint="See pyagent --help.")


def run(argv: Sequence[str], instant: InstantPrompt | None = None) -> int:
    """Run pyagent with these arguments and return the exit code. Never raises, never prints a traceback.

    `instant` is the prompt that already stands on the screen; it goes before anything else is printed.
    """
    try:
        with instant or nullcontext():
            return _run([_readable(arg) for arg in argv], instant)
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


def _dispatch_logged(invocation: Invocation, instant: InstantPrompt | None) -> int:
    """Run the front end, with a debug log beside it if one was asked for."""
    with suppress(OSError):  # Whoever needs the folder says why it cannot be had.
        # Here and not where its first file is made: the parents of a folder are made readable for everybody.
        invocation.options.home.mkdir(mode=0o700, parents=True)
    if invocation.debug is None:
        return dispatch(invocation, _start_agent, instant)
    from pyagent.ui.debug_log import debug_log, logging_starter

    path = Path(invocation.debug_file or invocation.options.home / "logs" / "debug.log").expanduser()
    with debug_log(path, invocation.debug):
        if invocation.front_end is FrontEnd.HEADLESS:
            _complain(f"Debug log: {path}")
        return dispatch(invocation, logging_starter(_start_agent), instant)


def _run(given: list[str], instant: InstantPrompt | None) -> int:
    if not has_output():
        _complain("Standard output is closed; there is nowhere to answer.")
        return EXIT_FAILURE
    if given[:2] == ["context", "replay"]:
        from pyagent.ui.replay_command import run_context_command

        return run_context_command(given[1:], os.environ)
    if given == ["doctor"]:
        from pyagent.ui.doctor import options_of, run_doctor

        return run_doctor(options_of(os.environ))
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
    return _dispatch_logged(build_invocation(args, os.environ), instant)


def _list_importable() -> int:
    """Print Claude Code's sessions of this folder, newest first."""
    from datetime import UTC, datetime

    choosing = import_module("pyagent.ui.choosing")
    sessions = choosing.foreign_sessions(os.environ, flag_values.current_folder())
    for item in choosing.session_items(sessions, datetime.now(UTC)):
        print(f"{item.id.removeprefix('claude:')}  {item.label}  ({item.detail})")
    if not sessions:
        _complain("Claude Code has no session of this folder.")
    return 0 if sessions else EXIT_FAILURE


def dispatch(invocation: Invocation, starter: AgentStarter, instant: InstantPrompt | None = None) -> int:
    """Run the chosen front end; only its modules are imported."""
    if instant is not None and invocation.front_end is not FrontEnd.SCREEN:
        instant.leave()
    match invocation.front_end:
        case FrontEnd.HEADLESS:
            from pyagent.ui.headless import run_headless

            return run_headless(invocation, starter)
        case FrontEnd.PLAIN:
            from pyagent.ui.plain_runner import run_plain

            return run_plain(invocation, starter)
        case FrontEnd.SCREEN:
            from pyagent.ui.runner import run_screen

            return run_screen(invocation, starter, instant)


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
        usage="pyagent [options] [prompt]\n       pyagent import claude [session]\n"
        "       pyagent doctor\n       pyagent reset\n"
        "       pyagent context replay SESSION [--window N] [--set key=value]...",
        description="A coding agent for the terminal. Without -p it opens an interactive session. "
        "`pyagent doctor` looks for what is wrong; `pyagent reset` repairs a terminal after a crash.",
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("prompt", nargs="*", help="first prompt; with -p, standard input is added to it")

    general = parser.add_argument_group("general")
    general.add_argument("-h", "--help", action="store_true", help="show this help and exit")
    general.add_argument("-v", "--version", action="store_true", help="show the version and exit")
    general.add_argument("--verbose", action="store_true", help="show tool output and thinking unfolded")
    general.add_argument("--plain", action="store_true", help="line by line instead of a full screen")
    general.add_argument("--tui", choices=["fullscreen", "plain"], metavar="fullscreen|plain", help="which front end")
    general.add_argument("--ax-screen-reader", action="store_true", help="plain mode worded for screen readers")
    general.add_argument(
        "--debug", nargs="?", const="", metavar="CATEGORIES", help="log what happens; !name leaves out"
    )
    general.add_argument("--debug-file", default="", metavar="FILE", help="where to log it (turns --debug on)")
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
    session.add_argument("--view", default="", metavar="ID|TEXT", help="look at one without changing it")
    session.add_argument("--fork-session", action="store_true", help="resume as a copy under a new id")
    session.add_argument("--session-id", default="", metavar="UUID", help="id for the new session")
    session.add_argument("-n", "--name", default="", metavar="TITLE", help="title for the session")
    session.add_argument("--autocompact", metavar="auto|TOKENS", help="context window at whose end it compacts")
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
    safety.add_argument("--trust", action="store_true", help="trust this folder's own settings for this run")
    safety.add_argument("--safe-mode", action="store_true", help="leave memory files and the settings' env out")
    safety.add_argument("--bare", action="store_true", help="leave memory files, settings files and git state out")
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
    headless.add_argument("--json-schema", metavar="FILE|JSON", help="answer with JSON of this form")
    headless.add_argument("--permission-prompt-tool", metavar="stdio", help="ask on standard output (stream-json)")
    headless.add_argument("--max-turns", metavar="N", help="API rounds a prompt may take")
    headless.add_argument("--max-budget-usd", metavar="USD", help="stop when the run has cost this much")
    return parser


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The parsed flags.

    Raises:
        UsageError: an unknown flag, a missing value, or a flag of another agent that pyagent does not have.
    """
    if tuple(argv[:2]) in _COMMANDS_ELSEWHERE:
        raise UsageError(f"pyagent {argv[0]} is not supported by this version.", hint="See pyagent --help.")
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
    options = flag_values.launch_options(args, environ, is_headless=args.print)
    reader, is_plain = _wants_plain(args, options, environ)
    front_end = choose_front_end(
        is_print=args.print,
        is_plain=is_plain,
        are_ttys=(_is_tty(sys.stdin), _is_tty(sys.stdout), _is_tty(sys.stderr)),
        term=environ.get("TERM", ""),
    )
    if front_end is not FrontEnd.HEADLESS:
        for flag, value in (
            ("--output-format", args.output_format),
            ("--input-format", args.input_format),
            ("--include-partial-messages", args.include_partial_messages),
            ("--replay-user-messages", args.replay_user_messages),
            ("--json-schema", args.json_schema),
            ("--permission-prompt-tool", args.permission_prompt_tool),
            ("--max-turns", args.max_turns),
        ):
            if value:
                raise UsageError(f"{flag} works only with -p.", hint="Add -p, or leave it out.")
    output_format = OutputFormat(args.output_format or "text")
    is_input_stream_json = args.input_format == "stream-json"
    if is_input_stream_json and output_format is not OutputFormat.STREAM_JSON:
        raise UsageError("--input-format stream-json needs --output-format stream-json.")
    if args.permission_prompt_tool is not None:
        if args.permission_prompt_tool != "stdio":
            raise UsageError("--permission-prompt-tool takes only 'stdio'.", hint="MCP tools cannot be asked.")
        if not is_input_stream_json:
            raise UsageError("--permission-prompt-tool needs --input-format stream-json.")
    for flag, value in (
        ("--include-partial-messages", args.include_partial_messages),
        ("--replay-user-messages", args.replay_user_messages),
    ):
        if value and output_format is not OutputFormat.STREAM_JSON:
            raise UsageError(f"{flag} needs --output-format stream-json.")
    invocation = Invocation(
        options=options,
        front_end=front_end,
        output_format=output_format,
        is_input_stream_json=is_input_stream_json,
        has_partial_messages=args.include_partial_messages,
        replays_user_messages=args.replay_user_messages,
        is_verbose=args.verbose,
        picks_session=args.resume == "",
        screen_reader_via=reader,
        has_mouse=not (args.no_mouse or _is_on(environ.get("PYAGENT_NO_MOUSE", ""))),
        asks_on_stdin=args.permission_prompt_tool is not None,
        debug="" if args.debug is None and args.debug_file else args.debug,
        debug_file=args.debug_file,
    )
    if front_end is FrontEnd.HEADLESS:
        return _with_piped_prompt(invocation)
    return invocation


def _wants_plain(args: argparse.Namespace, options: LaunchOptions, environ: Mapping[str, str]) -> tuple[str, bool]:
    """What turned the screen reader mode on (empty: nothing did), and whether plain mode is asked for."""
    if args.print:
        return "", False
    if args.ax_screen_reader:
        return "flag", True
    if args.tui == "fullscreen" and not args.plain:
        return "", False
    if _is_on(environ.get("CLAUDE_AX_SCREEN_READER", "")):
        return "env", True
    if args.plain or args.tui == "plain":
        is_plain = True
    else:
        is_plain = _is_on(environ.get("CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN", ""))
    wanted = front_end_settings(options)
    reader = "settings" if wanted.has_screen_reader else ""
    return reader, is_plain or bool(reader) or (wanted.front_end == "plain" and args.tui is None)


def choose_front_end(*, is_print: bool, is_plain: bool, are_ttys: tuple[bool, bool, bool], term: str) -> FrontEnd:
    """The front end for these streams (stdin, stdout, stderr).

    Textual draws on stderr and reads keys from stdin whatever they are, so a full screen needs all three.
    """
    if is_print:
        return FrontEnd.HEADLESS
    if is_plain or not all(are_ttys) or term in _DUMB_TERMINALS:
        return FrontEnd.PLAIN
    return FrontEnd.SCREEN


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
