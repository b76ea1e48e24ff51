"""Asks the person whether to wait as long as the server wants, or to stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pyagent.agent.wire.retry import LongWaitFailure
from pyagent.events import Question, QuestionOption
from pyagent.tools.tool import Asker

WAIT, STOP = "Wait", "Stop"


def asks_to_wait(asker: Callable[[], Asker]) -> Callable[[LongWaitFailure], Awaitable[bool]]:
    """A question for whoever `asker` reaches at that moment; no answer means no."""

    async def ask(failure: LongWaitFailure) -> bool:
        question = Question(
            "Long wait",
            f"{failure.message} Wait that long? Esc ends the wait at any time.",
            (
                QuestionOption(WAIT, f"the prompt goes on in {failure.wait_text}"),
                QuestionOption(STOP, "the prompt ends; send it again later, or with another model"),
            ),
        )
        given = await asker()("", (question,))
        return given.answers == ((WAIT,),)

    return ask
