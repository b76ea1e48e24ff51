"""Searching without ripgrep: the same rules with `re` and pathspec, slower. For systems where no binary runs."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pathspec

from pyagent.tools.glob_pattern import expand_braces

MAX_FILE_BYTES = 64 * 1024 * 1024
_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
_TYPE_GLOBS = {
    "py": ("*.py", "*.pyi"),
    "js": ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"),
    "ts": ("*.ts", "*.tsx", "*.mts", "*.cts"),
    "rust": ("*.rs",),
    "go": ("*.go",),
    "java": ("*.java",),
    "c": ("*.c", "*.h"),
    "cpp": ("*.cpp", "*.cc", "*.cxx", "*.hpp", "*.hh", "*.h", "*.hxx"),
    "ruby": ("*.rb", "Gemfile", "Rakefile"),
    "php": ("*.php",),
    "css": ("*.css", "*.scss"),
    "html": ("*.html", "*.htm"),
    "json": ("*.json",),
    "yaml": ("*.yaml", "*.yml"),
    "toml": ("*.toml",),
    "md": ("*.md", "*.markdown"),
    "sh": ("*.sh", "*.bash", "*.zsh"),
    "sql": ("*.sql",),
    "txt": ("*.txt",),
}


@dataclass(frozen=True, slots=True)
class Searched:
    """What `search_files` found: lines in ripgrep's form `./path NUL number (: or -) text`, or `./path NUL count`."""

    output: bytes
    error: str = ""
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class FallbackQuery:
    pattern: str
    is_case_ignored: bool
    is_multiline: bool
    mode: str
    before: int
    after: int
    globs: tuple[str, ...]
    type_name: str
    is_ignored_shown: bool


async def walk_files(
    base: Path, is_hidden_shown: bool, is_ignored_shown: bool, timeout_s: float
) -> tuple[list[str], bool]:
    """Files below `base`, relative; and whether time ran out."""
    stop = threading.Event()

    def collect() -> tuple[list[str], bool]:
        deadline, found = time.monotonic() + timeout_s, []
        for name in _walk(base, is_hidden_shown, is_ignored_shown):
            found.append(name)
            if stop.is_set() or time.monotonic() > deadline:
                return found, True
        return found, False

    try:
        return await asyncio.to_thread(collect)
    finally:
        stop.set()


def _walk(
    base: Path, is_hidden_shown: bool, is_ignored_shown: bool, named: pathspec.GitIgnoreSpec | None = None
) -> Iterator[str]:
    """Files below `base`. What `named` matches is not ignored: a glob that was asked for beats an ignore file."""
    above = _rules_above(base) if not is_ignored_shown else []
    pending: list[tuple[str, list[tuple[str, pathspec.GitIgnoreSpec]]]] = [("", above)]
    while pending:
        folder, rules = pending.pop()
        absolute = os.path.join(base, folder)
        if not is_ignored_shown and (own := _rules_of(absolute)):
            rules = [*rules, (absolute, own)]
        try:
            entries = sorted(os.scandir(absolute), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name == ".git" or (entry.name.startswith(".") and not is_hidden_shown) or entry.is_symlink():
                continue
            name = os.path.join(folder, entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            is_named = named is not None and named.match_file(name + "/" * is_folder)
            if not is_named and _is_ignored(entry.path, is_folder, rules):
                continue
            if is_folder:
                pending.append((name, rules))
            elif entry.is_file(follow_symlinks=False):
                yield name


def _rules_of(folder: str) -> pathspec.GitIgnoreSpec | None:
    lines: list[str] = []
    for name in _IGNORE_FILES:
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                lines += file.read().splitlines()
        except OSError:
            continue
    return pathspec.GitIgnoreSpec.from_lines(lines) if lines else None


def _rules_above(base: Path) -> list[tuple[str, pathspec.GitIgnoreSpec]]:
    """None if these exclude `base` itself: a folder that was asked for by name is searched, as ripgrep does."""
    rules = [(str(folder), own) for folder in reversed(base.parents) if (own := _rules_of(str(folder)))]
    return [] if _is_ignored(str(base), True, rules) else rules


def _is_ignored(path: str, is_folder: bool, rules: list[tuple[str, pathspec.GitIgnoreSpec]]) -> bool:
    """The innermost file that has an opinion decides."""
    for folder, own in reversed(rules):
        verdict = own.check_file(os.path.relpath(path, folder) + ("/" if is_folder else "")).include
        if verdict is not None:
            return verdict
    return False


async def search_files(query: FallbackQuery, base: Path, files: list[str] | None, timeout_s: float) -> Searched:
    """Search `files` (relative to `base`), or all below it."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(_search, query, base, files, timeout_s, stop)
    finally:
        stop.set()


def _search(
    query: FallbackQuery, base: Path, files: list[str] | None, timeout_s: float, stop: threading.Event
) -> Searched:
    flags = re.IGNORECASE if query.is_case_ignored else 0
    flags |= re.MULTILINE | (re.DOTALL if query.is_multiline else 0)
    try:
        pattern = re.compile(query.pattern.encode(), flags)
    except re.error as error:
        return Searched(b"", f"regex parse error: {error}")
    if query.type_name and query.type_name not in _TYPE_GLOBS:
        return Searched(b"", f"unrecognized file type: {query.type_name}")
    type_spec = pathspec.GitIgnoreSpec.from_lines(_TYPE_GLOBS.get(query.type_name, ()))
    glob_spec = pathspec.GitIgnoreSpec.from_lines(part for glob in query.globs for part in expand_braces(glob))
    deadline = time.monotonic() + timeout_s
    parts: list[bytes] = []
    named = glob_spec if query.globs else None
    for name in files if files is not None else _walk(base, True, query.is_ignored_shown, named):
        if stop.is_set() or time.monotonic() > deadline:
            return Searched(b"".join(parts), is_cut=True)
        if files is None and (
            (query.type_name and not type_spec.match_file(name)) or (query.globs and not glob_spec.match_file(name))
        ):
            continue
        try:
            with open(base / name, "rb") as file:
                data = file.read(MAX_FILE_BYTES)
        except OSError:
            continue
        if b"\0" not in data[:8_192]:
            parts += _matches_in(b"./" + os.fsencode(name), data, pattern, query)
    return Searched(b"".join(parts))


def _matches_in(name: bytes, data: bytes, pattern: re.Pattern[bytes], query: FallbackQuery) -> list[bytes]:
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    hits: set[int] = set()
    count = 0
    if query.is_multiline:
        for match in pattern.finditer(data):
            first = data.count(b"\n", 0, match.start())
            last = data.count(b"\n", 0, max(match.start(), match.end() - 1))
            hits.update(range(first, min(last, len(lines) - 1) + 1))
            count += 1
    else:
        hits = {number for number, line in enumerate(lines) if pattern.search(line.removesuffix(b"\r"))}
        count = len(hits)
    if not hits:
        return []
    if query.mode == "files_with_matches":
        return [name + b"\0"]
    if query.mode == "count":
        return [b"%s\0%d\n" % (name, count)]
    shown = sorted(
        {n for hit in hits for n in range(max(0, hit - query.before), min(len(lines), hit + query.after + 1))}
    )
    parts: list[bytes] = []
    for position, number in enumerate(shown):
        if (query.before or query.after) and position and shown[position - 1] != number - 1:
            parts.append(b"--\n")
        parts.append(b"%s\0%d%s%s\n" % (name, number + 1, b":" if number in hits else b"-", lines[number]))
    return parts
