"""How the offline model changes and runs things."""

from __future__ import annotations

import re

from pyagent.agent.offline_kinds import Create, Replace, Run, RunTests
from pyagent.agent.offline_request import Call, OfflineRequest
from pyagent.agent.offline_results import (
    LIST_LENGTH,
    code_block,
    exit_code_of,
    first_line,
    lines_of,
    listing,
    names_of,
    output_of,
    tail,
    test_outcome,
    total_lines,
)
from pyagent.agent.offline_step import Step, calls_of, escape, failed, located, read_call
from pyagent.messages import JsonObject
from pyagent.wording import plural

FILES_A_STEP = 10
"""Files read or edited in one response: as many as the agent reads side by side."""
MAX_FILES = 100


def _edit_call(path: str, intent: Replace) -> tuple[str, JsonObject]:
    given = {"file_path": path, "old_string": intent.old, "new_string": intent.new, "replace_all": True}
    return ("Edit", given)


def replace_in(intent: Replace, request: OfflineRequest) -> Step:
    edits = calls_of(request, "Edit")
    if edits:
        if edits[-1].is_error:
            return failed(edits[-1])
        return Step(f"Replaced `{intent.old}` by `{intent.new}`. {first_line(edits[-1].result or '')}")
    read = located(intent.path, request, None, None)
    if isinstance(read, Step):
        return read
    lines = lines_of(read, request)
    text = "\n".join(line for _, line in lines)
    if lines and intent.old not in text and total_lines(read, lines) <= len(lines):
        return Step(f"`{intent.old}` does not stand in `{read.path}`, so I changed nothing.")
    return Step(f"Replacing it in `{read.path}`.", (_edit_call(read.path, intent),))


def replace_everywhere(intent: Replace, request: OfflineRequest) -> Step:
    greps = calls_of(request, "Grep")
    if not greps:
        given: JsonObject = {"pattern": escape(intent.old), "output_mode": "files_with_matches", "head_limit": 0}
        if "\n" in intent.old:
            given["multiline"] = True
        return Step(f"Looking for `{intent.old}`.", (("Grep", given),))
    if greps[-1].is_error:
        return failed(greps[-1])
    files = list(names_of(greps[0]))
    if not files:
        return Step(f"`{intent.old}` stands nowhere in this project, so I changed nothing.")
    if len(files) > MAX_FILES:
        return Step(
            f"`{intent.old}` stands in {len(files):,} files; I change at most {MAX_FILES} at once. Name a file, or "
            "run a command of your own for it."
        )
    reads = {call.path: call for call in calls_of(request, "Read")}
    edits = {call.path: call for call in calls_of(request, "Edit")}
    waiting = [path for path in files if path in reads and not reads[path].is_error and path not in edits]
    if waiting:
        return Step(
            f"Replacing it in {plural(len(waiting), 'file')}.", tuple(_edit_call(path, intent) for path in waiting)
        )
    unread = [path for path in files if path not in reads][:FILES_A_STEP]
    if unread:
        return Step(f"Reading {plural(len(unread), 'file')}.", tuple(read_call(path) for path in unread))
    done = [path for path, call in edits.items() if not call.is_error]
    unchanged = [(path, call) for path, call in (*reads.items(), *edits.items()) if call.is_error]
    parts = [f"Replaced `{intent.old}` by `{intent.new}` in {plural(len(done), 'file')}."]
    if done:
        parts.append(listing([f"`{path}`: {first_line(edits[path].result or '')}" for path in done], LIST_LENGTH))
    if unchanged:
        parts.append(
            "Not changed:\n" + listing([f"`{path}`: {first_line(call.result or '')}" for path, call in unchanged])
        )
    return Step("\n\n".join(parts))


def create_file(intent: Create, request: OfflineRequest) -> Step:
    writes, runs = calls_of(request, "Write"), calls_of(request, "Bash")
    if not writes:
        given = {"file_path": intent.path, "content": intent.content}
        return Step(f"Writing `{intent.path}`.", (("Write", given),))
    if writes[-1].is_error:
        reason = first_line(writes[-1].result or "")
        if "read" in reason.lower():
            return Step(f"`{intent.path}` exists already, so I left it as it is. Name another file, or use `replace`.")
        return failed(writes[-1])
    if intent.is_run and not runs:
        runner = {"py": "python", "sh": "bash", "js": "node", "rb": "ruby"}.get(intent.path.rpartition(".")[2], "")
        path = intent.path if "/" in intent.path or runner else f"./{intent.path}"
        command = f"{runner} {path}".strip()
        return Step(f"Running it: `{command}`.", (("Bash", {"command": command, "description": "Run the new file"}),))
    lines = intent.content.count("\n")
    answer = f"Created `{intent.path}` ({plural(lines, 'line') if lines else 'empty'})."
    if runs:
        answer += " " + _outcome(runs[-1])
    return Step(answer)


def _outcome(call: Call) -> str:
    code, output = exit_code_of(call), output_of(call)
    if call.is_error and not re.search(r"^Exit code", call.result or "", re.MULTILINE):
        return f"It was not run, or not to its end: {first_line(call.result or '')}"
    verdict = "It succeeded" if code == 0 else f"It ended with exit code {code}"
    if not output.strip() or output.strip() == "(no output)":
        return f"{verdict} and printed nothing."
    return f"{verdict}:\n\n{code_block(tail(output))}"


def run_command(intent: Run, request: OfflineRequest) -> Step:
    runs = calls_of(request, "Bash")
    if not runs:
        return Step(f"Running `{intent.command}`.", (("Bash", {"command": intent.command, "description": "As asked"}),))
    return Step(f"`{intent.command}`: {_outcome(runs[-1])}")


_PROJECT_FILES = (
    "{pyproject.toml,setup.py,setup.cfg,pytest.ini,tox.ini,conftest.py,package.json,Cargo.toml,go.mod,Makefile,"
    "pom.xml,build.gradle,Gemfile,mix.exs}"
)


def run_tests(intent: RunTests, request: OfflineRequest) -> Step:
    globs, runs = calls_of(request, "Glob"), calls_of(request, "Bash")
    if not globs:
        return Step("Looking how tests are run here.", (("Glob", {"pattern": _PROJECT_FILES}),))
    if globs[-1].is_error:
        return failed(globs[-1])
    commands = _test_commands({name.rpartition("/")[2] for name in names_of(globs[-1])}, intent.target)
    if not runs:
        given = {"command": commands[0], "description": "Run the tests", "timeout": 600_000}
        return Step(f"Running `{commands[0]}`.", (("Bash", given),))
    last = runs[-1]
    is_missing = re.search(r"No module named pytest|command not found|No rule to make target", last.result or "")
    if is_missing and len(runs) < len(commands):
        command = commands[len(runs)]
        return Step(f"That is not installed; trying `{command}`.", (("Bash", {"command": command}),))
    if last.is_error and not re.search(r"^Exit code", last.result or "", re.MULTILINE):
        return failed(last)
    return Step(f"`{last.input.get('command')}`: {test_outcome(output_of(last), exit_code_of(last))}")


def _test_commands(files: set[str], target: str) -> list[str]:
    """Ways to run the tests, the likeliest first."""
    end = f" {target}" if target else ""
    commands = []
    if files & {"pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini", "conftest.py"}:
        commands.append(f"python -m pytest -q{end}")
    if "package.json" in files:
        commands.append(f"npm test{' --' + end if end else ''}")
    if "Cargo.toml" in files:
        commands.append(f"cargo test{end}")
    if "go.mod" in files:
        commands.append(f"go test {target or './...'}")
    if "pom.xml" in files:
        commands.append("mvn -q test")
    if "build.gradle" in files:
        commands.append("./gradlew test")
    if "mix.exs" in files:
        commands.append(f"mix test{end}")
    if "Gemfile" in files:
        commands.append("bundle exec rake test")
    if "Makefile" in files:
        commands.append("make test")
    if not commands:
        commands.append(f"python -m pytest -q{end}")
    if commands[0].startswith("python -m pytest"):
        commands.append(f"python -m unittest discover{' ' + target if target else ''}")
    return commands
