"""`/permissions`: the rules with the files they stand in, tried out, added and taken away; and what was denied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pyagent.agent.gatekeeper import SessionGatekeeper
from pyagent.agent.permissions import Allow, Ask, Decision, Deny, PermissionEngine
from pyagent.agent.rules import MAIN_FIELDS, parse_rule, rule_problems
from pyagent.agent.settings_book import SCOPES, Scope, SettingsBook
from pyagent.errors import UsageError
from pyagent.events import EventSink, PermissionQuestion, Report
from pyagent.messages import JsonObject
from pyagent.pages import PermissionsPage, RuleKind, RuleRow
from pyagent.settings import Settings, with_value
from pyagent.tools.tool import AnyTool

KINDS: tuple[RuleKind, ...] = ("deny", "ask", "allow")
SESSION = "this session"
_USAGE = (
    "Write /permissions allow|ask|deny RULE [user|project|local], /permissions remove allow RULE, "
    "/permissions test Bash(git push), or /permissions trust."
)


class PermissionCommands:
    """The handler of `/permissions`."""

    def __init__(
        self,
        book: SettingsBook,
        *,
        gatekeeper: SessionGatekeeper,
        tools: Mapping[str, AnyTool],
        emit: EventSink,
        apply: Callable[[Settings], None],
        folders: Callable[[], tuple[tuple[Path, str], ...]],
        cwd: Callable[[], Path],
    ) -> None:
        """`folders` are those where files may be changed, each with where that comes from."""
        self._book = book
        self._gatekeeper = gatekeeper
        self._tools = tools
        self._emit = emit
        self._apply = apply
        self._folders = folders
        self._cwd = cwd

    def handle(self, argument: str) -> None:
        """Show the rules, or change them, or say which of them decides a call."""
        verb, _, rest = argument.strip().partition(" ")
        rest = rest.strip()
        if not verb:
            self._show("")
        elif verb == "test" and rest:
            self._show(self._test(rest))
        elif verb == "trust" and not rest:
            self._show(self._trust())
        elif verb == "remove" and rest:
            kind, _, rule = rest.partition(" ")
            self._show(self._remove(_kind(kind), rule.strip()))
        elif verb in KINDS and rest:
            self._show(self._add(_kind(verb), rest))
        else:
            raise UsageError("That is nothing /permissions knows.", hint=_USAGE)

    # ── changing ──

    def _add(self, kind: RuleKind, words: str) -> str:
        rule, scope = _rule_and_scope(words)
        parse_rule(rule)
        if problems := rule_problems(with_value(Settings(), f"{kind}_rules", (rule,))):
            raise UsageError(problems[0].removeprefix(f"permissions.{kind}: "), hint=_USAGE)
        path = self._book.add_item(scope, f"permissions.{kind}", rule)
        self._apply(self._book.reload().settings)
        counts = rule in getattr(self._book.settings, f"{kind}_rules")
        if counts:
            return f"{kind} {rule}: saved in {path}."
        # What it takes comes first: a page cuts a long remark at its end.
        return (
            f"{kind} {rule} counts once this folder is trusted (/permissions trust), or at once with 'user' behind the "
            f"rule. Saved in {path}."
        )

    def _remove(self, kind: RuleKind, rule: str) -> str:
        if kind == "allow" and rule in self._gatekeeper.engine.session_rules:
            self._gatekeeper.withdraw_for_session(rule)
            return f"allow {rule}: taken away for this session."
        origin = self._book.loaded.item_origins.get(f"{kind}_rules", {}).get(rule)
        if origin is None:
            raise UsageError(f"There is no rule {kind} {rule}.", hint="/permissions lists them.")
        scope = self._book.scope_of(origin)
        if scope is None:
            raise UsageError(f"That rule stands in {origin}.", hint="pyagent does not change it: edit it there.")
        self._book.remove_item(scope, f"permissions.{kind}", rule)
        self._apply(self._book.reload().settings)
        return f"{kind} {rule}: taken out of {origin}."

    def _trust(self) -> str:
        if self._book.is_trusted:
            return "This folder is trusted already."
        try:
            self._book.trust_folder()
        finally:
            self._apply(self._book.settings)
        return "This folder is trusted: its own rules count now, its other settings from the next start on."

    # ── trying out ──

    def _test(self, call: str) -> str:
        rule = parse_rule(call)
        tool = self._tools.get(rule.tool)
        if tool is None:
            raise UsageError(f"There is no tool {rule.tool!r}.", hint=f"The tools are {', '.join(self._tools)}.")
        spec = rule.spec or ""
        field = MAIN_FIELDS.get(rule.tool, "")
        tool_input: JsonObject = {field: spec} if field else {}
        if rule.tool == "WebFetch":
            tool_input = {"url": f"https://{spec.removeprefix('domain:')}" if "://" not in spec else spec}
        engine = self._gatekeeper.engine
        decision = self._decide(engine, tool, tool_input)
        shown = f"{rule.tool}({spec})" if spec else rule.tool
        match decision:
            case Deny(reason=reason):
                return f"{shown}: denied. {reason}"
            case Ask(question=question):
                return f"{shown}: asks. {question.reason or 'No rule allows it'}."
            case Allow():
                return f"{shown}: allowed. {self._why_allowed(engine, tool, tool_input)}"

    def _decide(self, engine: PermissionEngine, tool: AnyTool, tool_input: JsonObject) -> Decision:
        is_harmless = tool.is_read_only and tool.name != "WebFetch"
        question = None if is_harmless else PermissionQuestion(tool.name, "other", tool.name)
        folders = tuple(folder for folder, _ in self._folders())
        return engine.decide(tool.name, tool_input, question, tool.is_read_only, self._cwd(), folders)

    def _why_allowed(self, engine: PermissionEngine, tool: AnyTool, tool_input: JsonObject) -> str:
        """The rule without which it would not be allowed; else the mode, or that it is harmless."""
        for rule in (*engine.settings.allow_rules, *engine.session_rules):
            if not isinstance(self._decide(engine.without_allow(rule), tool, tool_input), Allow):
                return f"The rule {rule} allows it."
        if engine.mode != "default" and not isinstance(
            self._decide(engine.with_mode("default"), tool, tool_input), Allow
        ):
            return f"The mode {engine.mode} allows it."
        return "It only reads, inside the folders of the session."

    # ── showing ──

    def _show(self, remark: str) -> None:
        engine, origins = self._gatekeeper.engine, self._book.loaded.item_origins
        problems = _problems(engine.settings)
        rules: list[RuleRow] = []
        for kind in KINDS:
            for rule in getattr(engine.settings, f"{kind}_rules"):
                origin = origins.get(f"{kind}_rules", {}).get(rule, "flag")
                is_own = self._book.scope_of(origin) is not None
                rules.append(RuleRow(kind, rule, origin, is_own, problems.get((kind, rule), "")))
        rules += [RuleRow("allow", rule, SESSION, True) for rule in engine.session_rules]
        folders = tuple((str(folder), origin) for folder, origin in self._folders())
        page = PermissionsPage(
            engine.mode, tuple(rules), folders, self._gatekeeper.denials, self._book.is_trusted, remark
        )
        data: JsonObject = {
            "mode": engine.mode,
            **{kind: [row.rule for row in rules if row.kind == kind] for kind in KINDS},
        }
        self._emit(Report("Permissions", data=data, page=page))


def _kind(word: str) -> RuleKind:
    for kind in KINDS:
        if word == kind:
            return kind
    raise UsageError(f"{word!r} is none of {', '.join(KINDS)}.", hint=_USAGE)


def _rule_and_scope(words: str) -> tuple[str, Scope]:
    """The rule, and the file it goes into: the one for this person in this project, if none is named."""
    rule, _, last = words.rpartition(" ")
    for scope in SCOPES:
        if last == scope and rule:
            return rule.strip(), scope
    return words, "local"


def _problems(settings: Settings) -> dict[tuple[RuleKind, str], str]:
    """Why single rules never match."""
    found: dict[tuple[RuleKind, str], str] = {}
    for kind in KINDS:
        for rule in getattr(settings, f"{kind}_rules"):
            if problems := rule_problems(with_value(Settings(), f"{kind}_rules", (rule,))):
                found[kind, rule] = problems[0].removeprefix(f"permissions.{kind}: ")
    return found
