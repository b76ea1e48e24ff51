"""Whether a shell line may run: every command in it must be allowed, and every file it redirects to.

This is a gate against mistakes and surprises, not a sandbox: a program that is allowed can do what programs do.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from pyagent.agent.path_policy import Outcome, PathPolicy
from pyagent.agent.readonly_commands import READERS, is_safe_variable, read_only
from pyagent.agent.rules import Rule, bash_spec_matches, is_exactly
from pyagent.agent.shell_grammar import (
    ShellLine,
    SimpleCommand,
    Word,
    inner_commands,
    needs_exact_rule,
    parse_line,
    strip_wrappers,
)

MAX_GLOB_MATCHES = 500
"""Files a glob may name before it is asked about instead of compared with the denied paths one by one."""

MAX_BASES = 8
"""Folders a line may `cd` through before its relative paths count as unknown."""

_SINKS = re.compile(r"/dev/(?:null|stdout|stderr|fd/\d+)")
_WRITERS = frozenset(
    (
        "rm",
        "rmdir",
        "mv",
        "cp",
        "ln",
        "tee",
        "touch",
        "mkdir",
        "sed",
        "dd",
        "truncate",
        "install",
        "patch",
        "chmod",
        "chown",
        "chgrp",
        "shred",
        "unlink",
    )
)
"""Commands whose words are files they change: denied and protected paths are looked for in them."""

_ACCEPT_EDITS = {"mkdir": "pv", "touch": "acm", "rm": "rRfdv", "rmdir": "pv", "mv": "fnuv", "cp": "rRpfanuv"}
"""Commands, with their flags, that acceptEdits mode lets pass when all they touch lies in the working directories."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the line's relative paths may start."""

    bases: tuple[Path, ...]
    is_known: bool


def judge_bash(text: str, policy: PathPolicy) -> Outcome:
    """Deny, ask or allow one line. In plan mode only what changes nothing is allowed."""
    line = parse_line(text)
    rules = policy.rules
    everything = [variant for command in line.commands for variant in (command, *inner_commands(command))]
    place = _places(line, policy)
    if rule := _first_match(rules.deny, text, everything):
        return Outcome("deny", f"the rule {rule.text} forbids it")
    reads = _denied_reads(line, everything, policy, place)
    writes = [_redirect_outcome(redirect.target, policy, place) for redirect in line.redirects if redirect.is_write]
    edits = _named_edits(everything, policy, place)
    for outcome in (*reads, *writes, *edits):
        if outcome.kind == "deny":
            return outcome
    if rule := _first_match(rules.ask, text, everything):
        return Outcome("ask", f"the rule {rule.text} says to ask", can_remember=False)
    if policy.mode == "bypassPermissions":
        named = (outcome for outcome in (*reads, *writes) if outcome.kind == "ask" and not outcome.can_remember)
        return next(named, Outcome("allow"))
    if line.problem:
        return Outcome("ask", line.problem, can_remember=False)
    if policy.mode == "plan":
        return _plan_outcome(line, policy, place, reads, writes)
    for outcome in (*reads, *writes, *edits):
        if outcome.kind == "ask" and not outcome.can_remember:
            return outcome
    if any(rule.tool == "Bash" and rule.spec and is_exactly(rule.spec, text) for rule in rules.allow):
        return Outcome("allow")
    return _by_rules(line, policy, place, reads, writes)


def _by_rules(
    line: ShellLine, policy: PathPolicy, place: _Place, reads: list[Outcome], writes: list[Outcome]
) -> Outcome:
    rules = policy.rules
    is_all_allowed = any(rule.tool == "Bash" and rule.spec is None for rule in rules.allow)
    has_scoped = any(rule.tool == "Bash" and rule.spec is not None for rule in (*rules.deny, *rules.ask))
    names = {strip_wrappers(command).name for command in line.commands}
    if not is_all_allowed and "git" in names and names & {"cd", "pushd"}:
        # A folder can bring its own git configuration, and with it programs that any git command runs.
        return Outcome("ask", "git in a folder entered by the same line may run what that folder configures")
    for command in line.commands:
        if command.name is None and has_scoped:
            return Outcome("ask", f"what {command.source!r} runs is known only to the shell")
        if is_all_allowed or _is_allowed(command, rules.allow):
            continue
        outcome = _unasked(command, policy, place)
        if outcome.kind != "allow":
            return outcome
    return next((outcome for outcome in (*reads, *writes) if outcome.kind == "ask"), Outcome("allow"))


def _plan_outcome(
    line: ShellLine, policy: PathPolicy, place: _Place, reads: list[Outcome], writes: list[Outcome]
) -> Outcome:
    if any(read_only(strip_wrappers(command)) is None for command in line.commands) or writes_files(line):
        return Outcome("deny", "plan mode only reads; present the plan and have it accepted first")
    for command in line.commands:
        if not _is_allowed(command, policy.rules.allow):
            outcome = _unasked(command, policy, place)
            if outcome.kind != "allow":
                return outcome
    return next((outcome for outcome in (*reads, *writes) if outcome.kind == "ask"), Outcome("allow"))


def writes_files(line: ShellLine) -> bool:
    """Whether a redirection of the line changes a file."""
    return any(r.is_write and not _SINKS.fullmatch(r.target.value or "") for r in line.redirects)


def is_read_only_line(text: str) -> bool:
    """Whether every command of the line is known to change nothing and no file is redirected to."""
    line = parse_line(text)
    if line.problem or writes_files(line):
        return False
    return all(read_only(strip_wrappers(command)) is not None for command in line.commands)


# ── rules against commands ───────────────────────────────────────────────────────────────────────────────────────────


def _first_match(rules: Sequence[Rule], text: str, commands: Sequence[SimpleCommand]) -> Rule | None:
    """The first Bash rule with a specifier that any reading of any command matches."""
    scoped = [(rule, rule.spec) for rule in rules if rule.tool == "Bash" and rule.spec is not None]
    if not scoped:
        return None
    readings = {text.strip()}
    for command in commands:
        readings.update((command.source, command.plain, command.full_source))
        if command.name and "/" in command.name:
            readings.add(" ".join([PurePosixPath(command.name).name, *command.plain.split(" ")[1:]]))
    return next((rule for rule, spec in scoped if any(bash_spec_matches(spec, reading) for reading in readings)), None)


def _is_allowed(command: SimpleCommand, rules: Sequence[Rule]) -> bool:
    stripped = strip_wrappers(command)
    if command.words and all(is_safe_variable(name) for name, _ in command.assignments):
        readings = {command.full_source, command.source, stripped.source}
    else:
        readings = {command.full_source}
    must_be_exact = needs_exact_rule(stripped)
    for rule in rules:
        if rule.tool != "Bash" or rule.spec is None:
            continue
        for reading in readings:
            if is_exactly(rule.spec, reading) or (not must_be_exact and bash_spec_matches(rule.spec, reading)):
                return True
    return False


def _unasked(command: SimpleCommand, policy: PathPolicy, place: _Place) -> Outcome:
    """Whether the command passes without any rule: it changes nothing, or only what acceptEdits covers."""
    stripped = strip_wrappers(command)
    verdict = read_only(stripped)
    shown = command.full_source if len(command.full_source) <= 80 else command.full_source[:79] + "…"
    if verdict is None:
        if policy.mode == "acceptEdits" and _is_accepted_edit(stripped, policy, place):
            return Outcome("allow")
        return Outcome("ask", f"no rule allows {shown!r}")
    for word in verdict.paths:
        outcome = policy.read(policy.candidates(word.value or "", place.bases))
        if outcome.kind != "allow":
            return Outcome(outcome.kind, f"{shown!r}: {outcome.reason}", outcome.can_remember)
        if not place.is_known and not (word.value or "").startswith(("/", "~")):
            return Outcome("ask", f"where {shown!r} reads is known only to the shell")
    return Outcome("allow")


def _is_accepted_edit(command: SimpleCommand, policy: PathPolicy, place: _Place) -> bool:
    flags = _ACCEPT_EDITS.get(command.name or "")
    if flags is None or not place.is_known or command.assignments:
        return False
    for word in command.words[1:]:
        if word.value is None or word.has_glob:
            return False
        if word.value.startswith("-"):
            if not word.value[1:] or not set(word.value[1:]) <= set(flags):
                return False
            continue
        paths = policy.candidates(word.value, place.bases)
        if policy.edit(paths).kind != "allow":
            return False
        if any(folder.is_relative_to(path) for folder in (*policy.allowed_dirs, policy.cwd) for path in paths):
            return False
    return True


# ── paths in a line ──────────────────────────────────────────────────────────────────────────────────────────────────


def _places(line: ShellLine, policy: PathPolicy) -> _Place:
    bases: dict[Path, None] = {policy.cwd: None}
    for command in line.commands:
        stripped = strip_wrappers(command)
        if stripped.name in ("pushd", "popd"):
            return _Place(tuple(bases), False)
        if stripped.name != "cd":
            continue
        targets = [word for word in stripped.words[1:] if word.value not in ("-L", "-P", "--")]
        target = targets[0].value if targets else "~"
        if target is None or target == "-" or len(targets) > 1 or (targets[:1] and targets[0].has_glob):
            return _Place(tuple(bases), False)
        for path in policy.candidates(target, tuple(bases)):
            bases[path] = None
        if len(bases) > MAX_BASES:
            return _Place(tuple(bases)[:MAX_BASES], False)
    return _Place(tuple(bases), True)


def _redirect_outcome(target: Word, policy: PathPolicy, place: _Place) -> Outcome:
    value = target.value
    if value is None or target.has_glob or not value:
        return Outcome("ask", f"it writes to a file known only to the shell ({target.source})")
    if _SINKS.fullmatch(value):
        return Outcome("allow")
    outcome = policy.edit(policy.candidates(value, place.bases))
    if outcome.kind == "allow" and not place.is_known and not value.startswith("/"):
        return Outcome("ask", f"where it writes {value!r} is known only to the shell")
    return Outcome(outcome.kind, f"it writes to {value!r}: {outcome.reason}", outcome.can_remember)


def _named_edits(commands: Sequence[SimpleCommand], policy: PathPolicy, place: _Place) -> list[Outcome]:
    """Denied or protected files among the words of commands that change files."""
    found = []
    for command in commands:
        if _base_name(command) not in _WRITERS or read_only(command) is not None:
            continue
        for word in command.words[1:]:
            for token in _tokens(word):
                outcome = policy.edit(policy.candidates(token, place.bases))
                if outcome.kind == "deny" or (outcome.kind == "ask" and not outcome.can_remember):
                    found.append(Outcome(outcome.kind, f"{token!r}: {outcome.reason}", outcome.can_remember))
    return found


def _denied_reads(
    line: ShellLine, commands: Sequence[SimpleCommand], policy: PathPolicy, place: _Place
) -> list[Outcome]:
    """What rules against reading say about the line: no for a reader, a question wherever such a path is named."""
    found: list[Outcome] = []
    for redirect in line.redirects:
        if not redirect.is_write and redirect.target.value is not None:
            outcome = policy.read(policy.candidates(redirect.target.value, place.bases))
            if outcome.kind != "allow":
                found.append(Outcome(outcome.kind, f"it reads {redirect.target.value!r}: {outcome.reason}"))
        elif not redirect.is_write:
            found.append(Outcome("ask", f"it reads a file known only to the shell ({redirect.target.source})"))
    if not policy.has_read_denials:
        return found
    for command in commands:
        is_reader = _base_name(command) in READERS
        verdict = read_only(command)
        words = verdict.paths if is_reader and verdict is not None and verdict.paths else command.words[1:]
        if verdict is not None and verdict.is_recursive:
            found.append(Outcome("ask", "it searches folders, and some paths are closed to reading"))
        for word in words:
            if is_reader and word.value is None:
                found.append(Outcome("ask", f"what {word.source} names is known only to the shell"))
            for token in _expanded(word, place) if is_reader else _loose_tokens(word):
                if token is None:
                    found.append(Outcome("ask", f"{word.source} matches very many files"))
                    continue
                outcome = policy.read(policy.candidates(token, place.bases))
                if outcome.kind == "deny":
                    reason = f"{token!r}: {outcome.reason}"
                    found.append(Outcome("deny" if is_reader else "ask", reason, can_remember=False))
    return found


def _base_name(command: SimpleCommand) -> str:
    return PurePosixPath(command.name or "").name


def _tokens(word: Word) -> Iterator[str]:
    """The paths a word may hold: itself, `--file=PATH`, `-fPATH`, `HEAD:PATH`."""
    text = word.source if word.value is None else word.value
    yield text
    if text.startswith("-") and not text.startswith("--") and len(text) > 2:
        yield text[2:]
    for separator in ("=", ":"):
        if separator in text:
            yield from (part for part in text.split(separator)[1:] if part)


def _loose_tokens(word: Word) -> Iterator[str]:
    text = word.source if word.value is None else word.value
    yield from _tokens(word)
    yield from (part for part in re.split(r"[^\w./~+-]+", text) if part and part != text)


def _expanded(word: Word, place: _Place) -> Iterator[str | None]:
    """The tokens of a word, and the files its glob matches; None once there are too many to look at."""
    yield from _tokens(word)
    if word.has_glob and word.value:
        for base in place.bases:
            matches = list(islice(glob.iglob(word.value, root_dir=base), MAX_GLOB_MATCHES + 1))
            yield from matches[:MAX_GLOB_MATCHES]
            if len(matches) > MAX_GLOB_MATCHES:
                yield None
