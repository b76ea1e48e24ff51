"""Colours: the themes for Textual and, for the same names, what each style role of a line looks like.

Every distinction also stands in a sign, a word or a weight (bold, underline), so that NO_COLOR stays readable.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rich.style import Style
from textual.theme import BUILTIN_THEMES, Theme

DARK = "pyagent-dark"
LIGHT = "pyagent-light"
ANSI = "pyagent-ansi"
DARK_DALTONIZED = "pyagent-dark-daltonized"
LIGHT_DALTONIZED = "pyagent-light-daltonized"


@dataclass(frozen=True, slots=True)
class Tones:
    """The colours a palette is mixed from. Each is a Rich colour; empty means the terminal's own."""

    text: str
    muted: str
    faint: str
    accent: str
    second: str
    success: str
    warning: str
    error: str
    surface: str
    panel: str
    selection: str
    added_bg: str
    removed_bg: str
    added_mark: str
    removed_mark: str
    code_text: str
    string: str
    number: str
    type_name: str


_DARK_TONES = Tones(
    text="#d5d8de",
    muted="#8b929e",
    faint="#565c67",
    accent="#8fb8de",
    second="#b9a3e3",
    success="#8fc298",
    warning="#dcb86f",
    error="#e5847f",
    surface="#1d2026",
    panel="#272b33",
    selection="#31506e",
    added_bg="#16281d",
    removed_bg="#2e1a1c",
    added_mark="#26523a",
    removed_mark="#5c2a2d",
    code_text="#c9cdd5",
    string="#a5c99a",
    number="#dfb58a",
    type_name="#86c5c4",
)
_LIGHT_TONES = Tones(
    text="#2a2d33",
    muted="#676c75",
    faint="#a9adb4",
    accent="#24628f",
    second="#6a4fa3",
    success="#2f7340",
    warning="#8a5f06",
    error="#b0352f",
    surface="#f0eee9",
    panel="#e5e2db",
    selection="#bdd6ec",
    added_bg="#e2f2e3",
    removed_bg="#f9e4e2",
    added_mark="#b4dfba",
    removed_mark="#f0bdb8",
    code_text="#33363c",
    string="#3d7030",
    number="#955a1b",
    type_name="#1f6f70",
)
_ANSI_TONES = Tones(
    text="",
    muted="bright_black",
    faint="bright_black",
    accent="blue",
    second="magenta",
    success="green",
    warning="yellow",
    error="red",
    surface="",
    panel="",
    selection="",
    added_bg="",
    removed_bg="",
    added_mark="",
    removed_mark="",
    code_text="",
    string="green",
    number="cyan",
    type_name="cyan",
)
_DARK_DALTONIZED_TONES = replace(
    _DARK_TONES,
    success="#7ab8f5",
    warning="#f0d060",
    error="#f2994a",
    string="#7ab8f5",
    number="#f0d060",
    added_bg="#14263a",
    removed_bg="#35230f",
    added_mark="#23507c",
    removed_mark="#70480f",
)
"""Blue against orange, which people who do not tell red from green do tell apart."""
_LIGHT_DALTONIZED_TONES = replace(
    _LIGHT_TONES,
    success="#0b5cad",
    warning="#7a6200",
    error="#a34700",
    string="#0b5cad",
    number="#7a6200",
    added_bg="#dcebfa",
    removed_bg="#fbe7d3",
    added_mark="#a5cdf2",
    removed_mark="#f3c08f",
)
_TONES = {
    DARK: _DARK_TONES,
    LIGHT: _LIGHT_TONES,
    DARK_DALTONIZED: _DARK_DALTONIZED_TONES,
    LIGHT_DALTONIZED: _LIGHT_DALTONIZED_TONES,
    ANSI: _ANSI_TONES,
}


def _style(
    color: str = "",
    background: str = "",
    *,
    bold: bool | None = None,
    italic: bool | None = None,
    underline: bool | None = None,
    strike: bool | None = None,
    reverse: bool | None = None,
) -> Style:
    return Style(
        color=color or None,
        bgcolor=background or None,
        bold=bold,
        italic=italic,
        underline=underline,
        strike=strike,
        reverse=reverse,
    )


def _role_styles(tones: Tones) -> dict[str, Style]:
    t = tones
    is_marked_by_weight = True if not t.added_mark else None
    return {
        "text": _style(t.text),
        "muted": _style(t.muted),
        "faint": _style(t.faint),
        "accent": _style(t.accent),
        "second": _style(t.second),
        "success": _style(t.success),
        "warning": _style(t.warning),
        "error": _style(t.error),
        "bold": _style(bold=True),
        "strong": _style(bold=True),
        "em": _style(italic=True),
        "strike": _style(strike=True),
        "link": _style(t.accent, underline=True),
        "heading": _style(t.accent, bold=True),
        "heading1": _style(t.accent, bold=True, underline=True),
        "code": _style(t.number, t.surface),
        "bullet": _style(t.muted),
        "quote": _style(t.muted, italic=True),
        "rule": _style(t.faint),
        "table.head": _style(t.text, bold=True),
        "fill.code": _style(t.code_text, t.surface),
        "fill.user": _style(t.text, t.panel),
        "fill.current": _style("", t.panel),
        "user.bar": _style(t.accent, t.panel, bold=True),
        "code.label": _style(t.muted, t.surface),
        "code.keyword": _style(t.second),
        "code.string": _style(t.string),
        "code.number": _style(t.number),
        "code.comment": _style(t.muted, italic=True),
        "code.function": _style(t.accent),
        "code.type": _style(t.type_name),
        "code.builtin": _style(t.type_name),
        "code.added": _style(t.success),
        "code.removed": _style(t.error),
        "code.error": _style(t.error),
        "thinking": _style(t.muted, italic=True),
        "tool.name": _style(t.text, bold=True),
        "tool.output": _style(t.muted),
        "diff.added": _style(t.text, t.added_bg),
        "diff.removed": _style(t.text, t.removed_bg),
        "diff.context": _style(t.muted),
        "diff.sign.added": _style(t.success, t.added_bg, bold=True),
        "diff.sign.removed": _style(t.error, t.removed_bg, bold=True),
        "diff.number": _style(t.faint),
        "diff.mark.added": _style(t.text, t.added_mark, bold=is_marked_by_weight, underline=is_marked_by_weight),
        "diff.mark.removed": _style(t.text, t.removed_mark, bold=is_marked_by_weight, underline=is_marked_by_weight),
        "fill.added": _style(t.text, t.added_bg),
        "fill.removed": _style(t.text, t.removed_bg),
        "match": _style(t.accent, bold=True, underline=True),
        "selection": _style(t.text, t.selection) if t.selection else _style(reverse=True),
        "found": _style("#1a1a1a", "#e8c95a") if t.surface else _style(reverse=True),
        "found.current": _style("#1a1a1a", "#f29a4a", bold=True) if t.surface else _style(reverse=True, bold=True),
        "pill": _style(t.accent, t.panel, bold=True) if t.surface else _style(reverse=True),
        "kind.system": _style(t.accent, bold=True),
        "kind.tools": _style(t.second, bold=True),
        "kind.memory": _style(t.type_name, bold=True),
        "kind.summary": _style(t.string, bold=True),
        "kind.prompts": _style(t.text, bold=True),
        "kind.answers": _style(t.success),
        "kind.calls": _style(t.number),
        "kind.results": _style(t.warning),
        "kind.thinking": _style(t.muted, italic=True),
        "kind.media": _style(t.error),
        "kind.notes": _style(t.muted),
        "kind.frames": _style(t.faint),
        "bar": _style(t.muted, t.surface),
        "bar.strong": _style(t.text, t.surface),
        "bar.accent": _style(t.accent, t.surface),
        "bar.faint": _style(t.faint, t.surface),
        "bar.ok": _style(t.success, t.surface),
        "bar.warn": _style(t.warning, t.surface, bold=True),
        "bar.error": _style(t.error, t.surface, bold=True),
        "bar.blocked": _style(t.error, t.surface, bold=True, reverse=True),
    }


@dataclass(slots=True)
class Palette:
    """Rich styles by role for one theme. Unknown roles raise KeyError: a misspelt one should fail a test."""

    name: str
    _styles: dict[str, Style]
    _mixed: dict[tuple[str, str], Style] = field(default_factory=dict)

    def style(self, role: str, href: str = "") -> Style:
        """The style of space-separated roles, later ones over earlier ones, with a link if a target is given."""
        key = (role, href)
        style = self._mixed.get(key)
        if style is None:
            style = Style.null()
            for name in role.split():
                style += self._styles[name]
            if href:
                style += Style(link=href)
            if len(self._mixed) > 2_000:
                self._mixed.clear()
            self._mixed[key] = style
        return style


_palettes = {name: Palette(name, _role_styles(tones)) for name, tones in _TONES.items()}


def palette(theme_name: str, *, is_dark: bool = True) -> Palette:
    """The palette of one of our themes; for any other, the dark or the light one."""
    return _palettes.get(theme_name) or _palettes[DARK if is_dark else LIGHT]


def _theme(name: str, tones: Tones, background: str, *, dark: bool) -> Theme:
    return Theme(
        name=name,
        primary=tones.accent,
        secondary=tones.second,
        warning=tones.warning,
        error=tones.error,
        success=tones.success,
        accent=tones.accent,
        foreground=tones.text,
        background=background,
        surface=tones.surface,
        panel=tones.panel,
        dark=dark,
        variables={
            "border": tones.accent,
            "border-blurred": tones.faint,
            "block-cursor-background": tones.panel,
            "block-cursor-foreground": tones.text,
            "block-cursor-text-style": "bold",
            "input-cursor-background": tones.text,
            "input-cursor-foreground": background,
            "scrollbar": tones.panel,
            "scrollbar-hover": tones.faint,
            "scrollbar-active": tones.muted,
            "scrollbar-background": background,
            "scrollbar-background-hover": background,
            "scrollbar-background-active": background,
            "screen-selection-background": f"{tones.accent} 40%",
        },
    )


_ANSI_THEME = Theme(
    name=ANSI,
    ansi=True,
    primary="ansi_blue",
    secondary="ansi_magenta",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    accent="ansi_blue",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    dark=True,
    variables={
        **BUILTIN_THEMES["ansi-dark"].variables,
        "border": "ansi_blue",
        "border-blurred": "ansi_bright_black",
        "scrollbar": "ansi_bright_black",
    },
)

THEMES: tuple[Theme, ...] = (
    _theme(DARK, _DARK_TONES, "#15171b", dark=True),
    _theme(LIGHT, _LIGHT_TONES, "#fbfaf7", dark=False),
    _theme(DARK_DALTONIZED, _DARK_DALTONIZED_TONES, "#15171b", dark=True),
    _theme(LIGHT_DALTONIZED, _LIGHT_DALTONIZED_TONES, "#fbfaf7", dark=False),
    _ANSI_THEME,
)
"""Register each with `App.register_theme`."""
