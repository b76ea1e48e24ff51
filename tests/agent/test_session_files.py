"""Copies, exports, deletion of old sessions, and what a cold start would cost."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pyagent.agent.cold_start import ColdStart, cold_start_question
from pyagent.agent.export import FORMATS, export_path, parts_of
from pyagent.agent.session_cleanup import SECONDS_A_DAY, delete_old_sessions
from pyagent.agent.session_store import SessionFile, list_sessions, project_dir
from pyagent.agent.wire.catalogue import known_model
from pyagent.errors import UsageError
from pyagent.events import CompactionFinished, Notice, ReplayFinished, SessionOpened
from tests.agent.support import launch_options, records_on_disk, running_agent
from tests.agent.test_session_reader import rounds
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Script, reply, tool_use

NASTY = "</pre><script>alert(1)</script> ``` [x](y)"


async def test_branching_goes_on_in_a_copy_under_the_name_given(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["One.", "Two.", "Three."])) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("first")
            await agent.command("branch", "other way", ReplayFinished)
            await agent.prompt("second")
            opened = agent.all_of(SessionOpened)
    assert opened[0].session_id != opened[1].session_id
    infos = {info.session_id: info for info in list_sessions(project_dir(options.home, options.cwd))}
    assert infos[opened[1].session_id].title == "other way"
    assert infos[opened[0].session_id].title == ""
    sent = [block["text"] for m in server.message_requests[1].body["messages"] for block in m["content"]]
    assert sent[-3:] == ["first", "One.", "second"]


async def test_an_export_holds_everything_said_across_compactions_in_every_format(tmp_path: Path) -> None:
    async with FakeMessagesServer(rounds(), window_tokens=60_000) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt(f"count {NASTY}")
            await agent.command("compact", "", CompactionFinished)
            for name in FORMATS:
                await agent.command("export", f"out.{name}", Notice)
    texts = {name: (options.cwd / f"out.{name}").read_text() for name in FORMATS}
    for name in ("md", "txt"):
        assert NASTY in texts[name]
        assert "1999\n2000" in texts[name].replace("\n  ", "\n")
    assert "<script>" not in texts["html"]
    assert "&lt;script&gt;" in texts["html"]
    assert len(json.loads(texts["json"])["records"]) > 10
    assert (options.cwd / "out.md").stat().st_mode & 0o777 == 0o600


async def test_thinking_and_reminders_are_no_part_of_what_a_reader_gets(tmp_path: Path) -> None:
    script = Script([reply(tool_use("Bash", {"command": "echo hello"})), "It says hello."])
    async with FakeMessagesServer(script) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("say hello")
    speakers = [part.speaker for part in parts_of(records_on_disk(options))]
    assert speakers == ["You", "Tool call", "Tool result", "Assistant"]


def test_an_export_never_replaces_a_file_and_names_the_formats_it_knows(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("mine")
    with pytest.raises(UsageError, match="already"):
        export_path("there.md", tmp_path, "id")
    with pytest.raises(UsageError, match="no format"):
        export_path("x.pdf", tmp_path, "id")
    assert export_path("", tmp_path, "0123456789") == tmp_path / "conversation-01234567.md"
    assert export_path("html", tmp_path, "0123456789") == tmp_path / "conversation-01234567.html"


def test_only_old_sessions_that_nobody_has_open_are_deleted(tmp_path: Path) -> None:
    now_s = 2_000_000_000.0
    for name, age_days in (("old", 31), ("new", 29), ("open", 90)):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("{}\n")
        (tmp_path / name / "tool-results").mkdir(parents=True)
        os.utime(path, (now_s, now_s - age_days * SECONDS_A_DAY))
    holder = SessionFile(tmp_path / "open.jsonl", on_problem=print)
    work = {"home": tmp_path, "folder": tmp_path, "cwd": tmp_path}
    kept = delete_old_sessions(**work, days=0, now_s=now_s, user_home=tmp_path)
    gone = delete_old_sessions(**work, days=30, now_s=now_s, user_home=tmp_path)
    holder.close()
    assert (kept, gone) == (0, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "new.jsonl", "open", "open.jsonl"]


def test_a_cold_start_names_the_price_of_each_way() -> None:
    info = known_model("claude-sonnet-5-5")
    assert info is not None
    assert info.price is not None
    start = ColdStart(200_000, 50_000, is_cleared_by_itself=True, idle_s=7 * 3_600, is_cache_ttl_1h=False)
    question = cold_start_question(start, info)
    assert "7 hours" in question.text
    assert [option.label for option in question.options] == ["Clear old results", "Go on as is", "Compact first"]
    for option, sent_tokens in zip(question.options, (150_000, 200_000), strict=False):
        assert f"${sent_tokens * 1.25 * info.price.input_usd / 1_000_000:.2f}" in option.description
    assert "50,000 tokens of old tool results" in question.options[0].description
    asked_for = cold_start_question(replace(start, is_cleared_by_itself=False), info)
    assert [option.label for option in asked_for.options] == ["Go on as is", "Clear old results", "Compact first"]
    unknown = replace(info, price=None, long_prompt_price=None)
    without = cold_start_question(replace(start, clearable_tokens=0), unknown)
    assert [option.label for option in without.options] == ["Go on as is", "Compact first"]
    assert "$" not in str(without)
