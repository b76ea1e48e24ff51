"""One search, by ripgrep and by what stands in for it, in a form that can be compared."""

from __future__ import annotations

import io
import re
import signal
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from pyagent.tools.ripgrep import ripgrep_command, ripgrep_path
from pyagent.tools.without_ripgrep.globs import GlobError
from pyagent.tools.without_ripgrep.patterns import PatternError
from pyagent.tools.without_ripgrep.query import SearchQuery
from pyagent.tools.without_ripgrep.walk import UnknownTypeError
from pyagent.tools.without_ripgrep.worker import search


@dataclass(frozen=True)
class Outcome:
    found: dict[bytes, list[bytes]]
    """Lines by file; in `files_with_matches` only the files."""
    error: str
    """The line that names the mistake."""


def by_ripgrep(query: SearchQuery, base: Path) -> Outcome:
    program = ripgrep_path()
    assert program is not None
    arguments = ["--null", "--with-filename", "--no-heading", "--hidden", "--no-require-git"]
    if query.mode == "content":
        arguments += ["--line-number", f"-B{query.before}", f"-A{query.after}"]
        arguments += [f"--max-columns={query.max_columns_bytes}", "--max-columns-preview"]
        arguments += ["--only-matching"] * query.is_only_matching
    else:
        arguments.append("--count" if query.mode == "count" else "--files-with-matches")
    arguments += ["--ignore-case"] * query.is_case_ignored
    arguments += ["--multiline", "--multiline-dotall"] * query.is_multiline
    arguments += ["--no-ignore"] * query.is_ignored_shown
    arguments += [f"--type={query.type_name}"] if query.type_name else []
    arguments += [f"--glob={glob}" for glob in (*query.globs, "!.git")]
    arguments += [f"--regexp={query.pattern}", "--", f"./{query.only}" if query.only else "."]
    done = subprocess.run(
        ripgrep_command(program, arguments), cwd=base, capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    return _outcome(query, done.stdout, done.stderr.decode("utf-8", "replace"))


def without_ripgrep(query: SearchQuery, base: Path) -> Outcome:
    output = io.BytesIO()
    try:
        search(query, str(base), output)
    except (PatternError, GlobError, UnknownTypeError) as error:
        return _outcome(query, b"", str(error))
    return _outcome(query, output.getvalue(), "")


def without_ripgrep_within(query: SearchQuery, base: Path, limit_s: float) -> Outcome | None:
    """None where it takes too long, as a pattern with repetitions in repetitions may. Only for the main thread."""

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        return without_ripgrep(query, base)
    except TimeoutError:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


_ERROR = re.compile(
    r"error: .*|rg: counting empty matches.*|unrecognized file type.*|error parsing glob.*"
    r"|the literal.*|pattern contains.*"
)


def _outcome(query: SearchQuery, output: bytes, message: str) -> Outcome:
    """Without the order of files and what the tool passes over: gaps between files, empty parts, a late word."""
    error = _ERROR.search(message)
    found: dict[bytes, list[bytes]] = defaultdict(list)
    if query.mode == "files_with_matches":
        return Outcome({name: [] for name in output.split(b"\0") if name}, error[0] if error else "")
    last = b""
    # How many more matches a part too long to be shown whole has is no use to anybody.
    output = re.sub(rb"\[\.\.\. \d+ more match(es)?\]\n", b"[... more]\n", output)
    for line in output.split(b"\n")[:-1]:
        if line == b"--":
            found[last].append(line)
        elif b"WARNING: stopped searching binary file" not in line and not (
            query.is_only_matching and re.search(rb"\0\d+:$", line)
        ):
            last = line.split(b"\0")[0].split(b":")[0]
            found[last].append(line)
    for lines in found.values():
        while lines and lines[-1] == b"--":
            lines.pop()
    return Outcome({name: lines for name, lines in found.items() if lines}, error[0] if error else "")
