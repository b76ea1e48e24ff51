"""`/config`, `/permissions`, `/diff`, `/btw` and their like, asked of a running agent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from pyagent.agent.trust import is_trusted, trust
from pyagent.commands import Interrupt, RunCommand
from pyagent.events import CommandFinished, GaugeMoved, Notice, Report, SettingMoved, TurnFinished
from pyagent.messages import JsonObject
from pyagent.pages import (
    AnswerPage,
    ContextPage,
    CostPage,
    DiffPage,
    MemoryPage,
    Page,
    PermissionsPage,
    SettingsPage,
    TasksPage,
)
from tests.agent.support import LiveAgent, launch_options, running_agent, state_on_disk, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import BEFORE_HEADERS, Answer, Script, reply, stall, tool_use

PageT = TypeVar("PageT", bound=Page)


def call(name: str, given: JsonObject) -> Answer:
    return reply(tool_use(name, given))


async def page_of(agent: LiveAgent, kind: type[PageT], name: str, argument: str = "") -> PageT:
    """The page a command answers with."""
    report = await agent.command(name, argument, Report)
    assert isinstance(report.page, kind)
    return report.page


# ── settings ──


async def test_a_setting_is_written_to_our_own_file_and_counts_at_once(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script([])) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            page = await page_of(agent, SettingsPage, "config", "autoCompactWindow=90000")
            await agent.until(lambda: agent.all_of(GaugeMoved)[-1].gauge.window_tokens == 90_000)
    row = next(row for row in page.rows if row.key == "autoCompactWindow")
    assert (row.value, row.origin) == ("90000", str(options.home / "settings.json"))
    assert json.loads((options.home / "settings.json").read_text()) == {"autoCompactWindow": 90_000}


async def test_a_reset_takes_the_setting_out_of_the_file_and_leaves_the_rest(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script([])) as server:
        options = launch_options(tmp_path, server.url)
        options.home.mkdir(parents=True)
        (options.home / "settings.json").write_text('{"webSearch": true, "other": {"kept": 1}}')
        async with running_agent(options) as agent:
            page = await page_of(agent, SettingsPage, "config", "reset webSearch")
    assert next(row for row in page.rows if row.key == "webSearch").origin == "default"
    assert json.loads((options.home / "settings.json").read_text()) == {"other": {"kept": 1}}


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("webSearch=maybe", "does not take"),
        ("compaction.policy=cheap", "does not take"),
        ("theme=pink", "does not take"),
        ("noSuchThing=1", "There is no setting"),
        ("permissions.allow=Bash", "is a list"),
    ],
)
async def test_a_bad_value_is_named_and_nothing_is_written(tmp_path: Path, argument: str, said: str) -> None:
    async with FakeMessagesServer(Script([])) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            notice = await agent.command("config", argument, Notice)
    assert said in notice.text
    assert not (options.home / "settings.json").exists()


async def test_it_is_said_when_something_narrower_goes_before_a_change(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script([])) as server:
        options = with_environ(launch_options(tmp_path, server.url), {"PYAGENT_HISTORY_SNIP": "0"})
        async with running_agent(options) as agent:
            page = await page_of(agent, SettingsPage, "config", "historySnip=true")
    assert "but PYAGENT_HISTORY_SNIP goes before it" in page.remark


async def test_a_damaged_settings_file_is_never_overwritten(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script([])) as server:
        options = launch_options(tmp_path, server.url)
        options.home.mkdir(parents=True)
        (options.home / "settings.json").write_text("{ not json")
        async with running_agent(options) as agent:
            await agent.until(lambda: bool(agent.all_of(Notice)))
            since = len(agent.events)
            await agent.command("config", "webSearch=true", Notice)
            told = [event.text for event in agent.events[since:] if isinstance(event, Notice)]
    assert any("is not written" in text for text in told)
    assert (options.home / "settings.json").read_text() == "{ not json"


async def test_a_theme_is_saved_and_told(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script([])) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        moved = await agent.command("theme", "light", SettingMoved)
    assert moved == SettingMoved("theme", "light")


# ── permissions ──


async def test_rules_come_with_their_files_and_a_grant_that_is_added_counts_at_once(tmp_path: Path) -> None:
    script = Script([call("Bash", {"command": "touch made.txt"}), reply("done")])
    async with FakeMessagesServer(script) as server:
        options = launch_options(tmp_path, server.url, permission_mode="default")
        trust(options.cwd, options.home)
        async with running_agent(options) as agent:
            page = await page_of(agent, PermissionsPage, "permissions", "allow Bash(touch *)")
            await agent.prompt("make it")
    row = next(row for row in page.rules if row.rule == "Bash(touch *)")
    assert (row.kind, row.is_removable) == ("allow", True)
    assert row.origin == str(options.cwd / ".pyagent" / "settings.local.json")
    assert (options.cwd / "made.txt").exists()


async def test_a_folder_that_is_trusted_by_command_has_its_own_rules_count_at_once_and_ever_after(
    tmp_path: Path,
) -> None:
    script = Script([call("Bash", {"command": "touch made.txt"}), reply("done")])
    async with FakeMessagesServer(script) as server:
        options = launch_options(tmp_path, server.url, permission_mode="default")
        async with running_agent(options) as agent:
            before = await page_of(agent, PermissionsPage, "permissions", "allow Bash(touch *)")
            after = await page_of(agent, PermissionsPage, "permissions", "trust")
            await agent.prompt("make it")
    assert not before.is_trusted
    assert "/permissions trust" in before.remark
    assert after.is_trusted
    assert [row.rule for row in after.rules] == ["Bash(touch *)"]
    assert (options.cwd / "made.txt").exists()
    assert is_trusted(options.cwd, options.home)


async def test_what_was_refused_is_listed(tmp_path: Path) -> None:
    script = Script([call("Bash", {"command": "rm -rf build"}), reply("well")])
    async with FakeMessagesServer(script) as server:
        options = launch_options(tmp_path, server.url, permission_mode="default", disallowed_tools=("Bash(rm *)",))
        async with running_agent(options) as agent:
            await agent.prompt("clean up")
            page = await page_of(agent, PermissionsPage, "permissions")
    assert [(row.tool, row.subject) for row in page.denials] == [("Bash", "rm -rf build")]
    assert page.rules[0].origin == "--disallowedTools"


@pytest.mark.parametrize(
    ("call", "verdict"),
    [
        ("Bash(git push)", "denied. Bash may not do this"),
        ("Bash(npm test)", "allowed. The rule Bash(npm test) allows it."),
        ("Bash(ls)", "allowed."),
        ("Bash(curl example.com)", "asks."),
        ("Edit(src/a.py)", "asks."),
        ("Read(README.md)", "allowed."),
    ],
)
async def test_a_call_can_be_tried_out(tmp_path: Path, call: str, verdict: str) -> None:
    async with FakeMessagesServer(Script([])) as server:
        options = launch_options(
            tmp_path,
            server.url,
            permission_mode="default",
            allowed_tools=("Bash(npm test)",),
            disallowed_tools=("Bash(git push:*)",),
        )
        async with running_agent(options) as agent:
            page = await page_of(agent, PermissionsPage, "permissions", f"test {call}")
    assert f"{call}: {verdict}" in page.remark


async def test_a_rule_is_taken_out_of_the_file_it_stands_in(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script([])) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await page_of(agent, PermissionsPage, "permissions", "deny Bash(rm *) user")
            page = await page_of(agent, PermissionsPage, "permissions", "remove deny Bash(rm *)")
    assert page.rules == ()
    assert json.loads((options.home / "settings.json").read_text()) == {"permissions": {"deny": []}}


async def test_a_rule_that_would_never_match_is_refused_with_the_one_that_would(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script([])) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        notice = await agent.command("permissions", "allow Write(src/**)", Notice)
    assert "write Edit(src/**)" in notice.text


# ── diff ──


async def test_a_turn_s_diff_shows_what_a_shell_command_changed(tmp_path: Path) -> None:
    script = Script(
        [
            call("Bash", {"command": "echo two >> a.txt; echo new > b.txt"}),
            reply("done"),
            call("Bash", {"command": "rm b.txt"}),
            reply("done"),
        ]
    )
    async with FakeMessagesServer(script) as server:
        options = launch_options(tmp_path, server.url)
        (options.cwd / "a.txt").write_text("one\n")
        async with running_agent(options) as agent:
            await agent.prompt("first")
            await agent.prompt("second")
            newest = await page_of(agent, DiffPage, "diff")
            first = await page_of(agent, DiffPage, "diff", "turn 1")
            whole = await page_of(agent, DiffPage, "diff", "session")
    assert newest.chosen == "turn 2"
    assert [(file.path, file.kind) for file in newest.files] == [("b.txt", "delete")]
    assert [(file.path, file.kind) for file in first.files] == [("a.txt", "change"), ("b.txt", "create")]
    assert "+two" in first.files[0].diff
    assert [file.path for file in whole.files] == ["a.txt"]
    assert [scope.id for scope in whole.scopes] == ["turn 2", "turn 1", "session", "head"]


async def test_outside_a_repository_the_diff_against_git_says_so(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script([])) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        page = await page_of(agent, DiffPage, "diff", "head")
    assert page.files == ()
    assert "no git repository" in page.remark


# ── beside the conversation ──


async def test_a_side_question_reads_the_conversation_and_leaves_no_trace_in_it(tmp_path: Path) -> None:
    script = Script([reply("the sky is blue"), reply("Blue, as I said."), reply("go on")])
    async with FakeMessagesServer(script) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("what colour is the sky?")
            page = await page_of(agent, AnswerPage, "btw", "what did you say?")
            cost = await page_of(agent, CostPage, "cost")
            await agent.prompt("next")
    asked, after = server.message_requests[1].body, server.message_requests[2].body
    assert page.answer == "Blue, as I said."
    assert "what did you say?" in json.dumps(asked["messages"])
    assert asked["system"] == server.message_requests[0].body["system"]
    assert "what did you say?" not in json.dumps(after["messages"])
    assert "side questions" in [row.name for row in cost.purposes]


async def test_a_side_question_that_would_take_a_tool_says_so(tmp_path: Path) -> None:
    script = Script([reply("Listing the files.", tool_use("Glob", {"pattern": "*"}))])
    async with FakeMessagesServer(script) as server, running_agent(launch_options(tmp_path, server.url)) as agent:
        page = await page_of(agent, AnswerPage, "btw", "what is here?")
    assert page.answer == "Listing the files.\n\nFor an answer it would have to use Glob. Ask it in the conversation."


async def test_a_side_question_can_be_interrupted_and_the_conversation_goes_on(tmp_path: Path) -> None:
    script = Script([stall(reply("late"), BEFORE_HEADERS), reply("Hello.")])
    async with FakeMessagesServer(script) as server, running_agent(launch_options(tmp_path, server.url)) as agent:
        agent.send(RunCommand("btw", "are you there?"))
        await server.wait_until(lambda: len(server.message_requests) == 1)
        agent.send(Interrupt())
        await agent.until(lambda: CommandFinished("btw") in agent.events)
        assert Notice("Interrupted.") in agent.events
        assert isinstance(await agent.prompt("hello"), TurnFinished)


async def test_a_side_question_works_before_the_first_prompt(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script([reply("Hello.")])) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        page = await page_of(agent, AnswerPage, "btw", "are you there?")
    assert page.answer == "Hello."


# ── places and tasks ──


async def test_a_folder_that_was_added_may_be_worked_in_also_after_a_resume(tmp_path: Path) -> None:
    other = tmp_path / "library"
    other.mkdir()
    async with FakeMessagesServer(Script([reply("ok")])) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("hello")
            await agent.command("add-dir", str(other), SettingMoved)
            moved = await agent.command("cd", str(other), SettingMoved)
        async with running_agent(replace(options, is_continued=True)) as agent:
            page = await page_of(agent, PermissionsPage, "permissions")
    assert moved == SettingMoved("cwd", str(other))
    assert (str(other), "/add-dir") in page.folders
    assert state_on_disk(options).settings["cwd"] == str(other)


@pytest.mark.parametrize(("command", "argument"), [("add-dir", "nowhere"), ("cd", "/"), ("add-dir", "")])
async def test_a_folder_that_is_none_or_not_allowed_is_refused(tmp_path: Path, command: str, argument: str) -> None:
    async with (
        FakeMessagesServer(Script([])) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        notice = await agent.command(command, argument, Notice)
    assert notice.level == "error"


async def test_memory_files_are_listed_with_their_size_and_those_that_could_be_made(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script([])) as server:
        options = launch_options(tmp_path, server.url)
        (options.cwd / "AGENTS.md").write_text("Use tabs. " * 50)
        async with running_agent(options) as agent:
            page = await page_of(agent, MemoryPage, "memory")
    loaded = [row for row in page.rows if row.is_loaded]
    assert [row.path for row in loaded] == [str(options.cwd / "AGENTS.md")]
    assert loaded[0].tokens > 100
    assert str(options.cwd / "CLAUDE.md") not in [row.path for row in page.rows], "it would take AGENTS.md's place"


async def test_a_background_task_is_listed_read_and_ended(tmp_path: Path) -> None:
    command: JsonObject = {"command": "echo begun; sleep 600", "run_in_background": True}
    async with (
        FakeMessagesServer(Script([call("Bash", command), reply("started")])) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        await agent.prompt("start it")
        before = await page_of(agent, TasksPage, "tasks")
        after = await page_of(agent, TasksPage, "tasks", f"kill {before.rows[0].id}")
    assert [row.state for row in before.rows] == ["running"]
    assert [row.state for row in after.rows] == ["killed"]


# ── context ──


async def test_the_context_page_names_items_and_where_gates_come_from(tmp_path: Path) -> None:
    script = Script([call("Bash", {"command": "seq 400"}), reply("done")])
    async with FakeMessagesServer(script) as server:
        options = with_environ(launch_options(tmp_path, server.url), {"PYAGENT_HISTORY_SNIP": "1"})
        (options.cwd / "AGENTS.md").write_text("Use tabs.")
        async with running_agent(options) as agent:
            await agent.prompt("count")
            page = await page_of(agent, ContextPage, "context")
            figures = await agent.command("context", "json", Report)
    assert sum(part.tokens for part in page.parts) == page.used_tokens
    assert ("results", "Bash results", "seq 400") in [(item.group, item.name, item.detail) for item in page.items]
    assert str(options.cwd / "AGENTS.md") in [item.name for item in page.items if item.group == "memory"]
    gates = {gate.name: gate for gate in page.gates}
    assert (gates["history_snip"].is_on, gates["history_snip"].why) == (True, "PYAGENT_HISTORY_SNIP")
    assert page.cache.ttl_s == 300
    data = json.loads(figures.text)
    assert {"model", "total_tokens", "raw_max_tokens", "percentage", "categories", "memory_files"} <= set(data)
    assert data["memory_files"][0]["path"] == str(options.cwd / "AGENTS.md")


async def test_a_turn_s_cost_stands_with_its_prompt(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script([reply("one"), reply("two")])) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        await agent.prompt("first question")
        await agent.prompt("second question")
        page = await page_of(agent, CostPage, "cost")
    assert [(turn.number, turn.prompt, turn.row.calls) for turn in page.turns] == [
        (1, "first question", 1),
        (2, "second question", 1),
    ]
