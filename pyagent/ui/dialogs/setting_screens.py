"""`/config` and `/permissions` as screens: everything is changed by the commands that could be typed as well."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from pyagent.pages import PermissionsPage, RuleRow, SettingRow, SettingsPage
from pyagent.ui.dialogs.browser import BrowserScreen
from pyagent.ui.dialogs.picker import PickerItem
from pyagent.ui.lines import BLANK_LINE, Line, Span, plain_line
from pyagent.ui.pages.parts import hanging
from pyagent.ui.pages.rules import permissions_lines, rule_rows, setting_detail

SCOPES = ("user", "project", "local")
SCOPE_WORDS = {"user": "for you", "project": "for this project", "local": "for you in this project"}


class ConfigScreen(BrowserScreen[SettingsPage]):
    """Every setting; Enter changes the chosen one in the file of the chosen scope."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s,tab", "next_scope", show=False),
        Binding("r", "reset", show=False),
        Binding("right", "take", show=False),
        Binding("left", "cycle(-1)", show=False),
    ]
    scope = "user"

    def keys(self) -> str:
        return f"enter change · r reset · s saved {SCOPE_WORDS[self.scope]} · / search · q leave"

    def title_words(self) -> str:
        own = sum(row.origin != "default" for row in self.page.rows)
        return f"Settings ({own} set)"

    def remark(self) -> str:
        if self.page.remark:
            return self.page.remark
        return self.page.problems[0] if self.page.problems else ""

    def items(self) -> Sequence[PickerItem]:
        return [PickerItem(row.key, row.key, _shown(row)) for row in self.page.rows]

    def detail(self, item_id: str, width_cells: int) -> Sequence[Line]:
        return setting_detail(self._row(item_id), self.page, self.scope, width_cells)

    def _row(self, key: str) -> SettingRow:
        return next(row for row in self.page.rows if row.key == key)

    def take(self, item_id: str) -> None:
        row = self._row(item_id)
        match row.kind:
            case "flag":
                self._set(row.key, "false" if row.value == "true" else "true")
            case "choice":
                self.action_cycle(1)
            case "list":
                self.say("A list: /permissions and /add-dir change it, or the file.")
            case _:
                value = json.loads(row.value) if row.value else ""
                words = value if isinstance(value, str) else row.value
                self.ask(f"{row.key} =", words, lambda text: self._set(row.key, text))

    def action_cycle(self, step: int) -> None:
        """The next or previous of a setting's choices."""
        row = self._row(self.chosen_id) if self.chosen_id else None
        if row is not None and row.kind == "flag":
            self.take(row.key)
        elif row is not None and row.choices:
            now = json.loads(row.value) if row.value else ""
            at = row.choices.index(now) if now in row.choices else (-1 if step > 0 else 0)
            self._set(row.key, row.choices[(at + step) % len(row.choices)])

    def _set(self, key: str, text: str) -> None:
        self.send_command("config", f"{self.scope} {key}={text}")

    def action_reset(self) -> None:
        if self.chosen_id:
            self.send_command("config", f"{self.scope} reset {self.chosen_id}")

    def action_next_scope(self) -> None:
        """Changes go into another file from now on."""
        self.scope = SCOPES[(SCOPES.index(self.scope) + 1) % len(SCOPES)]
        self.say(self.keys())
        self.on_picker_list_moved()


def _shown(row: SettingRow) -> str:
    value = row.value.strip('"') or "–"
    return value if row.origin == "default" else f"{value}  ●"


class PermissionsScreen(BrowserScreen[PermissionsPage]):
    """Rules in the order they count, then what was not allowed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add('allow')", show=False),
        Binding("n", "add('deny')", show=False),
        Binding("s", "add('ask')", show=False),
        Binding("d,delete", "remove_rule", show=False),
        Binding("t", "try_out", show=False),
    ]
    KEYS = "a allow · n deny · s ask · d delete · t try a call · q leave"

    def title_words(self) -> str:
        count = len(self.page.rules)
        return f"Permissions: mode {self.page.mode}, {count} rule{'' if count == 1 else 's'}"

    def remark(self) -> str:
        if self.page.remark:
            return self.page.remark
        return "" if self.page.is_trusted else "Allow rules of this folder's files do not count yet: /permissions trust"

    def items(self) -> Sequence[PickerItem]:
        rules = [
            PickerItem(f"rule {at}", f"{row.kind:<6} {row.rule}", row.origin + ("  !" if row.problem else ""))
            for at, row in enumerate(self.page.rules)
        ]
        denials = [
            PickerItem(f"denial {at}", f"{row.at:%H:%M}  {row.tool} {row.subject}", "was not allowed")
            for at, row in enumerate(self.page.denials)
        ]
        return [*rules, *denials, PickerItem("all", "everything on one page", "folders, mode, order")]

    def detail(self, item_id: str, width_cells: int) -> Sequence[Line]:
        kind, _, at = item_id.partition(" ")
        match kind:
            case "rule":
                row = self.page.rules[int(at)]
                words = "d takes it away." if row.is_removable else "It stands in a file that pyagent does not change."
                return [*rule_rows(row, width_cells), BLANK_LINE, plain_line(words, "muted")]
            case "denial":
                denial = self.page.denials[int(at)]
                head = (Span(f"{denial.tool}  ", "bold"),)
                lines = hanging(head, denial.subject, width_cells, "text")
                return [*lines, BLANK_LINE, *hanging((), denial.reason, width_cells, "warning")]
            case _:
                return permissions_lines(self.page, width_cells)

    def _chosen_rule(self) -> RuleRow | None:
        kind, _, at = self.chosen_id.partition(" ")
        return self.page.rules[int(at)] if kind == "rule" else None

    def action_add(self, kind: str) -> None:
        """A new rule, for this person in this project unless another scope stands behind it."""
        placeholder = f"{kind}: Tool or Tool(specifier); user, project or local may follow"
        denial_kind, _, at = self.chosen_id.partition(" ")
        denial = self.page.denials[int(at)] if denial_kind == "denial" else None
        value = f"{denial.tool}({denial.subject})" if denial is not None and denial.subject else ""
        self.ask(placeholder, value, lambda words: self.send_command("permissions", f"{kind} {words}"))

    def action_remove_rule(self) -> None:
        row = self._chosen_rule()
        if row is None:
            return
        if row.is_removable:
            self.send_command("permissions", f"remove {row.kind} {row.rule}")
        else:
            self.say(f"It stands in {row.origin}, which pyagent does not change.")

    def action_try_out(self) -> None:
        self.ask(
            "Which rule decides? For example Bash(git push)",
            "",
            lambda call: self.send_command("permissions", f"test {call}"),
        )
