"""An answer in the form of a JSON Schema: the tool the model gives it with, and how often it may try.

The tool works with every model and server, and its result tells the model what does not fit. The native output
format would forbid parts of JSON Schema and hold for every text between tool calls too.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import ConfigDict

from pyagent.agent.answer_schema import AnswerSchema
from pyagent.events import PermissionQuestion
from pyagent.messages import JsonObject
from pyagent.tools.tool import ToolContext, ToolInput, ToolResult

STRUCTURED_OUTPUT_TOOL = "StructuredOutput"

MAX_RETRIES = 5
"""Answers that do not fit, or are not given with the tool, in one turn. A model that is told five times what is wrong
and still does not fit it will not fit it the sixth time."""

DESCRIPTION = (
    "Gives your final answer in the form that was asked for. Call it exactly once, at the very end, when all other "
    "work is done; the user sees nothing but its input."
)
MISSING_TEXT = f"Your final answer is still missing: give it by calling {STRUCTURED_OUTPUT_TOOL}."


class AnswerInput(ToolInput):
    """Any object: the schema says what it must be, and its words go back to the model when it is not."""

    model_config = ConfigDict(extra="allow")


class FreeForm:
    """An answer in words: nothing to wait for."""

    @property
    def text(self) -> str:
        """The answer as JSON; empty where the model's words are the answer."""
        return ""

    def begin(self) -> None:
        """A turn begins."""

    def stop_reason(self) -> str:
        """Why the turn ends although the model called tools; empty if it goes on."""
        return ""

    def missing_text(self) -> str:
        """What to tell a model that ended its turn without the answer; empty if it was not to give one."""
        return ""


class AnswerForm(FreeForm):
    """Waits for an answer that fits the schema. One turn at a time."""

    def __init__(self, schema: AnswerSchema) -> None:
        self.tool = StructuredOutputTool(schema, self)
        self._failures = 0
        self._given: list[Any] = []

    @property
    def text(self) -> str:
        """The answer as JSON; empty if there is none."""
        return json.dumps(self._given[0], ensure_ascii=False) if self._given else ""

    def begin(self) -> None:
        self._failures = 0
        self._given.clear()

    def stop_reason(self) -> str:
        if self._given:
            return "end_turn"
        return "max_structured_output_retries" if self._failures > MAX_RETRIES else ""

    def missing_text(self) -> str:
        self._failures += 1
        return MISSING_TEXT

    def take(self, value: Any) -> None:
        """The first answer that fits is the answer."""
        if not self._given:
            self._given.append(value)

    def fail(self) -> None:
        self._failures += 1


class StructuredOutputTool:
    """Takes the answer, if it fits."""

    name = STRUCTURED_OUTPUT_TOOL
    input_model = AnswerInput
    is_read_only = True
    is_compactable = False
    result_cap_chars = 20_000
    description = DESCRIPTION

    def __init__(self, schema: AnswerSchema, form: AnswerForm) -> None:
        self._schema = schema
        self._form = form

    @property
    def definition(self) -> JsonObject:
        """What the API is told."""
        return {"name": self.name, "description": self.description, "input_schema": self._schema.wire}

    def summary(self, tool_input: AnswerInput) -> str:
        return STRUCTURED_OUTPUT_TOOL

    def permission(self, tool_input: AnswerInput, context: ToolContext) -> PermissionQuestion | None:
        return None

    async def run(self, tool_input: AnswerInput, context: ToolContext) -> ToolResult:
        given = dict(tool_input.model_extra or {})
        value = given.get("value") if self._schema.is_wrapped else given
        problems = self._schema.problems(value)
        if self._schema.is_wrapped and set(given) != {"value"}:
            problems = ["The answer goes into the field `value`, and there is no other."]
        if problems:
            self._form.fail()
            text = "The answer does not fit the schema. Call the tool again with all of it:\n"
            return ToolResult.error(text + "\n".join(f"- {problem}" for problem in problems))
        self._form.take(value)
        return ToolResult.of("The answer was given.", display={"structured_output": value})
