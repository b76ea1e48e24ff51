"""Flags of headless runs, each seen to do what it says by what reaches the server or the disk."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.program import Program, Ran
from tests.fakes.messages_server import FakeMessagesServer, running_in_thread
from tests.fakes.script import Script, overloaded, reply, tool_use


def run(folder: Path, *arguments: str, answers: tuple[Any, ...] = ("Done.",)) -> tuple[Ran, list[dict[str, Any]]]:
    """A run and the bodies of its requests."""
    with running_in_thread(FakeMessagesServer(Script(answers))) as server:
        ran = Program(folder, server.url).run("-p", "go", *arguments)
    return ran, [request.body for request in server.message_requests]


def work(folder: Path) -> Path:
    (folder / "work").mkdir(parents=True, exist_ok=True)
    return folder / "work"


def sent(body: dict[str, Any]) -> str:
    return json.dumps([body["system"], body["messages"]])


@pytest.mark.parametrize(("flag", "is_told"), [((), True), (("--safe-mode",), False), (("--bare",), False)])
def test_memory_files_are_left_out_where_that_is_asked_for(
    tmp_path: Path, flag: tuple[str, ...], is_told: bool
) -> None:
    (work(tmp_path) / "CLAUDE.md").write_text("Always speak of otters.")
    _, (body,) = run(tmp_path, *flag)
    assert ("otters" in sent(body)) is is_told


def test_bare_reads_no_settings_file_and_safe_mode_no_environment_of_theirs(tmp_path: Path) -> None:
    settings = tmp_path / "home" / ".pyagent" / "settings.json"
    settings.parent.mkdir(parents=True)
    content = {"permissions": {"deny": ["WebFetch"]}, "env": {"GREETING": "hello"}}
    settings.write_text(json.dumps(content))
    call = reply(tool_use("Bash", {"command": "echo [$GREETING]"}))
    for flags, greeting, has_fetch in (
        ((), "[hello]", False),
        (("--safe-mode",), "[]", False),
        (("--bare",), "[]", True),
    ):
        ran, (first, second) = run(tmp_path, *flags, answers=(call, "Done."))
        assert ran.code == 0
        assert greeting in json.dumps(second["messages"][-1])
        assert ("WebFetch" in [tool["name"] for tool in first["tools"]]) is has_fetch


@pytest.mark.parametrize(("flag", "count"), [("", 0), ("default", 13), ("Read,Bash", 2), ("Read Bash", 2)])
def test_tools_are_those_that_are_named(tmp_path: Path, flag: str, count: int) -> None:
    _, (body,) = run(tmp_path, "--tools", flag)
    assert len(body.get("tools", ())) == count


def test_a_folder_is_trusted_for_one_run(tmp_path: Path) -> None:
    settings = work(tmp_path) / ".pyagent" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"permissions": {"allow": ["Bash(touch *)"]}}))
    call = reply(tool_use("Bash", {"command": "touch x"}))
    for flags, is_run in ((), False), (("--trust",), True), ((), False):
        ran, _ = run(tmp_path, *flags, answers=(call, "Done."))
        assert (tmp_path / "work" / "x").exists() is is_run, ran.err
        (tmp_path / "work" / "x").unlink(missing_ok=True)


def test_the_window_of_autocompact_is_the_one_assumed(tmp_path: Path) -> None:
    ran, _ = run(tmp_path, "--autocompact", "64000", "--output-format", "json")
    (usage,) = ran.result["modelUsage"].values()
    assert usage["contextWindow"] == 64_000


def test_a_fallback_model_answers_when_the_first_is_overloaded(tmp_path: Path) -> None:
    ran, bodies = run(
        tmp_path,
        "--model",
        "claude-opus-5-5",
        "--fallback-model",
        "claude-haiku-4-5",
        answers=(*[overloaded()] * 3, "Hi."),
    )
    assert ran.out == "Hi.\n"
    assert [body["model"] for body in bodies][-1].startswith("claude-haiku-4-5")


def test_system_prompts_come_from_flags_and_files(tmp_path: Path) -> None:
    (work(tmp_path) / "more.md").write_text("Be brief.")
    _, (body,) = run(tmp_path, "--system-prompt", "You are a fox.", "--append-system-prompt-file", "more.md")
    assert body["system"][0]["text"].startswith("You are a fox.")
    assert body["system"][0]["text"].endswith("Be brief.")


def test_nothing_is_written_where_no_session_is_wanted(tmp_path: Path) -> None:
    ran, _ = run(tmp_path, "--no-session-persistence")
    assert ran.out == "Done.\n"
    assert Program(tmp_path).sessions == []


def test_a_debug_log_tells_what_happened(tmp_path: Path) -> None:
    ran, _ = run(tmp_path, "--debug-file", "d.log")
    assert ran.complaints == ["pyagent: Debug log: d.log"]
    text = (tmp_path / "work" / "d.log").read_text()
    assert "SubmitPrompt" in text
    assert "TurnFinished stop_reason=end_turn" in text
    assert "a-key" not in text


def test_a_slash_command_is_answered_without_a_call(tmp_path: Path) -> None:
    with running_in_thread(FakeMessagesServer(Script(["Done."]))) as server:
        program = Program(tmp_path, server.url)
        program.run("-p", "go")
        cost = program.run("-p", "/cost", "--continue")
        refused = program.run("-p", "/resume")
        unknown = program.run("-p", "/unpin 3", "--continue", "--output-format", "json")
    assert cost.out.startswith("Cost\nTotal: $")
    assert (refused.code, refused.complaints) == (2, ["pyagent: /resume works only in an interactive session."])
    assert (unknown.code, unknown.result["errors"]) == (1, ["There is no pin '3'. /pin lists them with their numbers."])


def test_a_schema_that_is_none_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    for given, words in (('{"type": 7}', "no valid JSON Schema"), ("nowhere.json", "Cannot read nowhere.json")):
        ran = Program(tmp_path).run("-p", "go", "--json-schema", given)
        assert (ran.code, len(ran.complaints)) == (2, 1)
        assert words in ran.err


def test_an_answer_that_is_no_object_is_asked_for_as_a_field(tmp_path: Path) -> None:
    (work(tmp_path) / "schema.json").write_text('{"type": "array", "items": {"type": "integer"}}')
    calls = (
        reply(tool_use("StructuredOutput", {"value": ["x"]})),
        reply(tool_use("StructuredOutput", {"value": [1, 2]})),
    )
    ran, bodies = run(tmp_path, "--json-schema", "schema.json", answers=calls)
    assert (ran.code, ran.out) == (0, "[1, 2]\n")
    assert "'x' is not of type 'integer'" in json.dumps(bodies[1]["messages"][-1])


def test_sigterm_kills_what_tools_started_and_the_session_goes_on(tmp_path: Path) -> None:
    os.mkfifo(work(tmp_path) / "up")
    call = reply(tool_use("Bash", {"command": "sleep 1000 & echo $! > up; wait"}))
    with running_in_thread(FakeMessagesServer(Script([call, "Going on."]))) as server:
        program = Program(tmp_path, server.url)
        process = program.start("-p", "go", "--dangerously-skip-permissions")
        child = int((tmp_path / "work" / "up").read_text())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
        assert process.returncode == 143
        assert is_gone(child)
        ran = program.run("-p", "go on", "--continue")
    assert (ran.code, ran.out) == (0, "Going on.\n")


def is_gone(pid: int, *, limit_s: float = 60.0) -> bool:
    """Whether a process ends, or is only a zombie that nobody has collected, within the limit."""
    ends_at = time.monotonic() + limit_s
    while time.monotonic() < ends_at:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        os.sched_yield()
    return False
