"""Headless runs with a scripted agent: the lines written, the exit code, what is sent."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pyagent.commands import AnswerPermission, Command, Interrupt, RunCommand, SubmitPrompt
from pyagent.events import (
    CommandFinished,
    CompactionFinished,
    CompactionStarted,
    ConversationClosed,
    Event,
    GaugeFacts,
    GaugeMoved,
    Notice,
    PermissionNeeded,
    PermissionQuestion,
    PermissionSettled,
    Report,
    RequestStarted,
    RetryScheduled,
    TurnFailed,
    TurnFinished,
    WireEvent,
)
from pyagent.log import Boundary, ClearResults, NoticeShown, Record, UserEntry
from pyagent.messages import JsonObject, TextBlock
from pyagent.ui.cli import FrontEnd, Invocation, OutputFormat
from pyagent.ui.headless import HeadlessRun, run_headless
from tests.ui.fake_agent import FakeAgent, launch_options, opened
from tests.ui.records import Recorder, answer, prompt, text, tool_ran, tool_result, tool_use

Answers = Callable[[Command], Sequence[Event]]


def one_turn(command: Command) -> Sequence[Event]:
    """A turn with one tool call, for any prompt."""
    if not isinstance(command, SubmitPrompt):
        return []
    r = Recorder()
    return [
        r.commit(prompt(command.text)),
        RequestStarted("sdk"),
        r.commit(answer(tool_use("t1", "Read", file_path="a.py"), stop_reason="tool_use")),
        r.commit(tool_result("t1", "1\tx = 1")),
        RequestStarted("sdk"),
        r.commit(answer(text("It sets x."))),
        TurnFinished("end_turn", 2, 1.5, "It sets x."),
    ]


def run(
    home: Path,
    capfd: pytest.CaptureFixture[str],
    output_format: OutputFormat,
    answers: Answers = one_turn,
    **changes: Any,
) -> tuple[int, str, str, FakeAgent]:
    """(exit code, stdout, stderr, agent) of a run."""
    agent = FakeAgent([opened()], answers)
    options = launch_options(home, prompt="what is x?", is_headless=True)
    code = run_headless(Invocation(options, FrontEnd.HEADLESS, output_format, **changes), agent)
    out, err = capfd.readouterr()
    return code, out, err, agent


def lines_of(out: str) -> list[JsonObject]:
    return [json.loads(line) for line in out.splitlines()]


def test_text_output_is_the_last_answer_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err, agent = run(tmp_path, capfd, OutputFormat.TEXT)
    assert (code, out, err) == (0, "It sets x.\n", "")
    assert agent.is_closed


def test_stream_json_begins_with_init_and_ends_with_the_result(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, out, _, _ = run(tmp_path, capfd, OutputFormat.STREAM_JSON)
    lines = lines_of(out)
    assert [(line["type"], line.get("subtype")) for line in lines] == [
        ("system", "init"),
        ("assistant", None),
        ("user", None),
        ("assistant", None),
        ("result", "success"),
    ]
    assert all(line["session_id"] == opened().session_id and line["uuid"] for line in lines)
    assert len({line["uuid"] for line in lines}) == len(lines)


def test_init_names_session_tools_model_and_commands(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    init = lines_of(run(tmp_path, capfd, OutputFormat.STREAM_JSON)[1])[0]
    assert init["cwd"] == "/repo/engine"
    assert init["tools"] == ["Read", "Bash", "Edit"]
    assert init["model"] == "claude-test-5"
    assert init["permissionMode"] == "default"
    assert init["apiKeySource"] == "none"
    assert "compact" in init["slash_commands"]
    assert init["mcp_servers"] == []


def test_messages_keep_the_shape_of_the_api(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(run(tmp_path, capfd, OutputFormat.STREAM_JSON)[1])
    assert lines[1]["message"]["content"] == [tool_use("t1", "Read", file_path="a.py")]
    assert lines[1]["message"]["usage"]["input_tokens"] == 100
    assert lines[1]["parent_tool_use_id"] is None
    result = lines[2]["message"]["content"][0]
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "t1")


def test_the_result_sums_usage_cost_and_rounds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = lines_of(run(tmp_path, capfd, OutputFormat.JSON)[1])[0]
    assert result["subtype"] == "success"
    assert result["is_error"] is False
    assert result["result"] == "It sets x."
    assert result["num_turns"] == 2
    assert result["terminal_reason"] == "completed"
    assert result["total_cost_usd"] == pytest.approx(0.02)
    assert result["usage"]["input_tokens"] == 200
    assert result["modelUsage"]["claude-test-5"]["cacheReadInputTokens"] == 100
    assert result["permission_denials"] == []
    assert result["duration_ms"] >= result["duration_api_ms"] >= 0


def ends_with(*events: Event) -> Answers:
    return lambda command: events if isinstance(command, SubmitPrompt) else []


@pytest.mark.parametrize(
    ("end", "subtype", "reason"),
    [
        (TurnFinished("max_turns", 3, 1.0), "error_max_turns", "max_turns"),
        (TurnFinished("budget", 3, 1.0), "error_max_budget_usd", "max_budget_usd"),
        (TurnFinished("interrupted", 1, 1.0), "error_during_execution", "aborted_streaming"),
        (TurnFailed("PromptTooLongError", "Too long."), "error_during_execution", "prompt_too_long"),
        (TurnFailed("CredentialsError", "No key."), "error_during_execution", "api_error"),
        (TurnFailed("ValueError", "Oops."), "error_during_execution", "model_error"),
    ],
)
def test_a_run_that_does_not_succeed_says_how_and_exits_with_1(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], end: Event, subtype: str, reason: str
) -> None:
    code, out, err, _ = run(tmp_path, capfd, OutputFormat.JSON, ends_with(end))
    result = lines_of(out)[0]
    assert (code, result["subtype"], result["terminal_reason"], result["is_error"]) == (1, subtype, reason, True)
    assert err.startswith("pyagent: ")
    assert result["errors"]


def test_an_error_in_text_output_is_one_line_on_stderr(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    failed = TurnFailed("CredentialsError", "No credentials.", "Set ANTHROPIC_API_KEY.")
    code, out, err, _ = run(tmp_path, capfd, OutputFormat.TEXT, ends_with(failed))
    assert (code, out, err) == (1, "", "pyagent: No credentials. Set ANTHROPIC_API_KEY.\n")


def test_an_agent_that_cannot_start_ends_the_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    failed = ends_with(TurnFailed("SessionError", "No such session."), ConversationClosed(""))
    code, _, err, _ = run(tmp_path, capfd, OutputFormat.TEXT, failed)
    assert (code, err) == (1, "pyagent: No such session.\n")


def test_a_question_is_answered_no_and_listed_in_the_result(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    r = Recorder()

    def answers(command: Command) -> Sequence[Event]:
        match command:
            case SubmitPrompt():
                asked = PermissionQuestion("Bash", "command", "rm x")
                return [r.commit(answer(tool_use("t1", "Bash", command="rm x"))), PermissionNeeded("q1", "t1", asked)]
            case AnswerPermission(answer="no"):
                return [TurnFinished("end_turn", 1, 1.0, "ok")]
            case _:
                return []

    lines = lines_of(run(tmp_path, capfd, OutputFormat.STREAM_JSON, answers)[1])
    denial = {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "rm x"}}
    assert denial.items() <= next(line for line in lines if line.get("subtype") == "permission_denied").items()
    assert lines[-1]["permission_denials"] == [denial]


def test_a_call_refused_by_a_rule_is_listed_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    r = Recorder()
    events = (
        r.commit(answer(tool_use("t1", "Bash", command="rm x"))),
        r.commit(tool_result("t1", "Not allowed", is_error=True)),
        r.commit(tool_ran("t1", "Bash", denied=True)),
        TurnFinished("end_turn", 1, 1.0, "ok"),
    )
    lines = lines_of(run(tmp_path, capfd, OutputFormat.STREAM_JSON, ends_with(*events))[1])
    assert [d["tool_use_id"] for d in lines[-1]["permission_denials"]] == ["t1"]


def test_compaction_is_told_with_its_metadata(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    r = Recorder()
    events = (
        CompactionStarted("auto", "full", 167_000),
        r.commit(UserEntry((TextBlock("summary!"),), origin="summary"), tx="t"),
        r.commit(Boundary((), "auto", "full", 167_000, 24_000, 40), tx="t"),
        CompactionFinished("auto", "full", 167_000, 24_000, 1, 9.0, 0.1),
        r.commit(ClearResults({"t1": "[cleared]"}, "idle", 900)),
        TurnFinished("end_turn", 1, 1.0, "ok"),
    )
    lines = lines_of(run(tmp_path, capfd, OutputFormat.STREAM_JSON, ends_with(*events))[1])
    by_subtype = {line.get("subtype"): line for line in lines}
    assert by_subtype["compact_boundary"]["compact_metadata"] == {
        "trigger": "auto",
        "pre_tokens": 167_000,
        "post_tokens": 24_000,
        "messages_summarized": 40,
        "layer": "full",
        "summary_chars": 8,
    }
    assert [line["status"] for line in lines if line.get("subtype") == "status"] == ["compacting", None]
    assert by_subtype["microcompact_boundary"]["microcompact_metadata"]["compactedToolIds"] == ["t1"]
    assert next(line for line in lines if line.get("isSynthetic"))["type"] == "user"


def test_retries_and_notices_are_lines_of_their_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    events = (
        RetryScheduled(2, 10, 4.0, "overloaded", 529),
        Notice("Cache is cold.", "warning"),
        TurnFinished("end_turn", 1, 1.0, "ok"),
    )
    _, out, err, _ = run(tmp_path, capfd, OutputFormat.STREAM_JSON, ends_with(*events))
    retry = next(line for line in lines_of(out) if line.get("subtype") == "api_retry")
    assert (retry["attempt"], retry["max_retries"], retry["retry_delay_ms"], retry["error_status"]) == (
        2,
        10,
        4000,
        529,
    )
    assert "Cache is cold." in err


def test_a_warning_that_is_kept_in_the_log_is_said_on_stderr(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    r = Recorder()
    events = (
        r.commit(NoticeShown("The server is overloaded: another model answers.", "warning")),
        r.commit(NoticeShown("3 old results were cleared.")),
        TurnFinished("end_turn", 1, 1.0, "ok"),
    )
    _, out, err, _ = run(tmp_path, capfd, OutputFormat.TEXT, ends_with(*events))
    assert out == "ok\n"
    assert err == "pyagent: The server is overloaded: another model answers.\n"


@pytest.mark.parametrize("is_wanted", [True, False])
def test_raw_events_come_only_when_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], is_wanted: bool
) -> None:
    events = (RequestStarted("sdk"), WireEvent({"type": "message_start"}), TurnFinished("end_turn", 1, 1.0, "ok"))
    _, out, _, _ = run(tmp_path, capfd, OutputFormat.STREAM_JSON, ends_with(*events), has_partial_messages=is_wanted)
    raw = [line["event"] for line in lines_of(out) if line["type"] == "stream_event"]
    assert raw == ([{"type": "message_start"}] if is_wanted else [])


@pytest.mark.parametrize("is_wanted", [True, False])
def test_prompts_are_repeated_only_when_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], is_wanted: bool
) -> None:
    _, out, _, _ = run(tmp_path, capfd, OutputFormat.STREAM_JSON, replays_user_messages=is_wanted)
    assert any(line.get("isReplay") for line in lines_of(out)) is is_wanted


def test_input_lines_become_prompts_and_control_requests_commands(tmp_path: Path) -> None:
    agent = FakeAgent()
    invocation = Invocation(launch_options(tmp_path), FrontEnd.HEADLESS, OutputFormat.STREAM_JSON, True)
    agent(invocation.options, lambda event: None)
    with (tmp_path / "out").open("w+") as out:
        running = HeadlessRun(invocation, agent, out, out)
        running.take(opened())
        content = [{"type": "text", "text": "two"}, {"type": "image", "source": {}}]
        for line in (
            {"type": "user", "message": {"role": "user", "content": "one"}},
            {"type": "user", "message": {"role": "user", "content": content}},
            {"type": "control_request", "request_id": "r1", "request": {"subtype": "interrupt"}},
            {"type": "control_request", "request": {"subtype": "set_permission_mode", "mode": "plan"}},
            {"type": "control_request", "request_id": "r3", "request": {"subtype": "fly"}},
        ):
            running.take(line)
        assert agent.commands == [SubmitPrompt("one"), SubmitPrompt("two"), Interrupt(), RunCommand("mode", "plan")]
        out.seek(0)
        lines = [json.loads(line) for line in out if line.startswith("{")]
        responses = [line["response"] for line in lines if line["type"] == "control_response"]
    assert [response["subtype"] for response in responses] == ["success", "success", "error"]


def test_a_run_of_several_prompts_is_done_when_input_ended_and_all_turns_did(tmp_path: Path) -> None:
    agent = FakeAgent()
    invocation = Invocation(launch_options(tmp_path), FrontEnd.HEADLESS, OutputFormat.STREAM_JSON, True)
    agent(invocation.options, lambda event: None)
    with (tmp_path / "out").open("w+") as out:
        running = HeadlessRun(invocation, agent, out, out)
        running.submit("one")
        running.submit("two")
        running.take(TurnFinished("end_turn", 1, 1.0, "1"))
        running.take("input ended")
        was_done = running.is_done
        running.take(TurnFinished("end_turn", 1, 1.0, "2"))
        assert (was_done, running.is_done, running.exit_code) == (False, True, 0)


def test_a_reader_that_went_away_ends_the_run_quietly(tmp_path: Path) -> None:
    agent = FakeAgent()
    invocation = Invocation(launch_options(tmp_path), FrontEnd.HEADLESS, OutputFormat.STREAM_JSON)
    agent(invocation.options, lambda event: None)
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as out:
        running = HeadlessRun(invocation, agent, out, out)
        with pytest.raises(BrokenPipeError):
            running.take(opened())


def test_records_of_a_resumed_session_are_not_written_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from pyagent.events import RecordCommitted

    old: Record = Recorder().record(answer(text("old")))
    events = (RecordCommitted(old, is_replay=True), TurnFinished("end_turn", 1, 1.0, "ok"))
    _, out, _, _ = run(tmp_path, capfd, OutputFormat.STREAM_JSON, ends_with(*events))
    assert [line["type"] for line in lines_of(out)] == ["system", "result"]


def test_images_of_a_message_become_files_and_what_cannot_be_sent_is_said(tmp_path: Path) -> None:
    agent = FakeAgent()
    invocation = Invocation(launch_options(tmp_path), FrontEnd.HEADLESS, OutputFormat.STREAM_JSON, True)
    agent(invocation.options, lambda event: None)
    png = b"\x89PNG\r\n\x1a\n" + bytes(16)
    content = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b64encode(png).decode()}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "?"}},
        {"type": "document"},
    ]
    with (tmp_path / "out").open("w+") as out:
        running = HeadlessRun(invocation, agent, out, out)
        running.take({"type": "user", "message": {"role": "user", "content": content}})
        out.seek(0)
        said = out.read()
    (sent,) = agent.sent(SubmitPrompt)
    assert isinstance(sent, SubmitPrompt)
    assert [Path(path).read_bytes() for path in sent.images] == [png]
    assert sent.text == "[image]"
    assert "its data is no base64" in said
    assert "type 'document'" in said


def test_a_question_put_to_the_other_end_is_taken_back_when_it_is_over(tmp_path: Path) -> None:
    agent = FakeAgent()
    invocation = Invocation(
        launch_options(tmp_path), FrontEnd.HEADLESS, OutputFormat.STREAM_JSON, True, asks_on_stdin=True
    )
    agent(invocation.options, lambda event: None)
    question = PermissionQuestion("Bash", "command", "rm x", session_rule="Bash(rm *)")
    allowed = {"behavior": "allow", "updatedPermissions": [{"type": "addRules"}]}
    with (tmp_path / "out").open("w+") as out:
        running = HeadlessRun(invocation, agent, out, out)
        for item in (
            opened(),
            PermissionNeeded("q1", "t1", question),
            PermissionSettled("q1", False),
            PermissionNeeded("q2", "t2", question),
            {"type": "control_response", "response": {"subtype": "success", "request_id": "q2", "response": allowed}},
            PermissionNeeded("q3", "t3", question),
            {"type": "control_response", "response": {"subtype": "error", "request_id": "q3", "error": "No idea."}},
            PermissionNeeded("q4", "t4", question),
            "input ended",
        ):
            running.take(item)
        out.seek(0)
        lines = [json.loads(line) for line in out]
    cancelled = [line["request_id"] for line in lines if line["type"] == "control_cancel_request"]
    assert cancelled == ["q1"]
    asked = next(line["request"] for line in lines if line["type"] == "control_request")
    assert asked["permission_suggestions"][0]["rules"] == [{"toolName": "Bash", "ruleContent": "rm *"}]
    answers = [(a.request_id, a.answer) for a in agent.sent(AnswerPermission) if isinstance(a, AnswerPermission)]
    assert answers == [("q2", "session"), ("q3", "no"), ("q4", "no")]


def test_a_command_waits_for_the_prompts_before_it_and_holds_up_those_behind_it(tmp_path: Path) -> None:
    agent = FakeAgent()
    invocation = Invocation(launch_options(tmp_path), FrontEnd.HEADLESS, OutputFormat.STREAM_JSON, True)
    agent(invocation.options, lambda event: None)
    finished = TurnFinished("end_turn", 1, 1.0, "ok")
    with (tmp_path / "out").open("w+") as out:
        running = HeadlessRun(invocation, agent, out, out)
        running.take(opened())
        for text in ("one", "/cost", "two"):
            running.submit(text)
        assert agent.commands == [SubmitPrompt("one")]
        running.take(GaugeMoved(GaugeFacts(1, False, 10, 9, 6, 7, 8, 9, True, 90, "ok")))
        running.take(finished)
        assert agent.commands == [SubmitPrompt("one"), RunCommand("cost")]
        running.take(Report("Cost", "nothing"))
        running.take(CommandFinished("cost"))
        assert agent.commands[2:] == [SubmitPrompt("two")]
        running.take(finished)
        running.take("input ended")
        assert running.is_done
        out.seek(0)
        results = [line["result"] for line in map(json.loads, out) if line["type"] == "result"]
    assert results == ["ok", "Cost\nnothing", "ok"]
