"""Plain mode's dialogs: whatever the screen asks in a window is a numbered list here, answered with a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from pyagent.choices import EFFORT_LEVELS
from pyagent.commands import NOBODY_ANSWERS, NOBODY_DECIDES, AnswerPermission, AnswerQuestion, Command, Interrupt
from pyagent.events import PermissionQuestion, Question, QuestionAsked, RewindOffered, RewindPlanned
from pyagent.launch import LaunchOptions
from pyagent.ui.choosing import OtherSessions, memory_items, mode_items, model_items
from pyagent.ui.dialogs.picker import PickerItem
from pyagent.ui.plain_input import LineReader
from pyagent.ui.plain_output import PlainPrinter
from pyagent.ui.plain_sessions import choose_session
from pyagent.ui.rewinding import point_items, way_items, whole_diff

MAX_CHOICES = 30
"""Entries of a numbered list; the command takes a name or id for everything beyond."""

NEEDS_CHOICE = ("resume", "view", "model", "mode", "effort")
"""Commands that ask for their argument if they are given none."""


class PlainDialogs:
    """Asks the person, and sends what they answer."""

    def __init__(
        self,
        options: LaunchOptions,
        reader: LineReader,
        printer: PlainPrinter,
        send: Callable[[Command], None],
        bell: Callable[[], None],
    ) -> None:
        self._options = options
        self._reader = reader
        self._printer = printer
        self._send = send
        self._bell = bell

    def chosen_for(self, name: str, session_id: str) -> str:
        """What a person picks from a numbered list for a command that needs an argument; empty for nothing."""
        if not self._reader.is_interactive:
            self._printer.line(f"/{name} needs an argument here.")
            return ""
        match name:
            case "resume" | "view":
                sessions = OtherSessions(self._options, session_id)
                sessions.load()
                return choose_session(sessions, self._reader.answer, self._printer.line)
            case "model":
                items = model_items()
            case "effort":
                items = [PickerItem(level, level) for level in EFFORT_LEVELS]
            case _:
                items = mode_items()
        items = items[:MAX_CHOICES]
        if not items:
            self._printer.line("There is nothing to choose from.")
            return ""
        chosen = self.choose([_row(item) for item in items])
        return "" if chosen is None else items[chosen].id

    def chosen_rewind(self, offered: RewindOffered | RewindPlanned) -> str:
        """The argument of `/rewind` for what a person picks from a numbered list; empty for nothing."""
        if isinstance(offered, RewindPlanned):
            for remark in (offered.problem, whole_diff(offered)):
                if remark:
                    self._printer.line(remark)
            items = way_items(offered)
        else:
            items = point_items(offered, datetime.now(UTC))
        if not self._reader.is_interactive:
            for item in items[:MAX_CHOICES]:
                self._printer.line(f"/rewind {item.id}: {item.label} ({item.detail})")
            return ""
        items = items[:MAX_CHOICES]
        chosen = self.choose([_row(item) for item in items])
        return "" if chosen is None else items[chosen].id

    def memory_scope(self, cwd: Path) -> str:
        """Where words to remember go; empty for nowhere."""
        items = memory_items(cwd, self._options.home)
        chosen = self.choose([_row(item) for item in items])
        return "" if chosen is None else items[chosen].id

    def ask_permission(self, request_id: str, question: PermissionQuestion) -> None:
        self._printer.question(question)
        if not self._reader.is_interactive:
            self._printer.line("Answered no: nobody is at a terminal.")
            self._send(AnswerPermission(request_id, "no", NOBODY_DECIDES))
            return
        options = ["Yes, once"]
        if question.session_rule:
            options.append(f"Yes, and allow {question.session_rule} for this session")
        options += ["No", "No, and tell the model what to do instead"]
        self._bell()
        try:
            chosen = self.choose(options, {"y": "Yes, once", "n": "No"})
        except KeyboardInterrupt:
            self._send(Interrupt())
            return
        picked = "No" if chosen is None else options[chosen]
        if picked.startswith("Yes"):
            self._send(AnswerPermission(request_id, "once" if chosen == 0 else "session"))
        else:
            feedback = ""
            if picked != "No":
                feedback = self._reader.answer("What should the model do instead? ") or ""
            self._send(AnswerPermission(request_id, "no", feedback.strip()))

    def ask_questions(self, asked: QuestionAsked) -> None:
        if not self._reader.is_interactive:
            self._printer.line("The model has questions; nobody is at a terminal to answer them.")
            self._send(AnswerQuestion(asked.request_id, reason=NOBODY_ANSWERS))
            return
        answers: list[tuple[str, ...]] = []
        self._bell()
        try:
            for question in asked.questions:
                answers.append(self._answer_one(question))
        except KeyboardInterrupt:
            self._send(Interrupt())
            return
        if not any(answers):
            answers.clear()
        reason = "" if answers else "The user left the questions unanswered."
        self._send(AnswerQuestion(asked.request_id, tuple(answers), reason))

    def _answer_one(self, question: Question) -> tuple[str, ...]:
        """The labels chosen by number, or other words as they were typed; empty for no answer."""
        self._printer.line(f"Question: {question.text}")
        for number, option in enumerate(question.options, start=1):
            self._printer.line(f"{number}. {option.label}" + (f": {option.description}" if option.description else ""))
        how = "Numbers, separated by commas" if question.is_multi_select else "A number"
        line = (self._reader.answer(f"{how}, or your own words: ") or "").strip()
        parts = [part.strip() for part in line.split(",")] if question.is_multi_select else [line]
        if all(part.isdecimal() and 1 <= int(part) <= len(question.options) for part in parts):
            return tuple(question.options[int(part) - 1].label for part in dict.fromkeys(parts))
        return (line,) if line else ()

    def choose(self, options: list[str], letters: Mapping[str, str] | None = None) -> int | None:
        """The index of the chosen option; None for none. `letters` are options known by their first letter, so that
        `y` and `yes` are answers too."""
        for number, option in enumerate(options, start=1):
            self._printer.line(f"{number}. {option}")
        while True:
            line = self._reader.answer("Enter selection: ")
            if line is None or not line.strip():
                return None
            if line.strip().isdecimal() and 1 <= int(line) <= len(options):
                return int(line) - 1
            word = line.strip().lower()
            named = (letters or {}).get(word[:1])
            if named is not None and word in ("y", "yes", "n", "no"):
                return options.index(named)
            self._printer.line(f"Type a number from 1 to {len(options)}, or nothing.")


def _row(item: PickerItem) -> str:
    return f"{item.label} ({item.detail})" if item.detail else item.label
