"""Any window at any time: storms of sizes while an answer streams, the smallest useful size, and what is too small."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from tests.e2e.pty_harness import Terminal
from tests.e2e.served import is_idle, pyagent_on, serving
from tests.fakes.script import Script, reply, thinking, tool_use

WIDEST, TALLEST = 200, 60
STORM = 200
PART = """## Part {n}

Some **bold** words with 漢字 and 👩‍👩‍👧 in them, long enough to wrap in a window that is not wide.

- item one
- item two

| a | b |
|---|--:|
| x | {n} |

```python
def f(n: int) -> int:
    return n + {n}
```

"""


def send(terminal: Terminal, text: str) -> None:
    terminal.paste(text)
    terminal.wait_for(f"│ {text[:20]}")
    terminal.press("enter")


def wait_for_output(terminal: Terminal, written: int) -> None:
    """Wait until the program has drawn more than so many bytes, so that the sizes do not all come at once."""
    terminal.wait_until(lambda seen: len(seen.output) > written)


def only(words: str) -> Callable[[str], bool]:
    """Whether the screen shows this row and no other."""
    return lambda screen: [row for row in screen.split("\n") if row] == [words]


def log_of(home: Path) -> str:
    path = home / ".pyagent" / "logs" / "pyagent.log"
    return path.read_text() if path.exists() else ""


def test_two_hundred_sizes_while_an_answer_streams(tmp_path: Path) -> None:
    chance = random.Random(20)
    long_answer = "".join(PART.format(n=n) for n in range(60)) + "The end of it."
    steps = [
        reply(thinking("Well."), "Looking.", tool_use("Bash", {"command": "seq 1 300"})),
        reply(long_answer, delta_chars=24, tokens_per_s=1_000),
        reply("Still here."),
    ]
    with (
        serving(Script(steps)) as server,
        pyagent_on(server, tmp_path, "--allowedTools", "Bash(seq:*)", columns=100, lines=30) as terminal,
    ):
        terminal.wait_for(is_idle)
        send(terminal, "write a lot")
        terminal.wait_for("Part ")
        for number in range(STORM):
            written = len(terminal.output)
            columns, lines = chance.randint(1, WIDEST), chance.randint(1, TALLEST)
            terminal.resize(columns, lines)
            if number % 4 == 0 and columns >= 20 and lines >= 6:
                wait_for_output(terminal, written)
        terminal.resize(60, 15)
        terminal.wait_for(lambda screen: "The end of it." in screen and is_idle(screen))
        send(terminal, "are you there?")
        terminal.wait_for("Still here.")
        terminal.wait_for(is_idle)
        send(terminal, "/exit")
        assert terminal.wait_for_exit() == 0
        terminal.assert_restored()
    assert "Traceback" not in terminal.scrollback + log_of(tmp_path)


def test_a_window_that_is_too_small_says_so_and_the_rest_comes_back(tmp_path: Path) -> None:
    with serving(Script([reply("An answer.")])) as server, pyagent_on(server, tmp_path) as terminal:
        terminal.wait_for(is_idle)
        send(terminal, "a question")
        before = terminal.wait_for(lambda screen: "An answer." in screen and is_idle(screen))
        terminal.type("draft")
        terminal.wait_for("│ draft")
        for size, words in (
            ((80, 3), "pyagent needs 20×6; this window is 80×3"),
            ((14, 9), "needs 20×6"),
            ((1, 1), "…"),
        ):
            terminal.resize(*size)
            terminal.wait_for(only(words))
        terminal.resize(20, 6)
        terminal.wait_for("│ draft")
        terminal.resize(100, 30)
        terminal.wait_for(lambda screen: screen.split("\n")[:12] == before.split("\n")[:12] and "│ draft" in screen)
        terminal.type("!")
        terminal.wait_for("│ draft!")


def test_sixty_by_fifteen_has_room_for_a_turn_and_a_dialog(tmp_path: Path) -> None:
    steps = [reply(tool_use("Bash", {"command": "touch made.txt"})), reply("Made it.")]
    with serving(Script(steps)) as server, pyagent_on(server, tmp_path, columns=60, lines=15) as terminal:
        terminal.wait_for(is_idle)
        send(terminal, "make a file")
        screen = terminal.wait_for("Yes, once")
        assert "touch made.txt" in screen
        terminal.press("y")
        terminal.wait_for(lambda screen: "Made it." in screen and is_idle(screen))
        assert (tmp_path / "made.txt").exists()
