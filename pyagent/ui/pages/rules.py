"""`/config` and `/permissions` in full."""

from __future__ import annotations

from collections.abc import Sequence

from pyagent.pages import PermissionsPage, RuleRow, SettingRow, SettingsPage
from pyagent.ui.lines import BLANK_LINE, Line, Span, inert_row, truncate
from pyagent.ui.pages.parts import cell, hanging, heading

RULE_ROLES = {"deny": "error", "ask": "warning", "allow": "success"}
MAX_SHOWN_DENIALS = 10


def settings_lines(page: SettingsPage, width_cells: int) -> Sequence[Line]:
    lines = [*hanging((), page.remark, width_cells, "text"), BLANK_LINE] if page.remark else []
    key_cells = min(36, max(18, width_cells // 2))
    for row in page.rows:
        is_set = row.origin != "default"
        head = (Span(cell(row.key, key_cells), "bold" if is_set else "text"), Span(" "))
        words = f"{row.value or '–'}" + (f"  ({row.origin})" if is_set else "")
        lines += hanging(head, words, width_cells, "text" if is_set else "muted")
    for problem in page.problems:
        lines += hanging((), problem, width_cells, "warning")
    words = "/config key=value sets one for you, /config project key=value for this project, /config reset key."
    return [*lines, BLANK_LINE, *hanging((), words, width_cells)]


def setting_detail(row: SettingRow, page: SettingsPage, scope: str, width_cells: int) -> Sequence[Line]:
    lines = [
        Line((Span(inert_row(row.key), "heading"),)),
        *hanging((), f"{row.help}.", width_cells, "text"),
        BLANK_LINE,
    ]
    lines += hanging((Span("value  ", "muted"),), row.value or "not set", width_cells, "bold")
    lines += hanging((Span("from   ", "muted"),), row.origin, width_cells, "text")
    if row.choices:
        lines += hanging((Span("takes  ", "muted"),), ", ".join(row.choices), width_cells, "text")
    if row.when:
        lines += hanging((Span("counts ", "muted"),), row.when, width_cells, "warning")
    path = dict(page.files).get(scope, "")
    lines += [BLANK_LINE, *hanging((Span("changes go to ", "muted"),), path, width_cells, "text")]
    return lines


def permissions_lines(page: PermissionsPage, width_cells: int) -> Sequence[Line]:
    lines = hanging((), page.remark, width_cells, "text") if page.remark else []
    trust = "trusted" if page.is_trusted else "not trusted: its own allow rules do not count (/permissions trust)"
    lines.append(Line((Span("Mode   ", "muted"), Span(page.mode, "bold"))))
    lines += hanging((Span("Folder ", "muted"),), trust, width_cells, "text")
    for kind in ("deny", "ask", "allow"):
        rows = [row for row in page.rules if row.kind == kind]
        lines += heading(f"{kind.capitalize()} ({len(rows)})")
        for row in rows:
            lines += rule_rows(row, width_cells)
    lines += heading("Folders")
    for folder, origin in page.folders:
        lines += hanging((Span("  "), Span(inert_row(folder), "text"), Span("  ")), origin, width_cells)
    if page.denials:
        lines += heading("Not allowed lately")
        for denial in page.denials[:MAX_SHOWN_DENIALS]:
            head = (Span(f"  {denial.at:%H:%M} ", "muted"), Span(f"{inert_row(denial.tool)} ", "bold"))
            words = truncate(inert_row(denial.subject), 60)
            lines += hanging(head, f"{words}  {denial.reason}".strip(), width_cells)
    words = (
        "Deny goes before ask, ask before allow. Add: /permissions allow Bash(npm test); "
        "try: /permissions test Bash(git push)."
    )
    return [*lines, BLANK_LINE, *hanging((), words, width_cells)]


def rule_rows(row: RuleRow, width_cells: int) -> list[Line]:
    head = (Span(f"  {row.kind:<6}", RULE_ROLES[row.kind]), Span(inert_row(row.rule), "text"), Span("  "))
    lines = hanging(head, row.origin, width_cells)
    return lines + (hanging((Span("        "),), row.problem, width_cells, "warning") if row.problem else [])
