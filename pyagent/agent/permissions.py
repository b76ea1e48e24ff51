"""Whether a tool call may run: yes, no, or ask a person.

Rules come first (deny, then ask, then allow; the first that matches wins), then what is harmless by its nature, then
the mode. The engine reads links on disk to see what a path really names; it changes nothing and remembers nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from pyagent.agent.bash_policy import judge_bash
from pyagent.agent.path_policy import Outcome, PathPolicy, RuleSet
from pyagent.agent.rules import (
    EDIT_TOOLS,
    MAIN_FIELDS,
    READ_TOOLS,
    Rule,
    exact_bash_rule,
    exact_path_rule,
    host_of,
    names_tool,
    other_spec_matches,
    parse_rules,
)
from pyagent.choices import PermissionMode
from pyagent.events import PermissionQuestion
from pyagent.messages import JsonObject
from pyagent.settings import Settings


@dataclass(frozen=True, slots=True)
class Allow:
    """It may run."""


@dataclass(frozen=True, slots=True)
class Deny:
    """It may not; `reason` is told to the model."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A person decides. The question's `session_rule` is what a yes for the session adds (empty: only once)."""

    question: PermissionQuestion


Decision: TypeAlias = Allow | Deny | Ask

_ACTIONS: dict[str, Literal["edit", "command", "read", "network"]] = {
    **dict.fromkeys(EDIT_TOOLS, "edit"),
    **dict.fromkeys(READ_TOOLS, "read"),
    "Bash": "command",
    "WebFetch": "network",
    "WebSearch": "network",
}


class PermissionEngine:
    """The rules of one session. A value: `with_mode` and `with_session_rule` give new ones."""

    def __init__(
        self,
        settings: Settings,
        mode: PermissionMode,
        session_rules: Iterable[str] = (),
        *,
        home: Path | None = None,
        state_home: Path | None = None,
        readable_dirs: tuple[Path, ...] = (),
    ) -> None:
        """`state_home` is pyagent's own folder (always asked about); `readable_dirs` may be read but not changed."""
        self.settings, self.mode, self.session_rules = settings, mode, tuple(session_rules)
        self.home = home if home is not None else Path.home()
        self.state_home, self.readable_dirs = state_home, readable_dirs
        self.rules = RuleSet(
            deny=parse_rules(settings.deny_rules),
            ask=parse_rules(settings.ask_rules),
            allow=parse_rules((*settings.allow_rules, *self.session_rules)),
        )

    def with_mode(self, mode: PermissionMode) -> PermissionEngine:
        return self._copy(mode, self.session_rules)

    def with_session_rule(self, rule: str) -> PermissionEngine:
        """The engine after 'yes, for this session'; an empty rule changes nothing."""
        return self._copy(self.mode, (*self.session_rules, rule)) if rule else self

    def with_settings(self, settings: Settings) -> PermissionEngine:
        """The engine under other rules; what was allowed for the session stays allowed."""
        return self._copy(self.mode, self.session_rules, settings)

    def without_allow(self, rule: str) -> PermissionEngine:
        """The engine as if nothing had ever allowed this."""
        kept = tuple(other for other in self.settings.allow_rules if other != rule)
        session_rules = tuple(other for other in self.session_rules if other != rule)
        return self._copy(self.mode, session_rules, replace(self.settings, allow_rules=kept))

    def _copy(
        self, mode: PermissionMode, session_rules: tuple[str, ...], settings: Settings | None = None
    ) -> PermissionEngine:
        return PermissionEngine(
            settings or self.settings,
            mode,
            session_rules,
            home=self.home,
            state_home=self.state_home,
            readable_dirs=self.readable_dirs,
        )

    def removed_tools(self, names: Iterable[str]) -> tuple[str, ...]:
        """Which of these tools a bare deny rule takes from the model's list."""
        bare = [rule for rule in self.rules.deny if rule.spec is None]
        return tuple(name for name in names if any(names_tool(rule, name, is_allow=False) for rule in bare))

    def is_read_denied(self, path: Path, *, cwd: Path, allowed_dirs: tuple[Path, ...]) -> bool:
        """Whether a rule closes the path to reading, for searches that come across it."""
        policy = self._policy(cwd, allowed_dirs)
        return policy.read(policy.candidates(str(path))).kind == "deny"

    def decide(
        self,
        tool_name: str,
        tool_input: JsonObject,
        question: PermissionQuestion | None,
        is_read_only: bool,
        cwd: Path,
        allowed_dirs: tuple[Path, ...],
    ) -> Decision:
        """The decision on one call. `question` is what the tool would ask, None if it is harmless by its nature."""
        if bare := self._bare(self.rules.deny, tool_name):
            return Deny(f"{tool_name} may not run: the rule {bare.text} forbids it.")
        policy = self._policy(cwd, allowed_dirs)
        outcome = self._outcome(tool_name, tool_input, question, is_read_only, policy)
        if outcome.kind != "deny" and (bare := self._bare(self.rules.ask, tool_name)):
            outcome = Outcome("ask", f"the rule {bare.text} says to ask", can_remember=False)
        if outcome.kind == "allow":
            return Allow()
        if outcome.kind == "deny":
            return Deny(f"{tool_name} may not do this: {outcome.reason}.")
        if self.mode == "dontAsk":
            return Deny(f"{tool_name} would have to ask ({outcome.reason}), and this session asks nobody.")
        subject, session_rule = self._subject(tool_name, tool_input, policy)
        if question is None:
            question = PermissionQuestion(tool_name, _ACTIONS.get(tool_name, "other"), subject)
        rule = session_rule if outcome.can_remember else ""
        return Ask(replace(question, reason=outcome.reason, session_rule=rule))

    def _policy(self, cwd: Path, allowed_dirs: tuple[Path, ...]) -> PathPolicy:
        return PathPolicy(self.rules, self.mode, cwd, allowed_dirs, self.readable_dirs, self.home, self.state_home)

    def _bare(self, rules: tuple[Rule, ...], tool_name: str) -> Rule | None:
        is_allow = rules is self.rules.allow
        return next((r for r in rules if r.spec is None and names_tool(r, tool_name, is_allow=is_allow)), None)

    def _outcome(
        self,
        tool_name: str,
        tool_input: JsonObject,
        question: PermissionQuestion | None,
        is_read_only: bool,
        policy: PathPolicy,
    ) -> Outcome:
        if tool_name == "Bash":
            return judge_bash(str(tool_input.get("command", "")), policy)
        if tool_name in EDIT_TOOLS:
            outcome = policy.edit(_paths(tool_name, tool_input, policy))
            if self.mode == "plan" and outcome.kind != "deny":
                return Outcome("deny", "plan mode only reads; present the plan and have it accepted first")
            return outcome
        if tool_name in READ_TOOLS:
            return policy.read(_paths(tool_name, tool_input, policy))
        return self._other(tool_name, tool_input, question, is_read_only)

    def _other(
        self, tool_name: str, tool_input: JsonObject, question: PermissionQuestion | None, is_read_only: bool
    ) -> Outcome:
        def matching(rules: tuple[Rule, ...], *, is_allow: bool) -> Rule | None:
            for rule in rules:
                if not names_tool(rule, tool_name, is_allow=is_allow):
                    continue
                if rule.spec is None or other_spec_matches(rule.spec, tool_name, tool_input, is_allow=is_allow):
                    return rule
            return None

        if rule := matching(self.rules.deny, is_allow=False):
            return Outcome("deny", f"the rule {rule.text} forbids it")
        if rule := matching(self.rules.ask, is_allow=False):
            return Outcome("ask", f"the rule {rule.text} says to ask", can_remember=False)
        if question is None or self.mode == "bypassPermissions":
            return Outcome("allow")
        if self.mode == "plan" and not is_read_only:
            return Outcome("deny", "plan mode only reads; present the plan and have it accepted first")
        if matching(self.rules.allow, is_allow=True):
            return Outcome("allow")
        return Outcome("ask", question.reason or f"no rule allows {tool_name}")

    def _subject(self, tool_name: str, tool_input: JsonObject, policy: PathPolicy) -> tuple[str, str]:
        """(what is asked about in full, the rule that allows exactly this)."""
        if tool_name == "Bash":
            command = str(tool_input.get("command", ""))
            return command, exact_bash_rule(command)
        if tool_name in EDIT_TOOLS or tool_name in READ_TOOLS:
            path = _paths(tool_name, tool_input, policy)[-1]
            return str(path), exact_path_rule("Edit" if tool_name in EDIT_TOOLS else "Read", path)
        if tool_name == "WebFetch":
            host = host_of(str(tool_input.get("url", "")))
            return host, f"WebFetch(domain:{host})" if host else ""
        return str(tool_input.get(MAIN_FIELDS.get(tool_name, ""), tool_name)), tool_name


def _paths(tool_name: str, tool_input: JsonObject, policy: PathPolicy) -> tuple[Path, ...]:
    """Every path the call may reach, resolved last."""
    named = str(tool_input.get(MAIN_FIELDS[tool_name]) or ".")
    paths = policy.candidates(named)
    if tool_name == "Glob":
        pattern = str(tool_input.get("pattern", ""))
        prefix = pattern[: min((pattern.find(sign) for sign in "*?[{" if sign in pattern), default=len(pattern))]
        folder = prefix.rpartition("/")[0] if prefix != pattern else prefix
        # A pattern may leave the folder it is given: `/etc/*`, `../../other/*`, `*/../../x`.
        if pattern.startswith(("/", "~")):
            paths = policy.candidates(folder or "/")
        elif ".." in pattern.split("/"):
            hops = "/".join(part for part in pattern.split("/") if part == "..")
            paths = (*policy.candidates(f"{named}/{folder}"), *policy.candidates(f"{named}/{hops}"), *paths)
    return paths
