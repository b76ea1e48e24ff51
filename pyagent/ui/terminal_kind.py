"""What the terminal around the program can do, as its environment gives it away."""

from __future__ import annotations

from collections.abc import Mapping

from pyagent.ui.sequences import Multiplexer

_WITHOUT_SEQUENCES = ("linux", "vt52", "vt100", "vt102", "vt220", "cons25", "sun")
"""Consoles that print what follows `ESC ]` instead of swallowing it."""

MIN_VTE_WITH_LINKS = 5000
"""Older releases of the widget behind GNOME's terminals have been seen to crash on links."""

_FOREIGN_TERMINALS = (
    ("osc9", ("ITERM_SESSION_ID",), ("iTerm.app", "iTerm2")),
    ("osc99", ("KITTY_WINDOW_ID",), ("kitty", "xterm-kitty")),
    ("osc777", ("GHOSTTY_RESOURCES_DIR", "WEZTERM_PANE"), ("ghostty", "WezTerm", "xterm-ghostty", "foot")),
    ("osc777", (), ("foot-extra", "rxvt-unicode", "rxvt-unicode-256color")),
)
"""(channel, variables that are set, names that a variable holds)."""


def multiplexer(environ: Mapping[str, str]) -> Multiplexer:
    """What stands between the program and the terminal."""
    if environ.get("TMUX"):
        return "tmux"
    return "screen" if environ.get("STY") else ""


def is_remote(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is on another machine than the program."""
    return any(environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"))


def takes_sequences(environ: Mapping[str, str]) -> bool:
    """Whether titles, links and the like can be sent at all."""
    return environ.get("TERM", "").partition("-")[0] not in _WITHOUT_SEQUENCES


def has_links(environ: Mapping[str, str]) -> bool:
    """Whether links may be written. Most terminals that know none swallow them."""
    forced = environ.get("FORCE_HYPERLINK", "")
    if forced:
        return forced != "0"
    vte = environ.get("VTE_VERSION", "")
    return takes_sequences(environ) and not (vte.isdecimal() and int(vte) < MIN_VTE_WITH_LINKS)


def has_marks(environ: Mapping[str, str]) -> bool:
    """Whether turns may be marked: no terminal that reads escape sequences shows these."""
    return environ.get("TERM", "") not in ("", "dumb", "unknown") and takes_sequences(environ)


def has_clipboard(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is likely to take text for the clipboard (OSC 52). It never says, so this is hearsay."""
    if multiplexer(environ) == "" and (environ.get("VTE_VERSION") or environ.get("TERM_PROGRAM") == "Apple_Terminal"):
        return False
    return takes_sequences(environ)


def notification_channel(environ: Mapping[str, str]) -> str:
    """The way to notify that this terminal is known to take, else the bell."""
    names = {environ.get(name, "") for name in ("TERM_PROGRAM", "LC_TERMINAL", "TERM")}
    for channel, variables, known in _FOREIGN_TERMINALS:
        if names.intersection(known) or any(environ.get(name) for name in variables):
            return channel
    return "bell"
