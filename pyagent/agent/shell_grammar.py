"""A shell line as data: every command it may run, every file it redirects to or from.

The line is parsed with tree-sitter's bash grammar. Node types are listed one by one: what is not in the lists is
not understood, and what is not understood is asked about. Nothing here decides whether a command is allowed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_LINE_CHARS = 10_000
"""A longer line is asked about: nobody reads it, and a parser fed with megabytes would stall the turn."""

MAX_DEPTH = 60
"""Nesting beyond this is no honest command, and keeps the walk away from Python's recursion limit."""

MAX_SHELL_STRING_DEPTH = 3
"""How many `sh -c '…'` inside each other are looked into for deny rules."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command."""

    source: str
    """As written, quotes and all."""
    value: str | None
    """What the command receives; None when only the shell can know (a variable, a substitution, braces)."""
    has_glob: bool = False
    """Whether the shell would replace it by matching file names."""


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command: its words, and the variables set in front of it (or set alone, if there is no word)."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, str], ...] = ()
    """(name, whole assignment as written)."""

    @property
    def name(self) -> str | None:
        """The command's name; "" if only variables are set, None if only the shell can know it."""
        return self.words[0].value if self.words else ""

    @property
    def source(self) -> str:
        """The words as written, one space between them, without the variables in front."""
        return " ".join(word.source for word in self.words)

    @property
    def full_source(self) -> str:
        return " ".join([*(source for _, source in self.assignments), *(word.source for word in self.words)])

    @property
    def plain(self) -> str:
        """The words as the command receives them, so that `r\\m "x"` reads `rm x`."""
        return " ".join(word.source if word.value is None else word.value for word in self.words)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A file the shell opens for a command."""

    target: Word
    is_write: bool


@dataclass(frozen=True, slots=True)
class ShellLine:
    """What a line may do. `problem` is empty if all of it was understood."""

    text: str
    commands: tuple[SimpleCommand, ...]
    redirects: tuple[Redirect, ...]
    problem: str = ""


@cache
def _parser() -> Any:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\u0085\u00a0\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u2066-\u206f\u3000\ufeff\ud800-\udfff]"
)
"""Characters a person does not see in a dialog, or that bash and the grammar may read differently (CR, NBSP …)."""

_CONTAINERS = _names(
    "program list pipeline subshell compound_statement redirected_statement negated_command if_statement "
    "elif_clause else_clause while_statement do_group case_statement case_item command_substitution "
    "process_substitution function_definition heredoc_redirect herestring_redirect array"
)
_WORDS = _names(
    "word number string raw_string ansi_c_string translated_string concatenation simple_expansion expansion "
    "command_substitution process_substitution arithmetic_expansion brace_expression"
)
_LEAVES = _names(
    "comment string_content variable_name special_variable_name heredoc_start heredoc_end heredoc_content "
    "file_descriptor extglob_pattern regex"
)
_EXPANSION_OPERATORS = _names("${ } :- - :+ + :? ? # ## % %% / // /# /%")
"""Not among them: `@` (`${x@P}` runs commands), `!` (indirect), `:` and `[` (evaluate arithmetic, which may)."""

_ARITHMETIC_TESTS = _names("-eq -ne -lt -le -gt -ge -v -R")
"""Tests that evaluate their operand, so that a variable's content may run a command."""

_WRITING_REDIRECTS = _names("> >> >| &> &>> <> >&")
_ATOMIC = _names("string raw_string ansi_c_string translated_string heredoc_body comment heredoc_start heredoc_end")
_BLANK = re.compile(r"(?:[ \t\n]|\\\n)*")


def parse_line(text: str) -> ShellLine:
    """Everything the line may run or open. Never raises; what is not understood is named in `problem`."""
    if len(text) > MAX_LINE_CHARS:
        return ShellLine(text, (), (), f"the command is longer than {MAX_LINE_CHARS:,} characters")
    # A lone carriage return does not end a command in bash, but a terminal or a dialog shows it as if it did:
    # both readings are covered by splitting here and asking below.
    source = re.sub(r"\r\n?", "\n", text)
    walker = _Walker(source)
    if _HIDDEN.search(text.replace("\r\n", "\n")):
        walker.problem = "the command holds control or invisible characters"
    walker.run()
    return ShellLine(text, tuple(walker.commands), tuple(walker.redirects), walker.problem)


class _Walker:
    def __init__(self, source: str) -> None:
        self.bytes = source.encode("utf-8", "replace")
        self.commands: list[SimpleCommand] = []
        self.redirects: list[Redirect] = []
        self.problem = ""

    def run(self) -> None:
        root = _parser().parse(self.bytes).root_node
        if root.has_error:
            self.fail("the command could not be parsed")
        self.visit(root, 0)
        self.check_gaps(root)

    def fail(self, problem: str) -> None:
        self.problem = self.problem or problem

    def text(self, node: Node) -> str:
        return self.bytes[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def visit_all(self, nodes: list[Node], depth: int) -> None:
        for node in nodes:
            self.visit(node, depth + 1)

    def visit(self, node: Node, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.fail("the command is nested too deeply")
            return
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                self.command(node, depth)
            case "variable_assignment":
                self.commands.append(SimpleCommand((), (self.assignment(node),)))
                self.visit_all(node.named_children, depth)
            case "variable_assignments":
                self.visit_all(node.named_children, depth)
            case "for_statement":
                variable = node.child_by_field_name("variable")
                if variable is not None:
                    name = self.text(variable)
                    self.commands.append(SimpleCommand((), ((name, f"{name}="),)))
                self.visit_all(node.named_children, depth)
            case "file_redirect":
                self.redirect(node, depth)
            case "heredoc_body":
                self.heredoc_body(node, depth)
            case "arithmetic_expansion":
                self.arithmetic(node, depth)
            case "expansion":
                if any(not c.is_named and self.text(c) not in _EXPANSION_OPERATORS for c in node.children) or any(
                    c.type == "subscript" for c in node.named_children
                ):
                    self.fail(f"`{self.text(node)}` may run commands")
                self.visit_all(node.named_children, depth)
            case "test_command":
                self.test(node, depth)
            case kind if kind in _CONTAINERS or kind in _WORDS:
                self.visit_all(node.named_children, depth)
            case kind if kind in _LEAVES:
                pass
            case kind:
                self.fail(f"it uses shell syntax that is not checked ({kind.replace('_', ' ')})")
                self.visit_all(node.named_children, depth)

    def command(self, node: Node, depth: int) -> None:
        words: list[Word] = []
        assignments: list[tuple[str, str]] = []
        at = len(self.commands)
        if node.type != "command" and node.children:
            keyword = self.text(node.children[0])
            words.append(Word(keyword, keyword))
        for child in node.named_children:
            if child.type == "variable_assignment" and node.type == "command":
                assignments.append(self.assignment(child))
                self.visit_all(child.named_children, depth)
            elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                self.visit(child, depth + 1)
            elif child.type == "command_name":
                words.extend(self.word(inner) for inner in child.named_children)
                self.visit_all(child.named_children, depth)
            elif child.type == "variable_assignment":
                words.append(Word(self.text(child), self.text(child)))
                self.visit_all(child.named_children, depth)
            else:
                words.append(self.word(child))
                self.visit(child, depth + 1)
        self.commands.insert(at, SimpleCommand(tuple(words), tuple(assignments)))

    def assignment(self, node: Node) -> tuple[str, str]:
        name = node.child_by_field_name("name")
        if name is None or name.type != "variable_name":
            self.fail("it assigns to an array element")
        return (self.text(name) if name is not None else "", self.text(node))

    def redirect(self, node: Node, depth: int) -> None:
        operator = next((self.text(child) for child in node.children if not child.is_named), "")
        targets = [child for child in node.named_children if child.type != "file_descriptor"]
        self.visit_all(targets, depth)
        if operator in (">&-", "<&-") or (operator == "<&" and len(targets) == 1):
            return
        if len(targets) != 1:
            # The grammar takes words after a redirection into it; bash passes them to the command.
            self.fail("words follow a redirection")
        for target in targets:
            if operator == ">&" and (target.type == "number" or self.text(target) == "-"):
                continue
            self.redirects.append(Redirect(self.word(target), operator in _WRITING_REDIRECTS))
            if operator not in _WRITING_REDIRECTS and operator != "<":
                self.fail(f"the redirection {operator} is not checked")

    def heredoc_body(self, node: Node, depth: int) -> None:
        start = node.parent and next((c for c in node.parent.named_children if c.type == "heredoc_start"), None)
        is_quoted = start is not None and self.text(start)[:1] in ("'", '"', "\\")
        body = self.text(node)
        if not is_quoted and ("$(" in body or "`" in body or "${" in body):
            self.fail("the here-document runs commands")
        self.visit_all(node.named_children, depth)

    def arithmetic(self, node: Node, depth: int) -> None:
        if re.search(r"[A-Za-z_$`\[]", self.text(node)[3:]):
            self.fail("arithmetic on variables may run commands")
        for child in self.descendants(node):
            if child.type in ("command_substitution", "process_substitution"):
                self.visit(child, depth + 1)

    def test(self, node: Node, depth: int) -> None:
        for child in self.descendants(node):
            text = self.text(child)
            if (
                child.type == "test_operator"
                and text in _ARITHMETIC_TESTS
                and re.search(r"[A-Za-z_$`]", self.text(node))
            ):
                if not (self.text(node).startswith("[ ") and text not in ("-v", "-R")):
                    self.fail(f"the test {text} evaluates variables")
            elif child.type in ("command_substitution", "process_substitution", "expansion", "arithmetic_expansion"):
                self.visit(child, depth + 1)
            elif child.type in ("subscript", "file_redirect", "ternary_expression", "postfix_expression"):
                self.fail("the test uses syntax that is not checked")

    def descendants(self, node: Node) -> list[Node]:
        found: list[Node] = []
        queue = list(node.children)
        while queue:
            child = queue.pop()
            found.append(child)
            queue.extend(child.children)
        return found

    def word(self, node: Node) -> Word:
        source = self.text(node)
        value, unquoted = self.value(node)
        if re.search(r"\{[^}]*(?:,|\.\.)", unquoted):
            value = None
        return Word(source, value, bool(re.search(r"[*?\[]", unquoted)))

    def value(self, node: Node) -> tuple[str | None, str]:
        """(the word's value if it is known, its unquoted and unescaped part for the search of globs and braces)."""
        text = self.text(node)
        match node.type:
            case "word" | "number":
                return re.sub(r"\\(.)", r"\1", text.replace("\\\n", "")), re.sub(r"\\.", "", text, flags=re.DOTALL)
            case "raw_string":
                return text[1:-1], ""
            case "string":
                if any(child.type != "string_content" for child in node.named_children):
                    return None, ""
                return re.sub(r'\\([\\"$`])', r"\1", text[1:-1].replace("\\\n", "")), ""
            case "concatenation":
                parts = [self.value(child) for child in node.children]
                known = [value for value, _ in parts if value is not None]
                return ("".join(known) if len(known) == len(parts) else None), "".join(part for _, part in parts)
            case _ if not node.is_named:
                return None, text
            case _:
                return None, ""

    def check_gaps(self, root: Node) -> None:
        """Every character between the grammar's tokens must be blank: else bash may see words the grammar skipped."""
        at = 0
        stack = [root]
        while stack:
            node = stack.pop()
            if node.child_count and node.type not in _ATOMIC:
                stack.extend(reversed(node.children))
                continue
            gap = self.bytes[at : node.start_byte].decode("utf-8", "replace")
            if not _BLANK.fullmatch(gap):
                self.fail("parts of the command were not understood")
            at = max(at, node.end_byte)


_WRAPPER_OPTIONS = {
    "timeout": re.compile(r"-v|--(?:foreground|preserve-status|verbose)|--(?:signal|kill-after)=\S+|-[sk]\S+"),
    "time": re.compile(r"-p"),
    "nice": re.compile(r"-\d+|-n-?\d+|--adjustment=-?\d+"),
    "nohup": re.compile(r"(?!)"),
    "stdbuf": re.compile(r"-[ioe][L0-9]\w*|--(?:input|output|error)=\w+"),
    "command": re.compile(r"-p"),
    "builtin": re.compile(r"(?!)"),
    "noglob": re.compile(r"(?!)"),
}
_WRAPPER_VALUE_OPTIONS = {
    "timeout": ("-s", "-k", "--signal", "--kill-after"),
    "nice": ("-n", "--adjustment"),
    "stdbuf": ("-i", "-o", "-e"),
}
_DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")


def strip_wrappers(command: SimpleCommand) -> SimpleCommand:
    """The command without `timeout 5`, `nice -n 3`, `nohup` … in front; unchanged from the first option not known."""
    words = command.words
    while words and words[0].value in _WRAPPER_OPTIONS:
        name, at = words[0].value, 1
        while at < len(words) and (words[at].value or "").startswith("-"):
            option = words[at].value or ""
            if option == "--":
                at += 1
                break
            if option in _WRAPPER_VALUE_OPTIONS.get(name, ()) and at + 1 < len(words) and words[at + 1].value:
                at += 2
            elif _WRAPPER_OPTIONS[name].fullmatch(option):
                at += 1
            else:
                return SimpleCommand(words, command.assignments)
        if name == "timeout":
            if at >= len(words) or not _DURATION.fullmatch(words[at].value or ""):
                return SimpleCommand(words, command.assignments)
            at += 1
        if at >= len(words):
            break
        words = words[at:]
    return SimpleCommand(words, command.assignments)


RUNS_ANOTHER_COMMAND = _names(
    "xargs env sh bash zsh dash ksh fish ash csh tcsh eval exec source . watch setsid ionice chrt flock sudo doas "
    "su runuser parallel script unshare chroot nsenter taskset strace ltrace gdb busybox coproc trap pkexec"
)
"""Commands that run what they are given: a rule with a wildcard would allow anything behind them."""

_FIND_ACTIONS = _names("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls")


def needs_exact_rule(command: SimpleCommand) -> bool:
    """Whether only a rule without a wildcard may allow it."""
    if command.name in RUNS_ANOTHER_COMMAND:
        return True
    return command.name == "find" and any(
        word.value is None or word.value in _FIND_ACTIONS for word in command.words[1:]
    )


def inner_commands(command: SimpleCommand, depth: int = 0) -> tuple[SimpleCommand, ...]:
    """Commands handed to another command (`xargs rm`, `find -exec rm`, `env X=1 rm`, `sh -c 'rm x'`), for deny rules.

    Generous rather than exact: every tail of the words is a candidate, and each word that may be a script is parsed.
    """
    stripped = strip_wrappers(command)
    found: list[SimpleCommand] = [stripped] if stripped.words != command.words else []
    if not needs_exact_rule(stripped):
        return tuple(found)
    for at in range(1, len(stripped.words)):
        found.append(SimpleCommand(stripped.words[at:]))
        value = stripped.words[at].value
        if value and " " in value and depth < MAX_SHELL_STRING_DEPTH:
            for inner in parse_line(value).commands:
                found += [inner, *inner_commands(inner, depth + 1)]
    return tuple(found)
