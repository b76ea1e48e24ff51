"""What pickers offer for commands given without an argument: sessions, models, modes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from pyagent.agent.claude_import import PREFIX, claude_folder, claude_sessions
from pyagent.agent.memory_edit import SCOPES, memory_target
from pyagent.agent.session_shelf import SessionShelf
from pyagent.agent.session_store import SessionInfo, list_sessions, project_dir
from pyagent.agent.wire.catalogue import ALIASES, known_model, model_ids
from pyagent.errors import SessionError
from pyagent.launch import LaunchOptions
from pyagent.ui.dialogs.picker import PickerItem
from pyagent.ui.gauge import short_tokens
from pyagent.ui.words import short_path

OFFLINE_MODEL = "offline"

MODE_WORDS = {
    "default": "asks before anything that changes files or runs unknown commands",
    "acceptEdits": "edits files in the project without asking; asks for commands",
    "plan": "reads only, until you accept a plan",
    "dontAsk": "never asks: what no rule allows is refused",
    "bypassPermissions": "runs everything without asking",
}


def saved_sessions(home: Path, cwd: Path) -> list[SessionInfo]:
    """The sessions of a folder, newest first. Reads the ends of every file: not for the screen's thread."""
    return list_sessions(project_dir(home, cwd))


def foreign_sessions(environ: Mapping[str, str], cwd: Path) -> list[SessionInfo]:
    """Claude Code's sessions of a folder, newest first; choosing one resumes a copy."""
    return claude_sessions(claude_folder(environ, cwd))


def session_items(sessions: Iterable[SessionInfo], now: datetime) -> list[PickerItem]:
    """A row for each session: its name; then age, branch, size and tokens."""
    items = []
    for info in sessions:
        facts = ["Claude Code"] if info.session_id.startswith(PREFIX) else []
        facts += [age((now - info.modified_at).total_seconds()), info.git_branch, size(info.size_bytes)]
        if info.last_tokens:
            facts.append(f"{short_tokens(info.last_tokens)} tokens")
        items.append(PickerItem(info.session_id, info.name, " · ".join(fact for fact in facts if fact)))
    return items


class OtherSessions:
    """The sessions of a folder but the open one, for a picker that can also rename and delete them.

    All but `items` and `preview` wait for the disk.
    """

    def __init__(self, options: LaunchOptions, open_id: str) -> None:
        self._options = options
        self._open_id = open_id
        self._shelf = SessionShelf(options.home, options.cwd, clock=lambda: datetime.now(UTC))
        self._by_id: dict[str, SessionInfo] = {}

    def load(self) -> None:
        """Read the list anew."""
        sessions = saved_sessions(self._options.home, self._options.cwd)
        sessions += foreign_sessions(self._options.environ, self._options.cwd)
        self._by_id = {info.session_id: info for info in sessions if info.session_id != self._open_id}

    def items(self) -> list[PickerItem]:
        return session_items(self._by_id.values(), datetime.now(UTC))

    def preview(self, session_id: str) -> str:
        return session_preview(self._by_id[session_id]) if session_id in self._by_id else ""

    def name(self, session_id: str) -> str:
        """The title, or what stands for it."""
        return self._by_id[session_id].name

    def rename(self, session_id: str, title: str) -> None:
        """Raises SessionError."""
        self._refuse_foreign(session_id)
        self._shelf.rename(session_id, title)
        self.load()

    def delete(self, session_id: str) -> None:
        """Raises SessionError."""
        self._refuse_foreign(session_id)
        self._shelf.delete(session_id)
        self.load()

    def restore(self) -> str:
        """Bring back what was deleted last; its id. Raises SessionError."""
        session_id = self._shelf.restore()
        self.load()
        return session_id

    def _refuse_foreign(self, session_id: str) -> None:
        if session_id.startswith(PREFIX):
            raise SessionError("This session is Claude Code's own; it stays as it is.")


def session_preview(info: SessionInfo) -> str:
    """What the picker shows beside the list, as Markdown without outside markup."""
    rows = [f"    {line}" for line in (info.first_prompt or "(nothing said)").split("\n")]
    facts = [f"- Last used: {info.modified_at:%Y-%m-%d %H:%M} UTC", f"- Id: `{info.session_id}`"]
    return "\n".join([*rows, "", *facts])


def memory_items(cwd: Path, home: Path) -> list[PickerItem]:
    """The memory files a line can be added to."""
    words = {
        "project": "for everybody who works here",
        "user": "for you, in every project",
        "local": "for you, in this folder only",
    }
    items = []
    for scope in SCOPES:
        target = memory_target(scope, cwd, home)
        new = ", a new file" if target.is_new else ""
        items.append(PickerItem(scope, f"{scope}: {words[scope]}", f"{short_path(str(target.path))}{new}"))
    return items


def model_items() -> list[PickerItem]:
    """The models of the table with window and prices, those with a short name first, and the built-in one."""
    short_names = {model: name for name, model in ALIASES.items()}
    ids = sorted(model_ids(), key=lambda model: model not in short_names)
    items = []
    for model in ids:
        info = known_model(model)
        if info is None:
            continue
        facts = [short_names.get(model, ""), f"{short_tokens(info.window_tokens)} window"]
        if info.price is not None:
            facts.append(f"${info.price.input_usd:g} in, ${info.price.output_usd:g} out per million tokens")
        if info.retires_at:
            facts.append(f"retires {info.retires_at}")
        items.append(PickerItem(model, model, " · ".join(fact for fact in facts if fact)))
    return [*items, PickerItem(OFFLINE_MODEL, OFFLINE_MODEL, "built-in program, no key, no network")]


def mode_items() -> list[PickerItem]:
    """The permission modes with what they mean."""
    return [PickerItem(mode, mode, words) for mode, words in MODE_WORDS.items()]


def age(seconds: float) -> str:
    """`just now`, `5 min ago`, `3 h ago`, `12 days ago`."""
    minutes = int(seconds // 60)
    if minutes < 1:
        return "just now"
    if minutes < 60:
        return f"{minutes} min ago"
    if minutes < 48 * 60:
        return f"{minutes // 60} h ago"
    return f"{minutes // (24 * 60)} days ago"


def size(size_bytes: int) -> str:
    """`12 kB`, `3.4 MB`."""
    if size_bytes < 1_000_000:
        return f"{max(1, round(size_bytes / 1_000))} kB"
    return f"{size_bytes / 1_000_000:.1f} MB"
