"""What every turn of every user pays again: system text, tools and what stands before the first prompt."""

from __future__ import annotations

import json
from pathlib import Path

from pyagent.agent.encoding import LocalEncoding
from pyagent.agent.wire.catalogue import model_info
from tests.agent.support import launch_options, running_agent
from tests.fakes.direct import DirectServer
from tests.fakes.script import Script

LIMIT_TOKENS = 5_000
MODEL = "claude-sonnet-5-5"
CORE_TOOLS = {"Read", "Bash", "Grep", "Glob", "Edit", "Write"}


async def test_a_default_start_costs_at_most_five_thousand_tokens(tmp_path: Path) -> None:
    """Counted as pyagent counts: o200k times the model's factor, over the bytes as sent."""
    server = DirectServer(Script(["Hello."]))
    async with running_agent(launch_options(tmp_path, "http://127.0.0.1:1", model=MODEL), server) as agent:
        await agent.prompt("hi")
    body = server.requests[0].body
    encoding = LocalEncoding()
    await encoding.ready()
    factor = model_info(MODEL).token_factor
    injected = [block for message in body["messages"] for block in message["content"] if block.get("text") != "hi"]
    parts = {"system": body["system"], "injected": injected} | {tool["name"]: tool for tool in body["tools"]}
    tokens = {
        name: round(encoding.count(json.dumps(part, ensure_ascii=False)) * factor) for name, part in parts.items()
    }
    assert tokens.keys() >= CORE_TOOLS
    assert sum(tokens.values()) <= LIMIT_TOKENS, tokens
