"""Lists of globs of which the last one that fits decides: ignore files, and the globs a search is asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pyagent.tools.without_ripgrep.globs import GlobError, compile_glob


@dataclass(frozen=True, slots=True)
class Rule:
    regex: re.Pattern[bytes]
    is_exception: bool
    """Began with `!`."""
    is_for_folders: bool

    @classmethod
    def read(cls, line: str) -> Rule | None:
        """One line of an ignore file; None for a comment or blank.

        Raises:
            GlobError: it does not parse.
        """
        if line.startswith("#"):
            return None
        if not line.endswith("\\ "):
            line = line.rstrip()
        if not line:
            return None
        written, is_exception, is_anchored = line, False, False
        if line.startswith(("\\!", "\\#")):
            line = line[1:]
            is_anchored = line.startswith("/")
        else:
            if line.startswith("!"):
                is_exception, line = True, line[1:]
            if line.startswith("/"):
                is_anchored, line = True, line[1:]
        is_for_folders = line.endswith("/")
        if is_for_folders:
            line = line[:-1].removesuffix("\\")
        if not is_anchored and "/" not in line and line != "**":
            line = "**/" + line
        if line.endswith("/**"):
            line += "/*"
        return cls(compile_glob(line, written), is_exception, is_for_folders)


@dataclass(frozen=True)
class RuleList:
    """Rules about what stands below `folder`."""

    folder: str
    rules: tuple[Rule, ...]

    @cached_property
    def has_positive(self) -> bool:
        return any(not rule.is_exception for rule in self.rules)

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """Whether the last rule that fits takes `path` (absolute) in; None if none fits."""
        name = os.fsencode(path[len(self.folder.rstrip("/")) + 1 :])
        for rule in reversed(self.rules):
            if (is_folder or not rule.is_for_folders) and rule.regex.fullmatch(name):
                return not rule.is_exception
        return None


def rules_from_globs(folder: str, globs: Iterable[str]) -> RuleList:
    """Of a search's own globs.

    Raises:
        GlobError: one does not parse.
    """
    return RuleList(folder, tuple(rule for glob in globs if (rule := Rule.read(glob)) is not None))


def rules_from_file(path: str, folder: str) -> RuleList | None:
    """Of an ignore file about `folder`; None if there is none. Lines that do not parse are left out."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    rules = []
    for raw in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        try:
            line = raw.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError:
            # ripgrep reads no further either.
            break
        try:
            if (rule := Rule.read(line)) is not None:
                rules.append(rule)
        except GlobError:
            continue
    return RuleList(folder, tuple(rules)) if rules else None


@dataclass(frozen=True)
class _Level:
    """The ignore files of one folder."""

    by_kind: tuple[RuleList | None, ...]

    @classmethod
    def of(cls, folder: str) -> _Level:
        names = (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")
        return cls(tuple(rules_from_file(os.path.join(folder, name), folder) for name in names))


@dataclass(frozen=True)
class IgnoreFiles:
    """The ignore files that hold in one folder: its own and those above, and the person's.

    A repository within another is not a border: so it is with `--no-require-git`, which is how ripgrep is called.
    """

    levels: tuple[_Level, ...] = ()
    """Outermost first."""
    everywhere: RuleList | None = None

    @classmethod
    def above(cls, base: str) -> IgnoreFiles:
        folders = [base]
        while (parent := os.path.dirname(folders[-1])) != folders[-1]:
            folders.append(parent)
        return cls(tuple(_Level.of(folder) for folder in reversed(folders[1:])), _personal_rules(base))

    def inside(self, folder: str) -> IgnoreFiles:
        level = _Level.of(folder)
        return IgnoreFiles((*self.levels, level), self.everywhere) if any(level.by_kind) else self

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """True if `path` is ignored, False if taken in by an exception. `.rgignore` beats `.ignore` beats git's."""
        for kind in range(4):
            for level in reversed(self.levels):
                rules = level.by_kind[kind]
                if rules is not None and (verdict := rules.verdict(path, is_folder)) is not None:
                    return verdict
        return self.everywhere.verdict(path, is_folder) if self.everywhere else None


_EXCLUDES_FILE = re.compile(rb'^\s*excludesfile\s*=\s*"?\s*(\S+?)\s*"?\s*$', re.IGNORECASE | re.MULTILINE)


def _personal_rules(base: str) -> RuleList | None:
    """git's `core.excludesFile`, by default `~/.config/git/ignore`."""
    config_home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    for path in (os.path.expanduser("~/.gitconfig"), os.path.join(config_home, "git", "config")):
        try:
            with open(path, "rb") as file:
                named = _EXCLUDES_FILE.search(file.read())
        except OSError:
            continue
        if named:
            return rules_from_file(os.path.expanduser(os.fsdecode(named[1])), base)
    return rules_from_file(os.path.join(config_home, "git", "ignore"), base)
