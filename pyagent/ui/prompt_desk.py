"""What the input line needs from outside: its keys, the clipboard's images, a place where drafts outlive a crash."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events
from textual.timer import Timer

from pyagent.ui import commands
from pyagent.ui.drafts import SAVE_AFTER_S, DraftFile
from pyagent.ui.history import history_path
from pyagent.ui.images import Clipboard, DesktopClipboard, FoundImage, found_image, images_in_drop, kept_image
from pyagent.ui.keymap import Chords, shown

if TYPE_CHECKING:
    from pyagent.launch import LaunchOptions
    from pyagent.ui.dialogs.help import HelpSection
    from pyagent.ui.prompt import Prompt
    from pyagent.ui.prompt_app import PromptApp

HINT_S = 4.0


class PromptDesk:
    """Serves the one prompt of the full screen."""

    def __init__(self, app: PromptApp, options: LaunchOptions, clipboard: Clipboard | None = None) -> None:
        self._app = app
        self._options = options
        self._clipboard = clipboard or DesktopClipboard(options.environ)
        self._chords = Chords()
        self._drafts = DraftFile(history_path(options.home, options.cwd))
        self._saving: Timer | None = None
        self._has_begun = False
        self._problems: tuple[str, ...] = ()

    def begin(self, prompt: Prompt, *, is_typed_in: bool) -> None:
        """After the first paint: the keys in force, and the draft a crash has left. `is_typed_in`: keys wait to be
        put into the line, so that the draft must not stand before them."""
        self._prompt = prompt
        self._has_begun = True
        self._load_keys()
        draft = self._drafts.take_left_behind()
        if draft is not None:
            is_aside = is_typed_in or bool(self._prompt.text)
            self._prompt.bring_back(draft, is_aside=is_aside)
            stash_keys = "Ctrl+S in an empty line brings back" if is_aside or not draft.shown.strip() else "Here is"
            self._app.show_hint(f"{stash_keys} the draft of an earlier run.", lasting_s=HINT_S)
        if self._prompt.text or self._prompt.stashed:
            self.text_changed()

    # ── keys ──

    def _load_keys(self) -> None:
        from pyagent.ui.keybindings_file import load_keys

        loaded = load_keys(self._options.home, self._options.environ)
        self._problems = loaded.problems
        self._prompt.keys = loaded.keymap
        self._app.set_keymap(loaded.keymap.textual())

    def tell_problems(self) -> None:
        """What is wrong with the keybindings file, once."""
        problems, self._problems = self._problems, ()
        for problem in problems:
            self._app.tell(problem)

    def key(self, event: events.Key) -> events.Key | None:
        """The key to act upon; None while a chord is open."""
        prompt = self._prompt
        if event.key == "ctrl+x" and prompt.has_focus and not prompt.selection.is_empty:
            return event
        key = self._chords.feed(event.key, prompt.keys, time.monotonic())
        if key is None:
            self._app.show_hint(f"{shown(event.key)} …")
            return None
        if key == event.key:
            return event
        self._app.show_hint("")
        return events.Key(key, None)

    def edit_keys(self) -> None:
        """Open the keybindings file in the editor, and use what it says from then on."""
        from pyagent.ui.keybindings_file import own_file, write_template

        path = own_file(self._options.home)
        try:
            write_template(path)
        except FileExistsError:
            pass
        except OSError as error:
            self._app.show_hint(f"{path} cannot be written: {error.strerror}.", lasting_s=HINT_S)
            return
        problem = self._app.edit_file(path)
        self._load_keys()
        count = len(self._problems)
        self._app.show_hint(problem or ("The keys are in force." if not count else "See below."), lasting_s=HINT_S)
        self.tell_problems()

    def help_sections(self) -> tuple[HelpSection, ...]:
        """The keys in force, what begins a line, the commands and the mouse."""
        from pyagent.ui.dialogs.help import HelpSection

        return (
            HelpSection("Keys", tuple(self._prompt.keys.help_rows())),
            HelpSection("In the line", commands.SIGNS),
            HelpSection("Commands", tuple(commands.help_lines())),
            HelpSection("Mouse", commands.MOUSE),
        )

    # ── images ──

    def dropped(self, text: str) -> list[FoundImage] | None:
        """The images a pasted text names, None if it is anything else."""
        return images_in_drop(text, Path(self._options.cwd))

    def paste_image(self, done: Callable[[FoundImage | None, str], None]) -> None:
        """Fetch the clipboard's image in a thread; `done` gets it, or None and what to tell the person."""

        def work() -> None:
            image, problem = None, "The clipboard holds no image."
            try:
                data = self._clipboard.image()
                if data:
                    image = found_image(kept_image(data, self._options.home), data)
                    problem = "" if image is not None else "The clipboard's image is of no kind that can be sent."
            except OSError as error:
                problem = error.strerror or str(error)
            self._app.call_from_thread(done, image, problem)

        self._app.run_worker(work, thread=True, group="clipboard")

    # ── drafts ──

    def text_changed(self) -> None:
        """The line reads differently: write it down once the keys pause."""
        if self._has_begun and self._saving is None and not self._app.is_leaving:
            self._saving = self._app.set_timer(SAVE_AFTER_S, self._save)

    def _save(self) -> None:
        self._saving = None
        self._drafts.save(self._prompt.draft)

    def leave(self) -> None:
        """The program ends: what stands in the line is there again at the next start."""
        if self._saving is not None:
            self._saving.stop()
        if self._has_begun:
            self._save()
