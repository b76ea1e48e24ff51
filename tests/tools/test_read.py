"""Read: what is on disk → what the model is shown."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import socket
from pathlib import Path

import pytest
from PIL import Image
from pypdf import PdfReader, PdfWriter

from pyagent.messages import DocumentBlock, ImageBlock
from pyagent.settings import Settings
from pyagent.tools.image_file import pixel_size
from tests.tools.support import Workbench, memory_peak, reset_memory_peak

SHOWN: tuple[tuple[str, bytes, str], ...] = (
    ("lines are numbered from 1, a tab after the number", b"a\nb\n", "     1\ta\n     2\tb"),
    ("a missing final newline changes nothing", b"a\nb", "     1\ta\n     2\tb"),
    ("tabs stay tabs", b"\tif x {\n", "     1\t\tif x {"),
    ("an empty file says so", b"", "[The file is empty.]"),
    ("a lone newline is one empty line", b"\n", "     1\t"),
    ("a UTF-8 mark is not shown", b"\xef\xbb\xbfa\n", "     1\ta"),
    (
        "CRLF is shown as a line end, and said",
        b"a\r\nb\r\n",
        "     1\ta\n     2\tb\n[Line ends are CRLF; Edit keeps them.]",
    ),
    ("UTF-16 is read by its mark", "é\n".encode("utf-16"), "     1\té\n[Encoded as UTF-16-LE.]"),
    ("UTF-16 big-endian too", b"\xfe\xff" + "é\n".encode("utf-16-be"), "     1\té\n[Encoded as UTF-16-BE.]"),
    ("a line separator of Unicode ends no line", "a\u2028b\x85c\n".encode(), "     1\ta\u2028b\x85c"),
    (
        "a stray byte in UTF-8 is shown escaped",
        "äöü \n".encode() + b"\xff\n",
        "     1\täöü \n     2\t\\xff\n[Not valid UTF-8 throughout: stray bytes are shown as \\xNN.]",
    ),
    ("a program named .txt is binary", b"\x7fELF\0\0\0" * 40, "binary"),
    ("a NUL means binary", b"abc\0def\n", "binary"),
)


@pytest.mark.parametrize(("content", "expected"), [row[1:] for row in SHOWN], ids=[row[0] for row in SHOWN])
async def test_text_is_shown_as_it_is(bench: Workbench, content: bytes, expected: str) -> None:
    bench.path("file.txt", content)
    result = await bench.call("Read", file_path="file.txt")
    if expected == "binary":
        assert result.is_error
        assert "binary file" in result.text
    else:
        assert result.text == expected
        assert not result.is_error


async def test_legacy_bytes_are_shown_as_letters_and_named(bench: Workbench) -> None:
    bench.path("a.js", b"const x = 1;\n// caf\xe9\n")
    result = await bench.call("Read", file_path="a.js")
    assert "// café" in result.text
    assert "Windows-1252" in result.text


async def test_a_missing_file_suggests_near_names(bench: Workbench) -> None:
    bench.path("src/settings.py", "x\n")
    result = await bench.call("Read", file_path="src/setings.py")
    assert result.is_error
    assert str(bench.root / "src/settings.py") in result.text


async def test_a_missing_folder_suggests_the_near_folder(bench: Workbench) -> None:
    bench.path("source/a.py", "x\n")
    result = await bench.call("Read", file_path="sourc/a.py")
    assert str(bench.root / "source") in result.text


async def test_a_folder_is_refused_with_what_to_use(bench: Workbench) -> None:
    result = await bench.call("Read", file_path=".")
    assert result.is_error
    assert "Glob" in result.text


async def test_nothing_that_could_block_is_opened(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(bench.root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(bench.root)  # a socket's path may have 107 bytes at most
        server.bind("socket")
        for name in ("pipe", "socket", "/dev/zero", "/dev/tty", "/proc/kmsg", "/proc/self/pagemap"):
            result = await bench.call("Read", file_path=name)
            assert result.is_error, name


async def test_two_thousand_lines_by_default_and_how_to_go_on(bench: Workbench) -> None:
    bench.path("long.txt", "".join(f"line {n}\n" for n in range(1, 2_501)))
    result = await bench.call("Read", file_path="long.txt")
    assert "  2000\tline 2000" in result.text
    assert "line 2001" not in result.text
    assert "[PARTIAL view: lines 1-2000 of 2,500. Go on with offset=2001.]" in result.text
    assert result.files_seen[0].is_partial
    assert result.files_seen[0].line_range == (1, 2000)
    rest = await bench.call("Read", file_path="long.txt", offset=2_001)
    assert rest.text.startswith("  2001\tline 2001")
    assert "  2500\tline 2500" in rest.text


async def test_the_token_cap_ends_the_view_early(tmp_path: Path) -> None:
    bench = Workbench(tmp_path, Settings(read_max_tokens=1_000))
    bench.path("wide.txt", "".join(f"{n:0>79}\n" for n in range(500)))
    result = await bench.call("Read", file_path="wide.txt")
    assert len(result.text) // 4 <= 1_100
    assert "PARTIAL view" in result.text


async def test_an_offset_past_the_end_is_told(bench: Workbench) -> None:
    bench.path("a.txt", "1\n2\n3\n")
    result = await bench.call("Read", file_path="a.txt", offset=9)
    assert result.text == "[Line 9 is past the end: the file has 3 lines.]"
    assert result.files_seen == ()


async def test_a_range_shows_just_that(bench: Workbench) -> None:
    bench.path("a.txt", "1\n2\n3\n4\n")
    result = await bench.call("Read", file_path="a.txt", offset=2, limit=2)
    assert result.text == "     2\t2\n     3\t3\n[lines 2-3 of 4. Go on with offset=4.]"


async def test_a_minified_line_is_cut_with_a_way_to_the_rest(bench: Workbench) -> None:
    bench.path("min.js", "x" * 5_000_000)
    result = await bench.call("Read", file_path="min.js")
    assert len(result.text) < 2_500
    assert "[Line 1 has 5,000,000 characters, cut at 2,000." in result.text


async def test_the_hash_is_that_of_the_whole_file(bench: Workbench) -> None:
    content = "".join(f"{n}\n" for n in range(5_000)).encode()
    bench.path("a.txt", content)
    result = await bench.call("Read", file_path="a.txt", offset=10, limit=5)
    assert result.files_seen[0].sha256 == hashlib.sha256(content).hexdigest()


async def test_large_files_are_streamed_and_hashed(bench: Workbench) -> None:
    content = b"0123456789abcde\n" * (20 * 1024 * 1024 // 16)
    bench.path("big.log", content)
    result = await bench.call("Read", file_path="big.log", offset=1_000_000, limit=1)
    assert result.text.startswith("1000000\t0123456789abcde")
    assert result.files_seen[0].sha256 == hashlib.sha256(content).hexdigest()


async def test_the_head_of_ten_gigabytes_is_read_alone(bench: Workbench) -> None:
    path = bench.path("huge.log", "line\n" * 3_000)
    os.truncate(path, 10 * 1024**3)
    resident = reset_memory_peak()
    result = await bench.call("Read", file_path="huge.log", limit=10)
    assert memory_peak() - resident < 50 * 1024 * 1024
    assert "    10\tline" in result.text
    assert result.files_seen == ()


async def test_a_line_of_200_megabytes_takes_no_memory(bench: Workbench) -> None:
    path = bench.path("line.txt", "x" * 20_000)
    os.truncate(path, 200 * 1024**2)
    resident = reset_memory_peak()
    result = await bench.call("Read", file_path="line.txt")
    assert memory_peak() - resident < 50 * 1024 * 1024
    assert "209,715,200 characters" in result.text


async def test_an_unchanged_file_is_not_sent_twice(bench: Workbench) -> None:
    path = bench.path("a.txt", "1\n2\n")
    await bench.call("Read", file_path="a.txt")
    os.utime(path, (1, 1))
    assert "unchanged" in (await bench.call("Read", file_path=str(path))).text
    path.write_text("1\n3\n")
    assert "2\t3" in (await bench.call("Read", file_path="a.txt")).text


async def test_what_was_cleared_from_the_context_is_sent_again(bench: Workbench) -> None:
    bench.path("a.txt", "1\n")
    await bench.call("Read", file_path="a.txt")
    bench.files.clear_results()
    assert (await bench.call("Read", file_path="a.txt")).text == "     1\t1"


async def test_another_range_of_an_unchanged_file_is_sent(bench: Workbench) -> None:
    bench.path("a.txt", "1\n2\n3\n")
    await bench.call("Read", file_path="a.txt", limit=1)
    assert "3\t3" in (await bench.call("Read", file_path="a.txt", offset=3)).text


async def test_a_part_read_after_the_whole_does_not_forget_the_whole(bench: Workbench) -> None:
    bench.path("a.txt", "1\n2\n3\n")
    await bench.call("Read", file_path="a.txt")
    await bench.call("Read", file_path="a.txt", offset=2, limit=1)
    assert not (await bench.call("Write", file_path="a.txt", content="new\n")).is_error


async def test_a_link_and_its_target_are_one_file(bench: Workbench) -> None:
    bench.path("real.txt", "1\n")
    (bench.root / "link.txt").symlink_to("real.txt")
    await bench.call("Read", file_path="link.txt")
    assert not (await bench.call("Edit", file_path="real.txt", old_string="1", new_string="2")).is_error


def _png(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(buffer, "PNG")
    return buffer.getvalue()


async def test_an_image_is_known_by_its_bytes_not_its_name(bench: Workbench) -> None:
    data = _png(30, 20)
    bench.path("picture.txt", data)
    result = await bench.call("Read", file_path="picture.txt")
    (block,) = result.content
    assert isinstance(block, ImageBlock)
    assert (block.width_px, block.height_px) == (30, 20)
    assert block.source["media_type"] == "image/png"
    assert base64.b64decode(block.source["data"]) == data


async def test_a_large_image_is_made_smaller(bench: Workbench) -> None:
    bench.path("large.png", _png(3_000, 1_500))
    (block,) = (await bench.call("Read", file_path="large.png")).content
    assert isinstance(block, ImageBlock)
    assert (block.width_px, block.height_px) == (2_000, 1_000)
    assert pixel_size(base64.b64decode(block.source["data"])) == (2_000, 1_000)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_the_size_of_each_kind_of_image_is_read_from_its_header(kind: str) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (321, 123)).save(buffer, kind)
    assert pixel_size(buffer.getvalue()) == (321, 123)


async def test_a_broken_image_is_an_error_and_not_a_block(bench: Workbench) -> None:
    bench.path("broken.png", b"\x89PNG\r\n\x1a\n")
    assert (await bench.call("Read", file_path="broken.png")).is_error


def _pdf(pages: int) -> bytes:
    writer, buffer = PdfWriter(), io.BytesIO()
    for _ in range(pages):
        writer.add_blank_page(100, 100)
    writer.write(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("pages_in_file", "wanted", "outcome"),
    [
        (1, None, 1),
        (10, None, 10),
        (11, None, "has 11 pages. Choose"),
        (11, "11", 1),
        (11, "2-5", 4),
        (11, "9-", 3),
        (11, "10-40", "At most 20 pages"),
        (11, "12", "has pages 1 to 11"),
        (11, "all", 'must be such as "3"'),
    ],
)
async def test_a_pdf_is_a_document_whole_or_by_pages(
    bench: Workbench, pages_in_file: int, wanted: str | None, outcome: int | str
) -> None:
    bench.path("a.pdf", _pdf(pages_in_file))
    result = await bench.call("Read", file_path="a.pdf", pages=wanted)
    if isinstance(outcome, str):
        assert result.is_error
        assert outcome in result.text
        return
    (block,) = result.content
    assert isinstance(block, DocumentBlock)
    assert block.page_count == outcome
    assert len(PdfReader(io.BytesIO(base64.b64decode(block.source["data"]))).pages) == outcome


async def test_a_broken_pdf_is_an_error_in_words(bench: Workbench) -> None:
    bench.path("a.pdf", b"%PDF-1.4\n1 0 obj << /Type /Page >> endobj\n")
    result = await bench.call("Read", file_path="a.pdf")
    assert result.is_error
    assert "cannot be read as PDF" in result.text


async def test_a_notebook_is_read_as_cells_with_outputs(bench: Workbench) -> None:
    cells = [
        {"cell_type": "markdown", "id": "m1", "metadata": {}, "source": ["# Title\n", "text"]},
        {
            "cell_type": "code",
            "id": "c1",
            "metadata": {},
            "source": "1+1",
            "outputs": [{"output_type": "execute_result", "data": {"text/plain": ["2"], "image/png": "…"}}],
        },
    ]
    bench.path("a.ipynb", json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5}))
    text = (await bench.call("Read", file_path="a.ipynb")).text
    assert '<cell id="m1" type="markdown">' in text
    assert "# Title" in text
    assert "<output>" in text


async def test_bytes_of_a_name_shown_by_glob_can_be_given_back(bench: Workbench) -> None:
    bench.path(os.fsdecode(b"caf\xe9.txt"), b"x\n")
    listed = (await bench.call("Glob", pattern="*.txt")).text
    assert listed == "caf\\xe9.txt"
    assert (await bench.call("Read", file_path=listed)).text == "     1\tx"


def test_reading_outside_the_project_is_asked_about(bench: Workbench, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("x")
    (bench.root / "way-out").symlink_to(tmp_path)
    assert bench.ask("Read", file_path="a.txt") is None
    assert bench.ask("Read", file_path=str(bench.results_dir / "bash_1.txt")) is None
    for name in ("../other.txt", "way-out/other.txt", "/etc/passwd", "~/.ssh/id_rsa"):
        question = bench.ask("Read", file_path=name)
        assert question is not None
        assert question.action == "read"
        assert question.session_rule.startswith("Read(//")
