"""Images on their way into the prompt: paths that were dropped or pasted, and what the clipboard holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
MAX_DROPPED_CHARS = 10_000
"""A longer paste is text, whatever it looks like."""

HEADER_BYTES = 1 << 16
"""Enough of a file to find an image's size in: a JPEG may hold a preview of up to this before it."""

CLIPBOARD_TIMEOUT_S = 3.0
"""A clipboard tool without its display server waits for ever."""

KEPT_DAYS = 30
"""How long pasted images are kept: as long as sessions that may name them are, by default."""

REMOTE_CLIPBOARD_TEXT = (
    "Over SSH the clipboard stays on your own machine. Copy the file here and paste or type its path instead."
)


@dataclass(frozen=True, slots=True)
class FoundImage:
    """An image file. Pixels are 0 where its header does not tell."""

    path: str
    width_px: int = 0
    height_px: int = 0


def dropped_words(text: str) -> list[str]:
    """The paths in what a terminal sends for dropped files: quoted, with escaped blanks, or as `file://` addresses.

    Empty if the text is no list of paths.
    """
    if len(text) > MAX_DROPPED_CHARS or "\0" in text:
        return []
    words: list[str] = []
    word: list[str] = []
    quote = ""
    has_word = was_quoted = False
    chars = iter(text.strip())
    for char in chars:
        if quote:
            if char == quote:
                quote, was_quoted = "", True
            elif char == "\\" and quote == '"':
                word.append(next(chars, ""))
            else:
                word.append(char)
        elif char in "'\"" and (was_quoted or not word):
            # Not in the midst of a plain word: that is an apostrophe of the name's.
            quote, has_word = char, True
        elif char == "\\":
            word.append(next(chars, ""))
            has_word = True
        elif char.isspace():
            if has_word:
                words.append("".join(word))
            word, has_word, was_quoted = [], False, False
        else:
            word.append(char)
            has_word = True
    if quote:
        return []
    if has_word:
        words.append("".join(word))
    return [_plain_path(word) for word in words]


def _plain_path(word: str) -> str:
    if word.startswith("file://"):
        parts = urlsplit(word)
        return unquote(parts.path) if parts.netloc in ("", "localhost") else word
    return word


def images_in_drop(text: str, cwd: Path) -> list[FoundImage] | None:
    """The images a pasted text names; None unless it names nothing else. Looks at the disk."""
    whole = text.strip()
    candidates = [[whole]] if "\n" not in whole else []
    for words in (*candidates, dropped_words(text)):
        if words and all(Path(word).suffix.lower() in IMAGE_SUFFIXES for word in words):
            found = [_image_at(word, cwd) for word in words]
            if all(found):
                return [image for image in found if image is not None]
    return None


def _image_at(word: str, cwd: Path) -> FoundImage | None:
    try:
        path = cwd / os.path.expanduser(word)
        if not path.is_file():
            return None
        with open(path, "rb") as file:
            header = file.read(HEADER_BYTES)
    except (OSError, ValueError):
        return None
    return found_image(path, header)


def found_image(path: Path, header: bytes) -> FoundImage | None:
    """The image that begins with these bytes; None if they are none."""
    # Imported here: it brings in the tools, which nothing needs before the first paint.
    from pyagent.tools.image_file import is_image, pixel_size

    if not is_image(header):
        return None
    width_px, height_px = pixel_size(header)
    return FoundImage(os.path.abspath(path), width_px, height_px)


class Clipboard(Protocol):
    """Where an image may have been copied to."""

    def image(self) -> bytes:
        """The image's bytes, empty if there is none. May take seconds.

        Raises:
            OSError: the clipboard cannot be asked; the text says what to do.
        """
        ...


class DesktopClipboard:
    """The desktop's clipboard, through its own programs."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def image(self) -> bytes:
        command = image_command(self._environ)
        if command is None:
            if self._environ.get("SSH_CONNECTION") or self._environ.get("SSH_TTY"):
                raise OSError(REMOTE_CLIPBOARD_TEXT)
            raise OSError("No program here can read images from the clipboard: install wl-clipboard or xclip.")
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=CLIPBOARD_TIMEOUT_S,
                check=False,
                env=dict(self._environ),
            )
        except subprocess.SubprocessError as error:
            raise OSError("The clipboard does not answer.") from error
        return _decoded(done.stdout) if done.returncode == 0 else b""


def image_command(environ: Mapping[str, str]) -> list[str] | None:
    """The program that writes the clipboard's image to its standard output; None if there is none."""
    for name, arguments, needs in (
        ("osascript", ["-e", "the clipboard as «class PNGf»"], ""),
        ("wl-paste", ["--no-newline", "--type", "image/png"], "WAYLAND_DISPLAY"),
        ("xclip", ["-selection", "clipboard", "-target", "image/png", "-out"], "DISPLAY"),
    ):
        if needs and not environ.get(needs):
            continue
        path = shutil.which(name, path=environ.get("PATH"))
        if path:
            return [path, *arguments]
    return None


def _decoded(output: bytes) -> bytes:
    """The bytes; AppleScript writes them in hexadecimal: `«data PNGf89504E47…»`."""
    marker = "«data PNGf".encode()
    if not output.startswith(marker):
        return output
    digits = output[len(marker) :].split("»".encode())[0]
    try:
        return bytes.fromhex(digits.decode("ascii"))
    except ValueError:
        return b""


def kept_image(data: bytes, home: Path) -> Path:
    """The path of a file with this image, below pyagent's own folder. Old ones are deleted.

    Raises:
        OSError: it cannot be written.
    """
    from pyagent.tools.image_file import media_type_of

    folder = home / "pasted-images"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    oldest_s = time.time() - KEPT_DAYS * 86_400
    for old in folder.iterdir():
        if old.stat().st_mtime < oldest_s:
            old.unlink(missing_ok=True)
    suffix = media_type_of(data).rpartition("/")[2] or "png"
    import hashlib  # Not needed before the first paint.

    path = folder / f"{hashlib.sha256(data).hexdigest()[:16]}.{suffix}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return path
