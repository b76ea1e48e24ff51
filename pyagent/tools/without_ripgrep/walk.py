"""The files below a folder that ripgrep would look at."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pyagent.tools.without_ripgrep.file_types import type_globs
from pyagent.tools.without_ripgrep.globs import compile_glob
from pyagent.tools.without_ripgrep.rules import IgnoreFiles, RuleList, rules_from_globs


class UnknownTypeError(ValueError):
    """No type of that name; the text is what ripgrep says."""


@dataclass
class Walk:
    """Files below `base` (absolute), links not followed. Reading it goes on from where it stopped."""

    base: str
    is_hidden_shown: bool
    is_ignored_shown: bool
    globs: RuleList
    """They beat ignore files and types: the last that fits decides, and with a positive one only what fits is in."""
    type_regex: re.Pattern[bytes] | None = None
    """For file names; None for all."""
    has_unreadable: bool = field(default=False, init=False)

    @classmethod
    def below(
        cls,
        base: str,
        *,
        is_hidden_shown: bool,
        is_ignored_shown: bool,
        globs: tuple[str, ...] = (),
        type_name: str = "",
    ) -> Walk:
        """
        Raises:
            GlobError: a glob does not parse.
            UnknownTypeError: there is no such type.
        """
        type_regex = _type_regex(type_name) if type_name else None
        rules = rules_from_globs(base, (*globs, "!.git"))
        return cls(base, is_hidden_shown, is_ignored_shown, rules, type_regex)

    def __iter__(self) -> Iterator[str]:
        """Paths relative to `base`."""
        start = IgnoreFiles() if self.is_ignored_shown else IgnoreFiles.above(self.base)
        pending: list[tuple[str, IgnoreFiles]] = [("", start)]
        while pending:
            folder, ignoring = pending.pop()
            absolute = os.path.join(self.base, folder).rstrip("/") or "/"
            if not self.is_ignored_shown:
                ignoring = ignoring.inside(absolute)
            try:
                entries = sorted(os.scandir(absolute), key=lambda entry: entry.name)
            except OSError:
                self.has_unreadable = True
                continue
            for entry in entries:
                if entry.is_symlink():
                    continue
                is_folder = entry.is_dir(follow_symlinks=False)
                if not self._is_wanted(entry, is_folder, ignoring):
                    continue
                name = os.path.join(folder, entry.name)
                if is_folder:
                    pending.append((name, ignoring))
                elif entry.is_file(follow_symlinks=False):
                    yield name

    def _is_wanted(self, entry: os.DirEntry[str], is_folder: bool, ignoring: IgnoreFiles) -> bool:
        path = os.path.join(self.base, entry.path)
        asked = self.globs.verdict(path, is_folder)
        if asked is not None:
            return asked
        if self.globs.has_positive and not is_folder:
            return False
        ignored = None if self.is_ignored_shown else ignoring.verdict(path, is_folder)
        if ignored:
            return False
        is_named = ignored is False
        if self.type_regex is not None and not is_folder:
            if not self.type_regex.fullmatch(os.fsencode(entry.name)):
                return False
            is_named = True
        return is_named or self.is_hidden_shown or not entry.name.startswith(".")


def _type_regex(name: str) -> re.Pattern[bytes]:
    table = type_globs()
    if name == "all":
        chosen = [glob for globs in table.values() for glob in globs]
    elif name in table:
        chosen = list(table[name])
    else:
        raise UnknownTypeError(f"rg: unrecognized file type: {name}")
    return re.compile(b"|".join(b"(?:%s)" % compile_glob(glob).pattern for glob in chosen), re.DOTALL)
