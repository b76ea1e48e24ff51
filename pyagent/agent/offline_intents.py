"""What a plain English instruction asks for. Forgiving in its phrasing; quotes are optional.

An instruction that fits nothing is `Unknown`, and the answer says so: guessing would look like understanding.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyagent.agent.offline_kinds import (
    Count,
    Create,
    Explain,
    Find,
    Help,
    Intent,
    Layout,
    ListFiles,
    Replace,
    Run,
    RunTests,
    Show,
    Summarise,
    Unknown,
)

_QUOTES = "\"'`“”‘’«»"
_OPEN, _SHUT = "[\"'`“‘«]", "[\"'`”’»]"
_PATH = r"[\w~.@+-]*(?:[\w)\]-]/[\w.@+()\[\]-]+|[\w-]+\.[A-Za-z][A-Za-z0-9]{0,7}\b|\.[a-z][\w.-]+)[\w./@+-]*"
"""A word that looks like a file: it has a slash or a short ending."""
_BARE_FILES = r"Makefile|Dockerfile|README|LICENSE|CHANGELOG|Gemfile|Procfile|Rakefile|Justfile|CONTRIBUTING"
_FILE = rf"{_OPEN}?(?P<path>{_PATH}|{_BARE_FILES}){_SHUT}?"

_LANGUAGES = {
    "python": "py",
    "javascript": "js",
    "typescript": "ts",
    "rust": "rs",
    "go": "go",
    "java": "java",
    "ruby": "rb",
    "markdown": "md",
    "json": "json",
    "yaml": "{yml,yaml}",
    "toml": "toml",
    "html": "html",
    "css": "css",
    "shell": "sh",
    "bash": "sh",
    "c": "{c,h}",
    "c++": "{cpp,cc,hpp,h}",
    "sql": "sql",
    "text": "txt",
    "test": "",
    "image": "{png,jpg,jpeg,gif,svg,webp}",
}
_DEFINITIONS = {
    "function": r"^\s*(async\s+)?(def|fn|func|function)\s+\w+|^\s*(pub|export)\b.*\b(fn|function)\s+\w+",
    "method": r"^\s+(async\s+)?def\s+\w+",
    "class": r"^\s*(export\s+)?(abstract\s+)?(class|struct|interface|trait)\s+\w+",
    "test": r"^\s*(async\s+)?def test_\w+|#\[test\]|^func Test\w+|^\s*(it|test)\(",
    "import": r"^\s*(import|from|use|require)\b",
    "todo": r"\b(TODO|FIXME|XXX|HACK)\b",
    "comment": r"^\s*(#|//)",
}

_STOPWORDS = frozenset(
    re.findall(
        r"\S+",
        "a an the this that these those of in on at to for with from by and or is are was were be been being "
        "it its where what which who how when find search look grep locate show me us please can could would "
        "you i we my our your tell give get see defined definition declared implemented set used mentioned "
        "occurs occur word words text string all any every each place places file files code codebase repo "
        "repository project line lines name named called function class method variable constant constants "
        "does do did out up there here print them then also into mention mentions contain contains containing "
        "usage usages uses use call calls reference references occurrence occurrences handled handle located "
        "live lives come comes happen happens made created want need let's lets",
    )
)


MAX_CLAUSES = 6
"""A longer text is no plain instruction, whatever one of its sentences looks like."""

MAX_INSTRUCTION_CHARS = 4_000
"""Room for an instruction with a text to write in quotes. The time for trying all patterns grows faster than the text:
a pasted log would be read for minutes, and nothing could interrupt it."""


def parse_intent(prompt: str) -> Intent:
    """The intent of a prompt; of several sentences, that of the first that is understood."""
    if len(prompt) > MAX_INSTRUCTION_CHARS:
        return Unknown()
    intent = _whole_intent(prompt)
    if isinstance(intent, Unknown):
        clauses = [clause for clause in re.split(r"(?<=[.;!?])\s+|\n+|\s+and then\s+", prompt) if clause.strip()]
        if 1 < len(clauses) <= MAX_CLAUSES:
            understood = (_whole_intent(clause.rstrip(";")) for clause in clauses)
            return next((found for found in understood if not isinstance(found, Unknown | Help)), intent)
    return intent


def _whole_intent(prompt: str) -> Intent:
    text = prompt.strip()
    for wrapper in (
        r"(?:please|pls|hey|hi|hello|ok|okay|now|then|so|and)[,:!\s]+",
        r"(?:can|could|would|will) you\s+(?:please\s+)?",
    ):
        for _ in range(2):
            shorter = re.sub(rf"^{wrapper}", "", text, flags=re.IGNORECASE)
            text = shorter if shorter.strip() else text
    text = re.sub(
        r"^(?:i want you to|i'd like you to|i would like to|i want to|let's|lets)\s+", "", text, flags=re.IGNORECASE
    )
    text = re.sub(
        r"^(?:read|open|look at)\s+(\S+)\s+and (explain|summari[sz]e|describe)\s+(?:it|that)\b", r"\2 \1", text
    )
    text = re.sub(r"[\s,]*(?:please|thanks|thank you)[.!]*$", "", text, flags=re.IGNORECASE).strip() or prompt.strip()
    for reader in _READERS:
        intent = reader(text)
        if intent is not None:
            return intent
    # Only now: "hello" before something to do is a courtesy, alone it is a greeting.
    return _help(prompt.strip()) or Unknown()


def _match(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text, re.IGNORECASE | re.DOTALL)


def _bare(text: str) -> str:
    """Without quotes around it and without a full stop behind it."""
    text = text.strip()
    if len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
        return text[1:-1]
    return text.rstrip("?!,;:").removesuffix(".") if not text.endswith("..") else text


def _help(text: str) -> Intent | None:
    if _match(r"^(?:hi|hello|hey|good (?:morning|afternoon|evening))\b[\s\w]{0,12}[!.]*$", text):
        return Help("greeting")
    if _match(r"^(?:thanks|thank you|thx|great|cool|nice|perfect|ok|okay)\b[\s\w,]{0,16}[!.]*$", text):
        return Help("thanks")
    if _match(r"^(?:help|\?)$|what (?:can|do) you (?:do|understand|know)|who are you|what are you", text):
        return Help("help")
    return None


def _summarise(text: str) -> Intent | None:
    if _match(r"^(?:summari[sz]e|recap|sum up)\b(?!.*\b(?:file|readme|function|class)\b)(?!.*\.\w{1,4}\b)", text):
        return Summarise()
    if _match(
        r"what (?:did|have) (?:we|you) (?:do|done|did)|summary of (?:the|this|our) (?:conversation|session|chat)", text
    ):
        return Summarise()
    return None


def _run_tests(text: str) -> Intent | None:
    if not _match(
        (
            r"\b(?:run|execute|start|launch)\b[\w\s]*\b(?:tests?|test suite|pytest)\b|^(?:do|check (?:if"
            r"|whether)) (?:all )?(?:the )?tests? pass|^tests?[.!]?$"
        ),
        text,
    ):
        return None
    if _match(rf"^(?:run|execute)\s+(?:{_OPEN}|pytest\s+\S|python\s)", text):
        return None
    found = _match(rf"\b(?:in|of|for|from)\s+{_FILE}", text)
    return RunTests(found["path"].rstrip(".") if found else "")


_COMMANDS = re.compile(
    r"(?:ls|cat|git|python3?|pip|npm|npx|node|make|cargo|go|pytest|ruff|mypy|echo|pwd|find|grep|rg|wc|head|tail|tree|du"
    r"|df|date|uname|which|docker|bash|sh|curl|touch|mkdir|rm|cp|mv|env|printenv|uv|tox|black|sed|awk|sort|sleep|seq|yes)"
)


def _run(text: str) -> Intent | None:
    if found := _match(r"^[!$]\s*(?P<command>\S.*)$", text):
        return Run(found["command"].strip())
    if found := _match(r"^(?:run|execute|launch|start|try)\s*:?\s*```(?:\w+\n)?(?P<command>.+?)```", text):
        return Run(found["command"].strip())
    verb = r"^(?:run|execute|launch|start|try)\s+(?:the\s+)?(?:shell\s+|bash\s+)?(?:command\s*:?\s*)?"
    if found := _match(rf"{verb}`(?P<command>[^`]+)`", text):
        return Run(found["command"].strip())
    if found := _match(rf"{verb}(?P<quote>[\"'])(?P<command>.+)(?P=quote)[.!]?$", text):
        return Run(found["command"].strip())
    if found := _match(rf"{verb}(?P<command>\S.*)$", text):
        command = found["command"].strip()
        if _match(rf"^{_PATH}$", command) and command.endswith(".py"):
            return Run(f"python {command}")
        first = command.split()[0]
        is_named = "command" in found.group(0)[: found.start("command")].lower()
        if is_named or _COMMANDS.fullmatch(first) or first.startswith(("./", "/")):
            return Run(command)
    for pattern, command in (
        (
            r"^(?:what(?:'s| has| is)? (?:changed|new|modified)|git status|show (?:me )?(?:the )?(?:git )?status)",
            "git status --short --branch",
        ),
        (r"^(?:show|what is|what's)?\s*(?:me\s+)?(?:the\s+)?(?:git )?diff\b[.?]*$", "git diff"),
        (r"(?:last|recent|latest) (?:\d+ )?commits?|^git log$|commit history", "git log --oneline -10"),
        (r"(?:which|what|current) branch", "git branch --show-current"),
        (r"^(?:where am i|what is the (?:current|working) (?:folder|directory)|pwd)\b", "pwd"),
    ):
        if _match(pattern, text):
            return Run(command)
    return None


def _replace(text: str) -> Intent | None:
    verbs = (
        r"^(?:replace|change|rename|substitute|swap)\s+(?:all\s+|every\s+|each\s+)?(?:occurrences?\s+of\s+|the"
        r"\s+word\s+|the\s+text\s+|the\s+(?:function|class|variable|constant|method|name)\s+|the\s+)?"
    )
    place = (
        rf"(?:\s+(?:in|inside|within)\s+(?:the\s+)?(?:file\s+)?(?:{_FILE}|(?:the\s+)?(?:whole\s+|entire\s+)?"
        r"(?:repo(?:sitory)?|project|code(?:base)?|all files|every file|files)))?"
    )
    everywhere = r"(?:\s*,?\s*(?:everywhere|in all files|throughout|across)(?:\s.*)?)?"
    quoted = rf"{_OPEN}(?P<old>.+?){_SHUT}\s+(?:by|with|to|into|for|→|->)\s+{_OPEN}(?P<new>.*?){_SHUT}"
    bare = r"(?P<old>\S+)\s+(?:by|with|to|into|→|->)\s+(?P<new>\S+?)"
    several = rf"(?<=replace )(?P<old>\S.*?)\s+(?:by|with)\s+(?P<new>\S.*?)\s+in\s+(?:the\s+)?(?:file\s+)?{_FILE}"
    for body in (rf"{quoted}{place}{everywhere}", rf"{bare}{place}{everywhere}", several):
        if found := _match(rf"{verbs}{body}[.!]?$", text):
            path = found["path"] or ""
            old, new = _bare(found["old"]), _bare(found["new"])
            return Replace(old, new, path.rstrip(".")) if old and old != new else None
    lead = rf"^in\s+{_FILE},?\s+(?:replace|change|rename)\s+"
    for body in (quoted, bare):
        if found := _match(rf"{lead}{body}[.!]?$", text):
            return Replace(_bare(found["old"]), _bare(found["new"]), found["path"])
    return None


def _create(text: str) -> Intent | None:
    is_run = _match(r"\band (?:then )?(?:run|execute) it\b[.!]*\s*$", text) is not None
    if is_run:
        text = re.sub(r",?\s*\band (?:then )?(?:run|execute) it\b[.!]*\s*$", "", text, flags=re.IGNORECASE)
    start = (
        r"^(?:create|write|make|add|save)\s+(?:me\s+)?(?:a\s+|an\s+|the\s+)?(?:new\s+)?(?:\w+\s+)?(?:file\s+)?"
        rf"(?:called\s+|named\s+|at\s+)?{_FILE}"
    )
    if found := _match(rf"{start}(?P<rest>.*)$", text):
        rest = found["rest"].strip()
        content = ""
        if fenced := _match(r"```[\w+-]*\n(?P<code>.*?)```", rest):
            content = fenced["code"]
        elif said := _match(
            (
                r"^,?\s*(?:with|containing|that (?:says|contains|prints|reads)|which (?:says|contains|prints)"
                r"|saying|having|:)\s*(?:the\s+)?(?:(?:content|contents|text|line|code)\b\s*)?:?\s*"
                r"(?P<content>.*)$"
            ),
            rest,
        ):
            content = _bare(said["content"])
            if "prints" in said.group(0)[: said.start("content")].lower() and found["path"].endswith(".py"):
                content = f"print({content!r})"
        elif rest.strip(".!"):
            return None
        if content and not content.endswith("\n"):
            content += "\n"
        return Create(found["path"].rstrip("."), content, is_run)
    if found := _match(
        (
            rf"^(?:write|save|put)\s+{_OPEN}(?P<content>.+){_SHUT}\s+(?:to|into|in)\s+(?:the\s+|a\s+)?(?:file"
            rf"\s+)?{_FILE}[.!]?$"
        ),
        text,
    ):
        return Create(found["path"].rstrip("."), found["content"] + "\n", is_run)
    return None


def _count(text: str) -> Intent | None:
    if not _match(r"^(?:count|how many|number of|how often)\b", text):
        return None
    found = _match(rf"\b(?:in|of|inside)\s+(?:the\s+)?(?:file\s+)?{_FILE}", text)
    path = found["path"].rstrip(".") if found else ""
    if (quoted := _match(rf"{_OPEN}(?P<word>.+?){_SHUT}", text)) and quoted["word"] != path:
        return Count("matches", "", re.escape(quoted["word"]), f"`{quoted['word']}`", path)
    language = next((name for name in _LANGUAGES if _match(rf"(?<!\w){re.escape(name)}(?!\w)", text)), "")
    ending = _LANGUAGES.get(language, "")
    if dotted := _match(r"(?<![\w/])\*?\.(?P<ending>[a-z]{1,5})\b", text):
        ending, language = dotted["ending"], dotted["ending"]
    glob = f"*.{ending}" if ending else ""
    of_language = f"{language.capitalize() if language in _LANGUAGES else '.' + language} " if ending else ""
    if _match(r"\blines?\b", text):
        return Count("lines", glob, "^", f"lines of {of_language}code".replace("  ", " "), path)
    for noun, pattern in _DEFINITIONS.items():
        if _match(rf"\b{noun}(?:s|es)?\b", text) and not _match(r"\bfiles?\b", text):
            return Count(
                "matches", glob, pattern, f"{of_language}{noun}s" if noun != "class" else f"{of_language}classes", path
            )
    if _match(r"\bfiles?\b", text):
        if language == "test":
            return Count("files", "*test*", "^", "test files", path)
        return Count("files", glob, "^", f"{of_language}files", path)
    if word := _match(
        (
            r"(?:times|often|occurrences? of|uses? of|mentions? of)\s+(?:does\s+|is\s+|the\s+word\s+|do\s+)?"
            r"(?P<word>[\w.:-]+)"
        ),
        text,
    ):
        return Count("matches", "", re.escape(word["word"]), f"`{word['word']}`", path)
    return None


def _layout(text: str) -> Intent | None:
    if _match(
        r"\b(?:layout|structure|overview|architecture|organi[sz]ed|organi[sz]ation|folder tree|directory tree|tour)\b"
        r"|what(?:'s| is| does) (?:this|the) (?:repo(?:sitory)?|project|code ?base|folder|directory)"
        r"(?: about| do| for)?[?.]*$"
        r"|what(?:'s| is) in (?:this|the|here)\s*(?:repo(?:sitory)?|project|code ?base|folder|directory)?[?.]*$"
        r"|^(?:explain|describe|explore|summari[sz]e|show) (?:me )?(?:this|the) "
        r"(?:repo(?:sitory)?|project|code ?base)\b",
        text,
    ):
        return Layout()
    return None


def _list_files(text: str) -> Intent | None:
    if found := _match(
        (
            r"^(?:find|locate|where is|search for)\s+(?:the\s+|a\s+)?files?\s+(?:called\s+|named\s+|matching"
            rf"\s+)?{_OPEN}?(?P<name>[\w.*?/{{}},-]+?){_SHUT}?[?.]*$"
        ),
        text,
    ):
        name = found["name"]
        return ListFiles(name if "/" in name else f"**/{name}" if "*" in name else f"**/*{name}*", f"named `{name}`")
    if not _match(
        r"^(?:list|ls|show|what|which|give|name)\b.*\b(?:files?|folders?|directories|modules?|tests)\b", text
    ):
        return None
    if _match(r"\bmentions?|contain(?:s|ing)?\b|\buse[sd]?\b", text):
        return None
    if glob := _match(r"(?<!\w)(?P<glob>[\w./-]*\*[\w.*/{},-]*)", text):
        name = glob["glob"]
        return ListFiles(name if "/" in name else f"**/{name}", f"matching `{name}`")
    folder = ""
    if (
        inside := _match(
            (
                rf"\b(?:in|under|inside|of)\s+(?:the\s+)?(?:folder\s+|directory\s+)?{_OPEN}?(?P<folder>[\w.-]+"
                rf"(?:/[\w.-]+)*/?){_SHUT}?(?:\s+(?:folder|directory))?[?.]*$"
            ),
            text,
        )
    ) and inside["folder"].lower() not in ("this", "the", "here", "project", "repo", "repository", "it"):
        folder = inside["folder"].rstrip("/.") + "/"
    if _match(r"\btests?\b", text) and not folder.startswith("test"):
        return ListFiles(f"{folder}**/*test*", "test files")
    language = next(
        (name for name in _LANGUAGES if name != "test" and _match(rf"(?<!\w){re.escape(name)}(?!\w)", text)), ""
    )
    ending = _LANGUAGES.get(language, "")
    if dotted := _match(r"(?<![\w/])\.(?P<ending>[a-z]{1,5})\s+files", text):
        ending = dotted["ending"]
    what = (f"{language.capitalize()} files" if language else "files") + (f" in `{folder}`" if folder else "")
    return ListFiles(f"{folder}**/*.{ending}" if ending else f"{folder}**/*", what)


def _show(text: str) -> Intent | None:
    verb = r"(?:show|open|read|cat|print|display|view|look at|see|give)\s+(?:me\s+)?"
    tail = rf"(?:(?:of|in|from)\s+)?(?:the\s+)?(?:content[s]?\s+of\s+)?(?:the\s+)?(?:file\s+)?{_FILE}"
    if found := _match(
        rf"^{verb}(?:the\s+)?lines?\s+(?P<first>\d+)(?:\s*(?:-|–|to|through|until)\s*(?P<last>\d+))?\s+{tail}", text
    ):
        return Show(found["path"].rstrip("."), int(found["first"]), int(found["last"] or found["first"]))
    if found := _match(rf"^(?:{verb})?(?:the\s+)?(?P<end>first|last|top)\s+(?P<count>\d+)\s+lines?\s+{tail}", text):
        count = int(found["count"])
        if found["end"].lower() == "last":
            return Show(found["path"].rstrip("."), count, None, is_tail=True)
        return Show(found["path"].rstrip("."), 1, count)
    if found := _match(
        (
            rf"^(?:{verb}){tail}(?:\s*(?::|,?\s*(?:from\s+)?lines?\s+)(?P<first>\d+)(?:\s*(?:-|–|to|through)\s*"
            r"(?P<last>\d+))?)?[?.!]*$"
        ),
        text,
    ):
        first = int(found["first"]) if found["first"] else None
        last = int(found["last"] or found["first"]) if found["first"] else None
        return Show(found["path"].rstrip("."), first, last)
    if (
        found := _match(
            rf"^(?:what(?:'s| is) in|what does)\s+(?:the\s+)?(?:file\s+)?{_FILE}(?:\s+(?:contain|say))?[?.]*$", text
        )
    ) and not _match(r"\bdo\b", text):
        return Show(found["path"].rstrip("."))
    if found := _match(rf"^{_FILE}(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?$", text):
        first = int(found["first"]) if found["first"] else None
        return Show(found["path"].rstrip("."), first, int(found["last"]) if found["last"] else first and first + 20)
    return None


def _explain(text: str) -> Intent | None:
    kinds = r"(?:(?:function|method|class|module|file|variable|constant|code in|code of)\s+)?"
    name = rf"{_OPEN}?(?P<name>{_PATH}|[A-Za-z_][\w.]*)(?:\(\))?{_SHUT}?"
    for pattern in (
        (
            rf"^(?:explain|describe|document|summari[sz]e)\s+(?:to me\s+)?(?:what\s+)?(?:the\s+)?{kinds}{name}"
            r"(?:\s+(?:function|method|class|module|file|does|do|works?))*[?.]*$"
        ),
        (
            rf"^what\s+(?:does|is)\s+(?:the\s+)?{kinds}{name}(?:\s+(?:function|method|class|module|file))?\s*"
            r"(?:do|for|about|mean)?[?.]*$"
        ),
        (
            rf"^how\s+(?:does|is)\s+(?:the\s+)?{kinds}{name}(?:\s+(?:function|method|class|module|file))?\s*"
            r"(?:work|used|called|implemented)?[?.]*$"
        ),
        rf"^(?:who|what)\s+(?:calls|uses)\s+(?:the\s+)?{kinds}{name}[?.]*$",
    ):
        found = _match(pattern, text)
        if found and found["name"].lower() not in _STOPWORDS:
            return Explain(found["name"].rstrip("."))
    return None


def _find(text: str) -> Intent | None:
    is_definition = _match(r"\b(?:defined|definition|declared|implemented|set)\b", text) is not None
    lead = (
        r"^(?:find|search|grep|look|locate|where|which files?|what files?|show me where|show where|show me "
        r"(?:the )?(?:definition|uses?|usages?|code)|list all|who)\b"
    )
    if not _match(lead, text) and not _match(
        r"^(?:show|list|tell)\b.*\b(?:where|todos?|fixmes?|usages?|mentions?)\b", text
    ):
        return None
    folder = ""
    if inside := _match(
        (
            rf"\b(?:in|under|inside)\s+(?:the\s+)?(?:folder\s+|directory\s+|file\s+)?(?P<folder>{_PATH}"
            r"|[\w-]+/)\s*(?:$|[,.?]|\band\b)"
        ),
        text,
    ):
        folder = inside["folder"].rstrip(".,?")
        text = text[: inside.start()] + text[inside.end() :]
    if quoted := _match(rf"(?<!\w){_OPEN}(?P<words>[^\"'`]+?){_SHUT}(?!\w)", text):
        return Find(quoted["words"], is_definition, folder)
    named = re.findall(
        r"\b(?:[A-Za-z]\w*_\w+|_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Z]{3,}[A-Z0-9_]*|\w+\.\w+)\b", text
    )
    if named:
        return Find(named[0], is_definition, folder)
    if _match(r"\btodos?\b", text):
        return Find("TODO", False, folder)
    words = [word for word in re.findall(r"[\w-]+", text) if word.lower() not in _STOPWORDS]
    return Find(" ".join(words[:3]), is_definition, folder) if words else None


_READERS: tuple[Callable[[str], Intent | None], ...] = (
    _help,
    _replace,
    _create,
    _run_tests,
    _count,
    _run,
    _summarise,
    _layout,
    _show,
    _list_files,
    _explain,
    _find,
)
"""In this order: the narrow patterns first."""
