"""Text as a screen reader should hear it: tables row by row as `Header: value`, signs as words, columns as pairs."""

from __future__ import annotations

import re

_DELIMITER_ROW = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
_SIGNS = ((" · ", ", "), (" → ", " to "), ("✓", "done"), ("✗", "failed"), ("…", "..."))


def spoken(text: str) -> str:
    """A line of pyagent's own, without signs that are read out by name or not at all."""
    for sign, words in _SIGNS:
        text = text.replace(sign, words)
    return text


def spoken_report(text: str) -> str:
    """A report whose columns are aligned by spaces, as pairs."""
    return "\n".join(spoken(_GAP.sub(": ", line.strip())) for line in text.split("\n") if line.strip())


class SpokenLines:
    """Markdown that comes in pieces, given out line by line with its tables told as pairs."""

    def __init__(self) -> None:
        self._open = ""
        """The line whose end has not come yet."""
        self._maybe_header: str | None = None
        """A line that is a table's header if a row of dashes follows."""
        self._is_code = False
        self._headers: list[str] = []
        """Of the table being read; empty outside of one."""

    def feed(self, text: str) -> str:
        """Take in text; what can be said of it now."""
        *lines, self._open = (self._open + text).split("\n")
        return "".join(self._line(line) for line in lines)

    def finish(self) -> str:
        """The rest, when no more comes."""
        said = (self._line(self._open) if self._open else "") + self._release()
        self._open, self._headers, self._is_code = "", [], False
        return said.removesuffix("\n")

    def _line(self, line: str) -> str:
        header, self._maybe_header = self._maybe_header, None
        if header is not None:
            if _DELIMITER_ROW.fullmatch(line) and len(_cells(line)) == len(_cells(header)):
                self._headers = _cells(header)
                return ""
            return header + "\n" + self._line(line)
        if line.lstrip().startswith(("```", "~~~")):
            self._is_code = not self._is_code
        if self._is_code:
            return line + "\n"
        if self._headers:
            if "|" in line:
                return _row(self._headers, _cells(line)) + "\n"
            self._headers = []
        if "|" in line:
            self._maybe_header = line
            return ""
        return line + "\n"

    def _release(self) -> str:
        header, self._maybe_header = self._maybe_header, None
        return "" if header is None else header + "\n"


def _cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def _row(headers: list[str], cells: list[str]) -> str:
    pairs = [f"{header}: {cell}" for header, cell in zip(headers, cells, strict=False) if cell]
    return ", ".join(pairs)
