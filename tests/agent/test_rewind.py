"""`/rewind`: conversation, files or both go back to a prompt, whatever the shell did since, and forward again."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from pyagent.events import (
    CompactionFinished,
    Notice,
    PromptReturned,
    RewindOffered,
    RewindPlanned,
)
from pyagent.log import CheckpointTaken
from tests.agent.support import LiveAgent, launch_options, records_on_disk, running_agent, state_on_disk
from tests.agent.test_checkpoints import put, tree_of
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Script, ToolRounds, reply, tool_use

SHELL_DAMAGE = (
    "sed -i s/1/one/ f*.txt && rm f3.txt f4.txt && mv f5.txt moved.txt && chmod 600 f6.txt && printf 'x\\r\\n' > f7.txt"
    " && ln -sf f1.txt f8.txt && mkdir d && echo new > d/new.txt"
)


def texts_of(messages: list[dict[str, object]]) -> str:
    return str(messages)


def twenty_files(cwd: Path) -> None:
    for number in range(20):
        put(cwd / f"f{number}.txt", f"1 file {number}\r\n".encode(), 0o755 if number % 2 else 0o664)


async def damaged(agent: LiveAgent) -> None:
    await agent.prompt("first")
    await agent.prompt("break things")


def script() -> Script:
    return Script(["One.", reply(tool_use("Bash", {"command": SHELL_DAMAGE})), "Broken.", "Afterwards."])


async def test_what_the_shell_did_to_twenty_files_is_undone_to_the_byte_and_redone(tmp_path: Path) -> None:
    async with FakeMessagesServer(script()) as server:
        options = launch_options(tmp_path, server.url)
        twenty_files(options.cwd)
        before = tree_of(options.cwd)
        async with running_agent(options) as agent:
            await damaged(agent)
            after = tree_of(options.cwd)
            assert after != before
            planned = await agent.command("rewind", "1", RewindPlanned)
            assert len(planned.files) >= 20
            assert "-one file" in "".join(file.diff for file in planned.files)
            assert not any(file.is_own_edit for file in planned.files)
            returned = await agent.command("rewind", "1 both", PromptReturned)
            assert returned.text == "break things"
            assert tree_of(options.cwd) == before
            await agent.command("rewind", "redo", Notice)
            assert tree_of(options.cwd) == after
            await agent.command("rewind", "redo", Notice)
            assert tree_of(options.cwd) == before
            await agent.prompt("something else")
    sent = str(server.message_requests[-1].body["messages"])
    assert "break things" not in sent
    assert "something else" in sent


async def test_the_conversation_alone_goes_back_and_the_files_stay(tmp_path: Path) -> None:
    async with FakeMessagesServer(script()) as server:
        options = launch_options(tmp_path, server.url)
        twenty_files(options.cwd)
        async with running_agent(options) as agent:
            await damaged(agent)
            after = tree_of(options.cwd)
            await agent.command("rewind", "1 conversation", PromptReturned)
            assert tree_of(options.cwd) == after
    texts = [item.entry.text for item in state_on_disk(options).view]
    assert texts[-2:] == ["first", "One."]


async def test_the_files_alone_go_back_and_the_model_is_told(tmp_path: Path) -> None:
    async with FakeMessagesServer(script()) as server:
        options = launch_options(tmp_path, server.url)
        twenty_files(options.cwd)
        before = tree_of(options.cwd)
        async with running_agent(options) as agent:
            await damaged(agent)
            await agent.command("rewind", "1 code", Notice)
            assert tree_of(options.cwd) == before
            await agent.prompt("go on")
    sent = str(server.message_requests[-1].body["messages"])
    assert "break things" in sent
    assert "set these files back" in sent
    assert "f3.txt (brought back)" in sent


async def test_one_file_comes_back_alone(tmp_path: Path) -> None:
    async with FakeMessagesServer(script()) as server:
        options = launch_options(tmp_path, server.url)
        twenty_files(options.cwd)
        async with running_agent(options) as agent:
            await damaged(agent)
            planned = await agent.command("rewind", "1", RewindPlanned)
            number = [file.path for file in planned.files].index("f3.txt") + 1
            await agent.command("rewind", f"1 file {number}", Notice)
            assert (options.cwd / "f3.txt").read_bytes() == b"1 file 3\r\n"
            assert not (options.cwd / "f4.txt").exists()


async def test_a_persons_own_later_edit_is_left_alone_unless_asked_for(tmp_path: Path) -> None:
    async with FakeMessagesServer(script()) as server:
        options = launch_options(tmp_path, server.url)
        twenty_files(options.cwd)
        async with running_agent(options) as agent:
            await damaged(agent)
            put(options.cwd / "f9.txt", b"my own work")
            planned = await agent.command("rewind", "1", RewindPlanned)
            assert [file.path for file in planned.files if file.is_own_edit] == ["f9.txt"]
            await agent.command("rewind", "1 code", Notice)
            assert (options.cwd / "f9.txt").read_bytes() == b"my own work"
            assert (options.cwd / "f3.txt").exists()
            put(options.cwd / "f10.txt", b"made after the list was shown")
            await agent.command("rewind", "1 code own", Notice)
            assert (options.cwd / "f9.txt").read_bytes() == b"1 file 9\r\n"
            assert (options.cwd / "f10.txt").read_bytes() == b"made after the list was shown"


async def test_rewinding_works_after_a_resume_and_across_a_compaction(tmp_path: Path) -> None:
    rounds = ToolRounds(
        [("Bash", {"command": "seq 1 2000 | tee -a out.txt"})],
        rounds=6,
        is_summary=lambda request: "<summary>" in request.last_text,
        summary_text="<analysis>.</analysis><summary>"
        + "\n".join(f"{n}. Section" for n in range(1, 10))
        + "</summary>",
    )
    async with FakeMessagesServer(rounds, window_tokens=60_000) as server:
        options = launch_options(tmp_path, server.url)
        put(options.cwd / "kept.txt", b"kept")
        before = tree_of(options.cwd)
        async with running_agent(options) as agent:
            await agent.prompt("count")
            await agent.command("compact", "", CompactionFinished)
        async with running_agent(replace(options, is_continued=True)) as agent:
            offered = await agent.command("rewind", "", RewindOffered)
            assert [(point.text, point.has_files) for point in offered.points] == [("count", True)]
            await agent.command("rewind", "1 both", PromptReturned)
    assert tree_of(options.cwd) == before
    assert not [item for item in state_on_disk(options).view if item.is_prompt]


async def test_only_commands_that_may_write_are_preceded_by_a_checkpoint(tmp_path: Path) -> None:
    steps = Script(
        [
            reply(tool_use("Bash", {"command": "ls"})),
            reply(tool_use("Bash", {"command": "echo a > a"})),
            reply(tool_use("Bash", {"command": "echo b > b"})),
            "Done.",
        ]
    )
    async with FakeMessagesServer(steps) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("write")
    taken = [record.payload for record in records_on_disk(options) if isinstance(record.payload, CheckpointTaken)]
    assert [checkpoint.reason for checkpoint in taken] == ["turn", "bash", "turn_end"]


async def test_with_checkpoints_off_the_conversation_can_still_go_back(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["One.", "Two."])) as server:
        options = launch_options(tmp_path, server.url)
        put(options.cwd / ".pyagent-was-here", b"")
        agent_options = replace(options, settings_json='{"fileCheckpointingEnabled": false}')
        async with running_agent(agent_options) as agent:
            await agent.prompt("first")
            planned = await agent.command("rewind", "1", RewindPlanned)
            assert planned.problem
            await agent.command("rewind", "1 conversation", PromptReturned)
            await agent.prompt("second")
    assert not list(options.home.rglob("checkpoints"))
    assert os.listdir(options.cwd) == [".pyagent-was-here"]
