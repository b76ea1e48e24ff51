"""Recall by id and by search, over a transcript of which parts were cleared and summarised."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from pyagent.log import AssistantEntry, Boundary, ClearResults, Payload, Record, UserEntry
from pyagent.messages import ImageBlock, JsonObject, ResultContent, TextBlock, ToolResultBlock, Usage
from pyagent.state import ConversationState
from pyagent.tools.tool import ToolResult
from tests.tools.support import Workbench

AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
PIXEL = ImageBlock({"type": "base64", "media_type": "image/png", "data": "AAAA"})


def answer(*content: JsonObject) -> AssistantEntry:
    return AssistantEntry("m", "model", content, "end_turn", Usage(), "", "p")


def use(use_id: str, name: str, **fields: Any) -> JsonObject:
    return {"type": "tool_use", "id": use_id, "name": name, "input": fields}


def result(use_id: str, *content: ResultContent) -> UserEntry:
    return UserEntry((ToolResultBlock(use_id, content),), origin="tool_results")


def transcript(*payloads: tuple[str, Payload, str]) -> ConversationState:
    return ConversationState(Record(seq, uuid, AT, payload, tx) for seq, (uuid, payload, tx) in enumerate(payloads))


LINES = "\n".join(f"line {n}" for n in range(1, 1001))

SUMMARISED: tuple[tuple[str, Payload, str], ...] = (
    ("p1", UserEntry((TextBlock("Find the Frobnicator"),)), ""),
    ("a1", answer({"type": "text", "text": "I look."}, use("t1", "Bash", command="grep -r frobnicator .")), ""),
    ("r1", result("t1", TextBlock("src/a.py: class FROBNICATOR:\n" + LINES), PIXEL), ""),
    ("a2", answer({"type": "text", "text": "The frobnicator is in src/a.py."}), ""),
    ("s1", UserEntry((TextBlock("Summary: frobnicator found"),), origin="summary"), "x"),
    ("b1", Boundary(("s1",), "auto", "full", 10, 5, 4), "x"),
    ("p2", UserEntry((TextBlock("And now the frobnicator's tests"),)), ""),
    ("a3", answer(use("t2", "Read", file_path="/x"), use("t3", "Recall", query="frobnicator")), ""),
    ("r2", result("t2", TextBlock("frobnicator tests, cleared since")), ""),
    ("r3", result("t3", TextBlock("frobnicator frobnicator")), ""),
)
CLEARED = (*SUMMARISED, ("c1", ClearResults({"t2": "[cleared]"}), ""))


async def recall(bench: Workbench, state: ConversationState, **fields: Any) -> ToolResult:
    tool = bench.tools["Recall"]
    context = replace(bench.context(), transcript=state)
    return await tool.run(tool.input_model.model_validate(fields), context)


@pytest.mark.parametrize(
    ("payloads", "query", "found"),
    [
        (CLEARED, "FROBnicator", ["result of Read", "answer", "result of Bash", "call of Bash", "user"]),
        (SUMMARISED, "frobnicator", ["answer", "result of Bash", "call of Bash", "user"]),
        (SUMMARISED, "class FROBNICATOR:", ["result of Bash"]),
    ],
    ids=["cleared and summarised", "summarised only", "signs are no pattern"],
)
async def test_a_search_finds_what_is_out_of_the_view_newest_first(
    bench: Workbench, payloads: Any, query: str, found: list[str]
) -> None:
    result = await recall(bench, transcript(*payloads), query=query)
    head, *lines = result.text.splitlines()
    assert head == f"Matches 1-{len(found)} of {len(found)}, newest first:"
    assert [line.removeprefix("- ").partition(",")[0] for line in lines] == found
    assert all("2026-11-30 12:00 UTC" in line for line in lines)


async def test_a_match_names_the_id_that_gives_the_whole_back(bench: Workbench) -> None:
    state = transcript(*SUMMARISED)
    assert "id t1: src/a.py: class FROBNICATOR:" in (await recall(bench, state, query="class")).text
    assert "id a2: The frobnicator is in src/a.py." in (await recall(bench, state, query="is in")).text
    assert (await recall(bench, state, id="a2")).text.endswith("The frobnicator is in src/a.py.")


async def test_matches_are_paged(bench: Workbench) -> None:
    state = transcript(*CLEARED)
    first = await recall(bench, state, query="frobnicator", limit=2)
    assert first.text.startswith("Matches 1-2 of 5, newest first (go on with offset 2):")
    last = await recall(bench, state, query="frobnicator", offset=4, limit=2)
    assert last.text.startswith("Matches 5-5 of 5, newest first:")
    beyond = await recall(bench, state, query="frobnicator", offset=5)
    assert beyond.is_error
    assert "There are 5 matches" in beyond.text


@pytest.mark.parametrize(
    ("payloads", "told"),
    [(SUMMARISED[:4], "Nothing was cleared or summarised"), (SUMMARISED, "No match for 'zebra'")],
    ids=["nothing is out of view", "no match"],
)
async def test_a_search_without_a_match_says_why(bench: Workbench, payloads: Any, told: str) -> None:
    result = await recall(bench, transcript(*payloads), query="zebra")
    assert told in result.text
    assert not result.is_error


async def test_a_result_comes_back_by_id_whether_cleared_or_summarised(bench: Workbench) -> None:
    state = transcript(*CLEARED)
    cleared = await recall(bench, state, id="t2")
    assert cleared.text.startswith('Result of Read {"file_path": "/x"}, 2026-11-30 12:00 UTC, lines 1-1 of 1:')
    assert cleared.text.endswith("frobnicator tests, cleared since")
    summarised = await recall(bench, state, id="t1", offset=1, limit=2)
    assert summarised.text.splitlines()[1:] == ["line 1", "line 2"]
    assert "lines 2-3 of 1001 (go on with offset 3)" in summarised.text
    assert PIXEL not in summarised.content
    assert PIXEL in (await recall(bench, state, id="t1", limit=1)).content


@pytest.mark.parametrize(
    ("fields", "told"),
    [({"id": "nope"}, "no result or message with the id nope"), ({"id": "t1", "offset": 1001}, "has 1001 lines")],
    ids=["unknown id", "beyond the end"],
)
async def test_what_is_not_there_is_an_error(bench: Workbench, fields: JsonObject, told: str) -> None:
    result = await recall(bench, transcript(*SUMMARISED), **fields)
    assert result.is_error
    assert told in result.text


@pytest.mark.parametrize("fields", [{}, {"id": "a", "query": "b"}, {"id": "a", "offset": -1}, {"query": " "}])
def test_either_an_id_or_a_query_is_needed(bench: Workbench, fields: JsonObject) -> None:
    with pytest.raises(ValidationError):
        bench.tools["Recall"].input_model.model_validate(fields)
