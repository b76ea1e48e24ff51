"""Reads what the tools answered, in the form the model gets it, and puts it into words."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath

from pyagent.agent.offline_request import Call, OfflineRequest
from pyagent.wording import plural

SIGNATURE = "— *pyagent's built-in offline model*"
"""Under every answer, so that nobody takes it for more."""

SNIPPET_LINES = 18
"""Shown of a place in a file: a definition and its first lines."""
FILE_LINES = 60
"""Shown of a whole file: about one screen; the tool's own result holds the rest."""
OUTPUT_LINES = 25
LIST_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Hit:
    """One line that Grep found."""

    path: str
    line: int
    text: str

    @property
    def place(self) -> str:
        return f"`{self.path}:{self.line}`"


_HIT = re.compile(r"(.+?):(\d+):(.*)")
_NUMBERED = re.compile(r"\s*(\d+)\t(.*)")
_DEFINES = re.compile(
    r"\s*(?:export\s+|pub(?:\([^)]*\))?\s+|default\s+|abstract\s+|static\s+|async\s+)*"
    r"(def|class|fn|func|function|struct|enum|interface|trait|type|const|let|var|#define)\b|\s*[\w.]+\s*"
    r"(?::[^=]+)?=[^=]"
)
_DEFINED_NAME = re.compile(
    r"\s*(?:(?:export|pub(?:\([^)]*\))?|default|abstract|static|async|def|class|fn|func|function|struct|enum|interface"
    r"|trait|type|const|let|var|#define)\s+)*(\w+)"
)


def hits_of(call: Call) -> tuple[Hit, ...]:
    found = (_HIT.fullmatch(line) for line in (call.result or "").splitlines() if not line.startswith("["))
    return tuple(Hit(match[1], int(match[2]), match[3]) for match in found if match)


def names_of(call: Call) -> tuple[str, ...]:
    """One path per line, as Glob and Grep answer; their notes in brackets left out."""
    lines = (call.result or "").splitlines()
    return tuple(line for line in lines if line.strip() and not line.startswith(("[", "No files", "No matches")))


def best_first(hits: tuple[Hit, ...], words: str) -> list[Hit]:
    """Code before tests and documents, definitions before uses, what is named like the words before what only has
    them in its name, outer before inner."""
    wanted = _plain_name(words)

    def rank(hit: Hit) -> tuple[bool, bool, bool, int, int, str, int]:
        is_test = re.search(r"(?:^|/|_)tests?(?:/|_|\.|$)", hit.path) is not None
        is_document = hit.path.endswith((".md", ".txt", ".rst", ".lock", ".json", ".svg"))
        indent = len(hit.text) - len(hit.text.lstrip())
        defined = _DEFINED_NAME.match(hit.text)
        names = (PurePosixPath(hit.path).stem, defined[1] if defined else "")
        likeness = sum(_plain_name(name) == wanted for name in names)
        return (is_document, is_test, _DEFINES.match(hit.text) is None, -likeness, indent, hit.path, hit.line)

    return sorted(hits, key=rank)


def _plain_name(name: str) -> str:
    """A name however it is joined, in whatever case and number."""
    return re.sub(r"[\W_]", "", name).lower().removesuffix("s")


def lines_of(call: Call, request: OfflineRequest) -> list[tuple[int, str]]:
    """The numbered lines a Read showed; if it only said "unchanged", those it means."""
    lines = _numbered(call)
    if lines or "unchanged since it was read" not in (call.result or ""):
        return lines
    for exchange in reversed(request.exchanges):
        for earlier in reversed(exchange.calls):
            if earlier.name == "Read" and earlier.path == call.path and (lines := _numbered(earlier)):
                wanted = [(number, text) for number, text in lines if _is_wanted(number, call)]
                if wanted:
                    return wanted
    for path, text in request.restored.items():
        if path == call.path or path.endswith("/" + call.path):
            return [(number, line) for number, line in _numbered_text(text) if _is_wanted(number, call)]
    return []


def _is_wanted(number: int, call: Call) -> bool:
    first = int(call.input.get("offset") or 1)
    return first <= number < first + int(call.input.get("limit") or 10**9)


def _numbered(call: Call) -> list[tuple[int, str]]:
    return _numbered_text(call.result or "")


def _numbered_text(text: str) -> list[tuple[int, str]]:
    found = (_NUMBERED.fullmatch(line) for line in text.splitlines())
    return [(int(match[1]), match[2]) for match in found if match]


def total_lines(call: Call, lines: list[tuple[int, str]]) -> int:
    """How many lines the file has, as far as the Read says."""
    note = re.search(r"lines \d+-\d+ of ([\d,]+)", call.result or "")
    return int(note[1].replace(",", "")) if note else (lines[-1][0] if lines else 0)


def exit_code_of(call: Call) -> int:
    found = re.findall(r"^Exit code (\d+)", call.result or "", re.MULTILINE)
    return int(found[-1]) if found else (1 if call.is_error else 0)


def output_of(call: Call) -> str:
    return re.sub(r"^Exit code \d+.*$", "", call.result or "", flags=re.MULTILINE).strip("\n")


def first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")


_FENCES = {
    "py": "python",
    "js": "javascript",
    "ts": "typescript",
    "rs": "rust",
    "rb": "ruby",
    "sh": "bash",
    "yml": "yaml",
}


def code_block(text: str, path: str = "") -> str:
    """A fenced block; the fence is longer than any in the text."""
    ending = PurePosixPath(path).suffix.removeprefix(".")
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{_FENCES.get(ending, ending)}\n{text}\n{fence}"


def numbered_block(lines: list[tuple[int, str]], path: str, limit: int) -> str:
    shown = lines[:limit]
    width = len(str(shown[-1][0])) if shown else 1
    return code_block("\n".join(f"{number:{width}}  {text}" for number, text in shown), path)


def listing(items: list[str], limit: int = LIST_LENGTH) -> str:
    """Markdown bullets, and how many were left out."""
    more = [f"- … and {len(items) - limit:,} more"] if len(items) > limit else []
    return "\n".join([*(f"- {item}" for item in items[:limit]), *more])


def tail(text: str, limit: int = OUTPUT_LINES) -> str:
    lines = text.splitlines()
    if len(lines) <= limit:
        return text
    return "\n".join([f"… ({len(lines) - limit:,} lines before)", *lines[-limit:]])


def layout_text(paths: list[str], readme: list[tuple[int, str]], *, is_cut: bool = False) -> str:
    """What is where, from the list of a project's files and its README. `is_cut`: the list is not whole."""
    folders: dict[str, Counter[str]] = {}
    top: list[str] = []
    for path in paths:
        head, slash, rest = path.partition("/")
        if not slash:
            top.append(head)
            continue
        below = rest.partition("/")[0] + "/" if "/" in rest else ""
        folders.setdefault(head, Counter())[below] += 1
    endings = Counter(PurePosixPath(path).suffix for path in paths if PurePosixPath(path).suffix)
    kinds = ", ".join(f"{count:,} × {ending}" for ending, count in endings.most_common(5))
    parts = []
    if about := _first_paragraph(readme):
        parts.append(f"The README says: “{about}”")
    counted = f"Of the files, these {len(paths):,} were listed" if is_cut else plural(len(paths), "file")
    parts.append(counted + (f" ({kinds})" if kinds else "") + ":")
    lines = []
    for name, inside in sorted(folders.items(), key=lambda item: -item[1].total()):
        inner = [part for part, _ in inside.most_common(6) if part]
        lines.append(f"`{name}/`: {plural(inside.total(), 'file')}" + (f", with {', '.join(inner)}" if inner else ""))
    if top:
        lines.append("at the top: " + ", ".join(f"`{name}`" for name in sorted(top)[:LIST_LENGTH]))
    parts.append(listing(lines, 20))
    return "\n\n".join(parts)


def _first_paragraph(readme: list[tuple[int, str]]) -> str:
    paragraph: list[str] = []
    for _, text in readme:
        stripped = text.strip()
        is_prose = bool(stripped) and stripped[0] not in "#!<[|`=-*>"
        if is_prose:
            paragraph.append(stripped)
        elif paragraph:
            break
    about = " ".join(paragraph)
    return about if len(about) <= 300 else about[:299] + "…"


_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
_KEYWORDS = frozenset(
    [
        "if",
        "for",
        "while",
        "return",
        "print",
        "def",
        "class",
        "with",
        "assert",
        "and",
        "or",
        "not",
        "in",
        "elif",
        "except",
        "switch",
        "catch",
        "len",
        "str",
        "int",
    ]
)


def definition_text(name: str, place: Hit, lines: list[tuple[int, str]], uses: list[Hit]) -> str:
    """A function's place: its head, its docstring, what it calls, and where it is used."""
    body = _body(lines, place.line)
    head = place.text.strip()
    for _, text in body[1:8]:
        if head.endswith((":", "{", ";")) or "=" in head.split("(")[0]:
            break
        head += " " + text.strip()
    parts = [f"`{name}` is in {place.place}:", code_block(head, place.path)]
    if doc := _docstring(body):
        parts.append(f"It says of itself: “{doc}”")
    called = [
        c
        for c in dict.fromkeys(_CALLED.findall("\n".join(text for _, text in body[1:])))
        if c not in _KEYWORDS and c != name
    ]
    facts = [f"It is {plural(len(body), 'line')} long" if body else ""]
    if called:
        facts.append("calls " + ", ".join(f"`{c}`" for c in called[:6]))
    if facts := [fact for fact in facts if fact]:
        parts.append(" and ".join(facts) + ".")
    others = [hit for hit in uses if (hit.path, hit.line) != (place.path, place.line)]
    if others:
        parts.append(f"Its name also stands in {plural(len(others), 'other line')}:")
        parts.append(listing([f"{hit.place}: `{hit.text.strip()[:90]}`" for hit in others], 6))
    else:
        parts.append("I found no other line with its name.")
    return "\n\n".join(parts)


def _body(lines: list[tuple[int, str]], first: int) -> list[tuple[int, str]]:
    inside = [pair for pair in lines if pair[0] >= first]
    if not inside:
        return []
    indent = len(inside[0][1]) - len(inside[0][1].lstrip())
    kept = [inside[0]]
    for number, text in inside[1:]:
        is_outside = bool(text.strip()) and len(text) - len(text.lstrip()) <= indent
        if is_outside and text.strip()[0] not in ")}]":
            break
        kept.append((number, text))
        if is_outside and not text.rstrip().endswith(":") and text.strip()[0] == "}":
            break
    while kept and not kept[-1][1].strip():
        kept.pop()
    return kept


def _docstring(body: list[tuple[int, str]]) -> str:
    text = "\n".join(line for _, line in body[1:])
    found = re.search(r'"""(.*?)(?:"""|\n\s*\n|\Z)', text, re.DOTALL) or re.search(
        r"^\s*(?://|#)\s*(.*)$", text, re.MULTILINE
    )
    doc = " ".join(found[1].split()) if found else ""
    return doc if len(doc) <= 240 else doc[:239] + "…"


def file_text(path: str, lines: list[tuple[int, str]], total: int) -> str:
    """What a file holds: its own first words and its definitions."""
    said = _docstring([(0, ""), *lines[:30]]) or _first_paragraph(lines)
    parts = [f"`{path}` has {plural(total, 'line')}."]
    if said:
        parts[0] += f" It says of itself: “{said}”"
    defined = [
        f"`{path}:{number}` `{text.strip().rstrip(':{').strip()[:90]}`"
        for number, text in lines
        if re.match(r"(?:export\s+|pub\s+|async\s+)*(?:def|class|fn|func|function|struct|enum|interface|trait)\s", text)
    ]
    headings = [f"line {number}: {text.lstrip('# ')}" for number, text in lines if re.match(r"#{1,3} \S", text)]
    if defined:
        parts.append("It defines:\n" + listing(defined, 20))
    elif headings and path.endswith((".md", ".rst")):
        parts.append("Its sections:\n" + listing(headings, 20))
    else:
        parts.append(numbered_block(lines, path, SNIPPET_LINES))
    return "\n\n".join(parts)


def test_outcome(output: str, exit_code: int) -> str:
    """The result of a test run in words: the runner's own last words and the failing tests."""
    verdict = "The tests pass." if exit_code == 0 else f"The tests do not pass (exit code {exit_code})."
    summary = re.findall(
        r"^(?:=+ )?((?:\d+ (?:passed|failed|errors?|skipped|xfailed|warnings?)[, ]*)+.*?)(?: =+)?$"
        r"|^(test result: .*)$|^(Ran \d+ tests.*)$|^(Tests:\s+.*)$|^(ok\s+\S+.*|FAIL\s+\S+.*)$",
        output,
        re.MULTILINE,
    )
    said = next((part for match in reversed(summary) for part in match if part), "")
    failing = re.findall(
        r"^(?:FAILED|ERROR) (\S+)|^--- FAIL: (\S+)|^test (\S+) \.\.\. FAILED|^FAIL: (\S+ \S+)", output, re.MULTILINE
    )
    names = [next(part for part in match if part) for match in failing]
    parts = [verdict + (f" The runner says: `{said.strip()}`" if said else "")]
    if names:
        parts.append("Failing:\n" + listing([f"`{name}`" for name in dict.fromkeys(names)]))
    if exit_code != 0 or not said:
        parts.append(code_block(tail(output)))
    return "\n\n".join(parts)
