"""A front end in a dozen lines: start the agent, send a prompt, read its events. Runs on the offline model.

Run it: python examples/own_front_end.py "list the files here"
"""

import queue
import sys
import tempfile
from pathlib import Path

from pyagent.agent.bootstrap import start_agent
from pyagent.commands import Shutdown, SubmitPrompt
from pyagent.events import ConversationClosed, Event, Notice, TextDelta, ToolFinished, TurnFailed, TurnFinished
from pyagent.launch import LaunchOptions


def main() -> None:
    """Answer one prompt and leave."""
    prompt = " ".join(sys.argv[1:]) or "explain the layout of this folder"
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    with tempfile.TemporaryDirectory() as home:
        options = LaunchOptions(cwd=Path.cwd(), home=Path(home), model="offline", is_headless=True, is_persistent=False)
        agent = start_agent(options, events.put)
        agent.send(SubmitPrompt(prompt))
        while not isinstance(event := events.get(), ConversationClosed):
            match event:
                case TextDelta(text=text):
                    print(text, end="", flush=True)
                case ToolFinished(summary=summary, is_error=is_error):
                    print(f"\n[{'failed' if is_error else 'done'}: {summary}]")
                case Notice(text=text):
                    print(f"\n[{text}]")
                case TurnFinished() | TurnFailed():
                    print()
                    agent.send(Shutdown())
                case _:
                    pass
        agent.close(5.0)


if __name__ == "__main__":
    main()
