"""The fold: entries, ops, boundaries, undo and branches make the view they should."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from pyagent.log import (
    AssistantEntry,
    Boundary,
    ClearResults,
    FileSeen,
    Fold,
    Payload,
    Record,
    Repair,
    Revoke,
    SetHead,
    Snip,
    UserEntry,
)
from pyagent.messages import TextBlock, ToolResultBlock, Usage
from pyagent.state import ConversationState
from pyagent.view import View

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class Writer:
    """Appends payloads to a state and to a list, as a journal would."""

    def __init__(self) -> None:
        self.state = ConversationState()
        self.records: list[Record] = []

    def add(self, payload: Payload, *, uuid: str = "", tx: str = "") -> Record:
        seq = self.state.next_seq
        record = Record(seq, uuid or f"u{seq}", START + timedelta(seconds=seq), payload, tx)
        self.state.apply(record)
        self.records.append(record)
        return record

    def prompt(self, text: str = "prompt") -> Record:
        return self.add(UserEntry((TextBlock(text),)))

    def say(self, text: str = "answer") -> Record:
        return self.add(assistant([{"type": "text", "text": text}]))

    def call(self, use_id: str) -> Record:
        return self.add(assistant([{"type": "tool_use", "id": use_id, "name": "Read", "input": {"file_path": "a"}}]))

    def result(self, use_id: str, text: str = "content") -> Record:
        return self.add(UserEntry((ToolResultBlock(use_id, (TextBlock(text),)),), origin="tool_results"))

    def compact(self, keep: list[Record], tx: str) -> Record:
        summary = self.add(UserEntry((TextBlock("summary"),), origin="summary"), tx=tx)
        layout = (summary.uuid, *(record.uuid for record in keep))
        return self.add(Boundary(layout, "manual", "full", 10, 5, 1), tx=tx)

    @property
    def uuids(self) -> list[str]:
        return [item.uuid for item in self.state.view]


def assistant(content: list[dict[str, object]]) -> AssistantEntry:
    return AssistantEntry("m", "model", tuple(content), "end_turn", Usage(), "d", "p")


def shown(view: View) -> list[object]:
    return [(item.uuid, item.overlay, item.blocks()) for item in view]


def test_entries_stand_in_the_view_in_order() -> None:
    w = Writer()
    a, b = w.prompt(), w.say()
    assert w.uuids == [a.uuid, b.uuid]


def test_a_boundary_replaces_what_came_before_and_keeps_what_its_layout_names() -> None:
    w = Writer()
    w.prompt("old")
    kept = w.say("kept")
    boundary = w.compact([kept], "t1")
    later = w.prompt("later")
    assert w.state.view.boundary == boundary
    assert [item.entry.text for item in w.state.view] == ["summary", "kept", "later"]
    assert w.uuids[-1] == later.uuid


def test_a_transaction_without_its_boundary_is_in_no_view_and_is_reported() -> None:
    w = Writer()
    a = w.prompt()
    w.add(UserEntry((TextBlock("half a summary"),), origin="summary"), tx="t1")
    b = w.prompt("after the crash")
    assert w.uuids == [a.uuid, b.uuid]
    assert w.state.open_transactions == ("t1",)


def test_revoking_a_boundary_brings_everything_back_and_keeps_what_was_said_since() -> None:
    w = Writer()
    w.prompt("one")
    w.say("two")
    boundary = w.compact([], "t1")
    w.prompt("three")
    undo = w.add(Revoke(boundary.seq))
    assert [item.entry.text for item in w.state.view] == ["one", "two", "three"]
    w.add(Revoke(undo.seq))
    assert [item.entry.text for item in w.state.view] == ["summary", "three"]


def test_of_two_boundaries_the_last_one_is_undone_first() -> None:
    w = Writer()
    w.prompt("one")
    w.compact([], "t1")
    w.prompt("two")
    second = w.compact([], "t2")
    w.add(Revoke(second.seq))
    assert [item.entry.text for item in w.state.view] == ["summary", "two"]


def test_cleared_results_read_as_their_placeholder_and_come_back_on_undo() -> None:
    w = Writer()
    w.prompt()
    w.call("t1")
    w.result("t1", "long content")
    op = w.add(ClearResults({"t1": "[cleared]"}))
    block = w.state.view.result_block("t1")
    assert block is not None
    assert block.text == "[cleared]"
    assert w.state.view.is_cleared("t1")
    w.add(Revoke(op.seq))
    block = w.state.view.result_block("t1")
    assert block is not None
    assert block.text == "long content"


def test_a_kept_message_keeps_what_was_cleared_in_it_across_a_boundary() -> None:
    w = Writer()
    w.prompt()
    call = w.call("t1")
    result = w.result("t1")
    w.add(ClearResults({"t1": "[cleared]"}))
    w.compact([call, result], "t1")
    assert w.state.view.is_cleared("t1")


def test_snipped_entries_leave_and_folded_ones_become_one_text() -> None:
    w = Writer()
    a, b, c, d = w.prompt("a"), w.say("b"), w.prompt("c"), w.say("d")
    w.add(Snip((a.uuid,)))
    w.add(Fold((b.uuid, c.uuid), "b and c, in short"))
    assert w.uuids == [b.uuid, d.uuid]
    assert w.state.view.items[0].user_blocks() == (TextBlock("b and c, in short"),)
    assert not w.state.view.items[0].is_prompt


def test_a_repair_answers_an_orphan_use_and_drops_a_second_result() -> None:
    w = Writer()
    w.prompt()
    w.call("t1")
    w.prompt("next")
    assert w.state.view.result_position("t1") is None
    w.add(Repair("orphan", answers={"t1": "never answered"}))
    block = w.state.view.result_block("t1")
    assert block is not None
    assert (block.is_error, block.text) == (True, "never answered")


def test_open_tool_uses_are_those_of_the_last_response_without_a_result() -> None:
    w = Writer()
    w.prompt()
    w.call("t1")
    assert [use.id for use in w.state.view.open_tool_uses()] == ["t1"]
    w.result("t1")
    assert w.state.view.open_tool_uses() == ()


def test_moving_the_head_leaves_later_records_on_their_own_branch_and_can_be_taken_back() -> None:
    w = Writer()
    a = w.prompt("a")
    w.say("b")
    last = w.prompt("c")
    w.add(SetHead(a.seq))
    assert [item.entry.text for item in w.state.view] == ["a"]
    w.prompt("another way")
    assert [item.entry.text for item in w.state.view] == ["a", "another way"]
    w.add(SetHead(last.seq))
    assert [item.entry.text for item in w.state.view] == ["a", "b", "c"]


def test_an_op_holds_on_its_own_branch_only() -> None:
    w = Writer()
    w.prompt()
    w.call("t1")
    result = w.result("t1", "content")
    w.add(ClearResults({"t1": "[cleared]"}))
    w.add(SetHead(result.seq))
    assert not w.state.view.is_cleared("t1")


def test_a_file_is_known_while_the_result_that_showed_it_stands_in_the_view() -> None:
    w = Writer()
    w.prompt()
    w.call("t1")
    w.result("t1")
    w.add(FileSeen("/a", "sha", "t1", "read"))
    known = w.state.known_file("/a")
    assert known is not None
    assert known.is_visible
    w.add(ClearResults({"t1": "[cleared]"}))
    known = w.state.known_file("/a")
    assert known is not None
    assert not known.is_visible
    w.compact([], "t1")
    assert w.state.known_file("/a") is None


def test_a_restored_file_is_known_once_its_boundary_stands() -> None:
    w = Writer()
    w.prompt()
    attachment = w.add(UserEntry((TextBlock("file"),), origin="attachment", label="file:/a"), tx="t1")
    w.add(FileSeen("/a", "sha", attachment.uuid, "restore"), tx="t1")
    assert w.state.known_file("/a") is None
    w.add(Boundary((attachment.uuid,), "auto", "full", 10, 5, 1), tx="t1")
    assert w.state.known_file("/a") is not None


def test_appending_keeps_the_epoch_and_every_other_change_moves_it() -> None:
    w = Writer()
    w.prompt()
    first = w.state.view.epoch
    call = w.call("t1")
    w.result("t1")
    assert w.state.view.epoch == first
    op = w.add(ClearResults({"t1": "[cleared]"}))
    assert w.state.view.epoch == op.seq
    revoke = w.add(Revoke(op.seq))
    assert w.state.view.epoch == revoke.seq
    head = w.add(SetHead(call.seq))
    assert w.state.view.epoch == head.seq


def test_an_older_view_of_the_same_epoch_is_not_disturbed_by_what_was_appended_since() -> None:
    w = Writer()
    w.prompt()
    w.call("t1")
    older = w.state.view
    w.result("t1")
    assert w.state.view.result_position("t1") == 2
    assert older.result_position("t1") is None
    branch = older.appended(Record(99, "other", START, UserEntry((TextBlock("x"),))))
    assert branch.result_position("t1") is None
    assert w.state.view.result_position("t1") == 2


Action = Callable[[Writer], None]


@st.composite
def histories(draw: st.DrawFn) -> Writer:
    """Random sessions: prompts, answers, calls with and without results, clearing, compaction, undo, rewind."""
    w = Writer()
    for step in range(draw(st.integers(1, 25))):
        undoable = [r for r in w.records if isinstance(r.payload, ClearResults | Boundary | Snip | Revoke)]
        entries = [item.record for item in w.state.view]
        match draw(st.sampled_from(["prompt", "say", "call", "orphan", "clear", "compact", "half", "revoke", "head"])):
            case "prompt":
                w.prompt(f"p{step}")
            case "say":
                w.say(f"s{step}")
            case "call":
                w.call(f"t{step}")
                w.result(f"t{step}")
            case "orphan":
                w.call(f"t{step}")
            case "clear":
                ids = [use_id for use_id in w.state.view.index.results if w.state.view.result_position(use_id)]
                w.add(ClearResults(dict.fromkeys(ids[:-1], "[cleared]")))
            case "compact":
                w.compact(entries[-draw(st.integers(0, 4)) :] if entries else [], f"tx{step}")
            case "half":
                w.add(UserEntry((TextBlock("half"),), origin="summary"), tx=f"tx{step}")
            case "revoke" if undoable:
                w.add(Revoke(draw(st.sampled_from(undoable)).seq))
            case "head" if w.records:
                w.add(SetHead(draw(st.sampled_from(w.records)).seq))
            case _:
                pass
    return w


@given(histories())
@settings(max_examples=300)
def test_folding_the_log_anew_gives_the_very_same_view(w: Writer) -> None:
    again = ConversationState(w.records)
    assert shown(again.view) == shown(w.state.view)
    assert again.view.epoch == w.state.view.epoch
    assert again.view.boundary == w.state.view.boundary


@given(histories(), st.data())
def test_undo_and_redo_of_the_last_compaction_are_exact(w: Writer, data: st.DataObject) -> None:
    before = shown(w.state.view)
    boundary = w.compact([], "the-last")
    after = shown(w.state.view)
    undo = w.add(Revoke(boundary.seq))
    assert shown(w.state.view) == before
    w.add(Revoke(undo.seq))
    assert shown(w.state.view) == after


def test_results_cut_in_a_compactions_transaction_are_cut_only_once_its_boundary_stands() -> None:
    w = Writer()
    w.prompt()
    call, result = w.call("t1"), w.result("t1", "long")
    w.add(ClearResults({"t1": "[cut]"}), tx="t1")
    assert not w.state.view.is_cleared("t1")
    boundary = w.compact([call, result], "t1")
    assert w.state.view.is_cleared("t1")
    w.add(Revoke(boundary.seq))
    assert not w.state.view.is_cleared("t1")
