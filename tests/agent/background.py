"""A scripted model that also answers the pipeline's own requests, and says which kind each request was."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from tests.fakes.recorded import Recorded
from tests.fakes.script import Answer, Request, reply, tool_use

Kind: TypeAlias = Literal["main", "summary", "notes"]

NOTES = (
    "<notes>\n# Title\nCounting\n\n# Current state\nCounting goes on.\n\n# Task\nCount, as the user asked.\n\n"
    "# Worklog\n- counted\n</notes>"
)
FORGETFUL_SUMMARY = "<analysis>.</analysis>\n<summary>\n## 1. Primary request and intent\nSome work.\n</summary>"
"""A summary that keeps nothing: whatever survives it, the pipeline kept."""


def kind_of(text: str) -> Kind:
    if "<summary>" in text and "nine sections" in text:
        return "summary"
    return "notes" if "<notes>" in text and "notes of this session" in text else "main"


def kind_of_request(recorded: Recorded) -> Kind:
    """What a recorded POST /v1/messages asked for."""
    content = recorded.body["messages"][-1]["content"]
    blocks: list[dict[str, Any]] = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return kind_of("\n".join(block["text"] for block in blocks if block.get("type") == "text"))


class Worker:
    """Passes the main loop's requests on to `work`; answers the others itself and counts them."""

    def __init__(
        self,
        work: Callable[[Request], Answer],
        *,
        summary: Answer | str = FORGETFUL_SUMMARY,
        notes: Answer | str = NOTES,
    ) -> None:
        self._work = work
        self.summary = summary
        self.notes = notes
        self.counts: dict[Kind, int] = {"main": 0, "summary": 0, "notes": 0}

    def __call__(self, request: Request) -> Answer:
        kind = kind_of(request.last_text)
        self.counts[kind] += 1
        match kind:
            case "main":
                return self._work(request)
            case "summary":
                return reply(self.summary) if isinstance(self.summary, str) else self.summary
            case "notes":
                return reply(self.notes) if isinstance(self.notes, str) else self.notes


def turns_of_calls(*counts: int) -> Callable[[Request], Answer]:
    """One turn for each count: so many calls side by side of about 3,000 tokens each, then a closing word; after the
    last of them only words."""
    serial = itertools.count()
    command = "yes 'the quick brown fox jumps over the lazy dog' | head -n 190 # {}"
    steps: deque[Answer] = deque()
    for count in counts:
        steps.append(reply(*(tool_use("Bash", {"command": command.format(next(serial))}) for _ in range(count))))
        steps.append(reply("Done."))
    return lambda request: steps.popleft() if steps else reply("Fine.")
