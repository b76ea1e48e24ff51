"""Claude Code's session files: every type of line and every oddity they are known for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyagent.agent.claude_import import claude_folder, claude_sessions, find_claude_session, read_claude_session
from pyagent.agent.session_store import list_sessions, project_dir
from pyagent.errors import SessionError
from pyagent.log import AssistantEntry, NoticeShown, UserEntry
from pyagent.messages import ToolResultBlock
from pyagent.state import ConversationState
from tests.agent.support import launch_options, running_agent
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Script

Line = dict[str, Any]


def line(kind: str, uuid: str, parent: str | None, **fields: Any) -> Line:
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s",
        "timestamp": "2026-11-30T10:00:00.000Z",
        "cwd": "/project",
        "gitBranch": "main",
        "version": "2.1.0",
        "isSidechain": False,
        **fields,
    }


def said(uuid: str, parent: str | None, text: str, **fields: Any) -> Line:
    return line("user", uuid, parent, message={"role": "user", "content": text}, **fields)


def part(uuid: str, parent: str | None, message_id: str, block: Line, **fields: Any) -> Line:
    """One line of a response, which holds one block of it."""
    message = {"id": message_id, "role": "assistant", "model": "claude-x", "content": [block], "usage": {}}
    return line("assistant", uuid, parent, message=message, **fields)


def text(words: str) -> Line:
    return {"type": "text", "text": words}


def call(use_id: str) -> Line:
    return {"type": "tool_use", "id": use_id, "name": "Bash", "input": {"command": use_id}}


def result(uuid: str, parent: str | None, use_id: str, words: str = "out", **fields: Any) -> Line:
    content = [{"type": "tool_result", "tool_use_id": use_id, "content": words}]
    return line("user", uuid, parent, message={"role": "user", "content": content}, toolUseResult={}, **fields)


def write(path: Path, *lines: Line | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = [item if isinstance(item, bytes) else json.dumps(item, separators=(",", ":")).encode() for item in lines]
    path.write_bytes(b"\n".join(data) + b"\n")
    return path


def shown(path: Path) -> list[str]:
    """The view of the imported session: texts, calls as `>id`, results as `<id`."""
    found: list[str] = []
    for item in ConversationState(read_claude_session(path).records).view:
        entry = item.entry
        if isinstance(entry, AssistantEntry):
            found += [
                f">{b['id']}" if b["type"] == "tool_use" else str(b.get("text", b["type"])) for b in entry.content
            ]
        else:
            found += [
                f"<{block.tool_use_id}" if isinstance(block, ToolResultBlock) else entry.text for block in entry.content
            ]
    return found


def test_a_response_split_over_lines_is_one_and_parallel_results_are_all_found(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl",
        said("u1", None, "go"),
        part("a1", "u1", "m1", {"type": "thinking", "thinking": "hm", "signature": "sig"}),
        part("a2", "a1", "m1", call("t1")),
        result("r1", "a2", "t1"),
        part("a3", "a2", "m1", call("t2")),
        line("progress", "p1", "a3", data={}),
        result("r2", "a3", "t2"),
        part("a4", "r1", "m2", text("done")),
    )
    assert shown(path) == ["go", "thinking", ">t1", ">t2", "<t1", "<t2", "done"]
    entries = [r.payload for r in read_claude_session(path).records if isinstance(r.payload, AssistantEntry)]
    assert [entry.message_id for entry in entries] == ["m1", "m2"]


def test_the_newest_branch_counts_and_an_abandoned_one_does_not(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl",
        said("u1", None, "start"),
        part("a1", "u1", "m1", text("one")),
        said("u2", "a1", "abandoned"),
        part("a2", "u2", "m2", text("never mind")),
        said("u3", "a1", "instead"),
        part("a3", "u3", "m3", text("two")),
    )
    assert shown(path) == ["start", "one", "instead", "two"]


@pytest.mark.parametrize("parent", ["unknown", "u4", "u3"])
def test_a_missing_or_circular_parent_never_shows_less_than_the_file_holds(tmp_path: Path, parent: str) -> None:
    path = write(
        tmp_path / "s.jsonl",
        said("u1", None, "one"),
        said("u2", "u1", "two"),
        said("u3", parent, "three"),
        said("u4", "u3", "four"),
    )
    assert shown(path) == ["one", "two", "three", "four"]
    assert len(read_claude_session(path).problems) == 1


def test_parents_that_were_never_written_leave_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", said("u1", None, "one"), said("u2", None, "two"), said("u3", None, "three"))
    assert shown(path) == ["one", "two", "three"]


def test_bad_lines_are_counted_and_two_objects_on_one_line_are_two(tmp_path: Path) -> None:
    two = json.dumps(said("u2", "u1", "two")) + json.dumps(said("u3", "u2", "three\u2028same line"))
    path = write(
        tmp_path / "s.jsonl",
        said("u1", None, "one"),
        b'{"type":"user","uuid":"torn',
        two.encode(),
        b"\xff\xfe not JSON",
        said("u1", "u3", "a duplicate of the first uuid"),
        said("u4", "u3", "four"),
    )
    assert shown(path) == ["one", "two", "three\u2028same line", "four"]
    assert read_claude_session(path).problems == ("2 lines of the imported session are unreadable and are left out.",)


def test_a_boundary_hides_what_its_summary_stands_for_and_the_log_keeps_it(tmp_path: Path) -> None:
    boundary = line(
        *("system", "b1", None),
        subtype="compact_boundary",
        logicalParentUuid="gone",
        content="Conversation compacted",
        compactMetadata={"trigger": "auto", "preTokens": 167_000},
    )
    path = write(
        tmp_path / "s.jsonl",
        said("u1", None, "long ago"),
        part("a1", "u1", "m1", text("long answer")),
        boundary,
        said("u2", "b1", "the summary", isCompactSummary=True, isVisibleInTranscriptOnly=True),
        said("u3", "u2", "and now"),
    )
    assert shown(path) == ["the summary", "and now"]
    state = ConversationState(read_claude_session(path).records)
    assert next(r.payload.text for r in state.branch if isinstance(r.payload, UserEntry)) == "long ago"
    assert [r.payload.pre_tokens for r in state.boundaries] == [167_000]  # type: ignore[union-attr]  # they are boundaries


def test_results_that_were_cleared_stay_cleared(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl",
        said("u1", None, "go"),
        part("a1", "u1", "m1", call("t1")),
        result("r1", "a1", "t1", "a long result"),
        line(
            *("system", "mb", "r1"),
            subtype="microcompact_boundary",
            microcompactMetadata={"trigger": "auto", "compactedToolIds": ["t1", "unknown"]},
        ),
        said("u2", "mb", "on"),
    )
    view = ConversationState(read_claude_session(path).records).view
    assert view.is_cleared("t1")


def test_what_no_model_said_or_saw_is_kept_from_the_model(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl",
        {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}, "isSnapshotUpdate": False},
        {"type": "queue-operation", "operation": "enqueue"},
        {"type": "permission-mode", "permissionMode": "plan"},
        {"type": "something-new", "deep": {"a": 1}},
        said("u1", None, "go"),
        said("side", "u1", "a subagent's prompt", isSidechain=True),
        said("team", "u1", "a team's prompt", teamName="t"),
        line("attachment", "at", "u1", attachment={}),
        line(
            *("assistant", "err", "at"),
            message={"id": "e", "model": "<synthetic>", "content": [text("API Error: 529")]},
            isApiErrorMessage=True,
        ),
        part("blank", "err", "m0", text("\n\n")),
        part("a1", "blank", "m1", text("answer")),
        said("meta", "a1", "a caveat", isMeta=True),
    )
    assert shown(path) == ["go", "answer"]
    notices = [r.payload.text for r in read_claude_session(path).records if isinstance(r.payload, NoticeShown)]
    assert notices == ["API Error: 529"]


def test_surrogates_and_blocks_of_unknown_types_do_no_harm(tmp_path: Path) -> None:
    content = [text("half \ud83d"), {"type": "hologram"}, {"type": "image", "source": {}}]
    path = write(tmp_path / "s.jsonl", line("user", "u1", None, message={"role": "user", "content": content}))
    (words, *_) = shown(path)
    words.encode()
    assert "half \ufffd" in words


def test_files_of_other_kinds_are_refused_in_one_line(tmp_path: Path) -> None:
    for data in (b"", b"no JSON at all\n", b'{"seq":0,"type":"user","uuid":"u","timestamp":"2026-11-30T10:00:00Z"}\n'):
        path = write(tmp_path / "other.jsonl", data)
        with pytest.raises(SessionError, match="no Claude Code session"):
            read_claude_session(path)


def test_sessions_are_listed_with_the_title_a_person_gave_and_found_by_words(tmp_path: Path) -> None:
    environ = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    folder = claude_folder(environ, Path("/some/project"))
    assert folder.name == "-some-project"
    write(
        folder / "0123abcd.jsonl",
        {"type": "summary", "summary": "Summary title", "leafUuid": "x"},
        said("u1", None, "fix the parser"),
        {"type": "custom-title", "customTitle": "My title"},
        {"type": "ai-title", "aiTitle": "Machine title"},
    )
    write(folder / "junk.jsonl", b"junk")
    (info,) = claude_sessions(folder)
    assert (info.title, info.first_prompt, info.git_branch) == ("My title", "fix the parser", "main")
    for wanted in ("0123", "claude:0123abcd", "my title", "PARSER", str(info.path)):
        assert find_claude_session(folder, wanted) == info.path
    with pytest.raises(SessionError):
        find_claude_session(folder, "nothing like it")


async def test_an_imported_session_goes_on_as_a_copy_and_the_strict_server_takes_it(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["Gladly."])) as server:
        options = launch_options(tmp_path, server.url)
        source = write(
            claude_folder(options.environ, options.cwd) / "abc.jsonl",
            said("u1", None, "go"),
            part("a1", "u1", "m1", {"type": "thinking", "thinking": "hm", "signature": "foreign"}),
            part("a2", "a1", "m1", call("t1")),
            part("a3", "a2", "m1", call("never-answered")),
            result("r1", "a2", "t1"),
            said("u2", "r1", "on"),
        )
        before = source.read_bytes()
        async with running_agent(replace(options, resume="claude:abc")) as agent:
            await agent.prompt("please go on")
    assert source.read_bytes() == before
    sent = str(server.message_requests[0].body["messages"])
    assert "foreign" not in sent
    assert "never-answered" in sent
    (info,) = list_sessions(project_dir(options.home, options.cwd))
    assert info.first_prompt == "go"
