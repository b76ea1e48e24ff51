"""Bad input and a hostile environment: one clear line, the right exit code, never a traceback, nothing lost."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from tests.e2e.program import Program, Ran
from tests.fakes.messages_server import FakeMessagesServer, running_in_thread
from tests.fakes.script import BEFORE_HEADERS, Script, Stall, after_deltas, echo, overloaded, reply

USAGE, FAILURE = 2, 1


def assert_one_line(ran: Ran, code: int, *words: str) -> None:
    """The run failed with `code` and said one line on standard error that holds all the words."""
    assert ran.code == code, ran
    assert ran.out == ""
    assert len(ran.complaints) == 1, ran.err
    assert ran.complaints[0].startswith("pyagent: ")
    for word in words:
        assert word in ran.complaints[0], ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-p", "hello", "--frobnicate"], ["--frobnicate", "--help"]),
        (["-p", "hello", "--model"], ["--model", "--help"]),
        (["-p", "/compcat"], ["/compcat", "/compact"]),
        (["-p", "/resume"], ["/resume", "interactive"]),
        (["-p", ""], ["No prompt"]),
        (["-p", "hello", "--model", "gpt-9"], ["gpt-9"]),
        (["-p", "hello", "--permission-mode", "yolo"], ["yolo", "plan"]),
        (["-p", "hello", "--add-dir", "nowhere"], ["nowhere"]),
        (["-p", "hello", "--settings", "{broken"], ["--settings"]),
        (["-p", "hello", "--max-turns", "none"], ["--max-turns"]),
        (["-p", "hello", "--output-format", "yaml"], ["'yaml'", "'text', 'json', 'stream-json'"]),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_a_mistake_on_the_command_line_is_one_line_of_advice(
    tmp_path: Path, arguments: list[str], words: list[str]
) -> None:
    ran = Program(tmp_path, environ={"ANTHROPIC_API_KEY": "k"}).run(*arguments)
    assert_one_line(ran, USAGE, *words)


@pytest.mark.parametrize("flag", ["--resume", "--view"])
def test_a_session_that_is_not_there_is_one_line_of_advice_in_a_pipe_too(tmp_path: Path, flag: str) -> None:
    assert_one_line(Program(tmp_path).run(flag, "nonsense"), FAILURE, "no earlier session", "pyagent")


def test_without_credentials_a_headless_run_says_what_to_set(tmp_path: Path) -> None:
    assert_one_line(Program(tmp_path).run("-p", "hello"), FAILURE, "credentials", "ANTHROPIC_API_KEY")


def test_a_wrong_key_is_named_as_such_and_tried_once(tmp_path: Path) -> None:
    with running_in_thread(FakeMessagesServer(echo, api_key="the right one")) as server:
        ran = Program(tmp_path, server.url).run("-p", "hello")
    assert_one_line(ran, FAILURE, "credentials", "ANTHROPIC_API_KEY")
    assert "a-key" not in ran.err
    assert len(server.message_requests) == 1


def test_a_server_that_cannot_be_reached_is_named_as_such(tmp_path: Path) -> None:
    with socket.socket() as taken:
        # Bound but not listening: a connection is refused, and nobody else gets the port meanwhile.
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        ran = Program(tmp_path, url, {"CLAUDE_CODE_MAX_RETRIES": "1"}).run("-p", "hello")
    assert_one_line(ran, FAILURE, "cannot be reached", "network")


@pytest.mark.parametrize("address", ["nonsense", "http://[::", "http://:80", "ftp://127.0.0.1"])
def test_an_address_that_is_none_is_named_as_such(tmp_path: Path, address: str) -> None:
    ran = Program(tmp_path, environ={"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": address}).run("-p", "hello")
    assert_one_line(ran, FAILURE, "ANTHROPIC_BASE_URL", address, "http://")


def test_a_server_that_keeps_failing_is_told_of_while_it_is_tried_again(tmp_path: Path) -> None:
    with running_in_thread(FakeMessagesServer(Script([overloaded(), overloaded(), overloaded(), "Here."]))) as server:
        ran = Program(tmp_path, server.url).run("-p", "hello")
    assert (ran.code, ran.out) == (0, "Here.\n")
    assert len(ran.complaints) == 1
    assert "Trying again" in ran.complaints[0]


def test_a_closed_standard_output_is_named(tmp_path: Path) -> None:
    ran = Program(tmp_path).run("--model", "offline", "-p", "hello", before=("sh", "-c", 'exec "$@" >&-', "sh"))
    assert_one_line(ran, FAILURE, "output is closed")


@pytest.mark.parametrize("where", ["before the answer", "in the answer"])
def test_a_server_that_falls_silent_is_given_up(tmp_path: Path, where: str) -> None:
    answer = reply("a long answer", delta_chars=2)
    at = after_deltas(2) if where == "in the answer" else BEFORE_HEADERS
    with running_in_thread(FakeMessagesServer(Script([answer.with_faults(Stall(at))]))) as server:
        environ = {
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "API_TIMEOUT_MS": "500",
            "CLAUDE_STREAM_IDLE_TIMEOUT_MS": "500",
        }
        ran = Program(tmp_path, server.url, environ).run("-p", "hello")
    assert_one_line(ran, FAILURE, "no data" if where == "in the answer" else "no answer")


def test_an_unknown_model_of_a_server_is_named(tmp_path: Path) -> None:
    with running_in_thread(FakeMessagesServer(echo)) as server:
        ran = Program(tmp_path, server.url).run("-p", "hello", "--model", "claude-nonsense-9")
    assert_one_line(ran, FAILURE, "claude-nonsense-9")


def test_outside_a_git_repository_and_without_git_it_works(tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    with running_in_thread(FakeMessagesServer(echo)) as server:
        ran = Program(tmp_path, server.url, {"PATH": str(empty)}).run("-p", "hello")
    assert (ran.code, ran.out, ran.err) == (0, "You said: hello\n", "")


def test_in_a_git_repository_without_the_git_binary_it_works(tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    (tmp_path / "work" / ".git" / "objects").mkdir(parents=True)
    (tmp_path / "work" / ".git" / "refs").mkdir()
    (tmp_path / "work" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    with running_in_thread(FakeMessagesServer(echo)) as server:
        ran = Program(tmp_path, server.url, {"PATH": str(empty)}).run("-p", "hello")
    assert (ran.code, ran.out, ran.err) == (0, "You said: hello\n", "")


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root reads everything")
def test_in_an_unreadable_folder_it_works(tmp_path: Path) -> None:
    before = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"] if os.geteuid() == 0 else []
    program = Program(tmp_path)
    program.work.mkdir()
    shell = ["/bin/sh", "-c", 'chmod 000 .; exec "$@"', "sh"]
    try:
        with running_in_thread(FakeMessagesServer(echo)) as server:
            ran = Program(tmp_path, server.url).run("-p", "hello", before=[*before, *shell])
    finally:
        program.work.chmod(0o700)
    assert (ran.code, ran.out) == (0, "You said: hello\n"), ran
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("arguments", [["-p", "hello"], ["doctor"], ["import", "claude"]], ids=lambda words: words[0])
def test_in_a_folder_that_was_removed_it_says_so(tmp_path: Path, arguments: list[str]) -> None:
    program = Program(tmp_path, environ={"ANTHROPIC_API_KEY": "k"})
    ran = program.run(*arguments, before=["/bin/sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh"])
    assert_one_line(ran, USAGE, "folder")


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root writes everywhere")
def test_a_home_that_cannot_be_written_loses_no_answer(tmp_path: Path) -> None:
    before = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"] if os.geteuid() == 0 else []
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o500)
    try:
        with running_in_thread(FakeMessagesServer(echo)) as server:
            ran = Program(tmp_path, server.url).run("-p", "hello", before=before)
    finally:
        home.chmod(0o700)
    assert (ran.code, ran.out) == (0, "You said: hello\n"), ran
    assert len(ran.complaints) == 1
    assert "cannot be" in ran.err


def test_a_session_file_of_garbage_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    with running_in_thread(FakeMessagesServer(Script(["One."]))) as server:
        program = Program(tmp_path, server.url)
        program.run("-p", "first")
        session = program.sessions[0]
        garbage = os.urandom(4_000)
        session.write_bytes(garbage)
        ran = program.run("-p", "go on", "--resume", session.stem)
    assert_one_line(ran, FAILURE, "session")
    assert session.read_bytes() == garbage


def test_a_session_file_with_broken_lines_goes_on_with_the_others(tmp_path: Path) -> None:
    with running_in_thread(FakeMessagesServer(Script(["One.", "Two."]))) as server:
        program = Program(tmp_path, server.url)
        program.run("-p", "first")
        session = program.sessions[0]
        session.write_bytes(session.read_bytes() + b"\x00\xff{{\n" * 41)
        ran = program.run("-p", "go on", "--continue")
    assert (ran.code, ran.out) == (0, "Two.\n")
    assert len(ran.complaints) == 1, ran.err
    assert "41 lines" in ran.err
    said = str(server.message_requests[-1].body["messages"])
    assert "first" in said
    assert "One." in said


def test_bytes_that_are_no_utf8_reach_the_model_as_replacement_characters(tmp_path: Path) -> None:
    with running_in_thread(FakeMessagesServer(echo)) as server:
        ran = Program(tmp_path, server.url).run("-p", b"caf\xe9", input=b"na\xefve \xed\xa0\x80")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("You said: caf\ufffd\n\nna\ufffdve \ufffd")


def test_lines_of_json_input_that_are_none_are_named_and_passed_over(tmp_path: Path) -> None:
    good = b'{"type":"user","message":{"role":"user","content":"hello"}}\n'
    with running_in_thread(FakeMessagesServer(echo)) as server:
        ran = Program(tmp_path, server.url).run(
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            input=b"\xff{no json\n[1]\n" + b"[" * 100_000 + b"\n" + good,
        )
    assert ran.code == 0
    assert ran.result["result"] == "You said: hello"
    assert [line.split(" is ")[0] for line in ran.complaints] == [
        "pyagent: Line 1 of standard input",
        "pyagent: Line 2 of standard input",
        "pyagent: Line 3 of standard input",
    ]


def test_a_closed_output_ends_the_run_quietly(tmp_path: Path) -> None:
    with running_in_thread(FakeMessagesServer(echo)) as server:
        program = Program(tmp_path, server.url)
        process = program.start("-p", "hello", before=["/bin/sh", "-c", '"$@" | true', "sh"])
        _, err = process.communicate(timeout=120)
    assert err == b""
