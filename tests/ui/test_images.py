"""Images that are dropped, pasted or on the clipboard."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pyagent.ui.images import (
    DesktopClipboard,
    FoundImage,
    dropped_words,
    image_command,
    images_in_drop,
    kept_image,
)
from tests.pictures import png


@pytest.mark.parametrize(
    ("sent", "paths"),
    [
        ("/a/b.png", ["/a/b.png"]),
        ("'/a/my shot.png' ", ["/a/my shot.png"]),
        ('"/a/my shot.png"', ["/a/my shot.png"]),
        ("/a/my\\ shot\\ \\(1\\).png", ["/a/my shot (1).png"]),
        ("/a/b.png /a/c.jpg", ["/a/b.png", "/a/c.jpg"]),
        ("file:///a/my%20shot.png\r\nfile:///a/c.png", ["/a/my shot.png", "/a/c.png"]),
        ("file://localhost/a/b.png", ["/a/b.png"]),
        ("file://elsewhere/a/b.png", ["file://elsewhere/a/b.png"]),
        ("'/a/it'\\''s mine.png' '/a/b.png'", ["/a/it's mine.png", "/a/b.png"]),
        ("/a/it's.png /a/b's.png", ["/a/it's.png", "/a/b's.png"]),
        ("'unfinished", []),
    ],
)
def test_dropped_paths_are_read_as_terminals_write_them(sent: str, paths: list[str]) -> None:
    assert dropped_words(sent) == paths


def test_a_dropped_image_is_found_with_its_size(tmp_path: Path) -> None:
    path = tmp_path / "my shot (1).png"
    path.write_bytes(png(64, 48))
    expected = [FoundImage(str(path), 64, 48)]
    escaped = str(path).replace(" ", "\\ ").replace("(", "\\(").replace(")", "\\)")
    for sent in (str(path), f"'{path}'", escaped, path.as_uri(), "my shot (1).png"):
        assert images_in_drop(sent, tmp_path) == expected, sent


def test_text_and_files_that_are_no_images_stay_text(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("no picture")
    (tmp_path / "b.txt").write_text("words")
    (tmp_path / "c.png").write_bytes(png(2, 2))
    for sent in ("a.png", "b.txt", "gone.png", "see c.png", "c.png b.txt", "", "x" * 20_000, "a\0.png"):
        assert images_in_drop(sent, tmp_path) is None, sent


def test_several_dropped_images_all_come(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(png(2, 3))
    found = images_in_drop(f"{tmp_path}/a.png {tmp_path}/b.png", tmp_path)
    assert found is not None
    assert [Path(image.path).name for image in found] == ["a.png", "b.png"]


def test_over_ssh_one_line_says_what_to_do(tmp_path: Path) -> None:
    clipboard = DesktopClipboard({"PATH": str(tmp_path), "SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"})
    with pytest.raises(OSError, match="Over SSH"):
        clipboard.image()


def test_without_a_program_one_line_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="wl-clipboard or xclip"):
        DesktopClipboard({"PATH": str(tmp_path)}).image()


def _program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_desktops_own_program_is_asked(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(png(4, 4))
    _program(tmp_path, "wl-paste", f"cat {tmp_path}/shot.png")
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "WAYLAND_DISPLAY": "wayland-0"}
    command = image_command(environ)
    assert command is not None
    assert command[0] == str(tmp_path / "wl-paste")
    assert DesktopClipboard(environ).image() == png(4, 4)


def test_a_clipboard_without_an_image_gives_nothing(tmp_path: Path) -> None:
    _program(tmp_path, "xclip", "exit 1")
    assert DesktopClipboard({"PATH": f"{tmp_path}:{os.environ['PATH']}", "DISPLAY": ":0"}).image() == b""


def test_applescripts_hexadecimal_is_read(tmp_path: Path) -> None:
    _program(tmp_path, "osascript", f"printf '«data PNGf{png(3, 3).hex().upper()}»'")
    assert DesktopClipboard({"PATH": f"{tmp_path}:{os.environ['PATH']}"}).image() == png(3, 3)


def test_pasted_images_are_kept_for_their_owner_and_old_ones_go(tmp_path: Path) -> None:
    old = kept_image(png(1, 1), tmp_path)
    long_ago_s = time.time() - 40 * 86_400
    os.utime(old, (long_ago_s, long_ago_s))
    kept = kept_image(png(2, 2), tmp_path)
    assert kept.read_bytes() == png(2, 2)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert not old.exists()
