"""CPU per request of turning a view into a request body, with one new round, for conversations that grow.

Run: python -m bench.render
Budget: 3 ms at 1,000 messages.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from datetime import UTC, datetime

from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.agent.wire.repair import MediaLimits, Repairer
from pyagent.agent.wire.validate import Validator
from pyagent.log import AssistantEntry, Payload, Record, UserEntry
from pyagent.messages import TextBlock, ToolResultBlock, Usage
from pyagent.view import View

NOW = datetime(2026, 11, 30, tzinfo=UTC)
RESULT_CHARS = 4_000
"""A usual tool result; 1,000 messages then make a body of about 2.4 MB."""
REPEATS = 25


def entries(count: int) -> list[Payload]:
    """A prompt, then rounds of one call and its result."""
    made: list[Payload] = [UserEntry((TextBlock("Please look around."),))]
    while len(made) < count:
        number = len(made)
        content = (
            {"type": "thinking", "thinking": "Let me see. " * 20, "signature": "s" * 400},
            {"type": "text", "text": "Reading the next file."},
            {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"file_path": f"/src/{number}.py"}},
        )
        made.append(AssistantEntry(f"m{number}", "m", content, "tool_use", Usage(), "", ""))
        result = ToolResultBlock(f"toolu_{number}", (TextBlock("x = 1\n" * (RESULT_CHARS // 6)),))
        made.append(UserEntry((result,), origin="tool_results"))
    return made


def measure(count: int, profile: RequestProfile) -> dict[str, float]:
    """Milliseconds of CPU: for the first rendering, and for each later one with one round more."""
    payloads = entries(count + 2 * REPEATS)
    records = [Record(seq, f"u{seq}", NOW, payload) for seq, payload in enumerate(payloads)]
    view = View()
    for record in records[:count]:
        view = view.appended(record)
    renderer, validator, repairer = Renderer(), Validator(), Repairer()
    started_s = time.process_time()
    body = RequestPlan.of(profile, renderer.render(view, profile)).body()
    first_ms = (time.process_time() - started_s) * 1_000
    validator.fault(renderer.render(view, profile))
    repairer.find(view, MediaLimits())
    samples: list[float] = []
    for at, record in enumerate(records[count : count + 2 * REPEATS], start=count):
        view = view.appended(record)
        if at % 2:
            # A response: the request comes once its result stands behind it.
            continue
        started_s = time.process_time()
        repairer.find(view, MediaLimits())
        rendered = renderer.render(view, profile)
        plan = RequestPlan.of(profile, rendered)
        validator.fault(rendered, plan.marks)
        body = plan.body()
        samples.append((time.process_time() - started_s) * 1_000)
    return {
        "messages": count,
        "body_mb": round(len(body) / 1e6, 2),
        "first_ms": round(first_ms, 2),
        "next_ms": round(statistics.median(samples), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 300, 1_000, 3_000, 10_000])
    profile = RequestProfile("claude-opus-5-5", "You are an agent. " * 200)
    for size in parser.parse_args().sizes:
        print(json.dumps(measure(size, profile)))


if __name__ == "__main__":
    main()
