"""The command line: what each flag does, what goes wrong in one line, and what is not imported."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyagent.errors import UsageError
from pyagent.ui.cli import (
    FrontEnd,
    Invocation,
    OutputFormat,
    build_invocation,
    build_parser,
    choose_front_end,
    parse_arguments,
    run,
)

ROOT = Path(__file__).parents[2]
HEAVY = ("anthropic", "pydantic", "git", "tiktoken", "prompt_toolkit", "httpx2")


def invocation(*argv: str, environ: dict[str, str] | None = None) -> Invocation:
    return build_invocation(parse_arguments(argv), environ or {"TERM": "xterm"})


def program(*argv: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
    """Run the real command line."""
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"} | env
    command = [sys.executable, "-X", "importtime", "-m", "pyagent", *argv]
    return subprocess.run(command, input=stdin, capture_output=True, env=environ, timeout=120, check=False)


def imported(done: subprocess.CompletedProcess[bytes]) -> set[str]:
    """Top-level names of the modules a run imported."""
    lines = done.stderr.decode().splitlines()
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines if line.startswith("import time:")}


def complaint(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """What the user reads on stderr."""
    return [line for line in done.stderr.decode().splitlines() if not line.startswith("import time:")]


@pytest.mark.parametrize("flag", ["--version", "--help", "-v", "-h"])
def test_version_and_help_need_no_screen_and_no_sdk(flag: str) -> None:
    done = program(flag)
    assert done.returncode == 0
    assert done.stdout.startswith((b"pyagent ", b"usage: pyagent"))
    assert not imported(done) & {*HEAVY, "textual", "rich"}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--frobnicate",), "--frobnicate"),
        (("--mcp-config", "x"), "--mcp-config is not supported by this version."),
        (("mcp", "add", "x"), "pyagent mcp is not supported by this version."),
        (("-p", "x", "--json-schema", "{"), "--json-schema holds no JSON"),
        (("-p", "x", "--permission-prompt-tool", "mcp__x"), "--permission-prompt-tool takes only 'stdio'."),
        (("-p", "x", "--permission-prompt-tool", "stdio"), "needs --input-format stream-json"),
        (("-p", "x", "--autocompact", "100"), "--autocompact takes 'auto' or at least 8,000 tokens."),
        (("--json-schema", "{}"), "--json-schema works only with -p."),
        (("--permission-mode", "auto", "-p", "x"), "Unknown permission mode 'auto'."),
        (("-p",), "No prompt."),
        (("-p", "x", "--max-turns", "0"), "--max-turns needs a whole number above 0"),
        (("-p", "x", "--resume"), "--resume needs a session id"),
        (("--max-turns", "3"), "--max-turns works only with -p."),
        (("-p", "x", "--output-format", "xml"), "invalid choice: 'xml'"),
        (("-p", "x", "--system-prompt-file", "/nowhere"), "Cannot read /nowhere"),
        (("-p", "x", "--session-id", "7"), "--session-id needs a UUID"),
        (("-c", "-r", "abc"), "exclude each other"),
        (("--fork-session",), "--fork-session needs --resume or --continue."),
        (
            ("--view", "x", "--continue"),
            "--view is for reading: it goes with no -p, --resume, --continue, --no-session-persistence.",
        ),
        (("-p", "x", "--input-format", "stream-json"), "needs --output-format stream-json"),
        (("-p", "x", "--include-partial-messages"), "needs --output-format stream-json"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(argv: tuple[str, ...], words: str) -> None:
    done = program(*argv)
    assert done.returncode == 2
    (line,) = complaint(done)
    assert line.startswith("pyagent: ")
    assert words in line


def test_bytes_that_are_no_utf8_are_tolerated_in_arguments_and_input() -> None:
    argument = b"caf\xe9 --bad".decode("utf-8", "surrogateescape")
    done = program("--permission-mode", argument, "-p", stdin=b"\xff\xfe")
    assert done.returncode == 2
    assert "caf\ufffd" in complaint(done)[0]


def test_more_than_10_mb_of_input_is_refused() -> None:
    done = program("-p", stdin=b"x" * 10_000_001)
    assert done.returncode == 2
    assert "larger than 10 MB" in complaint(done)[0]


@pytest.mark.parametrize(
    ("is_print", "is_plain", "are_ttys", "term", "expected"),
    [
        (False, False, (True, True, True), "xterm", FrontEnd.SCREEN),
        (True, False, (True, True, True), "xterm", FrontEnd.HEADLESS),
        (False, True, (True, True, True), "xterm", FrontEnd.PLAIN),
        (False, False, (False, True, True), "xterm", FrontEnd.PLAIN),
        (False, False, (True, False, True), "xterm", FrontEnd.PLAIN),
        (False, False, (True, True, False), "xterm", FrontEnd.PLAIN),
        (False, False, (True, True, True), "dumb", FrontEnd.PLAIN),
        (False, False, (True, True, True), "", FrontEnd.PLAIN),
    ],
)
def test_the_front_end_follows_the_streams_and_the_terminal(
    is_print: bool, is_plain: bool, are_ttys: tuple[bool, bool, bool], term: str, expected: FrontEnd
) -> None:
    assert choose_front_end(is_print=is_print, is_plain=is_plain, are_ttys=are_ttys, term=term) is expected


def test_flags_reach_the_agents_options(tmp_path: Path) -> None:
    (tmp_path / "add.md").write_text("be brief")
    options = invocation(
        "fix", "it", "--plain", "--model", "opus", "--fallback-model", "a,b", "--permission-mode", "manual",
        "--allowedTools", "Bash(git log *),Read", "Edit(src/**)", "--disallowed-tools", "Bash(rm *)",
        "--tools", "Read,Bash",
        "--add-dir", str(tmp_path), "--settings", "{}", "--setting-sources", "user,local", "-n", "My session",
        "--append-system-prompt-file", str(tmp_path / "add.md"), "--system-prompt", "You are",
        "--max-budget-usd", "1.5",
        "--no-session-persistence", environ={"PYAGENT_HOME": str(tmp_path / "h")},
    ).options  # fmt: skip
    assert options.prompt == "fix it"
    assert (options.model, options.fallback_models) == ("opus", ("a", "b"))
    assert options.permission_mode == "default"
    assert options.allowed_tools == ("Bash(git log *)", "Read", "Edit(src/**)")
    assert options.disallowed_tools == ("Bash(rm *)",)
    assert options.tools == ("Read", "Bash")
    assert options.add_dirs == (tmp_path,)
    assert (options.settings_json, options.setting_sources) == ("{}", ("user", "local"))
    assert options.name == "My session"
    assert (options.system_prompt, options.system_prompt_addition) == ("You are", "be brief")
    assert options.max_budget_usd == 1.5
    assert options.home == tmp_path / "h"
    assert not options.is_persistent


@pytest.mark.parametrize(
    ("argv", "is_continued", "resume", "picks"),
    [
        ((), False, "", False),
        (("-c",), True, "", False),
        (("-r",), False, "", True),
        (("--resume", "parser work"), False, "parser work", False),
    ],
)
def test_sessions_are_continued_named_or_picked(
    argv: tuple[str, ...], is_continued: bool, resume: str, picks: bool
) -> None:
    made = invocation("--plain", *argv)
    assert (made.options.is_continued, made.options.resume, made.picks_session) == (is_continued, resume, picks)


def test_skipping_permissions_is_the_bypass_mode() -> None:
    assert invocation("--plain", "--dangerously-skip-permissions").options.permission_mode == "bypassPermissions"


def test_the_mouse_is_left_to_the_terminal_by_flag_or_environment() -> None:
    assert invocation(environ={"TERM": "xterm"}).has_mouse
    assert not invocation("--no-mouse", environ={"TERM": "xterm"}).has_mouse
    assert not invocation(environ={"TERM": "xterm", "PYAGENT_NO_MOUSE": "1"}).has_mouse


def test_screen_reader_mode_is_plain_and_names_what_turned_it_on() -> None:
    assert invocation("--ax-screen-reader").screen_reader_via == "flag"
    by_env = invocation(environ={"TERM": "xterm", "CLAUDE_AX_SCREEN_READER": "1"})
    assert (by_env.front_end, by_env.screen_reader_via) == (FrontEnd.PLAIN, "env")


def test_headless_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    made = invocation("-p", "x", "--output-format", "stream-json", "--include-partial-messages", "--max-turns", "3")
    assert (made.output_format, made.has_partial_messages, made.options.max_turns) == (
        OutputFormat.STREAM_JSON,
        True,
        3,
    )
    assert made.options.is_headless


def test_unknown_modes_are_refused_before_anything_starts() -> None:
    with pytest.raises(UsageError, match="Use one of default, acceptEdits"):
        invocation("--permission-mode", "yolo")


def test_help_names_every_flag_once() -> None:
    text = build_parser().format_help()
    for flag in ("--model", "--resume", "--print", "--allowedTools", "--plain", "--max-budget-usd"):
        assert flag in text


def test_nothing_heavy_is_imported_before_the_first_paint() -> None:
    script = (
        "import sys\n"
        "from pyagent.ui import app, cli, runner\n"
        "from pyagent.ui.prompt import Prompt\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environ, timeout=120, check=True)
    assert done.stdout == b"[]\n"


def test_sessions_of_claude_code_are_listed_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    assert run(["import", "claude"]) == 1
    folder = tmp_path / "claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(tmp_path))
    folder.mkdir(parents=True)
    line = {"type": "user", "uuid": "u", "cwd": "/x", "message": {"role": "user", "content": "fix the parser"}}
    (folder / "abcd.jsonl").write_text(json.dumps(line) + "\n")
    assert run(["import", "claude"]) == 0
    assert capsys.readouterr().out.startswith("abcd  fix the parser  (Claude Code")
