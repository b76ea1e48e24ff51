"""What the offline model does next: the calls to make, or the answer.

Nothing is remembered between requests: each step follows from the prompt and from the calls made since with their
results. So it goes on rightly after a resume, an interrupt, or a compaction in the middle of a turn.
"""

from __future__ import annotations

from typing import assert_never

from pyagent.agent.offline_doing import create_file, replace_everywhere, replace_in, run_command, run_tests
from pyagent.agent.offline_intents import parse_intent
from pyagent.agent.offline_kinds import (
    Count,
    Create,
    Explain,
    Find,
    Help,
    Layout,
    ListFiles,
    Replace,
    Run,
    RunTests,
    Show,
    Summarise,
    Unknown,
)
from pyagent.agent.offline_looking import count_things, explain_layout, explain_name, find_word, list_files, show_file
from pyagent.agent.offline_request import OfflineRequest
from pyagent.agent.offline_results import SIGNATURE
from pyagent.agent.offline_step import Step
from pyagent.agent.offline_summary import short_summary
from pyagent.wording import plural

CAN_DO = """\
- `find where the thresholds are defined and show me`
- `show src/app.py`, `show lines 10-40 of src/app.py`
- `explain the layout`, `explain the function parse_args`
- `list the python files`, `count the lines of code`, `how often does "TODO" occur`
- `replace "colour" with "color" everywhere` (or `in README.md`)
- `create notes.txt with "remember the milk"`
- `run "git log --oneline -5"`, `run the tests`
- `summarise the conversation`"""

MAX_CALLS = 200
"""Calls for one prompt after which it stops whatever the plan says."""


def next_step(request: OfflineRequest) -> Step:
    """The next step for a request."""
    step = _next(request)
    missing = [name for name, _ in step.calls if name not in request.tools]
    if missing:
        step = Step(f"For that I need the tool {missing[0]}, which this session does not offer.")
    return step if step.calls else Step(f"{step.text}\n\n{SIGNATURE}")


def _next(request: OfflineRequest) -> Step:
    if not request.prompt:
        return Step(f"There is nothing to answer yet. Things you can ask:\n\n{CAN_DO}")
    if len(request.calls) > MAX_CALLS:
        return Step(f"I stop here after {plural(len(request.calls), 'call')}: this is more than I can do in one go.")
    intent = parse_intent(request.prompt)
    match intent:
        case Layout():
            return explain_layout(request)
        case ListFiles():
            return list_files(intent, request)
        case Find():
            return find_word(intent, request)
        case Show():
            return show_file(intent, request)
        case Count():
            return count_things(intent, request)
        case Explain():
            return explain_name(intent, request)
        case Replace(path=""):
            return replace_everywhere(intent, request)
        case Replace():
            return replace_in(intent, request)
        case Create():
            return create_file(intent, request)
        case Run():
            return run_command(intent, request)
        case RunTests():
            return run_tests(intent, request)
        case Summarise():
            return Step(short_summary(request))
        case Help():
            return _help(intent)
        case Unknown():
            return Step(
                "I did not understand that. I am no language model: I know a few dozen plain instructions, such as\n\n"
                f"{CAN_DO}\n\n"
                "For everything else set `ANTHROPIC_API_KEY` (or `ANTHROPIC_BASE_URL` for a local server) and restart."
            )
        case _:
            assert_never(intent)


def _help(intent: Help) -> Step:
    match intent.kind:
        case "greeting":
            return Step(f"Hello! I work without a network and without a key. Things you can ask:\n\n{CAN_DO}")
        case "thanks":
            return Step("You are welcome.")
        case "help":
            return Step(
                "I am a small deterministic program, not a language model. I use the real tools on this folder and "
                f"understand plain instructions such as\n\n{CAN_DO}"
            )
        case _:
            assert_never(intent.kind)
