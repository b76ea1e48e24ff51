"""A step of the offline model, and what all its plans share."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyagent.agent.offline_request import Call, OfflineRequest
from pyagent.agent.offline_results import first_line, names_of
from pyagent.messages import JsonObject


@dataclass(frozen=True, slots=True)
class Step:
    """What to say, and the calls (name, input) to make after it; without calls it is the answer."""

    text: str
    calls: tuple[tuple[str, JsonObject], ...] = ()


def calls_of(request: OfflineRequest, name: str) -> list[Call]:
    return [call for call in request.calls if call.name == name and call.result is not None]


def failed(call: Call) -> Step:
    return Step(f"{call.name} did not work: {first_line(call.result or '')}")


def escape(text: str) -> str:
    """The text as a regular expression that both ripgrep and Python read."""
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)


def read_call(path: str, first: int | None = None, limit: int | None = None) -> tuple[str, JsonObject]:
    given: JsonObject = {"file_path": path}
    if first is not None:
        given["offset"] = first
    if limit is not None:
        given["limit"] = limit
    return ("Read", given)


def located(path: str, request: OfflineRequest, first: int | None, limit: int | None) -> Call | Step:
    """The Read of a file, found by its name if the path does not exist; or the step that leads there."""
    reads, globs = calls_of(request, "Read"), calls_of(request, "Glob")
    if not reads:
        return Step(f"Reading `{path}`.", (read_call(path, first, limit),))
    if not reads[-1].is_error:
        return reads[-1]
    if globs:
        names = names_of(globs[-1])
        if len(reads) == 1 and names:
            best = min(names, key=lambda name: (len(name), name))
            return Step(f"`{path}` is `{best}`.", (read_call(best, first, limit),))
        return failed(reads[-1])
    if "does not exist" in (reads[-1].result or "") and "Glob" in request.tools:
        name = path.rstrip("/").rpartition("/")[2]
        return Step(f"There is no `{path}`; looking for its name.", (("Glob", {"pattern": f"**/{name}*"}),))
    return failed(reads[-1])
