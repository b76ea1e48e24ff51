"""AskUserQuestion: let the person choose where the model cannot know."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from pyagent.events import PermissionQuestion, Question, QuestionOption
from pyagent.tools.tool import ToolContext, ToolInput, ToolResult, description_beside

MAX_QUESTIONS = 4
MAX_OPTIONS = 4
"""More than that is a form, and people close forms."""


class OptionInput(BaseModel):
    model_config = ConfigDict(extra="ignore")

    label: str = Field(min_length=1)
    description: str = ""


class QuestionInput(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    question: str = Field(min_length=1)
    header: str = Field("", description="One or two words")
    options: list[OptionInput] = Field(min_length=2, max_length=MAX_OPTIONS)
    is_multi_select: bool = Field(False, alias="multiSelect")


class AskUserQuestionInput(ToolInput):
    questions: list[QuestionInput] = Field(min_length=1, max_length=MAX_QUESTIONS)


class AskUserQuestionTool:
    name = "AskUserQuestion"
    input_model = AskUserQuestionInput
    is_read_only = True
    is_compactable = False
    result_cap_chars = 20_000

    @property
    def description(self) -> str:
        return description_beside(__file__)

    def summary(self, tool_input: AskUserQuestionInput) -> str:
        first, *more = tool_input.questions
        return f"AskUserQuestion {first.header or first.question}" + (f" and {len(more)} more" if more else "")

    def permission(self, tool_input: AskUserQuestionInput, context: ToolContext) -> PermissionQuestion | None:
        return None

    async def run(self, tool_input: AskUserQuestionInput, context: ToolContext) -> ToolResult:
        questions = tuple(_question(asked) for asked in tool_input.questions)
        given = await context.ask(context.tool_use_id, questions)
        if not given.answers:
            return ToolResult.error(
                given.reason or "The user did not answer. Ask in plain words what they want instead."
            )
        lines = [
            f"{question.text}\n→ {', '.join(answer) or '(no answer)'}"
            for question, answer in zip(questions, given.answers, strict=True)
        ]
        return ToolResult.of("The user answered:\n\n" + "\n\n".join(lines))


def _question(asked: QuestionInput) -> Question:
    options = tuple(QuestionOption(option.label, option.description) for option in asked.options)
    return Question(asked.header, asked.question, options, asked.is_multi_select)
