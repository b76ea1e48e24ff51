"""The one table of keys: what each action is called, where it holds, and its keys, by default or as the person has it.

Chords such as `ctrl+x ctrl+e` become one made-up key each (`Chords`), so that everything behind this module knows
single keys only.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from textual.binding import Binding
from textual.keys import Keys, _character_to_key, key_to_character

CHORD_PREFIX = "chord_"
UNBOUND = "unbound"
"""A key no keyboard has: what an action without keys is bound to."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something keys do. `keys` are written as in the file; `help` is empty for what needs no row in /help."""

    name: str
    context: str
    keys: tuple[str, ...]
    help: str = ""


ACTIONS: tuple[Action, ...] = (
    Action("chat:submit", "Chat", ("enter",), "send; while a turn runs, queue"),
    Action("chat:newline", "Chat", ("ctrl+j", "shift+enter", "alt+enter"), "new line; also \\ Enter"),
    Action("chat:cancel", "Chat", ("escape",), "stop the running turn; twice: empty the line, or go back to a prompt"),
    Action("history:previous", "Chat", ("up",), "earlier prompt; also takes back a queued one"),
    Action("history:next", "Chat", ("down",), "later prompt"),
    Action("history:search", "Global", ("ctrl+r",), "search earlier prompts"),
    Action("app:interrupt", "Global", ("ctrl+c",), "copy the selection, else empty the line, else stop, else leave"),
    Action("app:exit", "Global", ("ctrl+d",), "leave, on an empty line (twice)"),
    Action(
        "app:toggleTranscript",
        "Global",
        ("ctrl+o",),
        "read the transcript, all unfolded: { } prompts, / [ v q",
    ),
    Action("app:toggleTodos", "Global", ("ctrl+t",), "show or hide the task list"),
    Action("task:background", "Task", ("ctrl+b",), "let the running command go on in the background"),
    Action("chat:cycleMode", "Chat", ("shift+tab",), "next permission mode"),
    Action("chat:modelPicker", "Chat", ("alt+p",), "choose the model"),
    Action("chat:thinkingToggle", "Chat", ("alt+t",), "switch thinking on or off"),
    Action("chat:imagePaste", "Chat", ("ctrl+v",), "paste an image from the clipboard"),
    Action("chat:externalEditor", "Chat", ("ctrl+g", "ctrl+x ctrl+e"), "write the prompt in $EDITOR"),
    Action("chat:stash", "Chat", ("ctrl+s",), "put the text aside; on an empty line, bring it back"),
    Action("chat:undo", "Chat", ("ctrl+_", "ctrl+shift+-"), "take the last edit back"),
    Action("chat:yank", "Chat", ("ctrl+y",), "insert what Ctrl+U, Ctrl+K or Ctrl+W cut"),
    Action("chat:yankPop", "Chat", ("alt+y",), "after that: what was cut before it"),
    Action("chat:help", "Chat", ("?",), "this help, on an empty line"),
    Action("chat:wordLeft", "Chat", ("alt+b",)),
    Action("chat:wordRight", "Chat", ("alt+f",)),
    Action("chat:deleteWordRight", "Chat", ("alt+d",)),
    Action("transcript:search", "Global", ("ctrl+f",), "search the transcript; in the prompt, a character right"),
    Action("transcript:exit", "Transcript", ("q", "ctrl+o")),
    Action("transcript:find", "Transcript", ("/",)),
    Action("transcript:print", "Transcript", ("[",)),
    Action("transcript:edit", "Transcript", ("v",)),
    Action("scroll:pageUp", "Scroll", ("pageup",), "scroll up"),
    Action("scroll:pageDown", "Scroll", ("pagedown",), "scroll down"),
    Action("scroll:top", "Scroll", ("ctrl+home",), "to the beginning"),
    Action("scroll:bottom", "Scroll", ("ctrl+end",), "to the end"),
    Action("app:redraw", "Global", ("ctrl+l",), "redraw"),
    Action("app:suspend", "Global", ("ctrl+z",), "suspend; fg comes back"),
    Action("autocomplete:accept", "Autocomplete", ("tab",), "take the chosen completion"),
    Action("autocomplete:dismiss", "Autocomplete", ("escape",)),
    Action("autocomplete:previous", "Autocomplete", ("up", "ctrl+p")),
    Action("autocomplete:next", "Autocomplete", ("down", "ctrl+n")),
    Action("confirm:yes", "Confirmation", ("y",)),
    Action("confirm:no", "Confirmation", ("n",)),
    Action("confirm:previous", "Confirmation", ("up", "k", "ctrl+p")),
    Action("confirm:next", "Confirmation", ("down", "j", "ctrl+n")),
    Action("confirm:nextField", "Confirmation", ("tab",)),
    Action("select:previous", "Select", ("up", "ctrl+p")),
    Action("select:next", "Select", ("down", "ctrl+n")),
    Action("select:accept", "Select", ("enter",)),
    Action("select:cancel", "Select", ("escape",)),
)
"""All actions, in the order /help lists them."""

BY_NAME: Mapping[str, Action] = {action.name: action for action in ACTIONS}
CONTEXTS = frozenset({action.context for action in ACTIONS}) | {
    "Transcript", "HistorySearch", "MessageSelector", "DiffDialog", "Settings", "Tabs", "Help", "Attachments", "Footer",
    "ThemePicker", "Plugin", "ModelPicker",
}  # fmt: skip
"""Names a file may use; of some of them no action can be moved here."""

FIXED = frozenset({"app:interrupt", "app:exit"})
"""Actions whose keys stay: without them there would be no way out."""

_ACTION = re.compile(r"[a-zA-Z]+:[a-zA-Z]+")
_MODIFIERS = {
    "ctrl": "ctrl", "control": "ctrl", "alt": "alt", "meta": "alt", "opt": "alt", "option": "alt", "shift": "shift",
    "super": "super", "cmd": "super", "command": "super",
}  # fmt: skip
_NAMES = {"esc": "escape", "return": "enter", "del": "delete", "ins": "insert", "pgup": "pageup", "pgdn": "pagedown"}
_KNOWN_KEYS = frozenset(key.value for key in Keys) | {"space", "enter", "tab", "escape", "backspace", "delete"}


def one_key(written: str) -> str:
    """Textual's name of a key written as in a file: `ctrl+_` → `ctrl+underscore`, `meta+p` → `alt+p`.

    Raises:
        ValueError: no keyboard has it.
    """
    parts = written.strip().split("+") if written.strip() != "+" else ["+"]
    if len(parts) > 1 and parts[-2:] == ["", ""]:
        parts = [*parts[:-2], "+"]
    *modifiers, key = parts
    named = [_MODIFIERS.get(modifier.strip().lower(), "") for modifier in modifiers]
    if not all(named):
        raise ValueError(f"there is no key {written!r}")
    key = _NAMES.get(key.lower(), key.lower() if len(key) > 1 else key)
    if len(key) == 1:
        if named and key.isalpha() and key.isupper():
            named, key = [*named, "shift"], key.lower()
        name = _character_to_key(key)
    elif key in _KNOWN_KEYS or key_to_character(key) is not None:
        name = key
    else:
        raise ValueError(f"there is no key {written!r}")
    ordered = [modifier for modifier in ("alt", "ctrl", "shift", "super") if modifier in named]
    return "+".join((*ordered, name))


def chord(written: str) -> tuple[str, ...]:
    """The keys of a chord, or the one key, in Textual's names.

    Raises:
        ValueError: one of them is no key.
    """
    keys = tuple(one_key(part) for part in written.split())
    if not keys:
        raise ValueError("an empty text is no key")
    return keys


class Keymap:
    """Which keys do what."""

    def __init__(self, changed: Mapping[str, tuple[str, ...]] | None = None, freed: Iterable[str] = ()) -> None:
        """`changed`: action → its keys in place of the defaults; `freed`: keys taken from whatever had them."""
        freed_chords = {chord(key) for key in freed}
        self._written: dict[str, tuple[str, ...]] = {}
        for action in ACTIONS:
            own = changed.get(action.name) if changed and action.name not in FIXED else None
            kept = [key for key in action.keys if action.name in FIXED or chord(key) not in freed_chords]
            self._written[action.name] = tuple(kept) if own is None else own
        self._made_up: dict[tuple[str, ...], str] = {}
        self._keys: dict[str, tuple[str, ...]] = {
            name: tuple(self._single(chord(key)) for key in keys) for name, keys in self._written.items()
        }

    def _single(self, keys: tuple[str, ...]) -> str:
        if len(keys) == 1:
            return keys[0]
        return self._made_up.setdefault(keys, f"{CHORD_PREFIX}{len(self._made_up) + 1}")

    @property
    def chords(self) -> Mapping[tuple[str, ...], str]:
        """Each chord with the key that stands for it."""
        return self._made_up

    def has(self, action: str, key: str) -> bool:
        """Whether the key (in Textual's name) does this."""
        return key in self._keys[action]

    def textual(self) -> dict[str, str]:
        """The keys of every action, as `App.set_keymap` takes them."""
        return {name: ",".join(keys) or UNBOUND for name, keys in self._keys.items()}

    def help_rows(self) -> list[tuple[str, str]]:
        """(keys, what they do) of each action that is worth a row and has a key."""
        return [
            (", ".join(shown(key) for key in self._written[action.name]), action.help)
            for action in ACTIONS
            if action.help and self._written[action.name]
        ]


_SHORT = {"escape": "Esc", "pageup": "PgUp", "pagedown": "PgDn"}


def shown(written: str) -> str:
    """A key as people write it: `Ctrl+X Ctrl+E`."""
    return " ".join("+".join(_SHORT.get(part, part.capitalize()) for part in key.split("+")) for key in written.split())


def bound(name: str, does: str, *, priority: bool = False) -> Binding:
    """The binding of an action with its default keys; the keymap in force replaces them by the action's name."""
    keys = [chord(key) for key in BY_NAME[name].keys]
    return Binding(
        ",".join(key[0] for key in keys if len(key) == 1) or UNBOUND, does, show=False, priority=priority, id=name
    )


class Chords:
    """Tells the keys of chords from others as they come."""

    TIMEOUT_S = 1.0
    """A first key waits no longer for the second."""

    def __init__(self) -> None:
        self._begun: tuple[str, ...] = ()
        self._at_s = float("-inf")

    def feed(self, key: str, keymap: Keymap, at_s: float) -> str | None:
        """The key to act upon: this one, or the one that stands for the chord it completes; None while one is open."""
        begun = self._begun if at_s - self._at_s <= self.TIMEOUT_S else ()
        self._begun, self._at_s = (), at_s
        keys = (*begun, key)
        if made_up := keymap.chords.get(keys):
            return made_up
        if any(known[: len(keys)] == keys for known in keymap.chords):
            self._begun = keys
            return None
        return self.feed(key, keymap, at_s) if begun else key


@dataclass(frozen=True, slots=True)
class ReadKeys:
    """What one file says."""

    changed: Mapping[str, tuple[str, ...]]
    freed: frozenset[str]
    problems: tuple[str, ...]
    """One sentence for each thing that was ignored."""


def read_bindings(content: Any) -> ReadKeys:
    """What the content of a keybindings file means.

    A context holds `action: key` (a list for several, null for none) or `key: action` (null takes the key away); the
    contexts are the object's own keys, or stand in a list `bindings` of `{context, bindings}`.
    """
    reader = _Reader()
    if not isinstance(content, dict):
        return ReadKeys({}, frozenset(), ("the file does not hold a JSON object",))
    listed = content.get("bindings")
    if isinstance(listed, list):
        for block in listed:
            if isinstance(block, dict) and isinstance(block.get("context"), str):
                reader.add_context(block["context"], block.get("bindings"))
            else:
                reader.problems.append("an item of `bindings` has no `context`")
    for name, bindings in content.items():
        if not name.startswith("$") and not (name == "bindings" and isinstance(listed, list)):
            reader.add_context(name, bindings)
    return ReadKeys(reader.changed, frozenset(reader.freed), tuple(reader.problems))


class _Reader:
    def __init__(self) -> None:
        self.changed: dict[str, tuple[str, ...]] = {}
        self.freed: set[str] = set()
        self.problems: list[str] = []

    def add_context(self, context: str, bindings: Any) -> None:
        if context not in CONTEXTS:
            self.problems.append(f"there is no context {context!r}{_nearest(context, CONTEXTS)}")
        elif not isinstance(bindings, dict):
            self.problems.append(f"{context} is not an object in braces")
        else:
            for left, right in bindings.items():
                try:
                    self._add(context, left, right)
                except ValueError as error:
                    self.problems.append(f"{context}: {error}")

    def _add(self, context: str, left: str, right: Any) -> None:
        if _ACTION.fullmatch(left):
            keys = [] if right is None else right if isinstance(right, list) else [right]
            if not all(isinstance(key, str) for key in keys):
                raise ValueError(f"{left} needs a key in quotes, a list of them, or null")
            for key in keys:
                chord(key)
            self._set(context, left, tuple(keys))
        elif right is None:
            chord(left)
            self.freed.add(left)
        elif isinstance(right, str):
            chord(left)
            self._set(context, right, (*self.changed.get(right, ()), left))
        else:
            raise ValueError(f"{left} needs an action in quotes, or null")

    def _set(self, context: str, name: str, keys: tuple[str, ...]) -> None:
        action = BY_NAME.get(name)
        if action is None:
            raise ValueError(f"there is no action {name!r}{_nearest(name, BY_NAME)}")
        if name in FIXED:
            raise ValueError(f"{name} keeps {', '.join(shown(key) for key in action.keys)}: it is the way out")
        if action.context not in (context, "Global") and context != "Global":
            raise ValueError(f"{name} belongs to {action.context}")
        self.changed[name] = keys


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; the nearest is {near[0]}" if near else ""
