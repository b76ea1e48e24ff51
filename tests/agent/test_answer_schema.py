"""The schema of an answer: what is refused before anything starts, and what an answer is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyagent.agent.answer_schema import MAX_PROBLEMS, AnswerSchema
from pyagent.errors import UsageError

NODE = {"$defs": {"node": {"type": "array", "items": {"$ref": "#/$defs/node"}}}, "$ref": "#/$defs/node"}


def parse(schema: Any) -> AnswerSchema:
    return AnswerSchema.parse(json.dumps(schema))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "holds no JSON"),
        ("[]", "is not an object"),
        ('{"type": "objekt"}', "is no valid JSON Schema at ['type']"),
        ('{"type": "object", "properties": {"a": {"minimum": "x"}}}', "['properties']['a']['minimum']"),
        ('{"$ref": "https://example.org/other.json"}', "nothing at the reference 'https://example.org/other.json'"),
        ('{"items": {"$ref": "#/$defs/gone"}}', "nothing at the reference '#/$defs/gone'"),
        ('{"pattern": "("}', "no valid JSON Schema"),
    ],
)
def test_what_is_no_schema_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        AnswerSchema.parse(text)
    assert words in caught.value.message
    assert "\n" not in caught.value.message


def test_an_object_schema_stands_in_the_tool_as_it_is() -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "required": ["a"]}
    parsed = parse(schema)
    assert parsed.wire == {"type": "object", "required": ["a"]}
    assert not parsed.is_wrapped


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": "object", "anyOf": [{}]}, {}])
def test_a_schema_no_tool_can_have_becomes_a_field_of_one(schema: dict[str, Any]) -> None:
    wire = parse(schema).wire
    assert (wire["type"], wire["required"], wire["properties"]["value"]) == ("object", ["value"], schema)


def test_references_still_lead_somewhere_in_a_field() -> None:
    parsed = parse(NODE)
    assert parsed.wire["$defs"] == NODE["$defs"]
    assert parsed.wire["properties"]["value"] == {"$ref": "#/$defs/node"}
    assert parsed.problems([[], [[]]]) == []
    assert parsed.problems([[], ["x"]]) == ["$[1][0]: 'x' is not of type 'array'"]


def test_the_draft_a_schema_names_is_the_one_that_counts() -> None:
    old = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}
    assert parse(old).problems(3)
    assert not parse(old).problems(4)


def test_many_and_long_problems_are_told_in_part() -> None:
    problems = parse({"items": {"type": "integer"}}).problems(["x" * 5_000] * 50)
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1] == "and 40 more"
    assert all(len(problem) < 400 for problem in problems)
