"""What the rules say about reading or changing a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyagent.agent.rules import EDIT_TOOLS, READ_TOOLS, Rule, path_spec_matches
from pyagent.choices import PermissionMode
from pyagent.tools.protected import protected_reason


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Parsed rules: deny beats ask beats allow."""

    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A judgement before the mode has its say. `can_remember` is False where every time is asked anew."""

    kind: Literal["allow", "ask", "deny"]
    reason: str = ""
    can_remember: bool = True


@dataclass(frozen=True, slots=True)
class PathPolicy:
    """The rules about paths, for one working directory. A path is judged both as written and with links resolved."""

    rules: RuleSet
    mode: PermissionMode
    cwd: Path
    allowed_dirs: tuple[Path, ...]
    """Where files may be changed; the first is the project's folder, which relative patterns start from."""
    readable_dirs: tuple[Path, ...]
    home: Path
    state_home: Path | None

    def candidates(self, text: str, bases: Sequence[Path] = ()) -> tuple[Path, ...]:
        """The absolute paths a text may mean: from each base, as written and with links and `..` resolved."""
        text = text.replace("\0", "")
        if text == "~" or text.startswith("~/"):
            text = str(self.home) + text[1:]
        found: dict[Path, None] = {}
        for base in bases or (self.cwd,):
            joined = os.path.join(base, text)
            found[Path(os.path.normpath(joined))] = None
            found[Path(os.path.realpath(joined))] = None
        return tuple(found)

    def is_inside(self, paths: Iterable[Path], folders: Iterable[Path] | None = None) -> bool:
        """Whether all of the paths lie in the allowed folders."""
        given = self.allowed_dirs if folders is None else tuple(folders)
        roots = [root for folder in given for root in (folder, folder.resolve())]
        return all(any(path.is_relative_to(root) for root in roots) for path in paths)

    def edit(self, paths: tuple[Path, ...]) -> Outcome:
        """Whether a file may be changed. A path closed to Read cannot be changed either."""
        if rule := self._any(self.rules.deny, ("Edit", "Read"), paths):
            return Outcome("deny", f"the rule {rule.text} forbids it")
        if rule := self._any(self.rules.ask, ("Edit",), paths):
            return Outcome("ask", f"the rule {rule.text} says to ask", can_remember=False)
        if self.mode == "bypassPermissions":
            return Outcome("allow")
        for path in paths:
            if reason := protected_reason(path, state_home=self.state_home):
                return Outcome("ask", reason, can_remember=False)
        if self._all_allowed("Edit", paths):
            return Outcome("allow")
        if not self.is_inside(paths):
            return Outcome("ask", "it is outside the working directories")
        if self.mode == "acceptEdits" or any(r.tool in EDIT_TOOLS and r.spec is None for r in self.rules.allow):
            return Outcome("allow")
        return Outcome("ask", "no rule allows this edit")

    def read(self, paths: tuple[Path, ...]) -> Outcome:
        """Whether a file may be read."""
        if rule := self._any(self.rules.deny, ("Read",), paths):
            return Outcome("deny", f"the rule {rule.text} forbids it")
        if rule := self._any(self.rules.ask, ("Read",), paths):
            return Outcome("ask", f"the rule {rule.text} says to ask", can_remember=False)
        if self.mode == "bypassPermissions" or self._all_allowed("Read", paths):
            return Outcome("allow")
        if any(rule.tool in READ_TOOLS and rule.spec is None for rule in self.rules.allow):
            return Outcome("allow")
        if self.is_inside(paths, (*self.allowed_dirs, *self.readable_dirs)):
            return Outcome("allow")
        return Outcome("ask", "it is outside the working directories")

    @property
    def has_read_denials(self) -> bool:
        return any(rule.tool == "Read" and rule.spec is not None for rule in self.rules.deny)

    def _any(self, rules: tuple[Rule, ...], tools: tuple[str, ...], paths: tuple[Path, ...]) -> Rule | None:
        # A denial holds from the project's folder and, after a `cd`, from where the shell stands too.
        roots = dict.fromkeys((*self.allowed_dirs, self.cwd))
        for rule in rules:
            if rule.tool in tools and rule.spec is not None:
                for path in paths:
                    if path_spec_matches(rule.spec, path, roots=roots, home=self.home):
                        return rule
        return None

    def _all_allowed(self, tool: str, paths: tuple[Path, ...]) -> bool:
        specs = [rule.spec for rule in self.rules.allow if rule.tool == tool and rule.spec is not None]
        roots = self.allowed_dirs[:1] or (self.cwd,)
        # What counts for a permission is the file that would be touched, not the name it is reached by.
        targets = {path.resolve() for path in paths}
        return bool(specs) and all(
            any(path_spec_matches(spec, path, roots=roots, home=self.home) for spec in specs) for path in targets
        )
