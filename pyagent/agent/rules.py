"""Permission rules: `Tool` or `Tool(specifier)`, how they are written and what they match."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pyagent.errors import UsageError
from pyagent.settings import Settings
from pyagent.tools import web

EDIT_TOOLS = ("Edit", "Write", "NotebookEdit")
"""`Edit(path)` governs all of them."""
READ_TOOLS = ("Read", "Grep", "Glob")
"""`Read(path)` governs all of them."""
MAIN_FIELDS = {
    "Bash": "command",
    "Read": "file_path",
    "Edit": "file_path",
    "Write": "file_path",
    "NotebookEdit": "notebook_path",
    "Grep": "path",
    "Glob": "path",
    "WebFetch": "url",
    "Agent": "subagent_type",
    "Task": "subagent_type",
    "Skill": "skill",
}
"""The input field a tool's specifier is about."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `spec` is None for a bare tool name (`Tool(*)` and `Tool()` read the same)."""

    tool: str
    spec: str | None
    text: str


_RULE = re.compile(r"\s*([A-Za-z0-9_*.-]+)\s*(?:\((.*)\))?\s*", re.DOTALL)


def parse_rule(text: str) -> Rule:
    """Raises UsageError for what is no rule."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a permission rule.", hint="Write Tool or Tool(specifier).")
    tool, spec = match[1], match[2]
    spec = None if spec is None or spec.strip() in ("", "*") else spec.strip()
    return Rule({"Task": "Agent", "MultiEdit": "Edit"}.get(tool, tool), spec, text.strip())


def parse_rules(texts: Iterable[str]) -> tuple[Rule, ...]:
    """The rules among the texts; what is none is left out (`rule_problems` names it)."""
    rules = []
    for text in texts:
        try:
            rules.append(parse_rule(text))
        except UsageError:
            continue
    return tuple(rules)


def rule_problems(settings: Settings) -> tuple[str, ...]:
    """One sentence for each rule that can never do what it seems to say."""
    problems: list[str] = []
    kinds = (("allow", settings.allow_rules), ("ask", settings.ask_rules), ("deny", settings.deny_rules))
    for kind, texts in kinds:
        for text in texts:
            try:
                rule = parse_rule(text)
            except UsageError as error:
                problems.append(f"permissions.{kind}: {error}")
                continue
            if rule.spec is not None and rule.tool in ("Write", "NotebookEdit", "Grep", "Glob"):
                group = "Edit" if rule.tool in EDIT_TOOLS else "Read"
                problems.append(f"permissions.{kind}: {text!r} never matches; write {group}({rule.spec}).")
            elif (
                kind == "allow"
                and "*" in rule.tool
                and not re.fullmatch(r"mcp__[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*__[^*]*\*", rule.tool)
            ):
                problems.append(
                    f"permissions.allow: {text!r} is ignored; a wildcard needs a server, as in mcp__server__*."
                )
    return tuple(problems)


def names_tool(rule: Rule, tool_name: str, *, is_allow: bool) -> bool:
    """Whether the rule's tool part is about this tool, whatever its specifier says."""
    tool_name = "Agent" if tool_name == "Task" else tool_name
    if rule.tool == tool_name:
        return True
    if rule.tool == "Edit" and tool_name in EDIT_TOOLS:
        return True
    if rule.tool == "Read" and tool_name in READ_TOOLS:
        return True
    if rule.tool.startswith("mcp__") and "*" not in rule.tool and rule.tool.count("__") == 1:
        return tool_name.startswith(rule.tool + "__")
    if "*" in rule.tool:
        if is_allow and not re.match(r"mcp__[^*]+?__", rule.tool):
            return False
        return re.fullmatch(".*".join(re.escape(part) for part in rule.tool.split("*")), tool_name) is not None
    return False


# ── Bash ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=512)
def _bash_regex(spec: str) -> re.Pattern[str]:
    spec = " ".join(spec.split())
    if spec.endswith(":*") and not spec.endswith("\\:*"):
        spec = spec[:-2].rstrip() + " *"
    tail = ""
    if spec.endswith(" *") and spec != " *":
        # `ls *` is `ls` alone or with anything behind a blank, never `lsof`.
        spec, tail = spec[:-2], r"(?: .*)?"
    parts = re.split(r"(\\\*|\*)", spec)
    body = "".join(".*" if part == "*" else re.escape("*" if part == r"\*" else part) for part in parts)
    return re.compile(body + tail, re.DOTALL)


def has_wildcard(spec: str) -> bool:
    return re.search(r"(?<!\\)\*", spec) is not None


def bash_spec_matches(spec: str, command: str) -> bool:
    """Whether a Bash specifier matches one command, given as words with one space between them."""
    return _bash_regex(spec).fullmatch(" ".join(command.split())) is not None


def is_exactly(spec: str, line: str) -> bool:
    """Whether the specifier has no wildcard and is this very line."""
    return not has_wildcard(spec) and spec.replace(r"\*", "*").strip() == line.strip()


def exact_bash_rule(line: str) -> str:
    """The rule that allows this line and no other."""
    return f"Bash({line.strip().replace('*', chr(92) + '*')})"


# ── paths ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=512)
def _ignore_spec(pattern: str) -> Any:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern])


def exact_path_rule(tool: str, path: Path) -> str:
    """The rule for this one file."""
    escaped = re.sub(r"([\\*?\[\]!# ])", r"\\\1", str(path))
    return f"{tool}(/{escaped})"


def path_spec_matches(spec: str, path: Path, *, roots: Iterable[Path], home: Path) -> bool:
    """Whether a gitignore pattern matches an absolute path.

    `//abs` starts at the file system's root, `~/x` at home, `/x` and `./x` at a root, `x` anywhere below a root.
    """
    if spec.startswith("//"):
        bases: Iterable[Path] = (Path("/"),)
        pattern = spec[1:]
    elif spec == "~" or spec.startswith("~/"):
        bases, pattern = (home,), spec[1:] or "/"
    else:
        bases, pattern = roots, spec[1:] if spec.startswith("./") else spec
    for base in dict.fromkeys(root for given in bases for root in (given, given.resolve())):
        try:
            relative = path.relative_to(base)
        except ValueError:
            continue
        if relative.parts and _ignore_spec(pattern).match_file(relative.as_posix()):
            return True
    return False


# ── other tools ──────────────────────────────────────────────────────────────────────────────────────────────────────


def host_of(url: str) -> str:
    """The host that is connected to for a URL, in lower case and ASCII; "" if it names none."""
    try:
        return web.host_of(web.normal_url(url))
    except ValueError:
        return ""


def other_spec_matches(spec: str, tool_name: str, tool_input: dict[str, Any], *, is_allow: bool) -> bool:
    """`WebFetch(domain:host)`, `Agent(name)`, `Skill(name)`, and `Tool(field:value)` in deny and ask rules."""
    main_field = MAIN_FIELDS.get(tool_name, "")
    if tool_name == "WebFetch" and spec.startswith("domain:"):
        wanted, host = spec.removeprefix("domain:").strip().lower(), host_of(str(tool_input.get("url", "")))
        return bool(host) and (host == wanted or (wanted.startswith("*.") and host.endswith(wanted[1:])))
    if tool_name in ("Agent", "Task", "Skill"):
        value = str(tool_input.get(main_field, ""))
        return value == spec or (spec.endswith(":*") and value.startswith(spec[:-2]))
    field, colon, wanted = spec.partition(":")
    if is_allow or not colon or field == main_field or not isinstance(tool_input.get(field), (str, int, float, bool)):
        return False
    value = tool_input[field]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return re.fullmatch(".*".join(re.escape(part) for part in wanted.strip().split("*")), text, re.DOTALL) is not None
