"""Writes the pictures of the documentation from the real program, and on request every state at every size to look at.

python -m tests.e2e.make_pictures              # docs/*.png
python -m tests.e2e.make_pictures --all FOLDER # every state, three sizes, dark, light and without colour
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image

from tests.e2e.program import SUMMARY, asks_for_summary
from tests.e2e.pty_harness import Terminal
from tests.e2e.served import MODEL, is_idle, serving
from tests.fakes.script import Answer, Request, http_error, reply, thinking, tool_use

DOCS = Path(__file__).resolve().parents[2] / "docs"
MAX_BYTES = 60_000
COLOURS = 160
"""Of a picture's palette: the themes have some thirty, the rest smooths their letters."""

SOURCE = '''"""Shapes and their sizes."""

import math


def area(radius: float) -> float:
    return 3.14 * radius * 2


def circumference(radius: float) -> float:
    return 2 * math.pi * radius
'''
FIXED = "    return math.pi * radius**2\n"
DONE = """## Fixed

`area` doubled the radius instead of squaring it, and used **3.14** for π.

| radius | before | now |
|---:|---:|---:|
| 1 | 6.28 | 3.14 |
| 10 | 62.80 | 314.16 |

```python
def area(radius: float) -> float:
    return math.pi * radius**2
```

The three tests pass.
"""
EDIT = {"file_path": "shapes.py", "old_string": "    return 3.14 * radius * 2\n", "new_string": FIXED}
QUESTION = {
    "questions": [
        {
            "header": "Units",
            "question": "Which unit shall the areas be given in?",
            "multiSelect": False,
            "options": [
                {"label": "Square metres", "description": "as the rest of the module does"},
                {"label": "Square feet", "description": "as the old reports do"},
            ],
        }
    ]
}
LIGHT = {"PICTURE_THEME": "light"}
WINDOW = {"PYAGENT_AUTO_COMPACT_WINDOW": "80000"}
"""Small enough that a short session can be seen in it."""
SHOTS: dict[str, tuple[str, tuple[int, int], dict[str, str]]] = {
    "screen": ("done", (100, 30), {}),
    "approval": ("approval", (100, 30), {}),
    "context": ("context", (100, 30), {}),
    "transcript": ("search", (100, 30), {}),
    "light": ("compacted", (100, 30), LIGHT),
    "narrow": ("streaming", (60, 15), {}),
    "no-color": ("question", (80, 24), {"NO_COLOR": "1"}),
}
"""The documentation's pictures: the state, the size and what the environment adds."""


def model(request: Request) -> Answer:
    """The other side of the conversation, by what was said last."""
    if asks_for_summary(request):
        return reply(SUMMARY * 3, delta_chars=30, tokens_per_s=400)
    if request.tool_results:
        return _after(str(request.tool_results[-1]))
    if "unit" in request.last_text:
        return reply(tool_use("AskUserQuestion", QUESTION))
    if "broken" in request.last_text:
        return http_error(400, "invalid_request_error", "max_tokens: must be at least 1")
    look = [tool_use("Read", {"file_path": name}) for name in ("NOTES.md", "shapes.py")]
    return reply(thinking("The factor looks wrong. I'll read it first."), "I'll look at the module first.", *look)


def _after(result: str) -> Answer:
    if "Shapes and their sizes" in result:
        return reply(tool_use("Edit", EDIT))
    if "passed" in result:
        return reply(DONE, delta_chars=12, tokens_per_s=150)
    if "Units" in result or "unit" in result:
        return reply("Square metres it is.")
    return reply(tool_use("Bash", {"command": "sleep 2 && echo '3 passed in 0.02s'", "description": "Run the tests"}))


@dataclass(slots=True)
class Visit:
    """One run of the program through its states; `shot` is called at each with its name."""

    terminal: Terminal
    shot: Callable[[str], None]

    def say(self, text: str) -> None:
        self.terminal.paste(text)
        self.terminal.wait_for(f"│ {text[:16]}")
        self.terminal.press("enter")

    def rest(self) -> None:
        self.terminal.wait_for(is_idle)

    def go(self) -> None:
        terminal = self.terminal
        self.rest()
        self.shot("start")
        self.say("The area of a circle is wrong. Please fix it.")
        terminal.wait_for("tell the model what to do")
        self.shot("approval")
        terminal.press("y")
        terminal.wait_for("running")
        self.shot("tool")
        terminal.wait_for("before")
        self.shot("streaming")
        terminal.wait_for("tests pass")
        self.rest()
        self.shot("done")
        self.say("Which unit do we use?")
        terminal.wait_for("Square feet")
        self.shot("question")
        terminal.press("1")
        terminal.wait_for(lambda screen: "it is." in screen and is_idle(screen))
        self.say("/context")
        terminal.wait_for(lambda screen: "leave" in screen and "S system prompt" in screen)
        self.shot("context")
        terminal.press("q")
        self.rest()
        terminal.press("alt+p")
        terminal.wait_for("Model")
        self.shot("picker")
        terminal.press("esc")
        terminal.wait_for(lambda screen: "╭─ Model" not in screen)
        terminal.press("ctrl+o")
        terminal.wait_for("q leave")
        self.shot("transcript")
        terminal.press("/")
        terminal.type("radius")
        terminal.wait_for("found in")
        self.shot("search")
        terminal.press("ctrl+o")
        self.rest()
        self.say("/compact")
        terminal.wait_for("Compacting")
        self.shot("compacting")
        terminal.wait_for(lambda screen: "tokens · " in screen and is_idle(screen))
        self.shot("compacted")
        self.say("now something broken")
        terminal.wait_for("refused")
        self.rest()
        self.shot("error")


def visit(size: tuple[int, int], env: Mapping[str, str], shot: Callable[[Terminal, str], None]) -> None:
    """Go through all states at a size."""
    home = Path(tempfile.gettempdir()) / "pictures"  # It stands in the pictures: no random name.
    work = home / "geometry"
    work.mkdir(parents=True)
    try:
        with serving(model) as server:
            key = {"ANTHROPIC_API_KEY": "a-key", "ANTHROPIC_BASE_URL": server.url}
            _visit(home, work, size, {**key, **WINDOW, **env}, shot)
    finally:
        shutil.rmtree(home)


def _visit(
    home: Path, work: Path, size: tuple[int, int], env: Mapping[str, str], shot: Callable[[Terminal, str], None]
) -> None:
    (home / ".pyagent").mkdir()
    (home / ".pyagent" / "settings.json").write_text(json.dumps({"theme": env.get("PICTURE_THEME", "dark")}))
    (work / "shapes.py").write_text(SOURCE)
    (work / "NOTES.md").write_text("".join(f"- {n}: what was found out on that day\n" for n in range(1_200)))
    allowed = ["--allowedTools", "Bash(sleep:*)", "Bash(echo:*)"]
    argv = [sys.executable, "-P", "-m", "pyagent", "--model", MODEL, *allowed]
    with Terminal.spawn(argv, home=home, cwd=work, env=env, columns=size[0], lines=size[1]) as terminal:
        Visit(terminal, lambda state: shot(terminal, state)).go()


def save(terminal: Terminal, path: Path) -> None:
    """The screen as a small PNG."""
    whole = BytesIO()
    terminal.screenshot(whole)
    with Image.open(whole) as picture:
        picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path} is larger than {MAX_BYTES:,} bytes")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    arguments.add_argument("--all", metavar="FOLDER", type=Path)
    folder = arguments.parse_args().all
    if folder is None:
        _write_docs()
        return
    folder.mkdir(parents=True, exist_ok=True)
    looks: dict[str, dict[str, str]] = {"dark": {}, "light": LIGHT, "nocolor": {"NO_COLOR": "1"}}
    for size in ((120, 40), (80, 24), (60, 15)):
        for look, env in looks.items():
            visit(size, env, _saver(folder, f"{size[0]}x{size[1]}-{look}"))


def _write_docs() -> None:
    runs: dict[tuple[tuple[int, int], tuple[tuple[str, str], ...]], dict[str, str]] = {}
    for name, (state, size, env) in SHOTS.items():
        runs.setdefault((size, tuple(env.items())), {})[state] = name
    for (size, env_items), names in runs.items():
        visit(size, dict(env_items), _doc_saver(names))


def _saver(folder: Path, prefix: str) -> Callable[[Terminal, str], None]:
    return lambda terminal, state: save(terminal, folder / f"{prefix}-{state}.png")


def _doc_saver(names: Mapping[str, str]) -> Callable[[Terminal, str], None]:
    """Saves the states that have a name in the documentation."""

    def save_named(terminal: Terminal, state: str) -> None:
        if state in names:
            save(terminal, DOCS / f"{names[state]}.png")

    return save_named


if __name__ == "__main__":
    main()
