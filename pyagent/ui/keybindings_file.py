"""`keybindings.json`: Claude Code's is read, pyagent's own goes over it and is the only one that is ever written."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyagent.ui.keymap import ACTIONS, Keymap, read_bindings

MAX_FILE_BYTES = 200_000
"""Nobody writes that much by hand: a larger file is something else under that name."""


@dataclass(frozen=True, slots=True)
class LoadedKeys:
    keymap: Keymap
    problems: tuple[str, ...] = ()
    """One sentence for each thing that was ignored."""


def own_file(home: Path) -> Path:
    return home / "keybindings.json"


def load_keys(home: Path, environ: Mapping[str, str]) -> LoadedKeys:
    """The keys in force; `home` is pyagent's own folder."""
    config = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".claude")
    changed: dict[str, tuple[str, ...]] = {}
    freed: set[str] = set()
    problems: list[str] = []
    for path, is_own in ((Path(config) / "keybindings.json", False), (own_file(home), True)):
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
            if len(data) > MAX_FILE_BYTES:
                raise ValueError(f"it is larger than {MAX_FILE_BYTES:,} bytes")
            read = read_bindings(json.loads(data.decode("utf-8-sig")))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            problems.append(f"{path} is ignored: {reason}.")
            continue
        changed |= read.changed
        freed = (freed - {key for keys in read.changed.values() for key in keys}) | read.freed
        # Of the other program's file only what pyagent knows is taken; what it does not know is no mistake.
        problems += [f"{path}: {problem}." for problem in read.problems] if is_own else []
    return LoadedKeys(Keymap(changed, freed), tuple(problems))


def write_template(path: Path) -> None:
    """Make the file, valid and empty, with everything that can be set told in it. One that is there stays.

    Raises:
        OSError: it cannot be written.
    """
    contexts = list(dict.fromkeys(action.context for action in ACTIONS))
    content = {
        "$help": [
            'In a context write action: key, for example "chat:stash": "ctrl+s".',
            'Several keys: ["ctrl+g", "ctrl+x ctrl+e"]. No key: null. /keybindings reads this file again.',
        ],
        "$defaults": {
            context: {action.name: list(action.keys) for action in ACTIONS if action.context == context}
            for context in contexts
        },
        **{context: {} for context in contexts},
    }
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(path, "x", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
