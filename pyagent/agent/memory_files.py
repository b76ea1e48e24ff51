"""Memory files: the standing instructions in `CLAUDE.md` and `AGENTS.md`, with what they import."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

MemoryScope: TypeAlias = Literal["user", "project", "local"]

MAX_IMPORT_HOPS = 4
MAX_FILE_CHARS = 100_000
"""About 35,000 tokens; a file of instructions is meant to stay below 200 lines."""
MAX_TOTAL_CHARS = 200_000
"""About 70,000 tokens: a third of the usual window, of which the conversation needs the rest."""
MAX_FILES = 200


@dataclass(frozen=True, slots=True)
class MemoryFile:
    path: str
    """Absolute, as it was found: links are not resolved."""
    text: str
    """Without HTML comments; imports still stand in it as `@path`, their files follow it in the list."""
    scope: MemoryScope


@dataclass(frozen=True, slots=True)
class LoadedMemory:
    files: tuple[MemoryFile, ...] = ()
    """Broad to narrow: what comes later was written for a smaller place and wins."""
    problems: tuple[str, ...] = ()
    """One sentence for each file that was found and not, or not wholly, loaded."""


def load_memory_files(cwd: Path, home: Path, environ: Mapping[str, str], *, is_trusted: bool = False) -> LoadedMemory:
    """The memory files that apply in `cwd`; `home` is pyagent's own folder. Never raises.

    A project's files can reach outside the project, by an import or a link, only where the folder is trusted: else a
    cloned repository could have any file of the user's sent to the model.
    """
    user_home = Path(environ.get("HOME") or os.path.expanduser("~"))
    loader = _Loader(user_home)
    try:
        folder = Path(os.path.abspath(cwd))
    except OSError as error:
        return LoadedMemory((), (f"The working folder can't be found: {_reason(error)}.",))
    config = Path(environ.get("CLAUDE_CONFIG_DIR") or user_home / ".claude")
    loader.load_first([config / "CLAUDE.md"], "user", allowed=None)
    loader.load_first([home / "CLAUDE.md", home / "AGENTS.md"], "user", allowed=None)
    project = _project_root(folder)
    for place in (*reversed(folder.parents), folder):
        allowed = None if is_trusted else (place, folder, project)
        loader.load_first(
            [place / "CLAUDE.md", place / ".claude" / "CLAUDE.md", place / "AGENTS.md"], "project", allowed
        )
        loader.load_first([place / "CLAUDE.local.md"], "local", allowed)
    return LoadedMemory(tuple(loader.files), tuple(loader.problems))


def _project_root(folder: Path) -> Path:
    """The nearest folder from `folder` upwards that is a git work tree, else `folder`."""
    for candidate in (folder, *folder.parents):
        if os.path.exists(candidate / ".git"):
            return candidate
    return folder


class _Loader:
    """Loads each real file once, and keeps within the limits."""

    def __init__(self, user_home: Path) -> None:
        self.files: list[MemoryFile] = []
        self.problems: list[str] = []
        self._user_home = user_home
        self._seen: set[str] = set()
        self._total_chars = 0

    def load_first(self, candidates: list[Path], scope: MemoryScope, allowed: tuple[Path, ...] | None) -> None:
        """Load the first of the files that is there, with its imports; from inside `allowed` only, None: anywhere."""
        for path in candidates:
            if os.path.lexists(path):
                self._load(path, scope, allowed, hops_left=MAX_IMPORT_HOPS)
                return

    def _load(self, path: Path, scope: MemoryScope, allowed: tuple[Path, ...] | None, hops_left: int) -> None:
        real = os.path.realpath(path)
        if real in self._seen:
            return
        self._seen.add(real)
        if allowed is not None and not any(_is_within(real, os.path.realpath(folder)) for folder in allowed):
            self.problems.append(f"{path} is not loaded: it lies outside this folder, which is not trusted.")
            return
        if len(self.files) >= MAX_FILES:
            self.problems.append(f"{path} is not loaded: there are more than {MAX_FILES} memory files.")
            return
        text = self._read(path)
        if text is None or not text.strip():
            return
        self._total_chars += len(text)
        self.files.append(MemoryFile(str(path), text, scope))
        for mention in imports_in(text):
            self._import(path, mention, scope, allowed, hops_left)

    def _import(
        self, source: Path, mention: str, scope: MemoryScope, allowed: tuple[Path, ...] | None, hops_left: int
    ) -> None:
        target = self._target(source, mention)
        if target is None:
            # `@name` may be a person or a package; only what can be nothing but a path is worth a complaint.
            if mention.startswith(("./", "../", "~/", "/")) or mention.endswith(".md"):
                self.problems.append(f"{source} imports @{_shown(mention)}, which is not a file.")
        elif hops_left <= 0:
            if os.path.realpath(target) not in self._seen:
                self.problems.append(f"{target} is not loaded: more than {MAX_IMPORT_HOPS} imports lead to it.")
        else:
            self._load(target, scope, allowed, hops_left - 1)

    def _target(self, source: Path, mention: str) -> Path | None:
        """The file a mention means; a full stop or comma after it belongs to the sentence."""
        for name in dict.fromkeys((mention, mention.rstrip(".,;:!?)]}'\"*"))):
            if not name:
                continue
            path = self._user_home / name[2:] if name.startswith("~/") else source.parent / name
            try:
                if path.is_file():
                    return Path(os.path.normpath(path))
            except (OSError, ValueError):
                continue
        return None

    def _read(self, path: Path) -> str | None:
        """The text within the limits, None with a problem noted if it can't be had."""
        room_chars = min(MAX_FILE_CHARS, MAX_TOTAL_CHARS - self._total_chars)
        if room_chars <= 0:
            self.problems.append(
                f"{path} is not loaded: the memory files before it hold {MAX_TOTAL_CHARS:,} characters."
            )
            return None
        try:
            # Looked at first: opening a pipe would wait for a writer.
            if not stat.S_ISREG(os.stat(path).st_mode):
                self.problems.append(f"{path} is not loaded: it is not a file.")
                return None
            with open(path, "rb") as file:
                # Four bytes a character at the most, and one more to see that it goes on.
                data = file.read(4 * room_chars + 1)
        except (OSError, ValueError) as error:
            self.problems.append(f"{path} is not loaded: {_reason(error)}.")
            return None
        if b"\0" in data:
            self.problems.append(f"{path} is not loaded: it is not UTF-8 text.")
            return None
        text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
        if len(text) > room_chars:
            text = text[:room_chars]
            text = text[: text.rfind("\n") + 1] or text
            self.problems.append(f"{path} is cut: only its first {len(text):,} characters are loaded.")
        elif "\N{REPLACEMENT CHARACTER}" in text:
            self.problems.append(f"{path} is not wholly UTF-8: the characters that are not are lost.")
        return without_comments(text)


def _is_within(real: str, folder: str) -> bool:
    return real == folder or real.startswith(folder.rstrip(os.sep) + os.sep)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _shown(mention: str) -> str:
    shown = "".join(char if char.isprintable() else "?" for char in mention)
    return shown if len(shown) <= 100 else shown[:99] + "…"


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_IMPORT = re.compile(r"(?:^|(?<=\s))@((?:\\ |[^\s\\@])(?:\\ |[^\s\\])*)")
_COMMENT_START = re.compile(r" {0,3}<!--")


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line with its end, and whether it belongs to fenced code."""
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence:
            yield line, True
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
            yield line, True
        else:
            yield line, False


def without_comments(text: str) -> str:
    """The text without HTML comments that begin a line, outside fenced code. One that never ends is kept."""
    kept: list[str] = []
    comment: list[str] = []
    for line, is_code in _lines(text):
        if not comment and (is_code or not _COMMENT_START.match(line)):
            kept.append(line)
            continue
        comment.append(line)
        end = line.find("-->", line.index("<!--") + 4 if len(comment) == 1 else 0)
        if end >= 0:
            comment.clear()
            rest = line[end + 3 :]
            if rest.strip():
                kept.append(rest.lstrip())
    return "".join(kept + comment)


def imports_in(text: str) -> tuple[str, ...]:
    """The paths that `@path` mentions outside code, in order, each once; `\\ ` stands for a space."""
    prose = "".join("\n" if is_code else line for line, is_code in _lines(text))
    mentions: dict[str, None] = {}
    for paragraph in re.split(r"\n[ \t]*\n", prose):
        for match in _IMPORT.finditer(_CODE_SPAN.sub(" ` ", paragraph)):
            mentions[match[1].replace("\\ ", " ")] = None
    return tuple(mentions)
