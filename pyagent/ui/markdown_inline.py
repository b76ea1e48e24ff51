"""Inline Markdown (emphasis, code, links) to spans, one list for each hard line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyagent.ui.lines import Span, inert

if TYPE_CHECKING:
    from markdown_it.token import Token

_URL = re.compile(r"https?://[^\s<>()\[\]`\"']+[^\s<>()\[\]`\"'.,;:!?]")
_ROLE_BY_OPENER = {"strong_open": "strong", "em_open": "em", "s_open": "strike"}


HARD_WRAPPED_CHARS = 60
"""A source line this long was probably broken by its writer's editor and flows on; shorter ones were meant to end."""


def inline_lines(tokens: Sequence[Token], base_role: str = "") -> list[list[Span]]:
    """Spans of each line of an inline run. A newline after a short source line breaks."""
    lines: list[list[Span]] = [[]]
    roles = [base_role] if base_role else []
    hrefs: list[str] = []
    for token in tokens:
        # Entities (`&#x202E;`, `&NewLine;`) become characters only here, after the source was made inert.
        content = inert(token.content).replace("\n", " ")
        role, href = " ".join(roles), hrefs[-1] if hrefs else ""
        match token.type:
            case "text":
                _add_text(lines[-1], content, role, href)
            case "code_inline":
                lines[-1].append(Span(content, f"{role} code".strip(), href))
            case "softbreak" if sum(len(span.text) for span in lines[-1]) >= HARD_WRAPPED_CHARS:
                lines[-1].append(Span(" ", role, href))
            case "softbreak" | "hardbreak":
                lines.append([])
            case "strong_open" | "em_open" | "s_open":
                roles.append(_ROLE_BY_OPENER[token.type])
            case "strong_close" | "em_close" | "s_close":
                roles.pop()
            case "link_open":
                roles.append("link")
                hrefs.append(str(token.attrs.get("href", "")))
            case "link_close":
                roles.pop()
                hrefs.pop()
            case "image":
                lines[-1].append(Span(f"[image: {content}]", f"{role} link", str(token.attrs.get("src", ""))))
            case _:
                _add_text(lines[-1], content, role, href)
    return lines


def _add_text(line: list[Span], text: str, role: str, href: str) -> None:
    if not text:
        return
    if href or "://" not in text:
        line.append(Span(text, role, href))
        return
    done = 0
    for match in _URL.finditer(text):
        if match.start() > done:
            line.append(Span(text[done : match.start()], role))
        line.append(Span(match.group(), f"{role} link".strip(), match.group()))
        done = match.end()
    if done < len(text):
        line.append(Span(text[done:], role))
