"""Whatever the bytes: an edit is applied exactly, or refused; what is around it stays as it was."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyagent.log import FileSeen
from pyagent.state import KnownFile
from pyagent.tools.matching import MatchError, replace_text
from pyagent.tools.text_file import detect_encoding
from tests.tools.support import Workbench

_CODECS = ("utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1", "shift_jis", "gb18030", "koi8-r")
_LETTERS = st.sampled_from(list("aab  \t{}'\"()=xyz01éßñ’“—日本中я☃🍸"))
_ENDS = st.sampled_from(["\n", "\n", "\r\n", "\r\n", "\r", ""])
_TEXT = st.lists(st.tuples(st.text(_LETTERS, max_size=8), _ENDS), max_size=12).map(
    lambda lines: "".join(line + end for line, end in lines)
)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Text in some encoding, sometimes with bytes that are none."""
    data = draw(_TEXT).encode(draw(st.sampled_from(_CODECS)), "ignore")
    if draw(st.integers(0, 3)) == 0:
        position = draw(st.integers(0, len(data)))
        data = data[:position] + draw(st.binary(max_size=4)) + data[position:]
    return data


@st.composite
def edits(draw: st.DrawFn) -> tuple[bytes, str, str]:
    """A file, a part of it as the model sees it, and what to put there."""
    data = draw(files())
    encoding = detect_encoding(data)
    text = encoding.decode(data).replace("\r\n", "\n") if encoding is not None else ""
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 20)))
    old = text[start:end]
    if draw(st.integers(0, 4)) == 0:
        old = draw(_TEXT)
    return data, old, draw(_TEXT)


@given(files())
@settings(max_examples=1_500, deadline=None)
def test_decoding_loses_nothing(data: bytes) -> None:
    encoding = detect_encoding(data)
    if encoding is not None:
        assert encoding.encode(encoding.decode(data)) == data


@given(edits(), st.booleans())
@settings(max_examples=2_500, deadline=None)
def test_a_replacement_changes_its_span_and_nothing_else(edit: tuple[bytes, str, str], replace_all: bool) -> None:
    data, old, new = edit
    encoding = detect_encoding(data)
    if encoding is None or not old:
        return
    text = encoding.decode(data)
    plain, plain_old, plain_new = (part.replace("\r\n", "\n") for part in (text, old, new))
    try:
        result = replace_text(text, old, new, replace_all=replace_all, allow_tolerant=False)
    except MatchError:
        # Overlapping places count one by one: which of the two in three equal lines is meant is a guess.
        places = sum(plain.startswith(plain_old, position) for position in range(len(plain)))
        assert places != 1
        assert not (replace_all and plain_old in plain)
        return
    # What the model sees afterwards is what it asked for. (A lone CR beside a new LF reads as one line end.)
    if "\r" not in plain and "\r" not in plain_new:
        assert result.text.replace("\r\n", "\n") == plain.replace(plain_old, plain_new)
    if not replace_all:
        before, _, after = plain.partition(plain_old)
        head_lines, tail_lines = before.count("\n"), after.count("\n")
        old_lines, new_lines = text.split("\n"), result.text.split("\n")
        assert new_lines[:head_lines] == old_lines[:head_lines]
        assert tail_lines == 0 or new_lines[-tail_lines:] == old_lines[-tail_lines:]


@given(edits(), st.booleans(), st.sampled_from(["Edit", "Write"]))
@settings(max_examples=1_200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_file_is_changed_as_asked_or_not_at_all(edit: tuple[bytes, str, str], replace_all: bool, tool: str) -> None:
    data, old, new = edit
    # In memory where the system has such a folder: every write is synced.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        bench = Workbench(Path(folder))
        path = bench.path("file.txt", data)
        seen = FileSeen(str(path), hashlib.sha256(data).hexdigest(), "toolu_read", "read")
        bench.files.known[str(path)] = KnownFile(seen, is_visible=True)
        if tool == "Edit":
            fields: dict[str, object] = {"old_string": old, "new_string": new, "replace_all": replace_all}
        else:
            fields = {"content": new}
        result = asyncio.run(bench.call(tool, file_path="file.txt", **fields))
        after = path.read_bytes()
        assert os.listdir(folder) == ["file.txt"]
        if result.is_error:
            assert after == data
            return
        assert result.files_seen[0].sha256 == hashlib.sha256(after).hexdigest()
        if tool == "Edit" and data:
            _assert_only_one_region_differs(data, after, old, replace_all)


def _assert_only_one_region_differs(data: bytes, after: bytes, old: str, replace_all: bool) -> None:
    encoding = detect_encoding(data)
    assert encoding is not None
    if replace_all:
        return
    head = _common_length(data, after)
    tail = _common_length(data[head:][::-1], after[head:][::-1])
    changed = len(data) - head - tail
    # The span itself: its characters at four bytes at most, a CR for each newline; a tolerant match adds blanks.
    assert changed <= 4 * (len(old) + old.count("\n")) + 200


def _common_length(a: bytes, b: bytes) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
