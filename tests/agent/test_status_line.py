"""The user's own status line: what its program is told, when it runs, and what becomes of its answer."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pyagent.agent.git_state import repo_of
from pyagent.agent.status_line import current_usage
from pyagent.commands import VimModeMoved
from pyagent.events import CompactionFinished, Notice, StatusLineMoved
from pyagent.log import Boundary
from pyagent.messages import JsonObject
from pyagent.state import ConversationState
from tests.agent.background import Worker
from tests.agent.support import LiveAgent, launch_options, running_agent
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Script, ToolRounds, reply
from tests.ui.records import PATCH, Recorder, answer, prompt, text, tool_ran

FIELDS = {
    "session_id",
    "session_name",
    "transcript_path",
    "cwd",
    "workspace",
    "model",
    "version",
    "cost",
    "context_window",
    "exceeds_200k_tokens",
    "effort",
    "thinking",
}


async def settled(agent: LiveAgent, command: str) -> None:
    """The command is the status line's."""
    await agent.command("statusline", command, Notice)


def saying_whether_there_is_usage(seen: Path) -> str:
    """A program that keeps what it was told, and says whether that names a usage."""
    return f"cat > {seen}; grep -q '\"current_usage\": null' {seen} && echo nothing || echo usage"


def rows_of(agent: LiveAgent) -> tuple[str, ...]:
    moved = agent.all_of(StatusLineMoved)
    return moved[-1].rows if moved else ()


def told(path: Path) -> JsonObject:
    facts: JsonObject = json.loads(path.read_text())
    return facts


async def test_the_program_is_told_the_session_s_facts_and_its_rows_are_shown(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    async with (
        FakeMessagesServer(Script([reply("hello")])) as server,
        running_agent(launch_options(tmp_path, server.url, is_headless=False)) as agent,
    ):
        await settled(agent, f"{saying_whether_there_is_usage(seen)}; printf '\\033[31mred\\033[0m\\n'")
        await agent.until(lambda: rows_of(agent) == ("nothing", "\x1b[31mred\x1b[0m"))
        before = told(seen)
        await agent.prompt("hi")
        await agent.until(lambda: rows_of(agent)[0] == "usage")
        after = told(seen)
    assert set(before) >= FIELDS
    assert before["context_window"]["current_usage"] is None
    assert before["context_window"]["used_percentage"] == 0
    window = after["context_window"]
    usage = window["current_usage"]
    sent = sum(usage[name] for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"))
    assert window["used_percentage"] == round(100 * sent / window["context_window_size"], 1)
    assert window["remaining_percentage"] == pytest.approx(100 - window["used_percentage"])
    assert after["workspace"]["project_dir"] == str(agent.options.cwd)


def linked_work_tree(repository: Path) -> Path:
    """A work tree beside a new repository that has a remote."""
    for arguments in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"],
        ["remote", "add", "origin", "git@example.com:group/project.git"],
        ["worktree", "add", "-q", "../beside"],
    ):
        subprocess.run(["git", *arguments], cwd=repository, check=True)
    return repository.parent / "beside"


async def test_the_program_is_told_of_the_repository_its_linked_work_tree_and_vims_mode(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    async with FakeMessagesServer(Script([])) as server:
        options = launch_options(tmp_path, server.url, is_headless=False)
        async with running_agent(replace(options, cwd=linked_work_tree(options.cwd))) as agent:
            agent.send(VimModeMoved("NORMAL"))
            await settled(agent, f"cat > {seen}; grep -oE 'NORMAL|INSERT' {seen}")
            await agent.until(lambda: rows_of(agent) == ("NORMAL",))
            agent.send(VimModeMoved("INSERT"))
            await agent.until(lambda: rows_of(agent) == ("INSERT",))
    facts = told(seen)
    assert facts["vim"] == {"mode": "INSERT"}
    assert facts["workspace"]["repo"] == {"host": "example.com", "owner": "group", "name": "project"}
    assert facts["workspace"]["git_worktree"] == "beside"


@pytest.mark.parametrize(
    ("url", "repo"),
    [
        ("https://example.com/owner/name.git", ("example.com", "owner", "name")),
        ("https://user:word@example.com:8443/owner/name/", ("example.com", "owner", "name")),
        ("ssh://git@example.com:22/owner/name", ("example.com", "owner", "name")),
        ("git@example.com:group/sub/name.git", ("example.com", "group/sub", "name")),
        ("git@example.com:/owner/name", ("example.com", "owner", "name")),
        ("/srv/git/name.git", None),
        ("../name", None),
        ("file:///srv/git/name.git", None),
        ("", None),
    ],
)
def test_a_remotes_address_names_host_owner_and_repository(url: str, repo: tuple[str, str, str] | None) -> None:
    assert repo_of(url) == ({} if repo is None else dict(zip(("host", "owner", "name"), repo, strict=True)))


async def test_right_after_a_compaction_there_is_no_current_usage(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    rounds = ToolRounds([("Bash", {"command": "seq 2000"})], rounds=2)
    async with (
        FakeMessagesServer(Worker(rounds), window_tokens=60_000) as server,
        running_agent(launch_options(tmp_path, server.url, is_headless=False)) as agent,
    ):
        await settled(agent, saying_whether_there_is_usage(seen))
        await agent.prompt("begin")
        await agent.until(lambda: rows_of(agent) == ("usage",))
        await agent.command("compact", "", CompactionFinished)
        await agent.until(lambda: rows_of(agent) == ("nothing",))


@pytest.mark.parametrize(
    ("command", "said"), [("echo broken >&2; exit 3", "code 3: broken"), ("no-such-program-here", "code 127")]
)
async def test_a_program_that_fails_is_named_once_and_holds_nothing_up(tmp_path: Path, command: str, said: str) -> None:
    async with (
        FakeMessagesServer(Script([reply("one"), reply("two")])) as server,
        running_agent(launch_options(tmp_path, server.url, is_headless=False)) as agent,
    ):
        await settled(agent, command)
        await agent.until(lambda: any(said in text for text in agent.notices))
        await agent.prompt("first")
        await agent.prompt("second")
    assert sum(said in text for text in agent.notices) == 1
    assert agent.all_of(StatusLineMoved) == []


async def test_the_built_in_bar_comes_back_when_it_is_switched_off(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script([])) as server,
        running_agent(launch_options(tmp_path, server.url, is_headless=False)) as agent,
    ):
        await settled(agent, "echo mine")
        await agent.until(lambda: bool(agent.all_of(StatusLineMoved)))
        await settled(agent, "off")
        await agent.until(lambda: agent.all_of(StatusLineMoved)[-1].rows == ())


async def test_no_program_of_an_untrusted_project_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with FakeMessagesServer(Script([reply("hello")])) as server:
        options = launch_options(tmp_path, server.url, is_headless=False)
        (options.cwd / ".claude").mkdir()
        line = {"statusLine": {"type": "command", "command": f"touch {mark}"}}
        (options.cwd / ".claude" / "settings.json").write_text(json.dumps(line))
        async with running_agent(options) as agent:
            await agent.prompt("hi")
            await settled(agent, "echo mine")
            await agent.until(lambda: bool(agent.all_of(StatusLineMoved)))
    assert not mark.exists()


def test_lines_of_edits_are_counted_and_usage_from_before_a_compaction_is_none() -> None:
    r = Recorder()
    said = (prompt("go"), answer(text("x")), tool_ran("t", "Edit", patch=PATCH))
    state = ConversationState([r.record(payload) for payload in said])
    assert (state.work.added_lines, state.work.removed_lines) == (1, 1)
    assert current_usage(state) is not None
    state.apply(r.record(Boundary((), "manual", "full", 100, 10, 2), tx="t"))
    assert current_usage(state) is None
