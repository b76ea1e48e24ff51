"""How the offline model looks: the layout, files, words, counts, and what a function is about."""

from __future__ import annotations

import re

from pyagent.agent.offline_kinds import Count, Explain, Find, ListFiles, Show
from pyagent.agent.offline_request import OfflineRequest
from pyagent.agent.offline_results import (
    FILE_LINES,
    SNIPPET_LINES,
    best_first,
    code_block,
    definition_text,
    file_text,
    first_line,
    hits_of,
    layout_text,
    lines_of,
    listing,
    names_of,
    numbered_block,
    total_lines,
)
from pyagent.agent.offline_step import Step, calls_of, escape, failed, located, read_call
from pyagent.messages import JsonObject
from pyagent.wording import plural

FIND_LIMIT = 80
"""Lines of a search: enough to rank, few enough to keep the context small."""


def explain_layout(request: OfflineRequest) -> Step:
    listed = [*calls_of(request, "Bash"), *calls_of(request, "Glob")]
    if not listed and "Bash" in request.tools:
        command = "git ls-files -co --exclude-standard"
        return Step("Listing the files.", (("Bash", {"command": command, "description": "List the project's files"}),))
    bash = calls_of(request, "Bash")
    if not calls_of(request, "Glob") and (not bash or bash[-1].is_error or "fatal:" in (bash[-1].result or "")):
        return Step("Listing the files.", (("Glob", {"pattern": "**/*"}),))
    source = listed[-1]
    if source.is_error:
        return failed(source)
    paths = [path for path in names_of(source) if path not in ("(no output)",) and "characters" not in path]
    if not paths:
        return Step("This folder is empty.")
    readme = next((path for path in paths if re.fullmatch(r"readme(?:\.\w+)?", path, re.IGNORECASE)), "")
    reads = calls_of(request, "Read")
    if readme and not reads and "Read" in request.tools:
        return Step(f"Reading `{readme}`.", (("Read", {"file_path": readme, "limit": 40}),))
    is_cut = re.search(r"characters left out here|newest [\d,]+ of [\d,]+ files", source.result or "") is not None
    return Step(layout_text(paths, lines_of(reads[-1], request) if reads else [], is_cut=is_cut))


def list_files(intent: ListFiles, request: OfflineRequest) -> Step:
    globs = calls_of(request, "Glob")
    if not globs:
        return Step(f"Looking for {intent.what}.", (("Glob", {"pattern": intent.pattern}),))
    if globs[-1].is_error:
        return failed(globs[-1])
    names = list(names_of(globs[-1]))
    if not names:
        return Step(f"I found no {intent.what}.")
    counted = re.search(r"newest \d+ of ([\d,]+) files", globs[-1].result or "")
    total = int(counted[1].replace(",", "")) if counted else len(names)
    head = f"{total:,} {intent.what}" if intent.what.startswith(("files", "test")) or "files" in intent.what else ""
    return Step(
        f"{head or plural(total, 'file') + ' ' + intent.what}:\n\n{listing([f'`{name}`' for name in names], 40)}"
    )


def _stem(words: str) -> str:
    """A pattern for words however they are joined and whether or not they stand in the plural."""
    parts = []
    for word in words.split():
        singular = word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        parts.append(escape(singular))
    return r"[\s_-]?".join(parts)


def _definition_pattern(words: str) -> str:
    stem = _stem(words)
    keywords = "def|class|fn|func|function|struct|enum|interface|trait|type|const|let|var|static|#define"
    return rf"\b(?:{keywords})\s+\w*{stem}\w*|^\s*(?:export\s+|pub\s+|self\.)?\w*{stem}\w*\s*(?::[^=]+)?=[^=]"


def _grep(pattern: str, folder: str = "", *, ignores_case: bool = True, **more: object) -> tuple[str, JsonObject]:
    given: JsonObject = {"pattern": pattern, "output_mode": "content", "head_limit": FIND_LIMIT, **more}
    if ignores_case:
        given["-i"] = True
    if folder:
        given["path"] = folder
    return ("Grep", given)


def find_word(intent: Find, request: OfflineRequest) -> Step:
    greps = calls_of(request, "Grep")
    patterns = [_stem(intent.words)]
    if intent.is_definition:
        patterns.insert(0, _definition_pattern(intent.words))
    longest = max(intent.words.split(), key=len, default="")
    if " " in intent.words.strip():
        patterns.append(_stem(longest))
    if not greps:
        return Step(f"Searching for `{intent.words}`.", (_grep(patterns[0], intent.folder),))
    if greps[-1].is_error:
        return failed(greps[-1])
    hits = best_first(hits_of(greps[-1]), intent.words)
    if not hits and len(greps) < len(patterns):
        return Step("Nothing yet; searching more widely.", (_grep(patterns[len(greps)], intent.folder),))
    if not hits:
        where = f" in `{intent.folder}`" if intent.folder else " in this project"
        return Step(f"I found no line with `{intent.words}`{where}.")
    best = hits[0]
    reads = calls_of(request, "Read")
    if not reads and "Read" in request.tools:
        given = {"file_path": best.path, "offset": max(1, best.line - 2), "limit": SNIPPET_LINES + 4}
        return Step(f"The best match is {best.place}; reading it.", (("Read", given),))
    is_defined = intent.is_definition and len(greps) == 1
    parts = [f"`{intent.words}` {'is defined' if is_defined else 'stands'} in {best.place}:"]
    lines = lines_of(reads[-1], request) if reads and not reads[-1].is_error else []
    parts.append(numbered_block(lines, best.path, SNIPPET_LINES) if lines else code_block(best.text.strip(), best.path))
    if others := hits[1:]:
        files = len({hit.path for hit in hits})
        parts.append(f"{plural(len(others), 'other line')} in {plural(files, 'file')}:")
        parts.append(listing([f"{hit.place}: `{hit.text.strip()[:90]}`" for hit in others], 8))
    return Step("\n\n".join(parts))


def show_file(intent: Show, request: OfflineRequest) -> Step:
    first, limit = intent.first, None
    if intent.is_tail:
        first = None
    elif intent.first is not None and intent.last is not None:
        limit = max(1, intent.last - intent.first + 1)
    read = located(intent.path, request, first, limit)
    if isinstance(read, Step):
        return read
    lines = lines_of(read, request)
    if not lines:
        return Step(f"`{read.path}`: {first_line(read.result or '')}")
    total = total_lines(read, lines)
    if intent.is_tail:
        lines = lines[-(intent.first or 1) :]
    shown = lines[: max(FILE_LINES, limit or 0)]
    what = f"lines {shown[0][0]}-{shown[-1][0]}"
    of_total = f" of {total:,}" if len(shown) < total else ""
    head = f"`{read.path}`, {what}{of_total}:" if of_total else f"`{read.path}` ({plural(total, 'line')}):"
    return Step(f"{head}\n\n{numbered_block(shown, read.path, len(shown))}")


def count_things(intent: Count, request: OfflineRequest) -> Step:
    greps = calls_of(request, "Grep")
    if not greps:
        given: JsonObject = {"pattern": intent.pattern, "output_mode": "count"}
        given |= {"glob": intent.glob} if intent.glob else {}
        given |= {"path": intent.path} if intent.path else {}
        return Step(f"Counting {intent.noun}.", (("Grep", given),))
    call = greps[-1]
    if call.is_error:
        return failed(call)
    counts = {}
    for line in names_of(call):
        name, _, number = line.rpartition(":")
        if name and number.isdigit():
            counts[name] = int(number)
    said = re.search(r"([\d,]+) matches in ([\d,]+) files", call.result or "")
    total = int(said[1].replace(",", "")) if said else sum(counts.values())
    files = int(said[2].replace(",", "")) if said else len(counts)
    where = f" in `{intent.path}`" if intent.path else ""
    if intent.what == "files":
        return Step(
            f"There are **{files:,}** {intent.noun}{where}, with {plural(total, 'line')} in all (empty files left out)."
        )
    largest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:5]
    answer = f"There are **{total:,}** {intent.noun}{where}, in {plural(files, 'file')}."
    if intent.what == "matches" and intent.noun.startswith("`"):
        answer = f"{intent.noun} stands in **{plural(total, 'line')}**{where}, in {plural(files, 'file')}."
    if len(largest) > 1:
        answer += " Most are in:\n\n" + listing([f"`{name}`: {count:,}" for name, count in largest])
    return Step(answer)


_FILE_NAME = re.compile(
    r".*/.*|.*\.(?:py|md|txt|js|ts|tsx|jsx|rs|go|java|c|h|cpp|rb|sh|toml|json|ya?ml|html|css|cfg|ini|sql)"
)


def explain_name(intent: Explain, request: OfflineRequest) -> Step:
    if _FILE_NAME.fullmatch(intent.name):
        read = located(intent.name, request, None, None)
        if isinstance(read, Step):
            return read
        lines = lines_of(read, request)
        if not lines:
            return Step(f"`{read.path}`: {first_line(read.result or '')}")
        return Step(file_text(read.path, lines, total_lines(read, lines)))
    name = intent.name.rpartition(".")[2]
    greps = calls_of(request, "Grep")
    if not greps:
        mentions = _grep(rf"\b{escape(name)}\b", ignores_case=False)
        return Step(f"Looking for `{name}`.", (_grep(_definition_pattern(name)), mentions))
    if greps[0].is_error:
        return failed(greps[0])
    uses = best_first(hits_of(greps[1]), name) if len(greps) > 1 else []
    defined = best_first(hits_of(greps[0]), name)
    exact = [hit for hit in defined if re.search(rf"\b{re.escape(name)}\b", hit.text)]
    places = exact or defined or uses
    if not places:
        return Step(f"I found nothing named `{name}` in this project.")
    best = places[0]
    reads = calls_of(request, "Read")
    if not reads and "Read" in request.tools:
        return Step(f"Reading {best.place}.", (read_call(best.path, best.line, 80),))
    lines = lines_of(reads[-1], request) if reads and not reads[-1].is_error else []
    found = re.search(rf"\b\w*{_stem(name)}\w*", best.text, re.IGNORECASE)
    return Step(definition_text(name if exact or found is None else found[0], best, lines, uses))
