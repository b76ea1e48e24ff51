"""`#words`: where they go, and how the model is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyagent.agent.memory_edit import memory_target, remember
from pyagent.errors import UsageError
from pyagent.events import Notice
from tests.agent.support import launch_options, running_agent
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Script


def test_a_projects_line_goes_where_the_project_keeps_its_memory(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    below = tmp_path / "src"
    below.mkdir()
    home = tmp_path / "home"
    assert memory_target("project", below, home).path == tmp_path / "CLAUDE.md"
    (tmp_path / "AGENTS.md").write_text("x\n")
    assert memory_target("project", below, home).path == tmp_path / "AGENTS.md"
    (tmp_path / "CLAUDE.md").write_text("x\n")
    assert memory_target("project", below, home).path == tmp_path / "CLAUDE.md"


def test_the_persons_own_line_never_goes_into_another_programs_folder(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "CLAUDE.md").write_text("theirs\n")
    told = remember("user tabs, not spaces", tmp_path, tmp_path / ".pyagent", {"HOME": str(tmp_path)})
    assert told.startswith("Began ~/.pyagent/CLAUDE.md")
    assert (tmp_path / ".pyagent" / "CLAUDE.md").read_text() == "- tabs, not spaces\n"
    assert (tmp_path / ".claude" / "CLAUDE.md").read_text() == "theirs\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [("", "- a\n"), ("x", "x\n- a\n"), ("x\n", "x\n- a\n"), ("x\r\ny", "x\r\ny\r\n- a\r\n")],
)
def test_a_line_is_added_behind_what_is_there_with_its_line_ends(tmp_path: Path, before: str, after: str) -> None:
    path = tmp_path / "CLAUDE.local.md"
    path.write_bytes(before.encode())
    assert remember("local a", tmp_path, tmp_path, {}).startswith("Added to")
    assert path.read_bytes() == after.encode()


@pytest.mark.parametrize("argument", ["", "project", "elsewhere words", "project   "])
def test_nothing_to_remember_is_said(tmp_path: Path, argument: str) -> None:
    with pytest.raises(UsageError, match="nothing to remember"):
        remember(argument, tmp_path, tmp_path, {})


async def test_the_model_is_told_behind_what_it_knows_already(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["One.", "Two."])) as server:
        options = launch_options(tmp_path, server.url)
        (options.cwd / "CLAUDE.md").write_text("- spaces\n")
        async with running_agent(options) as agent:
            await agent.prompt("first")
            notice = await agent.command("remember", "project no tabs", Notice)
            await agent.prompt("second")
        first, second = (request.body["messages"] for request in server.message_requests)
    assert "CLAUDE.md" in notice.text
    assert second[: len(first) - 1] == first[:-1]
    assert "- no tabs" in str(second[len(first) :])


async def test_files_that_have_not_changed_are_not_told_again(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["One.", "Two."])) as server:
        options = launch_options(tmp_path, server.url)
        (options.cwd / "CLAUDE.md").write_text("- known already\n")
        async with running_agent(options) as agent:
            await agent.prompt("first")
            await agent.command("remember", "local fresh words", Notice)
            await agent.prompt("second")
        first, second = (str(request.body["messages"]) for request in server.message_requests)
    assert first.count("known already") == 1
    assert second.count("known already") == 1
    assert second.count("fresh words") == 1
