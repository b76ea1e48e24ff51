"""One layer of the pipeline, alone: after a long pause, old tool results are cleared; the decision is data.

Run it: python examples/one_layer.py
"""

from datetime import UTC, datetime, timedelta

from pyagent.compaction.context import Sizer
from pyagent.compaction.count import ContextCounter
from pyagent.compaction.microcompact import clear_cold_results
from pyagent.log import AssistantEntry, Payload, Record, UserEntry
from pyagent.messages import TextBlock, ToolResultBlock, Usage
from pyagent.state import ConversationState

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


class Words:
    """A tokenizer for examples: one token a word."""

    is_ready = True

    def count(self, text: str) -> int:
        return len(text.split())


def conversation(reads: int) -> ConversationState:
    """A prompt and some file reads with their results."""
    payloads: list[Payload] = [UserEntry((TextBlock("look at these files"),))]
    for number in range(reads):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": f"f{number}.py"}}
        payloads.append(AssistantEntry(f"m{number}", "example", (use,), "tool_use", Usage(), "", ""))
        result = ToolResultBlock(f"t{number}", (TextBlock("many words of a file " * 200),))
        payloads.append(UserEntry((result,), origin="tool_results"))
    return ConversationState(Record(seq, f"u{seq}", NOON, payload) for seq, payload in enumerate(payloads))


def main() -> None:
    """Ask the layer twice: after five minutes, and after two hours."""
    state = conversation(reads=8)
    sizer = Sizer(ContextCounter(Words()), "other")
    for pause in (timedelta(minutes=5), timedelta(hours=2)):
        outcome = clear_cold_results(state.view, sizer, now=NOON + pause, gap_minutes=60, keep_recent=5)
        print(f"after {pause}: {outcome}")


if __name__ == "__main__":
    main()
