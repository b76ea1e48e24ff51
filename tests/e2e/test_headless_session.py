"""Whole headless sessions of the real program: long ones, killed ones, resumed and forked ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.program import SUMMARY, Program, asks_for_summary, kill
from tests.fakes.messages_server import FakeMessagesServer, running_in_thread
from tests.fakes.script import Script, Stall, ToolRounds, after_deltas, reply, tool_use

WINDOW_TOKENS = 30_000
TRIGGER_TOKENS = 13_500
"""30,000 is half of 60,000, so every constant is halved: 30,000 − 10,000 − 6,500."""


def texts(body: dict[str, Any]) -> list[str]:
    """Every text of a request's messages, in order; tool results in brackets."""
    found = []
    for message in body["messages"]:
        for block in message["content"]:
            if block["type"] == "text":
                found.append(block["text"])
            elif block["type"] == "tool_result":
                content = block.get("content") or ""
                inner = content if isinstance(content, str) else "".join(part["text"] for part in content)
                found.append(f"[{inner}]")
    return found


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-sonnet-5-5"])
def test_sixty_tool_rounds_in_a_small_window_are_never_refused(tmp_path: Path, model: str) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [("Read", {"file_path": f"f{n}.txt"}) for n in range(5)]
    calls += [
        ("Bash", {"command": "seq 1 {round}"}),
        ("Grep", {"pattern": "line 1{round}", "output_mode": "content"}),
    ]
    rounds = ToolRounds(
        calls, rounds=60, think=True, note="Working.", is_summary=asks_for_summary, summary_text=SUMMARY
    )
    server = FakeMessagesServer(rounds, window_tokens=WINDOW_TOKENS, binding="all")
    with running_in_thread(server):
        program = Program(tmp_path, server.url)
        program.work.mkdir()
        for number in range(5):
            lines = [f"line {line} of file {number}: some words in the place of code" for line in range(120)]
            (program.work / f"f{number}.txt").write_text("\n".join(lines))
        ran = program.run(
            "-p", "work", "--model", model, "--output-format", "stream-json", "--dangerously-skip-permissions"
        )
    server.assert_finished()
    assert (ran.code, ran.err) == (0, "")
    assert (ran.result["subtype"], ran.result["result"], ran.result["num_turns"]) == ("success", "Done.", 61)
    assert rounds.finished_turn_count == 1
    boundaries = [line["compact_metadata"] for line in ran.of("system", "compact_boundary")]
    assert boundaries, "the window is small enough to compact"
    for boundary in boundaries:
        assert boundary["trigger"] == "auto"
        # A round adds at most one file of about 4,000 tokens, so the trigger is passed by no more than that.
        assert TRIGGER_TOKENS <= boundary["pre_tokens"] < TRIGGER_TOKENS + 4_000
        assert boundary["post_tokens"] < TRIGGER_TOKENS
    main = [request for request in server.message_requests if request.body["max_tokens"] != 20_000]
    assert all(request.input_tokens < WINDOW_TOKENS for request in main)


def test_the_json_lines_are_what_consumers_expect(tmp_path: Path) -> None:
    script = Script([reply("Looking.", tool_use("Bash", {"command": "echo hello"})), "Done."])
    with running_in_thread(FakeMessagesServer(script)) as server:
        ran = Program(tmp_path, server.url).run(
            "-p",
            "say hello",
            "--output-format",
            "stream-json",
            "--include-partial-messages",
            "--replay-user-messages",
            "--dangerously-skip-permissions",
        )
    lines = ran.lines
    session_ids = {line["session_id"] for line in lines}
    assert len(session_ids) == 1
    assert len({line["uuid"] for line in lines}) == len(lines)
    init = lines[0]
    assert (init["type"], init["subtype"]) == ("system", "init")
    assert init["cwd"] == str(tmp_path / "work")
    assert {"Read", "Bash", "Grep", "Glob", "Edit", "Write"} <= set(init["tools"])
    assert init["permissionMode"] == "bypassPermissions"
    raw = [line["event"]["type"] for line in ran.of("stream_event")]
    assert raw.count("message_start") == raw.count("message_stop") == 2
    assert all("ttft_ms" in line for line in ran.of("stream_event") if line["event"]["type"] == "message_start")
    first, last = ran.of("assistant")
    assert [block["type"] for block in first["message"]["content"]] == ["text", "tool_use"]
    assert first["message"]["stop_reason"] == "tool_use"
    assert last["message"]["content"] == [{"type": "text", "text": "Done."}]
    prompt, result = ran.of("user")
    assert prompt["isReplay"] is True
    assert result["message"]["content"][0]["tool_use_id"] == first["message"]["content"][1]["id"]
    assert ran.result.keys() >= {
        "duration_ms",
        "duration_api_ms",
        "num_turns",
        "total_cost_usd",
        "usage",
        "modelUsage",
        "permission_denials",
    }
    assert (ran.result["terminal_reason"], ran.result["is_error"]) == ("completed", False)
    billed = server.message_requests
    assert ran.result["usage"]["output_tokens"] == sum(request.usage["output_tokens"] for request in billed)


def test_after_kill_9_in_an_answer_all_but_that_answer_is_there(tmp_path: Path) -> None:
    broken_off = reply("Half an answer that never ends", delta_chars=5).with_faults(Stall(after_deltas(3)))
    script = Script([reply(tool_use("Bash", {"command": "echo hello"})), broken_off, "Going on."])
    with running_in_thread(FakeMessagesServer(script)) as server:
        program = Program(tmp_path, server.url)
        process = program.start("-p", "say hello", "--dangerously-skip-permissions")
        server.wait_until_from_thread(lambda: server.stalled_count == 1)
        kill(process)
        ran = program.run("-p", "go on", "--continue")
    assert (ran.code, ran.out, ran.err) == (0, "Going on.\n", "")
    before, after = (request.body for request in server.message_requests[1:])
    assert texts(after) == [*texts(before), "go on"]
    assert texts(before)[-2:] == ["say hello", "[hello]"]
    assert len(program.sessions) == 1


def test_after_kill_9_in_a_tool_its_call_is_answered_and_the_session_goes_on(tmp_path: Path) -> None:
    script = Script([reply(tool_use("Bash", {"command": "echo up > started; cat release"})), "Going on."])
    with running_in_thread(FakeMessagesServer(script)) as server:
        program = Program(tmp_path, server.url)
        program.work.mkdir()
        for name in ("started", "release"):
            os.mkfifo(program.work / name)
        process = program.start("-p", "wait", "--dangerously-skip-permissions")
        assert (program.work / "started").read_text() == "up\n"
        kill(process)
        (program.work / "release").write_text("")
        ran = program.run("-p", "go on", "--continue")
    server.assert_finished()
    assert (ran.code, ran.out) == (0, "Going on.\n")
    results = server.message_requests[-1].body["messages"][-1]["content"]
    assert [block["type"] for block in results] == ["tool_result", "text"]
    assert results[0]["is_error"] is True


def test_a_session_is_resumed_by_its_id_the_start_of_it_or_words_of_the_first_prompt(tmp_path: Path) -> None:
    with running_in_thread(FakeMessagesServer(Script(["One.", "Other.", "Two.", "Three.", "Four."]))) as server:
        program = Program(tmp_path, server.url)
        program.run("-p", "find the parser")
        parser = program.sessions[0].stem
        program.run("-p", "something else")
        (other,) = {path.stem for path in program.sessions} - {parser}
        # Each time the session that was not the last one in use.
        for name, meant in ((parser, parser), (other[:8], other), ("the parser", parser)):
            ran = program.run("-p", "go on", "--resume", name, "--output-format", "json")
            assert ran.result["session_id"] == meant
    resumed = [texts(request.body) for request in server.message_requests[-3:]]
    assert resumed[0][-3:] == ["find the parser", "One.", "go on"]
    assert resumed[1][-3:] == ["something else", "Other.", "go on"]
    assert resumed[2][-3:] == ["go on", "Two.", "go on"]


def test_a_forked_session_goes_on_in_a_copy(tmp_path: Path) -> None:
    with running_in_thread(FakeMessagesServer(Script(["One.", "Two.", "Three."]))) as server:
        program = Program(tmp_path, server.url)
        program.run("-p", "first")
        original = program.sessions[0]
        content = original.read_bytes()
        ran = program.run("-p", "second", "--continue", "--fork-session", "--output-format", "json")
        again = program.run("-p", "third", "--resume", ran.result["session_id"], "--output-format", "json")
    assert ran.result["session_id"] != original.stem
    assert again.result["session_id"] == ran.result["session_id"]
    assert original.read_bytes() == content
    assert texts(server.message_requests[-1].body)[-5:] == ["first", "One.", "second", "Two.", "third"]


def test_a_resumed_session_reads_the_cache_of_the_run_before(tmp_path: Path) -> None:
    with running_in_thread(FakeMessagesServer(Script(["One.", "Two."]))) as server:
        program = Program(tmp_path, server.url)
        program.run("-p", "first " + "word " * 2_000)
        program.run("-p", "second", "--continue")
    first, second = (request.usage for request in server.message_requests)
    assert second["cache_read_input_tokens"] == first["cache_creation_input_tokens"] > 1_024
