"""The table of keys, what a file of the person's makes of it, and chords."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyagent.ui.keybindings_file import load_keys, own_file, write_template
from pyagent.ui.keymap import ACTIONS, CHORD_PREFIX, UNBOUND, Chords, Keymap, chord, read_bindings, shown


def keymap_of(content: Any) -> Keymap:
    read = read_bindings(content)
    assert read.problems == ()
    return Keymap(read.changed, read.freed)


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ("ctrl+_", ("ctrl+underscore",)),
        ("meta+p", ("alt+p",)),
        ("?", ("question_mark",)),
        ("ctrl++", ("ctrl+plus",)),
        ("Esc", ("escape",)),
        ("ctrl+x ctrl+e", ("ctrl+x", "ctrl+e")),
        ("shift+ctrl+k", ("ctrl+shift+k",)),
    ],
)
def test_keys_are_read_as_people_write_them(written: str, keys: tuple[str, ...]) -> None:
    assert chord(written) == keys


@pytest.mark.parametrize("written", ["hyper+x", "ctrl+nokey", "", "  "])
def test_what_is_no_key_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        chord(written)


def test_every_default_is_a_key_and_no_name_stands_twice() -> None:
    for action in ACTIONS:
        assert all(chord(key) for key in action.keys)
    assert len({action.name for action in ACTIONS}) == len(ACTIONS)


@pytest.mark.parametrize(
    "content",
    [
        {"Chat": {"chat:stash": "ctrl+p"}},
        {"Chat": {"ctrl+p": "chat:stash"}},
        {"bindings": [{"context": "Chat", "bindings": {"ctrl+p": "chat:stash"}}]},
        {"$comment": "mine", "Chat": {"chat:stash": ["ctrl+p"]}},
    ],
)
def test_all_shapes_of_the_file_move_an_action(content: Any) -> None:
    keymap = keymap_of(content)
    assert keymap.has("chat:stash", "ctrl+p")
    assert not keymap.has("chat:stash", "ctrl+s")


@pytest.mark.parametrize("content", [{"Chat": {"chat:stash": None}}, {"Chat": {"ctrl+s": None}}])
def test_null_takes_the_key_away(content: Any) -> None:
    keymap = keymap_of(content)
    assert keymap.textual()["chat:stash"] == UNBOUND
    assert all("aside" not in words for _, words in keymap.help_rows())


def test_a_key_of_several_can_be_taken_away_alone() -> None:
    keymap = keymap_of({"Chat": {"ctrl+g": None}})
    assert not keymap.has("chat:externalEditor", "ctrl+g")
    assert keymap.chords[("ctrl+x", "ctrl+e")] in keymap.textual()["chat:externalEditor"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"Chat": {"chat:stahs": "ctrl+p"}}, "chat:stash"),
        ({"Chat": {"chat:stash": "ctrl+nokey"}}, "no key 'ctrl+nokey'"),
        ({"Chatt": {}}, "the nearest is Chat"),
        ({"Chat": {"app:interrupt": "ctrl+p"}}, "way out"),
        ({"Scroll": {"chat:stash": "ctrl+p"}}, "belongs to Chat"),
        ({"Chat": {"chat:stash": 7}}, "a key in quotes"),
        ([], "JSON object"),
    ],
)
def test_a_mistake_is_told_in_one_line_and_changes_nothing(content: Any, words: str) -> None:
    read = read_bindings(content)
    assert len(read.problems) == 1
    assert words in read.problems[0]
    assert Keymap(read.changed, read.freed).textual() == Keymap().textual()


def test_the_way_out_keeps_its_key_whatever_the_file_frees() -> None:
    assert Keymap({}, ["ctrl+c", "ctrl+d"]).has("app:interrupt", "ctrl+c")


def test_a_chord_becomes_one_key_and_other_keys_come_through() -> None:
    chords, keymap = Chords(), Keymap()
    assert chords.feed("a", keymap, 0.0) == "a"
    assert chords.feed("ctrl+x", keymap, 1.0) is None
    assert str(chords.feed("ctrl+e", keymap, 1.5)).startswith(CHORD_PREFIX)
    assert chords.feed("ctrl+e", keymap, 2.0) == "ctrl+e"


def test_a_chord_that_is_not_gone_on_with_is_forgotten() -> None:
    chords, keymap = Chords(), Keymap()
    assert chords.feed("ctrl+x", keymap, 1.0) is None
    assert chords.feed("b", keymap, 1.1) == "b"
    assert chords.feed("ctrl+x", keymap, 2.0) is None
    assert chords.feed("ctrl+e", keymap, 2.0 + Chords.TIMEOUT_S + 0.1) == "ctrl+e"


def test_keys_are_shown_as_people_write_them() -> None:
    assert [shown(key) for key in ("ctrl+x ctrl+e", "escape", "?", "shift+tab")] == [
        "Ctrl+X Ctrl+E",
        "Esc",
        "?",
        "Shift+Tab",
    ]


def test_the_own_file_goes_over_the_other_programs(tmp_path: Path) -> None:
    home = tmp_path / ".pyagent"
    home.mkdir()
    (tmp_path / ".claude").mkdir()
    theirs = tmp_path / ".claude" / "keybindings.json"
    theirs.write_text(json.dumps({"bindings": [{"context": "Chat", "bindings": {"ctrl+p": "chat:stash"}}]}))
    own_file(home).write_text(json.dumps({"Chat": {"chat:stash": "f5"}}))
    loaded = load_keys(home, {"HOME": str(tmp_path)})
    assert loaded.problems == ()
    assert loaded.keymap.has("chat:stash", "f5")
    assert not loaded.keymap.has("chat:stash", "ctrl+p")


def test_only_mistakes_in_the_own_file_are_told(tmp_path: Path) -> None:
    home = tmp_path / ".pyagent"
    home.mkdir()
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "keybindings.json").write_text('{"Chat": {"chat:somethingNewer": "f9"}}')
    own_file(home).write_text('{"Chat": {')
    problems = load_keys(home, {"HOME": str(tmp_path)}).problems
    assert len(problems) == 1
    assert str(own_file(home)) in problems[0]


def test_the_template_is_valid_changes_nothing_and_is_never_written_over(tmp_path: Path) -> None:
    write_template(own_file(tmp_path))
    loaded = load_keys(tmp_path, {"HOME": str(tmp_path / "nobody")})
    assert loaded.problems == ()
    assert loaded.keymap.textual() == Keymap().textual()
    with pytest.raises(FileExistsError):
        write_template(own_file(tmp_path))
