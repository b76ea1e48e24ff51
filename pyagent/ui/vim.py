"""Vim's editing as a state machine: (state, text, cursor, key) → (state, text, cursor, effect). No screen.

A command is read anew from all its keys each time one is pressed, so there is one grammar and no half-done state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, TypeAlias

from pyagent.ui.vim_grammar import ALIASES, FINDS, MAX_COUNT, SIMPLE, VISUAL_ACTIONS, Command, counted, read_command
from pyagent.ui.vim_motions import (
    Extent,
    Reach,
    first_nonblank,
    found_in_line,
    line_end,
    line_start,
    matching_bracket,
    moved_lines,
    paragraph,
    resting_place,
    text_object,
    word_back,
    word_end,
    word_forward,
)

REMAP_S = 1.0
"""Longest time between the keys of an insert-mode sequence such as `jj`, as vim's own `timeoutlen` has it."""


class Mode(StrEnum):
    INSERT = "INSERT"
    NORMAL = "NORMAL"
    VISUAL = "VISUAL"
    VISUAL_LINE = "VISUAL LINE"


Effect: TypeAlias = Literal["", "pass", "undo", "redo", "history_previous", "history_next"]
"""What the machine leaves to its host. `pass`: the key is none of vim's, or plain text to insert."""


@dataclass(frozen=True, slots=True)
class Register:
    """What was last deleted or yanked."""

    text: str = ""
    is_linewise: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What `.` does again: the keys of a command, and what was then typed."""

    keys: tuple[str, ...]
    typed: str = ""


@dataclass(frozen=True, slots=True)
class Vim:
    """Everything vim knows beside the text and the cursor."""

    mode: Mode = Mode.INSERT
    pending: tuple[str, ...] = ()
    """Keys of a command that is not complete yet."""
    register: Register = Register()
    find: tuple[str, str] = ("", "")
    """The last `f`, `F`, `t` or `T` and its character."""
    change: Change | None = None
    anchor: int = 0
    """Where a visual selection began."""
    column: int | None = None
    """The column that `j` and `k` keep."""
    entered_with: tuple[str, ...] = ()
    """The command that began the insertion under way."""
    entered_text: str = ""
    """The text as that command left it, and the cursor in it."""
    entered_at: int = 0
    typed_keys: tuple[tuple[str, float], ...] = ()
    """The newest characters typed into an insertion, with their times: they may begin a sequence."""
    remaps: Mapping[str, str] = field(default_factory=dict)
    """Sequences that end an insertion: `jj` → `<Esc>`."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a key did."""

    vim: Vim
    text: str
    cursor: int
    effect: Effect = ""


_CHANGES = frozenset("xXDCpPJ~oOIAaisSr")
"""Simple commands that `.` does again."""


def press(vim: Vim, text: str, cursor: int, key: str, *, at_s: float = 0.0) -> Step:
    """Take a key: a character, or a name such as `escape` or `ctrl+r`. `at_s` is the time in seconds."""
    if vim.mode is Mode.INSERT:
        return _press_in_insert(vim, text, cursor, key, at_s)
    if key == "escape":
        if vim.mode is not Mode.NORMAL:
            return Step(replace(vim, mode=Mode.NORMAL, pending=()), text, resting_place(text, cursor))
        return Step(replace(vim, pending=()), text, cursor, "" if vim.pending else "pass")
    keys = (*vim.pending, key)
    takes_any = len(keys) > 1 and keys[-2] in (*FINDS, "r")
    if len(key) > 1 and key != "ctrl+r" and key not in ALIASES and not takes_any:
        return Step(replace(vim, pending=()), text, cursor, "pass")
    command = read_command(keys, is_visual=vim.mode is not Mode.NORMAL)
    if command == "incomplete":
        return Step(replace(vim, pending=keys), text, cursor)
    vim = replace(vim, pending=())
    if command == "invalid":
        return Step(vim, text, cursor, "pass" if keys == ("?",) and not text else "")
    assert isinstance(command, Command)
    if vim.mode is Mode.NORMAL:
        return _run_normal(vim, text, cursor, command, keys)
    return _run_visual(vim, text, cursor, command)


def begin_insert(vim: Vim, text: str, cursor: int, keys: tuple[str, ...] = ()) -> Step:
    """Go to insertion, as at the beginning of a new prompt."""
    vim = replace(vim, mode=Mode.INSERT, pending=(), entered_with=keys, entered_text=text, entered_at=cursor)
    return Step(replace(vim, typed_keys=(), column=None), text, cursor)


# ── insertion ──


def _press_in_insert(vim: Vim, text: str, cursor: int, key: str, at_s: float) -> Step:
    if key == "escape":
        return _end_insert(vim, text, cursor)
    if len(key) != 1:
        return Step(replace(vim, typed_keys=()), text, cursor, "pass")
    recent = [(char, when) for char, when in vim.typed_keys if at_s - when <= REMAP_S]
    typed = (*recent[-8:], (key, at_s))
    tail = "".join(char for char, _ in typed)
    for sequence, target in vim.remaps.items():
        before = sequence[:-1]
        if target == "<Esc>" and before and tail.endswith(sequence) and text[:cursor].endswith(before):
            start = cursor - len(before)
            return _end_insert(vim, text[:start] + text[cursor:], start)
    return Step(replace(vim, typed_keys=typed), text, cursor, "pass")


def _end_insert(vim: Vim, text: str, cursor: int) -> Step:
    change = vim.change
    if vim.entered_with:
        at, before = vim.entered_at, vim.entered_text
        grown = len(text) - len(before)
        is_plain = grown >= 0 and text[:at] == before[:at] and text[at + grown :] == before[at:]
        change = Change(vim.entered_with, text[at : at + grown] if is_plain else "")
    vim = replace(vim, mode=Mode.NORMAL, pending=(), change=change, entered_with=(), typed_keys=(), column=None)
    return Step(vim, text, resting_place(text, max(line_start(text, cursor), cursor - 1)))


# ── motions ──


def _reach(vim: Vim, text: str, cursor: int, command: Command) -> tuple[Vim, Reach | None]:
    """Where the command's motion leads, and what vim then remembers."""
    name, count = command.name, command.count
    if name in "jk" and name:
        column = vim.column if vim.column is not None else cursor - line_start(text, cursor)
        target = moved_lines(text, cursor, count if name == "j" else -count, column)
        return replace(vim, column=column), None if target is None else Reach(target, is_linewise=True)
    vim = replace(vim, column=MAX_COUNT if name == "$" else None)
    if name in FINDS or name in (";", ","):
        if name in FINDS:
            vim = replace(vim, find=(name, command.argument))
        kind, char = vim.find
        if not kind:
            return vim, None
        kind = kind.swapcase() if name == "," else kind
        target = found_in_line(text, cursor, char, kind, count, is_repeat=name in (";", ","))
        return vim, None if target is None else Reach(target, is_inclusive=kind in "ft")
    return vim, _plain_reach(text, cursor, command)


def _plain_reach(text: str, cursor: int, command: Command) -> Reach | None:
    count, is_big = command.count, command.name.isupper()
    place = cursor
    match command.name:
        case "h":
            return Reach(max(line_start(text, cursor), cursor - count))
        case "l":
            return Reach(min(line_end(text, cursor), cursor + count))
        case "w" | "W":
            for _ in range(count):
                place = word_forward(text, place, is_big=is_big)
            return Reach(place)
        case "b" | "B":
            for _ in range(count):
                place = word_back(text, place, is_big=is_big)
            return Reach(place)
        case "e" | "E":
            for _ in range(count):
                place = word_end(text, place, is_big=is_big)
            return Reach(place, is_inclusive=True)
        case "0":
            return Reach(line_start(text, cursor))
        case "^":
            return Reach(first_nonblank(text, cursor))
        case "$":
            if count > 1:
                place = moved_lines(text, cursor, count - 1, 0) or cursor
            return Reach(line_end(text, place))
        case "gg" | "G":
            if command.name == "G" and not command.has_count:
                return Reach(first_nonblank(text, len(text)), is_linewise=True)
            first = moved_lines(text, 0, count - 1, 0) if count > 1 else 0
            return Reach(first_nonblank(text, first or 0), is_linewise=True)
        case "%":
            found = matching_bracket(text, cursor)
            return None if found is None else Reach(found, is_inclusive=True)
        case "{" | "}":
            for _ in range(count):
                place = paragraph(text, place, 1 if command.name == "}" else -1)
            return Reach(place)
        case _:
            return None


def _covered(text: str, cursor: int, command: Command, reach: Reach) -> Extent:
    """What an operator takes on the way to where its motion leads."""
    low, high = sorted((cursor, reach.target))
    if reach.is_linewise:
        return Extent(line_start(text, low), min(line_end(text, high) + 1, len(text)), is_linewise=True)
    if reach.is_inclusive and high < len(text):
        high += 1
    if command.name in ("w", "W"):
        # A word at a line's end is taken without the newline, and the change of a word leaves the blanks behind it.
        if "\n" in text[low:high].rstrip(" \t") and command.count == 1:
            high = max(line_end(text, low), low)
        if command.operator == "c" and low < len(text) and not text[low].isspace():
            while high > low + 1 and text[high - 1].isspace():
                high -= 1
    return Extent(low, high)


# ── normal mode ──


def _run_normal(vim: Vim, text: str, cursor: int, command: Command, keys: tuple[str, ...]) -> Step:
    if command.operator:
        extent: Extent | None
        if command.name == "line":
            last = moved_lines(text, cursor, command.count - 1, 0) if command.count > 1 else cursor
            end = line_end(text, cursor if last is None else last)
            extent = Extent(line_start(text, cursor), min(end + 1, len(text)), is_linewise=True)
        elif command.name.endswith("-object"):
            extent = text_object(text, cursor, command.name[0] == "a", command.argument)
        else:
            vim, reach = _reach(vim, text, cursor, command)
            extent = None if reach is None else _covered(text, cursor, command, reach)
        if extent is None:
            return Step(vim, text, cursor)
        return _operate(replace(vim, column=None), text, cursor, command.operator, extent, keys)
    if command.name in SIMPLE or command.name == "r":
        return _run_simple(replace(vim, column=None), text, cursor, command, keys)
    vim, reach = _reach(vim, text, cursor, command)
    if reach is None:
        effect: Effect = "history_previous" if command.name == "k" else "history_next" if command.name == "j" else ""
        return Step(vim, text, cursor, effect)
    return Step(vim, text, resting_place(text, reach.target))


def _operate(vim: Vim, text: str, cursor: int, operator: str, extent: Extent, keys: tuple[str, ...]) -> Step:
    """Delete, change, yank or shift what is covered."""
    start, end = extent.start, extent.end
    if operator in "<>":
        first, last = line_start(text, start), max(start, end - 1)
        shifted = [_shifted(line, operator) for line in text[first : line_end(text, last)].split("\n")]
        after = text[:first] + "\n".join(shifted) + text[line_end(text, last) :]
        return Step(replace(vim, change=Change(keys)), after, resting_place(after, first_nonblank(after, first)))
    taken = text[start:end]
    if extent.is_linewise:
        vim = replace(vim, register=Register(taken.removesuffix("\n") + "\n", is_linewise=True))
    elif taken:
        vim = replace(vim, register=Register(taken))
    if operator == "y":
        at = min(start, cursor) if not extent.is_linewise or start < line_start(text, cursor) else cursor
        return Step(vim, text, resting_place(text, at))
    if operator == "c":
        if extent.is_linewise and taken.endswith("\n"):
            end -= 1
        return begin_insert(vim, text[:start] + text[end:], start, keys)
    vim = replace(vim, change=Change(keys))
    if extent.is_linewise:
        if end == len(text) and start > 0 and not taken.endswith("\n"):
            # The last line goes with the newline before it.
            start -= 1
        after = text[:start] + text[end:]
        at = first_nonblank(after, min(start + (start < extent.start), len(after)))
        return Step(vim, after, resting_place(after, at))
    after = text[:start] + text[end:]
    return Step(vim, after, resting_place(after, start))


def _shifted(line: str, operator: str) -> str:
    if operator == ">":
        return "  " + line if line else line
    return line[min(2, len(line) - len(line.lstrip(" "))) :]


def _run_simple(vim: Vim, text: str, cursor: int, command: Command, keys: tuple[str, ...]) -> Step:
    name, count = command.name, command.count
    start, end = line_start(text, cursor), line_end(text, cursor)
    if name in _CHANGES:
        vim = replace(vim, change=Change(keys))
    match name:
        case "i":
            return begin_insert(vim, text, cursor, keys)
        case "a":
            return begin_insert(vim, text, min(cursor + 1, end), keys)
        case "I":
            return begin_insert(vim, text, first_nonblank(text, cursor), keys)
        case "A":
            return begin_insert(vim, text, end, keys)
        case "o":
            return begin_insert(vim, text[:end] + "\n" + text[end:], end + 1, keys)
        case "O":
            return begin_insert(vim, text[:start] + "\n" + text[start:], start, keys)
        case "x" | "s" | "X" | "D" | "C":
            low, high = {
                "X": (max(start, cursor - count), cursor),
                "D": (cursor, end),
                "C": (cursor, end),
            }.get(name, (cursor, min(end, cursor + count)))
            return _operate(vim, text, cursor, "c" if name in "sC" else "d", Extent(low, high), keys)
        case "S" | "Y":
            last = moved_lines(text, cursor, count - 1, 0) if count > 1 else cursor
            high = min(line_end(text, cursor if last is None else last) + 1, len(text))
            return _operate(vim, text, cursor, "c" if name == "S" else "y", Extent(start, high, is_linewise=True), keys)
        case "p" | "P":
            return _put(vim, text, cursor, count, is_before=name == "P")
        case "r":
            if cursor + count > end:
                return Step(vim, text, cursor)
            after = text[:cursor] + command.argument * count + text[cursor + count :]
            return Step(vim, after, cursor + count - 1)
        case "~":
            high = min(end, cursor + count)
            after = text[:cursor] + _swapped(text[cursor:high]) + text[high:]
            return Step(vim, after, resting_place(after, high))
        case "J":
            return _join(vim, text, cursor, max(1, count - 1))
        case "v" | "V":
            mode = Mode.VISUAL if name == "v" else Mode.VISUAL_LINE
            return Step(replace(vim, mode=mode, anchor=cursor), text, cursor)
        case "u":
            return Step(vim, text, cursor, "undo")
        case "ctrl+r":
            return Step(vim, text, cursor, "redo")
        case _:
            return _repeat(vim, text, cursor, command)


def _swapped(text: str) -> str:
    """The other case of each letter that has one of the same length."""
    return "".join(char.swapcase() if len(char.swapcase()) == 1 else char for char in text)


def _put(vim: Vim, text: str, cursor: int, count: int, *, is_before: bool) -> Step:
    register = vim.register
    if not register.text:
        return Step(vim, text, cursor)
    added = register.text * count
    if not register.is_linewise:
        at = cursor if is_before or line_end(text, cursor) == cursor else cursor + 1
        after = text[:at] + added + text[at:]
        return Step(vim, after, resting_place(after, at + len(added) - 1))
    if is_before:
        at = line_start(text, cursor)
        after = text[:at] + added + text[at:]
        return Step(vim, after, resting_place(after, first_nonblank(after, at)))
    at = line_end(text, cursor)
    after = text[:at] + "\n" + added.removesuffix("\n") + text[at:]
    return Step(vim, after, resting_place(after, first_nonblank(after, at + 1)))


def _join(vim: Vim, text: str, cursor: int, count: int) -> Step:
    for _ in range(count):
        end = line_end(text, cursor)
        if end == len(text):
            break
        rest = text[end + 1 :]
        following = rest.lstrip(" \t")
        glue = "" if not following or following[0] in "\n)" or text[end - 1 : end] in (" ", "") else " "
        text, cursor = text[:end] + glue + following, end
    return Step(vim, text, resting_place(text, cursor))


def _repeat(vim: Vim, text: str, cursor: int, command: Command) -> Step:
    change = vim.change
    if change is None:
        return Step(vim, text, cursor)
    keys = change.keys
    if command.has_count:
        _, place = counted(keys, 0)
        keys = (*str(command.count), *keys[place:])
    step = Step(vim, text, cursor)
    for key in keys:
        step = press(step.vim, step.text, step.cursor, key)
    if step.vim.mode is Mode.INSERT:
        at = step.cursor
        grown = step.text[:at] + change.typed + step.text[at:]
        step = _end_insert(step.vim, grown, at + len(change.typed))
    return step


# ── visual mode ──


def selected(vim: Vim, text: str, cursor: int) -> Extent | None:
    """What is selected; None outside of visual mode."""
    if vim.mode not in (Mode.VISUAL, Mode.VISUAL_LINE):
        return None
    low, high = sorted((min(vim.anchor, len(text)), cursor))
    if vim.mode is Mode.VISUAL_LINE:
        return Extent(line_start(text, low), min(line_end(text, high) + 1, len(text)), is_linewise=True)
    return Extent(low, min(high + 1, len(text)))


def _run_visual(vim: Vim, text: str, cursor: int, command: Command) -> Step:
    name = command.name
    if name in ("v", "V"):
        mode = Mode.VISUAL if name == "v" else Mode.VISUAL_LINE
        return Step(replace(vim, mode=Mode.NORMAL if mode is vim.mode else mode), text, cursor)
    if name == "o":
        return Step(replace(vim, anchor=cursor), text, min(vim.anchor, len(text)))
    if name.endswith("-object"):
        found = text_object(text, cursor, name[0] == "a", command.argument)
        if found is None or found.end <= found.start:
            return Step(vim, text, cursor)
        return Step(replace(vim, anchor=found.start), text, found.end - 1)
    if name not in VISUAL_ACTIONS and name != "r":
        vim, reach = _reach(vim, text, cursor, command)
        return Step(vim, text, cursor if reach is None else resting_place(text, reach.target))
    extent = selected(vim, text, cursor)
    assert extent is not None
    vim = replace(vim, mode=Mode.NORMAL, column=None)
    match name:
        case "p" | "P":
            register = vim.register
            step = _operate(vim, text, extent.start, "d", extent, ())
            if not register.text:
                return step
            put = register.text if register.is_linewise == extent.is_linewise else register.text.strip("\n")
            after = step.text[: extent.start] + put + step.text[extent.start :]
            return Step(replace(step.vim, change=None), after, resting_place(after, extent.start))
        case "~" | "r":
            old = text[extent.start : extent.end]
            new = _swapped(old) if name == "~" else "".join("\n" if c == "\n" else command.argument for c in old)
            after = text[: extent.start] + new + text[extent.end :]
            return Step(replace(vim, change=None), after, resting_place(after, extent.start))
        case "J":
            lines = text.count("\n", extent.start, max(extent.start, extent.end - 1))
            return _join(replace(vim, change=None), text, extent.start, max(1, lines))
        case _:
            operator = {"x": "d", "s": "c"}.get(name, name)
            step = _operate(vim, text, extent.start, operator, extent, ())
            # A selection has no keys that could be pressed again elsewhere.
            return replace(step, vim=replace(step.vim, change=vim.change))
