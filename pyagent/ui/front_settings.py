"""What the settings say about the front end, asked before there is one.

Most files say nothing of it, and the reader of settings takes longer to load than the screen may wait: the files are
looked through for the two words first.
"""

from __future__ import annotations

from pathlib import Path

from pyagent.choices import TerminalSettings
from pyagent.launch import LaunchOptions

_WORDS = (b'"tui"', b'"axScreenReader"')


def front_end_settings(options: LaunchOptions) -> TerminalSettings:
    """The settings of the terminal, as far as they choose the front end; the defaults if no file speaks of that.

    Raises:
        UsageError: what `--settings` gives can't be used.
    """
    if not _is_spoken_of(options):
        return TerminalSettings()
    from pyagent.agent.config import load_settings

    # Trust makes no difference to these, and what is wrong with the files is told once the session is open.
    return load_settings(options, is_trusted=False).settings.terminal


def _is_spoken_of(options: LaunchOptions) -> bool:
    given = options.settings_json.strip()
    texts = [given.encode("utf-8", "replace")] if given.startswith("{") else []
    user = Path(options.environ.get("CLAUDE_CONFIG_DIR") or Path(options.environ.get("HOME") or Path.home(), ".claude"))
    paths = [user / "settings.json", options.home / "settings.json"]
    for folder in (options.cwd / ".claude", options.cwd / ".pyagent"):
        paths += [folder / "settings.json", folder / "settings.local.json"]
    if given and not texts:
        paths.append(Path(given).expanduser())
    for path in paths:
        try:
            if path.is_file():
                texts.append(path.read_bytes())
        except OSError:
            continue  # Told when the settings are loaded.
    return any(word in text for text in texts for word in _WORDS)
