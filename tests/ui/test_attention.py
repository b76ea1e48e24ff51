"""When a person who looks elsewhere is told, by which sequence, and what the window's title says."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pyagent.choices import TerminalSettings
from pyagent.events import (
    Event,
    PermissionNeeded,
    PermissionQuestion,
    Question,
    QuestionAsked,
    QueueChanged,
    SettingMoved,
    TurnFailed,
    TurnFinished,
    TurnStarted,
)
from pyagent.ui.attention import Attention, notification
from pyagent.ui.status import SessionStatus, reduce_status
from tests.ui.fake_agent import opened

PERMISSION = PermissionNeeded("r", "t", PermissionQuestion("Bash", "command", "make install"))
QUESTION = QuestionAsked("r", "t", (Question("Colour", "Which colour?", ()),))
FINISHED = TurnFinished("end_turn", 1, 1.0, "u")
FAILED = TurnFailed("x", "The server is out of reach.", "")
QUEUED = QueueChanged((("q", "next"),))


class Room:
    """A person, a terminal, and a session between them."""

    def __init__(self, environ: Mapping[str, str] | None = None, **settings: object) -> None:
        self.now_s, self.key_s = 1_000.0, 0.0
        self.has_focus: bool | None = None
        self.written: list[str] = []
        self.titles: list[str] = []
        self.status = SessionStatus()
        self.attention = Attention(
            notify=self.written.append,
            set_title=self.titles.append,
            environ={"TERM": "xterm-256color"} if environ is None else environ,
            has_focus=lambda: self.has_focus,
            untouched_s=lambda: self.now_s - self.key_s,
            clock=lambda: self.now_s,
        )
        self.attention.settings = TerminalSettings(**settings)  # type: ignore[arg-type]  # its own fields
        self.happens(opened())

    def happens(self, *events: Event, after_s: float = 0.0) -> Room:
        for event in events:
            self.now_s += after_s
            self.status = reduce_status(self.status, event)
            self.attention.take(event, self.status)
            self.attention.show(self.status)
        return self


@pytest.mark.parametrize("event", [PERMISSION, QUESTION, FINISHED, FAILED], ids=lambda event: type(event).__name__)
def test_with_the_focus_elsewhere_the_person_is_called_and_with_it_never(event: Event) -> None:
    room = Room()
    room.has_focus = False
    assert room.happens(TurnStarted("u"), event).written == ["\a"]
    room.has_focus = True
    assert room.happens(TurnStarted("u"), event, after_s=600).written == ["\a"]


def test_where_the_focus_is_unknown_a_question_calls_and_a_reply_only_after_a_while() -> None:
    assert Room().happens(TurnStarted("u"), PERMISSION).written == ["\a"]
    assert Room(notify_after_s=10).happens(TurnStarted("u"), FINISHED, after_s=9).written == []
    assert Room(notify_after_s=10).happens(TurnStarted("u"), FINISHED, after_s=10).written == ["\a"]


def test_who_has_just_pressed_a_key_is_not_called() -> None:
    room = Room()
    room.key_s = room.now_s - 1
    assert room.happens(PERMISSION).written == []


def test_a_reply_with_a_prompt_queued_behind_it_calls_nobody() -> None:
    room = Room()
    room.has_focus = False
    assert room.happens(TurnStarted("u"), QUEUED, FINISHED).written == []


def test_nothing_is_said_where_the_settings_say_none() -> None:
    room = Room(notification_channel="none", has_title=False)
    room.has_focus = False
    assert room.happens(TurnStarted("u"), PERMISSION, FINISHED).written == []
    assert room.titles == []


def test_the_title_shows_the_session_and_whether_it_works_or_waits() -> None:
    room = Room().happens(TurnStarted("u"), PERMISSION, FINISHED, SettingMoved("title", "the parser"))
    assert room.titles == [
        "engine – pyagent",
        "● engine – pyagent",
        "? engine – pyagent",
        "engine – pyagent",
        "the parser – pyagent",
    ]


def test_a_console_without_such_sequences_gets_no_title() -> None:
    assert Room({"TERM": "linux"}).happens(TurnStarted("u")).titles == []


SEQUENCES = {
    "osc9": "\x1b]9;pyagent: done\a",
    "osc777": "\x1b]777;notify;pyagent;done\a",
    "osc99": "\x1b]99;i=pyagent:d=0;pyagent\x1b\\\x1b]99;i=pyagent:d=1:p=body;done\x1b\\",
    "bell": "\a",
}


@pytest.mark.parametrize(
    ("environ", "channel"),
    [
        ({"TERM_PROGRAM": "iTerm.app"}, "osc9"),
        ({"LC_TERMINAL": "iTerm2"}, "osc9"),
        ({"TERM": "xterm-kitty"}, "osc99"),
        ({"TERM_PROGRAM": "ghostty"}, "osc777"),
        ({"TERM_PROGRAM": "WezTerm"}, "osc777"),
        ({"TERM": "foot"}, "osc777"),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, "bell"),
        ({}, "bell"),
    ],
)
def test_each_terminal_is_told_in_its_own_way(environ: Mapping[str, str], channel: str) -> None:
    assert notification("auto", environ, "done") == [SEQUENCES[channel]]
    assert notification(channel, {}, "done") == [SEQUENCES[channel]]


def test_the_bell_rings_too_where_that_was_asked_for() -> None:
    assert notification("osc9_with_bell", {}, "done") == [SEQUENCES["osc9"], "\a"]


def test_a_multiplexer_is_asked_to_hand_it_through_and_rings_its_own_bell() -> None:
    inner = SEQUENCES["osc9"].replace("\x1b", "\x1b\x1b")
    assert notification("osc9", {"TMUX": "/tmp/x,1,0"}, "done") == [f"\x1bPtmux;{inner}\x1b\\", "\a"]
    assert notification("osc9", {"STY": "1.x"}, "done") == [f"\x1bP{SEQUENCES['osc9']}\x1b\\", "\a"]
    assert notification("bell", {"TMUX": "/tmp/x,1,0"}, "done") == ["\a"]


@pytest.mark.parametrize("channel", ["osc9", "osc777", "osc99"])
def test_text_from_outside_neither_ends_the_sequence_nor_begins_another(channel: str) -> None:
    (sequence,) = notification(channel, {}, "a\x07b\x1b\\c\x9cd\x1b]52;c;aGk=\x07;e\n")
    plain = SEQUENCES[channel].replace("done", "")
    for sign in "\a\x1b\x9c\n":
        assert sequence.count(sign) == plain.count(sign)
