"""What a command line is made of, as far as running it must know: which programs, which of them sets the exit code."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_ANSWERING_PROGRAMS = {
    "grep": "no match",
    "egrep": "no match",
    "fgrep": "no match",
    "zgrep": "no match",
    "rg": "no match",
    "ag": "no match",
    "pgrep": "no such process",
    "find": "some folders could not be read",
    "fd": "no match",
    "diff": "the files differ",
    "cmp": "the files differ",
    "comm": "the files differ",
    "test": "false",
    "[": "false",
    "[[": "false",
    "which": "not found",
    "command": "not found",
    "type": "not found",
    "git diff": "there are differences",
    "git grep": "no match",
}
"""Programs whose exit code 1 is an answer and not a failure, with what it says."""

_UNADOPTABLE = frozenset({"sleep", "git", "sudo", "su", "ssh", "read"})
"""Never moved to the background at a timeout: `sleep` would only be waited for again, `git` holds locks half way
through, and the rest most likely wait for input that cannot come."""

_SUBCOMMAND_PROGRAMS = frozenset(
    {"apt", "brew", "cargo", "conda", "docker", "dotnet", "gh", "git", "go", "gradle", "just", "kubectl", "make", "mvn"}
    | {"npm", "pip", "pnpm", "poetry", "rustup", "systemctl", "terraform", "uv", "yarn"}
)
"""Programs whose second word says what they do, so that `git diff` can be allowed without `git push`."""


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _root(command: str) -> Node | None:
    """The syntax tree, or None if the command cannot be parsed in full."""
    root = _parser().parse(command.encode("utf-8", "replace")).root_node
    return None if root.has_error else root


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _words(node: Node) -> list[str]:
    """Name and arguments of a simple command, without env prefixes and redirections."""
    return [
        _text(child)
        for child in node.named_children
        if child.type not in ("variable_assignment", "file_redirect", "herestring_redirect")
    ]


def _simple_commands(node: Node) -> list[Node]:
    if node.type == "command":
        return [node, *(found for child in node.named_children for found in _simple_commands(child))]
    return [found for child in node.named_children for found in _simple_commands(child)]


def is_one_plain_command(command: str) -> bool:
    """Whether this is one program with its arguments: no list, pipe, redirection, assignment or substitution."""
    root = _root(command)
    if root is None or len(root.named_children) != 1:
        return False
    node = root.named_children[0]
    return node.type == "command" and len(_words(node)) == len(node.named_children) and len(_simple_commands(node)) == 1


def can_go_on_in_background(command: str) -> bool:
    """Whether a command that outran its time may be kept running."""
    root = _root(command)
    if root is None:
        return False
    names = {words[0] for node in _simple_commands(root) if (words := _words(node))}
    return not names & _UNADOPTABLE


def answer_of_exit_code(command: str, exit_code: int) -> str | None:
    """What the exit code says if it is an answer (`grep`: no match), None if it is a failure."""
    root = _root(command) if exit_code == 1 else None
    node = root
    while node is not None and node.type in ("program", "list", "pipeline", "redirected_statement", "negated_command"):
        children = [child for child in node.named_children if child.type not in ("comment", "file_redirect")]
        if node.type == "negated_command" or not children:
            return None
        node = children[0] if node.type == "redirected_statement" else children[-1]
    if node is None:
        return None
    if node.type == "test_command":
        return "false"
    if node.type != "command":
        return None
    words = _words(node)
    name = words[0].rsplit("/", 1)[-1] if words else ""
    if name == "git" and len(words) > 1:
        name = f"git {words[1]}"
    return _ANSWERING_PROGRAMS.get(name)


def session_rule(command: str) -> str:
    """The narrowest rule worth offering for 'yes, for this session'; empty if none would be understood.

    A prefix is offered for one plain command of a program with subcommands; everything else only as it stands, since
    what follows `python` or `rm` may be anything.
    """
    command = command.strip()
    root = _root(command)
    if root is None or "\n" in command or "\r" in command:
        return ""
    statements = root.named_children
    if len(statements) == 1 and statements[0].type == "command":
        words = _words(statements[0])
        is_plain = not any(char in command for char in "$`<>(){}*?'\"\\") and _text(statements[0]) == command
        if is_plain and len(words) > 1 and words[0] in _SUBCOMMAND_PROGRAMS:
            prefix = f"{words[0]} {words[1]}"
            if re.fullmatch(r"\w[\w-]*", words[1]) and command.startswith(prefix):
                return f"Bash({prefix}:*)"
    return f"Bash({command})"
