"""A session of five compactions with a summariser that forgets everything, and what stands in the next request."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyagent.events import CompactionFinished
from tests.agent.background import Worker, kind_of_request
from tests.agent.support import LiveAgent, launch_options, running_agent, state_on_disk, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.recorded import Recorded, divergence
from tests.fakes.script import Answer, Request, Thinking, prompt_too_long, reply, tool_use

WINDOW_TOKENS = 100_000
KINDS = ("automatic", "manual", "refused", "manual", "automatic")
FILES = ("src/parser.py", "src/lexer.py", "notes/plan.md")
RULE = "Never write to vendor/; it is copied from upstream (rule 4711)."
TASKS = ("Write the parser", "Test the parser", "Document the parser")
FILLER = "The quick brown fox jumps over the lazy dog. "


@dataclass(frozen=True, slots=True)
class Check:
    """One compaction: what its successor held, what was missing, and what the summary cost."""

    kind: str
    layer: str
    before_tokens: int
    after_tokens: int
    calls: int
    cached_share: float
    found: dict[str, tuple[int, int]]
    """part → (found, expected)"""
    missing: tuple[str, ...]


@dataclass
class _Play:
    """Answers in order; without one, a closing text that can be told from all others."""

    steps: deque[Answer] = field(default_factory=deque)
    said: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> Answer:
        if self.steps:
            return self.steps.popleft()
        self.said.append(f"Closing words number {len(self.said)}.")
        return reply(Thinking(f"Enough for turn {len(self.said)}."), self.said[-1])


def _texts(request: Recorded) -> str:
    parts: list[str] = []
    for message in request.body["messages"]:
        for block in message["content"]:
            match block:
                case {"type": "text", "text": text}:
                    parts.append(text)
                case {"type": "tool_result", "content": list(inner)}:
                    parts += [part["text"] for part in inner if part["type"] == "text"]
                case {"type": "tool_result", "content": str(inner)}:
                    parts.append(inner)
                case _:
                    pass
    return "\n".join(parts)


async def play(folder: Path, *, is_continued: bool) -> list[Check]:
    """The five compactions in one process, or with a quit and `--continue` before each."""
    work = _Play()
    worker = Worker(work)
    checks: list[Check] = []
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(folder, server.url), {"PYAGENT_SESSION_MEMORY": "0"})
        _prepare(options.cwd)
        prompts: list[str] = []
        async with AsyncExitStack() as stack:
            agent = await stack.enter_async_context(running_agent(options))
            for number, kind in enumerate(KINDS):
                if is_continued and number:
                    await stack.aclose()
                    agent = await stack.enter_async_context(running_agent(replace(options, is_continued=True)))
                checks.append(await _one(agent, server, worker, work, prompts, number, kind, options.cwd))
        _assert_prefixes(server.message_requests)
        server.raise_failures()
        refusals = [text for request in server.refusals for text in request.errors]
        assert not refusals, refusals
    return checks


def _prepare(cwd: Path) -> None:
    (cwd / "CLAUDE.md").write_text(f"# Rules\n{RULE}\n")
    for name in FILES:
        path = cwd / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {name}\nversion = 0\n")
    (cwd / "big.txt").write_text("".join(f"{n}: {FILLER}\n" for n in range(1_500)))


async def _one(
    agent: LiveAgent,
    server: FakeMessagesServer,
    worker: Worker,
    work: _Play,
    prompts: list[str],
    number: int,
    kind: str,
    cwd: Path,
) -> Check:
    since = len(agent.events)
    summaries = worker.counts["summary"]
    await _work(agent, work, prompts, number, cwd)
    # What counts is what the files hold when the compaction comes, not what was read of them.
    for file in FILES:
        (cwd / file).write_text(f"# {file}\nversion = {number + 1}  # written behind the agent's back\n")
    match kind:
        case "manual":
            await agent.command("compact", "", CompactionFinished)
        case "refused":
            work.steps.append(prompt_too_long(WINDOW_TOKENS + 500, WINDOW_TOKENS))
        case _:
            for piece in range(14):
                command = f"yes '{FILLER}' | head -n 330 # {number}.{piece}"
                work.steps.append(reply(Thinking("More."), tool_use("Bash", {"command": command})))
    prompts.append(f"Prompt {number}b: and now go on with step {number}, within the line limit of {700 + number}.")
    last_words = work.said[-1]
    await agent.prompt(prompts[-1])
    finished = await agent.next_of(CompactionFinished, since=since)
    boundary = state_on_disk(agent.options).boundaries[-1]
    after = _first_after(server.message_requests, prompts[-1], kind)
    expected = {
        "prompts": prompts,
        "rules": [RULE],
        "tasks": list(TASKS),
        "files now": [f"version = {number + 1}  # written behind" for _ in FILES],
        "big file by path": [str(cwd / "big.txt")],
        "last words": [last_words] if kind != "automatic" else [],
        "transcript": [str(agent.events[0].transcript_path)],  # type: ignore[union-attr]  # the first event is SessionOpened
    }
    text = _texts(after)
    found: dict[str, tuple[int, int]] = {}
    missing: list[str] = []
    for name, pieces in expected.items():
        if name == "files now":
            held = min(text.count(pieces[0]), len(pieces))
            found[name] = held, len(pieces)
            missing += [name] if held < len(pieces) else []
        else:
            absent = [piece for piece in pieces if piece not in text]
            found[name] = len(pieces) - len(absent), len(pieces)
            missing += absent
    asked = [request for request in server.message_requests if kind_of_request(request) == "summary"][summaries:]
    reads = sum(request.usage.get("cache_read_input_tokens", 0) for request in asked)
    sent = sum(request.input_tokens for request in asked)
    assert boundary is not None
    return Check(
        kind, finished.layer, finished.before_tokens, finished.after_tokens, len(asked), reads / max(sent, 1), found,
        tuple(missing),
    )  # fmt: skip


async def _work(agent: LiveAgent, work: _Play, prompts: list[str], number: int, cwd: Path) -> None:
    """A turn that reads the files, keeps a task list, and fills some context."""
    todos = [{"content": task, "status": "in_progress" if at == 0 else "pending", "activeForm": task}
             for at, task in enumerate(TASKS)]  # fmt: skip
    work.steps.append(reply(Thinking("Plan."), tool_use("TodoWrite", {"todos": todos})))
    work.steps.append(reply(tool_use("Read", {"file_path": str(cwd / "big.txt"), "limit": 20})))
    for name in FILES:
        work.steps.append(reply(tool_use("Read", {"file_path": str(cwd / name)})))
    for part in range(4):
        work.steps.append(reply(tool_use("Bash", {"command": f"yes '{FILLER}' | head -n 250 # w{number}.{part}"})))
    prompts.append(f"Prompt {number}a: keep the parser under {400 + number} lines and say so.")
    await agent.prompt(prompts[-1])


def _first_after(requests: Sequence[Recorded], prompt: str, kind: str) -> Recorded:
    """The first main request behind the compaction that came with or after `prompt`."""
    mains = [request for request in requests if kind_of_request(request) == "main" and request.status == 200]
    holding = [request for request in mains if prompt in _texts(request)]
    if kind != "automatic":
        return holding[0]
    pairs = itertools.pairwise(holding)
    return next((later for earlier, later in pairs if later.input_tokens < earlier.input_tokens), holding[0])


def _assert_prefixes(requests: Sequence[Recorded]) -> None:
    """Between two boundaries every main request only appends to the one before."""
    mains = [request for request in requests if kind_of_request(request) == "main" and request.status == 200]
    for earlier, later in itertools.pairwise(mains):
        if later.input_tokens > earlier.input_tokens:
            found = divergence(earlier.body, later.body)
            assert found is None, found


def table(checks: Sequence[Check]) -> str:
    """The checks as lines of text."""
    parts = list(checks[0].found)
    head = f"{'compaction':<11} {'layer':<10} {'before':>8} {'after':>8} {'calls':>5} {'cached':>6}  " + "  ".join(
        parts
    )
    lines = [head]
    for check in checks:
        cells = "  ".join(f"{f'{check.found[part][0]}/{check.found[part][1]}':^{len(part)}}" for part in parts)
        lines.append(
            f"{check.kind:<11} {check.layer:<10} {check.before_tokens:>8,} {check.after_tokens:>8,} {check.calls:>5} "
            f"{check.cached_share:>6.0%}  {cells}"
        )
    return "\n".join(lines)


def played(folder: Path, *, is_continued: bool) -> list[Check]:
    """`play`, for a script."""
    return asyncio.run(play(folder, is_continued=is_continued))
