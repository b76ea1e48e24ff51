"""Every line of headless runs, of each kind and way to end, against the schema of its kind."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.program import RUN_LIMIT_S, SUMMARY, Program, Ran, asks_for_summary
from tests.e2e.stream_schema import LINES, faults, kind_of
from tests.fakes.messages_server import FakeMessagesServer, running_in_thread
from tests.fakes.script import Responder, Script, ToolRounds, http_error, overloaded, reply, stall, thinking, tool_use

STREAM = ("--output-format", "stream-json")
BYPASS = "--dangerously-skip-permissions"

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"files": {"type": "array", "items": {"type": "string"}}, "count": {"type": "integer"}},
        "required": ["files", "count"],
    }
)


class Conversation:
    """A program that is talked to line by line."""

    def __init__(self, program: Program, *arguments: str) -> None:
        self._process = program.start("-p", *STREAM, "--input-format", "stream-json", *arguments, stdin=-1)
        self.lines: list[dict[str, Any]] = []
        self._limit = threading.Timer(RUN_LIMIT_S, self._process.kill)
        self._limit.start()

    def send(self, **line: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        self._process.stdin.flush()

    def say(self, text: str, **fields: Any) -> None:
        self.send(type="user", message={"role": "user", "content": text}, **fields)

    def request(self, request_id: str, **request: Any) -> dict[str, Any]:
        """Send a control request; its answer."""
        self.send(type="control_request", request_id=request_id, request=request)
        line = self.until(lambda line: line["type"] == "control_response")
        assert line["response"]["request_id"] == request_id
        response: dict[str, Any] = line["response"]
        return response

    def until(self, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read up to the first line that is wanted."""
        assert self._process.stdout is not None
        for raw in self._process.stdout:
            line: dict[str, Any] = json.loads(raw)
            self.lines.append(line)
            if is_wanted(line):
                return line
        self._limit.cancel()
        raise AssertionError(f"the program ended before; it wrote {self.lines}")

    def result(self) -> dict[str, Any]:
        return self.until(lambda line: line["type"] == "result")

    def end(self) -> Ran:
        out, err = self._process.communicate()
        self._limit.cancel()
        self.lines += [json.loads(line) for line in out.splitlines()]
        return Ran(self._process.returncode, "".join(json.dumps(line) + "\n" for line in self.lines), err.decode())


def run(
    folder: Path, responder: Responder, *arguments: str, server_options: dict[str, Any] | None = None, **environ: str
) -> Ran:
    server = FakeMessagesServer(responder, **(server_options or {}))
    with running_in_thread(server):
        return Program(folder, server.url, environ).run("-p", "go", *STREAM, *arguments)


def answers_and_tools(folder: Path) -> Ran:
    script = Script(
        [
            reply(thinking("Hm."), "Looking.", tool_use("Bash", {"command": "echo hello > new.txt; cat new.txt"})),
            "Done.",
        ]
    )
    return run(folder, script, BYPASS, "--include-partial-messages", "--replay-user-messages", "--verbose")


def a_denied_call(folder: Path) -> Ran:
    return run(folder, Script([reply(tool_use("Bash", {"command": "touch x"})), "I could not."]))


def compactions(folder: Path) -> Ran:
    calls: list[tuple[str, dict[str, Any]]] = [("Bash", {"command": "seq 1 1{round}00"})]
    rounds = ToolRounds(calls, rounds=20, is_summary=asks_for_summary, summary_text=SUMMARY)
    return run(folder, rounds, BYPASS, server_options={"window_tokens": 30_000})


def old_results_cleared(folder: Path) -> Ran:
    """A long session that is gone on with three hours later."""
    calls: list[tuple[str, dict[str, Any]]] = [("Bash", {"command": "seq 1 1{round}00"})]
    with running_in_thread(FakeMessagesServer(ToolRounds(calls, rounds=12))) as server:
        program = Program(folder, server.url)
        program.run("-p", "go", BYPASS)
        (session,) = program.sessions

        def earlier(found: re.Match[str]) -> str:
            return f'{found[1]}{(datetime.fromisoformat(found[2]) - timedelta(hours=3)).isoformat()}"'

        text = session.read_text()
        session.write_text(re.sub(r'("(?:timestamp|request_started_at)":")([^"]+)"', earlier, text))
        assert datetime.now(UTC).isoformat()[:10] in text
    with running_in_thread(FakeMessagesServer(Script(["Fine."]))) as server:
        return Program(folder, server.url).run("-p", "go on", "--continue", *STREAM)


def too_many_rounds(folder: Path) -> Ran:
    return run(folder, Script([reply(tool_use("Glob", {"pattern": "*"}))]), "--max-turns", "1")


def too_dear(folder: Path) -> Ran:
    return run(folder, Script([reply(tool_use("Glob", {"pattern": "*"}))]), "--max-budget-usd", "0.0000001")


def a_refused_request(folder: Path) -> Ran:
    return run(folder, Script([http_error(400, "invalid_request_error", "messages: no")]))


def refused_credentials(folder: Path) -> Ran:
    return run(folder, Script([http_error(401, "authentication_error", "invalid x-api-key")]))


def an_overloaded_server(folder: Path) -> Ran:
    return run(folder, Script([overloaded(), "Done."]))


def an_answer_in_a_form(folder: Path) -> Ran:
    script = Script(
        [
            reply(tool_use("StructuredOutput", {"files": "a"})),
            "Here you are: a.",
            reply(tool_use("StructuredOutput", {"files": ["a"], "count": 1})),
        ]
    )
    return run(folder, script, "--json-schema", SCHEMA)


def no_answer_in_the_form(folder: Path) -> Ran:
    return run(folder, Script([f"No, {n}." for n in range(6)]), "--json-schema", SCHEMA)


def an_interrupted_answer(folder: Path) -> Ran:
    with running_in_thread(FakeMessagesServer(Script([stall(reply("Half")), "Again."]))) as server:
        talk = Conversation(Program(folder, server.url), "--include-partial-messages")
        talk.say("go")
        server.wait_until_from_thread(lambda: server.stalled_count == 1)
        talk.request("r1", subtype="interrupt")
        talk.result()
        talk.say("go on")
        talk.result()
        return talk.end()


def an_interrupted_tool(folder: Path) -> Ran:
    with running_in_thread(FakeMessagesServer(Script([reply(tool_use("Bash", {"command": "sleep 60"}))]))) as server:
        talk = Conversation(Program(folder, server.url), BYPASS)
        talk.say("go")
        talk.until(lambda line: line["type"] == "tool_progress")
        talk.request("r1", subtype="interrupt")
        talk.result()
        return talk.end()


def a_conversation(folder: Path) -> Ran:
    """Several prompts, and every control request."""
    script = Script(
        [
            "One.",
            reply(tool_use("Bash", {"command": "touch allowed"})),
            "Two.",
            reply(tool_use("Bash", {"command": "touch refused"})),
            "Three.",
        ]
    )
    with running_in_thread(FakeMessagesServer(script)) as server:
        talk = Conversation(Program(folder, server.url), "--permission-prompt-tool", "stdio", "--replay-user-messages")
        started = talk.request("r1", subtype="initialize")
        assert {"name": "compact"}.items() <= started["response"]["commands"][0].items()
        talk.say("one", uuid="5f0c1a52-7d7e-4d7e-9b55-0d2f6f1e7a11")
        assert talk.result()["result"] == "One."
        assert talk.request("r2", subtype="set_permission_mode", mode="yolo")["subtype"] == "error"
        assert talk.request("r3", subtype="set_permission_mode", mode="acceptEdits")["subtype"] == "success"
        assert talk.request("r4", subtype="set_model", model="claude-sonnet-4-5")["subtype"] == "success"
        usage = talk.request("r5", subtype="get_context_usage")["response"]
        assert usage["totalTokens"] > 0
        talk.request("r6", subtype="set_permission_mode", mode="manual")
        talk.say("two")
        asked = talk.until(lambda line: line["type"] == "control_request")
        assert asked["request"]["input"] == {"command": "touch allowed"}
        answer(talk, asked, behavior="allow", updatedInput=asked["request"]["input"])
        assert talk.result()["result"] == "Two."
        talk.say("three")
        asked = talk.until(lambda line: line["type"] == "control_request")
        answer(talk, asked, behavior="deny", message="Not that.")
        assert talk.result()["result"] == "Three."
        talk.say("/context")
        assert "tokens" in talk.result()["result"]
        assert talk.request("r7", subtype="fly")["subtype"] == "error"
        talk.say("/frobnicate")
        assert talk.result()["errors"] == ["There is no command /frobnicate; /help lists them all."]
        ran = talk.end()
    assert (folder / "work" / "allowed").exists()
    assert not (folder / "work" / "refused").exists()
    assert "Not that." in json.dumps(server.message_requests[-1].body)
    assert ran.of("user")[0]["uuid"] == "5f0c1a52-7d7e-4d7e-9b55-0d2f6f1e7a11"
    return ran


def answer(talk: Conversation, asked: dict[str, Any], **response: Any) -> None:
    envelope = {"subtype": "success", "request_id": asked["request_id"], "response": response}
    talk.send(type="control_response", response=envelope)


RUNS: dict[str, tuple[Callable[[Path], Ran], str, str | None]] = {
    "answers and tools": (answers_and_tools, "success", "completed"),
    "a denied call": (a_denied_call, "success", "completed"),
    "compactions": (compactions, "success", "completed"),
    "old results cleared": (old_results_cleared, "success", "completed"),
    "too many rounds": (too_many_rounds, "error_max_turns", "max_turns"),
    "too dear": (too_dear, "error_max_budget_usd", "max_budget_usd"),
    "a refused request": (a_refused_request, "error_during_execution", "api_error"),
    "refused credentials": (refused_credentials, "error_during_execution", "api_error"),
    "an overloaded server": (an_overloaded_server, "success", "completed"),
    "an answer in a form": (an_answer_in_a_form, "success", "completed"),
    "no answer in the form": (
        no_answer_in_the_form,
        "error_max_structured_output_retries",
        "max_structured_output_retries",
    ),
    "an interrupted answer": (an_interrupted_answer, "success", "completed"),
    "an interrupted tool": (an_interrupted_tool, "error_during_execution", "aborted_tools"),
    "a conversation": (a_conversation, "error_during_execution", None),
}
"""Name → the run, and how its last result ends."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ran]:
    """Each run once, when it is first wanted."""
    done: dict[str, Ran] = {}

    def get(name: str) -> Ran:
        if name not in done:
            done[name] = RUNS[name][0](tmp_path_factory.mktemp("run"))
        return done[name]

    return get


@pytest.mark.parametrize("name", RUNS)
def test_every_line_fits_the_schema_of_its_kind(name: str, runs: Callable[[str], Ran]) -> None:
    ran = runs(name)
    assert faults(ran.lines) == []
    _, subtype, reason = RUNS[name]
    assert (ran.result["subtype"], ran.result.get("terminal_reason")) == (subtype, reason)
    assert ran.code == (0 if all(not line["is_error"] for line in ran.lines if line["type"] == "result") else 1)


def test_the_runs_show_every_kind_of_line(runs: Callable[[str], Ran]) -> None:
    seen = {kind_of(line) for name in RUNS for line in runs(name).lines}
    assert set(LINES) - seen == {("control_cancel_request", None)}


def test_a_tools_result_carries_its_facts(runs: Callable[[str], Ran]) -> None:
    (result,) = [line for line in runs("answers and tools").of("user") if "isReplay" not in line]
    assert result["tool_use_result"]["exit_code"] == 0


def test_an_answer_in_a_form_is_in_the_result_and_nothing_after_it_is_asked(runs: Callable[[str], Ran]) -> None:
    ran = runs("an answer in a form")
    assert ran.result["structured_output"] == {"files": ["a"], "count": 1}
    assert json.loads(ran.result["result"]) == ran.result["structured_output"]
    assert ran.result["num_turns"] == 3
    first, _, _ = [json.dumps(line["message"]["content"]) for line in ran.of("user")]
    assert "'a' is not of type 'array'" in first
    assert "'count' is a required property" in first


def test_what_a_failed_call_was_about_is_named(runs: Callable[[str], Ran]) -> None:
    assert [line["error"] for line in runs("refused credentials").of("assistant")] == ["authentication_failed"]
    assert [line["error"] for line in runs("a refused request").of("assistant")] == ["invalid_request"]


def test_an_interrupt_ends_the_turn_and_the_next_prompt_is_answered(runs: Callable[[str], Ran]) -> None:
    first, second = [line for line in runs("an interrupted answer").lines if line["type"] == "result"]
    assert (first["subtype"], first["terminal_reason"]) == ("error_during_execution", "aborted_streaming")
    assert second["result"] == "Again."
