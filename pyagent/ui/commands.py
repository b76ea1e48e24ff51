"""Slash commands: one table for help, completion and dispatch, used by the screen and by plain mode alike.

The agent answers some of them (`RunCommand`); the rest concern only what is shown and never leave the front end.
An unknown one is answered with the nearest name and is never sent to the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias

from pyagent.choices import EFFORT_LEVELS
from pyagent.ui.input_kind import InputKind, input_kind

Handler: TypeAlias = Literal["agent", "screen"]
"""`agent`: travels as `RunCommand`. `screen`: the front end does it itself."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """One command. `name` has no slash; `argument` is the hint shown behind it."""

    name: str
    help: str
    handler: Handler = "agent"
    aliases: tuple[str, ...] = ()
    argument: str = ""


COMMANDS: tuple[SlashCommand, ...] = (
    SlashCommand("help", "show commands and keys", "screen", ("?",)),
    SlashCommand(
        "compact",
        "shorten the conversation; also: preview, undo, upto N, from N",
        argument="[instructions]",
    ),
    SlashCommand("context", "what fills the context window, and what each layer freed", argument="[all|json]"),
    SlashCommand("compactions", "the compactions of this session; the newest can be undone there"),
    SlashCommand("autocompact", "the context window to assume: auto, or tokens", argument="<auto|tokens>"),
    SlashCommand(
        "pin",
        "keep a rule, a file or a message word for word through every compaction",
        argument="[text, @file, @file#L10-20, last, prompt N or answer N]",
    ),
    SlashCommand("unpin", "take the Nth pin back", argument="<N>"),
    SlashCommand("clear", "start a new session; this one stays resumable", aliases=("reset", "new")),
    SlashCommand("cost", "what the session cost so far, by model, purpose and turn", aliases=("usage", "stats")),
    SlashCommand("model", "choose the model", argument="[name]"),
    SlashCommand("effort", f"how much the model thinks: {', '.join(EFFORT_LEVELS)}", argument="<level>"),
    SlashCommand("plan", "into plan mode, with a task if one is given", argument="[task]"),
    SlashCommand("mode", "choose the permission mode", argument="[name]"),
    SlashCommand("resume", "go on with another session", aliases=("continue",), argument="[id or text]"),
    SlashCommand("view", "look at another session without changing it", argument="[id or text]"),
    SlashCommand(
        "rewind",
        "go back to an earlier prompt: conversation, files, or both; also: redo",
        aliases=("checkpoint", "undo"),
        argument="[N [both|conversation|code]]",
    ),
    SlashCommand("diff", "what changed in the files", argument="[turn N|session|head]"),
    SlashCommand("branch", "go on in a copy of this session", argument="[name]"),
    SlashCommand("export", "write the conversation to a file: .md, .txt, .json or .html", argument="[file]"),
    SlashCommand("rename", "give the session a title", argument="<title>"),
    SlashCommand("btw", "ask something on the side; it does not enter the conversation", argument="<question>"),
    SlashCommand("init", "have the model write the project's AGENTS.md", argument="[wishes]"),
    SlashCommand("memory", "the memory files that are loaded; open one in the editor"),
    SlashCommand("add-dir", "let the agent work in a further folder", argument="<folder>"),
    SlashCommand("cd", "change the working folder", argument="[folder]"),
    SlashCommand("tasks", "background tasks: list, read, kill", aliases=("bashes",), argument="[ID|kill ID]"),
    SlashCommand(
        "permissions",
        "which rules decide; add, remove and try them; trust the folder's own",
        aliases=("allowed-tools",),
        argument="[allow|ask|deny RULE|trust]",
    ),
    SlashCommand("config", "all settings; change one", aliases=("settings",), argument="[key=value]"),
    SlashCommand("statusline", "your own command for the bottom rows", argument="[command|off]"),
    SlashCommand("doctor", "look for what is wrong with the installation and its surroundings", "screen"),
    SlashCommand("status", "version, session, model, folders, connection"),
    SlashCommand("copy", "copy the last answer, or the Nth last", "screen", argument="[N]"),
    SlashCommand("theme", "change the colours", argument="[name]"),
    SlashCommand("vim", "edit the input line as vim does, or no longer", "screen"),
    SlashCommand("keybindings", "change the keys in your editor", "screen"),
    SlashCommand("tui", "go on in the other front end", "screen", argument="[fullscreen|plain]"),
    SlashCommand("exit", "leave", "screen", ("quit",)),
)
"""All commands, in the order help lists them."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Text for the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Invoked:
    """A known command with its argument."""

    command: SlashCommand
    argument: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Looks like a command but is none. `nearest` is empty if no name is close."""

    name: str
    nearest: str

    @property
    def message(self) -> str:
        """One sentence for the person."""
        hint = f"did you mean /{self.nearest}?" if self.nearest else "/help lists them all."
        return f"There is no command /{self.name}; {hint}"


@dataclass(frozen=True, slots=True)
class Shell:
    """A command for the shell."""

    command: str
    is_private: bool


@dataclass(frozen=True, slots=True)
class Remember:
    """Words for a memory file."""

    text: str


Typed: TypeAlias = Prompt | Invoked | Unknown | Shell | Remember

_COMMAND = re.compile(r"/([A-Za-z?][A-Za-z0-9_?:-]*)(?:\s+(.*))?", re.DOTALL)
"""A name with no further slash, so that `/usr/bin is full` stays a prompt."""


def by_name(name: str, commands: Iterable[SlashCommand] = COMMANDS) -> SlashCommand | None:
    """The command of that name or alias, in any case."""
    wanted = name.lower()
    return next((c for c in commands if wanted == c.name or wanted in c.aliases), None)


def read_typed(text: str, commands: tuple[SlashCommand, ...] = COMMANDS, *, shown: str = "") -> Typed:
    """What a submitted input is: a prompt, a command, or something that only looks like a command.

    `shown` is the text as it stood in the line, if other: a pasted text that begins with `!` is no command.
    """
    kind = input_kind(shown or text)
    if kind in (InputKind.SHELL, InputKind.PRIVATE_SHELL):
        sign = "!!" if kind is InputKind.PRIVATE_SHELL else "!"
        return Shell(text.removeprefix(sign).strip(), kind is InputKind.PRIVATE_SHELL)
    if kind is InputKind.MEMORY:
        return Remember(text.lstrip("#").strip())
    match = _COMMAND.fullmatch(text.strip())
    if match is None:
        return Prompt(text)
    name, argument = match[1], (match[2] or "").strip()
    command = by_name(name, commands)
    if command is not None:
        return Invoked(command, argument)
    names = [n for c in commands for n in (c.name, *c.aliases)]
    near = get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    found = by_name(near[0], commands) if near else None
    return Unknown(name, found.name if found else "")


def help_lines(commands: Iterable[SlashCommand] = COMMANDS) -> list[tuple[str, str]]:
    """(usage, help) of each command."""
    lines = []
    for command in commands:
        usage = f"/{command.name}" + (f" {command.argument}" if command.argument else "")
        also = f" (also /{', /'.join(command.aliases)})" if command.aliases else ""
        lines.append((usage, command.help + also))
    return lines


SIGNS: tuple[tuple[str, str], ...] = (
    ("!command", "run it in the shell; the model is told with your next prompt"),
    ("!!command", "run it in the shell, for your eyes only"),
    ("#words", "keep them in a memory file"),
    ("@path", "attach a file; @path#L3-9 these lines of it"),
    ("/name", "a command"),
    ("Ctrl+A E B F K U W, Alt+B F D", "move and cut as in a shell; Ctrl+Y and Alt+Y insert what was cut"),
)
"""What the first characters of a line mean, for help."""

MOUSE: tuple[tuple[str, str], ...] = (
    ("click", "unfold or fold a row"),
    ("drag", "select; Ctrl+C copies. With Shift (or Option) the terminal selects by itself"),
    ("drop", "an image file becomes part of the prompt"),
)
