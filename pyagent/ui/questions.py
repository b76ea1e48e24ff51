"""From what the agent asks and reports to what a dialog shows, and back."""

from __future__ import annotations

from typing import Any, TypeAlias

from pyagent.commands import AnswerPermission, AnswerQuestion
from pyagent.events import PermissionNeeded, PermissionQuestion, QuestionAsked
from pyagent.ui.dialogs.approval import Approval, ApprovalAnswer, ApprovalRequest, ApprovalScreen
from pyagent.ui.dialogs.question import QuestionScreen
from pyagent.ui.diff import diff_lines

MAX_DIFF_LINES = 2_000
"""Of a diff in a dialog: a person who scrolls further reads the file."""

_TITLES = {
    "edit": "Change this file?",
    "command": "Run this command?",
    "read": "Read this?",
    "network": "Connect to this host?",
    "other": "Allow this?",
}


def approval_request(question: PermissionQuestion) -> ApprovalRequest:
    """The dialog's contents. Compares texts, which may take a second for big files: not for the screen's thread."""
    is_change = question.new_text is not None
    is_path = question.action in ("edit", "read")
    return ApprovalRequest(
        title=f"{question.tool_name} · {_TITLES[question.action]}",
        command=question.subject if question.action in ("command", "network") else "",
        path=question.subject if is_path else "",
        diff=diff_lines(question.old_text or "", question.new_text or "", max_lines=MAX_DIFF_LINES)
        if is_change
        else (),
        text="\n\n".join(
            part for part in (question.subject if question.action == "other" else "", question.description) if part
        ),
        reason=question.reason,
        rule=question.session_rule,
    )


def permission_answer(request_id: str, answer: ApprovalAnswer | None) -> AnswerPermission:
    """What the agent is told. A dialog that was closed without an answer means no."""
    if answer is None:
        return AnswerPermission(request_id, "no")
    match answer.decision:
        case Approval.ONCE:
            return AnswerPermission(request_id, "once")
        case Approval.SESSION:
            return AnswerPermission(request_id, "session")
        case Approval.NO:
            return AnswerPermission(request_id, "no")
        case Approval.INSTEAD:
            return AnswerPermission(request_id, "no", answer.text)


Asked: TypeAlias = PermissionNeeded | QuestionAsked
"""What the agent waits for a person's answer to."""


def dialog_contents(asked: Asked) -> ApprovalRequest | QuestionAsked:
    """What the dialog needs to know. May take a second; see `approval_request`."""
    return asked if isinstance(asked, QuestionAsked) else approval_request(asked.question)


def dialog_of(contents: ApprovalRequest | QuestionAsked) -> ApprovalScreen | QuestionScreen:
    return QuestionScreen(contents.questions) if isinstance(contents, QuestionAsked) else ApprovalScreen(contents)


def answer_to(asked: Asked, result: Any) -> AnswerPermission | AnswerQuestion:
    """What the agent is told, from the dialog's result. None means it was closed without an answer."""
    if isinstance(asked, PermissionNeeded):
        return permission_answer(asked.request_id, result)
    if result is None:
        return AnswerQuestion(asked.request_id, reason="The user closed the questions without an answer.")
    return AnswerQuestion(asked.request_id, result)
