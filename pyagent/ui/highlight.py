"""Code colouring line by line, so that a fence can be coloured while it grows and never twice.

A regex lexer carries its state stack from one line to the next, which keeps doc strings and block comments right; other
lexers see each line alone. pygments is imported at the first fence, not at start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, cast

from pyagent.ui.lines import Span

LONGEST_COLOURED_CHARS = 2_000
"""Longer lines are minified code or data: colouring one costs milliseconds and helps nobody."""

_ROLE_BY_TOKEN = {
    "Token.Keyword.Constant": "code.number",
    "Token.Keyword": "code.keyword",
    "Token.Literal.String": "code.string",
    "Token.String": "code.string",
    "Token.Literal.Number": "code.number",
    "Token.Comment.Preproc": "code.keyword",
    "Token.Comment": "code.comment",
    "Token.Name.Function": "code.function",
    "Token.Name.Class": "code.type",
    "Token.Name.Exception": "code.type",
    "Token.Name.Decorator": "code.function",
    "Token.Name.Builtin": "code.builtin",
    "Token.Name.Tag": "code.keyword",
    "Token.Name.Attribute": "code.function",
    "Token.Name.Variable": "code.type",
    "Token.Operator.Word": "code.keyword",
    "Token.Generic.Inserted": "code.added",
    "Token.Generic.Deleted": "code.removed",
    "Token.Generic.Heading": "code.function",
    "Token.Generic.Subheading": "code.keyword",
}


class CodeHighlighter(Protocol):
    """Colours the lines of one piece of code, in order."""

    def line(self, text: str) -> tuple[Span, ...]:
        """The next line as spans; the line has no newline."""
        ...

    def peek(self, text: str) -> tuple[Span, ...]:
        """Like `line`, for a line that is not finished yet: the state does not move on."""
        ...


class _Plain:
    def line(self, text: str) -> tuple[Span, ...]:
        return (Span(text),)

    def peek(self, text: str) -> tuple[Span, ...]:
        return (Span(text),)


class _Pygments:
    """One lexer and the state stack it had after the last line."""

    def __init__(self, lexer: Any, *, has_stack: bool) -> None:
        self._lexer = lexer
        self._has_stack = has_stack
        self._stack: list[str] = ["root"]

    def line(self, text: str) -> tuple[Span, ...]:
        spans, self._stack = self._coloured(text)
        return spans

    def peek(self, text: str) -> tuple[Span, ...]:
        return self._coloured(text)[0]

    def _coloured(self, text: str) -> tuple[tuple[Span, ...], list[str]]:
        if len(text) > LONGEST_COLOURED_CHARS or not text:
            return (Span(text),), self._stack
        try:
            tokens, stack = self._tokens(text + "\n")
        except (TypeError, AttributeError, AssertionError, ValueError, IndexError, KeyError):
            # Third-party lexers do raise on odd fragments, and some callbacks take no context. Plain is always right.
            self._has_stack = False
            return (Span(text),), self._stack
        spans = _spans(tokens)
        if "".join(span.text for span in spans) != text:
            return (Span(text),), self._stack
        return spans, stack

    def _tokens(self, text: str) -> tuple[Sequence[tuple[int, object, str]], list[str]]:
        if not self._has_stack:
            return list(self._lexer.get_tokens_unprocessed(text)), self._stack
        from pygments.lexer import ExtendedRegexLexer, LexerContext

        context = LexerContext(text, 0, stack=list(self._stack))
        run = cast(Any, ExtendedRegexLexer.get_tokens_unprocessed)
        tokens = list(run(self._lexer, context=context))
        return tokens, list(context.stack)


def _spans(tokens: Iterable[tuple[int, object, str]]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for _, token, value in tokens:
        text = value.replace("\n", "")
        if not text:
            continue
        role = _role(token)
        if spans and spans[-1].role == role:
            spans[-1] = Span(spans[-1].text + text, role)
        else:
            spans.append(Span(text, role))
    return tuple(spans)


_role_cache: dict[object, str] = {}


def _role(token: object) -> str:
    role = _role_cache.get(token)
    if role is None:
        name = str(token)
        while name and name not in _ROLE_BY_TOKEN:
            name = name.rpartition(".")[0]
        role = _role_cache[token] = _ROLE_BY_TOKEN.get(name, "")
    return role


def highlighter(language: str) -> CodeHighlighter:
    """A highlighter for a language name or file suffix; a plain one for what pygments does not know."""
    if not language:
        return _Plain()
    from pygments.lexer import RegexLexer
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return _Plain()
    has_stack = isinstance(lexer, RegexLexer) and (
        type(lexer).get_tokens_unprocessed is RegexLexer.get_tokens_unprocessed
    )
    return _Pygments(lexer, has_stack=has_stack)


def language_of_path(path: str) -> str:
    """The pygments name for a file's suffix, or nothing. A short table: asking pygments scans every lexer it has."""
    name = path.rsplit("/", 1)[-1].lower()
    if name in _LANGUAGE_BY_NAME:
        return _LANGUAGE_BY_NAME[name]
    return _LANGUAGE_BY_SUFFIX.get(name.rpartition(".")[2], "") if "." in name else ""


_LANGUAGE_BY_NAME = {"makefile": "make", "dockerfile": "docker", "cmakelists.txt": "cmake"}
_LANGUAGE_BY_SUFFIX = {
    "py": "python",
    "pyi": "python",
    "js": "javascript",
    "mjs": "javascript",
    "jsx": "javascript",
    "ts": "typescript",
    "tsx": "typescript",
    "rs": "rust",
    "go": "go",
    "c": "c",
    "h": "c",
    "cc": "cpp",
    "cpp": "cpp",
    "hpp": "cpp",
    "java": "java",
    "kt": "kotlin",
    "rb": "ruby",
    "php": "php",
    "cs": "csharp",
    "swift": "swift",
    "sh": "bash",
    "bash": "bash",
    "zsh": "bash",
    "sql": "sql",
    "html": "html",
    "css": "css",
    "scss": "scss",
    "json": "json",
    "yaml": "yaml",
    "yml": "yaml",
    "toml": "toml",
    "xml": "xml",
    "lua": "lua",
    "md": "markdown",
}
