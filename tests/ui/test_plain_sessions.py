"""The list of sessions line by line."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyagent.errors import SessionError
from pyagent.ui.dialogs.picker import PickerItem
from pyagent.ui.plain_sessions import choose_session


@dataclass
class Shelf:
    """Sessions in memory."""

    names: dict[str, str] = field(default_factory=lambda: {"a": "Alpha", "b": "Beta"})
    deleted: list[tuple[str, str]] = field(default_factory=list)

    def items(self) -> list[PickerItem]:
        return [PickerItem(key, name, "now") for key, name in self.names.items()]

    def preview(self, session_id: str) -> str:
        return ""

    def name(self, session_id: str) -> str:
        return self.names[session_id]

    def rename(self, session_id: str, title: str) -> None:
        if title == "taken":
            raise SessionError("It is open elsewhere.")
        self.names[session_id] = title

    def delete(self, session_id: str) -> None:
        self.deleted.append((session_id, self.names.pop(session_id)))

    def restore(self) -> str:
        if not self.deleted:
            raise SessionError("No deleted session is left to bring back.")
        session_id, name = self.deleted.pop()
        self.names[session_id] = name
        return session_id


def chosen(shelf: Shelf, *lines: str) -> tuple[str, str]:
    """What is taken, and all that was said."""
    said: list[str] = []
    typed = iter(lines)

    def read(prompt: str) -> str | None:
        said.append(prompt)
        return next(typed, None)

    return choose_session(shelf, read, said.append), "\n".join(said)


def test_a_number_takes_a_session() -> None:
    taken, said = chosen(Shelf(), "2")
    assert taken == "b"
    assert "1. Alpha (now)\n2. Beta (now)" in said


def test_nothing_takes_nothing() -> None:
    assert chosen(Shelf(), "")[0] == ""
    assert chosen(Shelf())[0] == ""


def test_a_session_gets_another_name_and_can_then_be_taken() -> None:
    shelf = Shelf()
    taken, said = chosen(shelf, "r1", "Gamma", "1")
    assert (taken, shelf.names["a"]) == ("a", "Gamma")
    assert "New name for Alpha: " in said
    assert "1. Gamma (now)" in said


def test_no_new_name_leaves_the_old_one() -> None:
    shelf = Shelf()
    chosen(shelf, "r 1", "")
    assert shelf.names["a"] == "Alpha"


def test_a_session_is_deleted_and_brought_back() -> None:
    shelf = Shelf()
    taken, said = chosen(shelf, "d 1", "u", "2")
    assert taken == "a"
    assert "Deleted: Alpha. u brings it back." in said
    assert "Brought back: Alpha." in said


def test_all_can_be_deleted_and_one_brought_back() -> None:
    assert chosen(Shelf(), "d1", "d1", "1", "u", "1")[0] == "b"


def test_what_cannot_be_done_is_said_and_asked_again() -> None:
    shelf = Shelf()
    taken, said = chosen(shelf, "u", "r1", "taken", "9", "x", "1")
    assert taken == "a"
    assert "No deleted session is left" in said
    assert "It is open elsewhere." in said
    assert "Type a number from 1 to 2" in said


def test_an_empty_list_says_so() -> None:
    assert chosen(Shelf(names={})) == ("", "There is nothing to choose from.")
