"""The JSON Schema an answer must fit: read once, checked before anything starts, and asked about every answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyagent.errors import UsageError
from pyagent.messages import JsonObject

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

MAX_PROBLEMS = 10
"""Told of one answer: the first few are usually the cause of the rest."""
MAX_PROBLEM_CHARS = 300
"""A message quotes the value that does not fit, which may be the whole answer."""

_AT_TOP_REFUSED = ("anyOf", "oneOf", "allOf", "$ref")
"""The API takes none of these at the top of a tool's input schema."""
_DEFINITIONS = ("$defs", "definitions")


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """A schema that was found to be one. `wire` is how it stands in the tool the model answers with."""

    schema: JsonObject
    wire: JsonObject
    is_wrapped: bool
    """Whether the answer is the field `value` of the tool's input, since the schema itself cannot be a tool's."""
    _validator: Validator

    @classmethod
    def parse(cls, text: str, *, name: str = "--json-schema") -> AnswerSchema:
        """The schema in this JSON text.

        Raises:
            UsageError: it is no JSON, no JSON Schema, or refers to something that is not in it.
        """
        # Imported when a schema is given: the validator takes a tenth of a second to load.
        from jsonschema import exceptions, validators
        from referencing import Registry

        try:
            schema = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{name} holds no JSON: {error}.") from error
        if not isinstance(schema, dict):
            raise UsageError(f"{name} holds no JSON Schema: it is not an object.")
        kind = validators.validator_for(schema, default=validators.Draft202012Validator)
        try:
            kind.check_schema(schema)
        except exceptions.SchemaError as error:
            place = "".join(f"[{step!r}]" for step in error.absolute_path)
            raise UsageError(
                f"{name} is no valid JSON Schema{f' at {place}' if place else ''}: {_short(error)}"
            ) from error
        for reference in _references(schema):
            if not _resolves(schema, reference):
                raise UsageError(f"{name}: there is nothing at the reference {reference!r}.")
        # An empty registry: nothing is ever fetched to check an answer.
        validator = kind(schema, registry=Registry())
        wire = {key: value for key, value in schema.items() if key != "$schema"}
        is_wrapped = schema.get("type") != "object" or any(key in schema for key in _AT_TOP_REFUSED)
        if is_wrapped:
            hoisted = {key: wire.pop(key) for key in _DEFINITIONS if key in wire}
            wire = {
                "type": "object",
                "properties": {"value": wire},
                "required": ["value"],
                "additionalProperties": False,
            } | hoisted
        return cls(schema, wire, is_wrapped, validator)

    def problems(self, value: Any) -> list[str]:
        """What keeps a value from fitting, as sentences for the model; empty if it fits."""
        found = sorted(self._validator.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
        told = [f"{error.json_path}: {_short(error)}" for error in found[:MAX_PROBLEMS]]
        if len(found) > MAX_PROBLEMS:
            told.append(f"and {len(found) - MAX_PROBLEMS} more")
        return told


def _short(error: Any) -> str:
    message = " ".join(str(error.message).split())
    return message if len(message) <= MAX_PROBLEM_CHARS else message[:MAX_PROBLEM_CHARS] + "…"


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def _resolves(schema: JsonObject, reference: str) -> bool:
    """Whether a reference points into the schema itself. Named anchors are left to the validator."""
    if not reference.startswith("#"):
        return False
    pointer = reference[1:]
    if not pointer.startswith("/"):
        return True
    node: Any = schema
    for step in pointer[1:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            return False
    return True
