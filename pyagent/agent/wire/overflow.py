"""Recognises, among the ways servers word it, that a request does not fit, and which images it was refused for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_BODY_BYTES = 32 * 1024 * 1024
"""The first party's limit for a request body."""


GUESS_SHARE = 0.25
"""Of the window: where no figures are named, a smaller prompt is not what a complaint about length is about."""
GUESS_FACTOR = 4.0
"""How far the estimate may be from the figure a server names: before the encoding is loaded it is made of bytes."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """What a server said of a request that is too long. Tokens are None where it named none."""

    prompt_tokens: int | None = None
    limit_tokens: int | None = None
    is_byte_limit: bool = False
    fits_with_fewer_output_tokens: bool = False
    """Only the sum of input and `max_tokens` is too large: a lower `max_tokens` is enough."""
    is_guess: bool = False
    """The wording is not known, it only speaks of too much input: believed where the request's size agrees."""

    def agrees_with(self, prompt_tokens: float, window_tokens: int) -> bool:
        """Whether an unknown wording can mean a request of that estimated size, to a window of that assumed size."""
        if self.prompt_tokens is not None and self.limit_tokens is not None:
            return self.prompt_tokens / GUESS_FACTOR <= prompt_tokens <= self.prompt_tokens * GUESS_FACTOR
        return prompt_tokens >= GUESS_SHARE * window_tokens


@dataclass(frozen=True, slots=True)
class MediaFault:
    """Images or documents a server refused. Paths are as the server wrote them (`messages.3.content.0`)."""

    paths: tuple[str, ...] = ()
    max_side_px: int | None = None
    max_bytes: int | None = None
    is_count: bool = False
    """There are too many of them, none is wrong by itself."""


_WITH_FIGURES: tuple[tuple[re.Pattern[str], bool], ...] = (
    (re.compile(r"prompt is too long:\s*(?P<prompt>\d+) tokens\s*>\s*(?P<limit>\d+)", re.I), False),
    (
        re.compile(
            r"input length and `?max_tokens`? exceed context limit:\s*(?P<prompt>\d+)\s*\+\s*(?P<output>\d+)"
            r"\s*>\s*(?P<limit>\d+)",
            re.I,
        ),
        True,
    ),
    (
        re.compile(
            r"maximum context length is (?P<limit>\d+)(?:.*?(?:requested|request has) (?P<prompt>\d+))?", re.I | re.S
        ),
        False,
    ),
    (re.compile(r"must be <= (?P<limit>\d+)\. Given:? (?P<prompt>\d+) .?inputs.? tokens", re.I), False),
    (
        re.compile(
            r"(?:\((?P<prompt>\d+) tokens\) )?exceeds? the available context size(?: \((?P<limit>\d+) tokens\))?", re.I
        ),
        False,
    ),
)
"""(pattern, whether a lower `max_tokens` may be enough)."""

_WITHOUT_FIGURES = re.compile(
    r"context_length_exceeded|exceed_context_size_error|too many tokens|prompt is too long|"
    r"context (?:length|window|size)[^.]{0,40}exceed|exceed[^.]{0,40}context (?:length|window|size|limit)|"
    r"input is too long for requested model",
    re.I,
)

_OF_INPUT = re.compile(r"\b(?:inputs?|prompt|messages?|request(?:ed)?|conversation)\b", re.I)
_OF_LENGTH = re.compile(r"\b(?:tokens?|length)\b", re.I)
_OF_TOO_MUCH = re.compile(
    r"exceed|(?:longer|greater|larger|more) than|too (?:long|large|many|big)|maximum|at most|\blimit|reduce|range of",
    re.I,
)
_OF_ANYTHING_ELSE = re.compile(
    r"max_tokens|max_completion_tokens|output|budget|image|document|pdf|rate.limit|quota|credit|"
    r"per (?:second|minute|hour|day)|cache|string|characters?|header|input should|at least|"
    # What names a field of its own is about that field.
    r"(?-i:^(?!messages: |prompt: |input: )[a-z_]+(?:\.\w+)*: )",
    re.I,
)
"""A refusal in words nobody has met is an overflow if it speaks of the first three and of nothing of the last."""
_FIGURE = re.compile(r"(?<![\w.-])\d{1,3}(?:,\d{3})+(?![\w-])|(?<![\w.-])\d{3,}(?![\w-])")

_TOO_MANY_IMAGES = re.compile(r"too many (?:images|documents|images and documents)", re.I)
_MEDIA_TEXT = re.compile(
    r"image exceeds|image dimensions exceed|could not process (?:image|pdf)|"
    r"pdf[^.]{0,40}too (?:large|many)|"
    r"(?:image|document|pdf)[^.]{0,60}(?:exceed|too large|maximum|invalid|unsupported|not supported)|"
    r"image\.source|document\.source",
    re.I,
)
_MEDIA_CODES = frozenset({"image_dimensions_too_large", "image_too_large", "document_too_large"})
_PATH = re.compile(r"messages\.\d+\.content\.\d+(?:\.tool_result\.content\.\d+|\.content\.\d+)?")
_BYTES = re.compile(r"> (\d+) bytes")
_SIDE = re.compile(r"(\d+) pixels")


def find_overflow(status: int | None, text: str, error_type: str | None) -> Overflow | None:
    """The overflow an error tells of, or None. 413 is bytes whatever its body says; token overflow is known by text
    alone, since the API gives it no code of its own."""
    if status == 413 or error_type == "request_too_large":
        return Overflow(is_byte_limit=True)
    if status is not None and status not in (200, 400, 422, 500):
        return None
    for pattern, is_output_too in _WITH_FIGURES:
        match = pattern.search(text)
        if match:
            figures = {name: int(value) for name, value in match.groupdict().items() if value}
            prompt, limit = figures.get("prompt"), figures.get("limit")
            fits = is_output_too and prompt is not None and limit is not None and prompt < limit
            return Overflow(prompt, limit, fits_with_fewer_output_tokens=fits)
    if _WITHOUT_FIGURES.search(f"{error_type or ''} {text}"):
        return Overflow()
    return _guessed(text)


def _guessed(text: str) -> Overflow | None:
    """The overflow an unknown wording seems to tell of. Of two figures the larger one is the prompt's."""
    is_one = _OF_INPUT.search(text) and _OF_LENGTH.search(text) and _OF_TOO_MUCH.search(text)
    if not is_one or _OF_ANYTHING_ELSE.search(text):
        return None
    figures = sorted({int(figure.replace(",", "")) for figure in _FIGURE.findall(text)})
    limit, prompt = figures if len(figures) == 2 else (None, None)
    return Overflow(prompt, limit, is_guess=True)


def find_media_fault(
    status: int | None, text: str, error_code: str | None, details: Mapping[str, Any]
) -> MediaFault | None:
    """Which images or documents a 400 is about, or None if it is about something else."""
    if status != 400 or not (error_code in _MEDIA_CODES or _MEDIA_TEXT.search(text) or _TOO_MANY_IMAGES.search(text)):
        return None
    listed = details.get("paths")
    paths = [path for path in listed if isinstance(path, str)] if isinstance(listed, list) else _PATH.findall(text)
    side = details.get("max_side_length_pixels")
    in_text = _SIDE.search(text)
    size = _BYTES.search(text)
    return MediaFault(
        tuple(paths),
        side if isinstance(side, int) else int(in_text[1]) if in_text else None,
        int(size[1]) if size else None,
        is_count=bool(_TOO_MANY_IMAGES.search(text)),
    )
