"""What a prompt brings along: files named with `@`, lines of them, and images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyagent.agent.mentions import Mention, mentions_in
from pyagent.commands import SubmitPrompt
from pyagent.events import PromptReturned, TurnFailed, TurnFinished
from tests.agent.support import launch_options, running_agent
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Script, reply, tool_use
from tests.pictures import png


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see @src/a.py and @src/a.py.", (Mention("src/a.py"),)),
        ("@a.py#L3-9", (Mention("a.py", 3, 9),)),
        ("@a.py#L3-L9, @b.py#L7", (Mention("a.py", 3, 9), Mention("b.py", 7, 7))),
        ('@"a b.txt#L2"', (Mention("a b.txt", 2, 2),)),
        ("@a.py#L9-3", (Mention("a.py", 3, 9),)),
        ('@"a b.txt"#L2-3, then', (Mention("a b.txt", 2, 3),)),
        ('@"a b.txt"#Lx', (Mention("a b.txt"),)),
        ('the "file @q"uote.txt"', (Mention('q"uote.txt'),)),
        ('@"what?.txt" and @a.txt?', (Mention("what?.txt"), Mention("a.txt"))),
        ("mail me@home.org", ()),
        ("@a.py#L0", ()),
    ],
)
def test_mentions_are_words_that_begin_with_an_at_sign(text: str, found: tuple[Mention, ...]) -> None:
    assert mentions_in(text) == found


def blocks_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for message in body["messages"] for block in message["content"]]


async def test_the_named_lines_and_no_others_reach_the_model_before_the_prompt(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["I see."])) as server:
        options = launch_options(tmp_path, server.url)
        (options.cwd / "a.py").write_text("".join(f"line {number}\n" for number in range(1, 21)))
        async with running_agent(options) as agent:
            await agent.prompt("explain @a.py#L3-9")
        texts = [str(block.get("text")) for block in blocks_of(server.message_requests[0].body)]
    attached = next(text for text in texts if "a.py, lines 3 to 9" in text)
    assert [f"line {number}" in attached.split() or f"line {number}\n" in attached for number in (2, 3, 9, 10)] == [
        False,
        True,
        True,
        False,
    ]
    assert texts.index(attached) < texts.index("explain @a.py#L3-9")


async def test_a_file_named_whole_may_be_edited_without_another_read(tmp_path: Path) -> None:
    edit = tool_use("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})
    async with FakeMessagesServer(Script([reply(edit), "Done."])) as server:
        options = launch_options(tmp_path, server.url)
        (options.cwd / "a.txt").write_text("one\n")
        async with running_agent(options) as agent:
            await agent.prompt("change @a.txt")
    assert (options.cwd / "a.txt").read_text() == "two\n"


async def test_a_denied_file_is_not_attached_and_that_is_said(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["No."])) as server:
        options = launch_options(
            tmp_path, server.url, permission_mode="default", disallowed_tools=("Read(secret.txt)",)
        )
        (options.cwd / "secret.txt").write_text("the-secret\n")
        async with running_agent(options) as agent:
            await agent.prompt("show @secret.txt")
            notices = agent.notices
        assert "the-secret" not in str(server.message_requests[0].body)
    assert any("@secret.txt is not attached" in notice for notice in notices)


async def test_names_in_a_pasted_text_are_not_looked_up(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["Yes."])) as server:
        options = launch_options(tmp_path, server.url)
        (options.cwd / "a.txt").write_text("its-content\n")
        async with running_agent(options) as agent:
            since = len(agent.events)
            agent.send(SubmitPrompt("look: @a.txt", display="look: [Pasted text #1]"))
            await agent.next_of(TurnFinished, since=since)
        assert "its-content" not in str(server.message_requests[0].body)


async def test_an_image_travels_as_an_image_block_of_the_prompt_within_the_limits(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["A picture."])) as server:
        options = launch_options(tmp_path, server.url)
        (tmp_path / "big.png").write_bytes(png(2_400, 1_200))
        async with running_agent(options) as agent:
            since = len(agent.events)
            agent.send(SubmitPrompt("what is [Image #1 2400×1200]?", images=(str(tmp_path / "big.png"),)))
            await agent.next_of(TurnFinished, since=since)
        message = server.message_requests[0].body["messages"][-1]
    assert [block["type"] for block in message["content"][-2:]] == ["image", "text"]
    assert message["content"][-2]["source"]["type"] == "base64"


async def test_an_image_that_is_gone_gives_the_prompt_back(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script([])) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            since = len(agent.events)
            agent.send(SubmitPrompt("look", images=(str(tmp_path / "gone.png"),)))
            failed = await agent.next_of(TurnFailed, since=since)
            returned = agent.all_of(PromptReturned)
    assert "gone.png cannot be read" in failed.message
    assert [event.text for event in returned] == ["look"]
