"""Text files as bytes on disk: their encoding and line ends, read and written back without loss."""

from __future__ import annotations

import codecs
import os
import stat
from dataclasses import dataclass
from pathlib import Path

SNIFF_BYTES = 8_192
"""A NUL this early means binary, as git decides it (git looks at 8,000 bytes)."""
SAMPLE_BYTES = 1024 * 1024
"""Of a file too large to be looked at whole, this much decides its encoding."""

_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""UTF-32 before UTF-16: its little-endian mark begins with the other's."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's bytes become text. Decoding and encoding again gives the same bytes, always."""

    codec: str
    bom: bytes = b""
    has_stray_bytes: bool = False
    """Mostly UTF-8 with some bytes that are not: those stand as lone surrogates in the text."""

    @property
    def errors(self) -> str:
        return "surrogateescape" if self.has_stray_bytes else "strict"

    @property
    def note(self) -> str:
        """What a reader should know; empty for plain UTF-8."""
        if self.has_stray_bytes:
            return "not valid UTF-8 throughout: stray bytes are shown as \\xNN"
        if self.codec in ("cp1252", "latin-1"):
            return "not UTF-8: shown as Windows-1252, other legacy encodings look garbled but are kept byte for byte"
        return f"encoded as {self.codec.upper()}" if self.codec != "utf-8" else ""

    def decode(self, data: bytes) -> str:
        return data[len(self.bom) :].decode(self.codec, self.errors)

    def encode(self, text: str) -> bytes:
        """Raises UnicodeEncodeError for a character the encoding does not have."""
        return self.bom + text.encode(self.codec, self.errors)


def detect_encoding(data: bytes, *, is_sample: bool = False) -> Encoding | None:
    """The encoding of a file's bytes, None if they are not text."""
    for bom, codec in _BOMS:
        if data.startswith(bom):
            encoding = Encoding(codec, bom)
            if is_sample or _round_trips(encoding, data):
                return encoding
            return Encoding(codec, bom, has_stray_bytes=True) if codec == "utf-8" else None
    if b"\0" in data[:SNIFF_BYTES]:
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, not is_sample)
    except UnicodeDecodeError:
        pass
    else:
        return Encoding("utf-8")
    escaped = data.decode("utf-8", "surrogateescape")
    stray = sum("\udc80" <= char <= "\udcff" for char in escaped)
    proper = sum(char > "\x7f" for char in escaped) - stray
    if proper > stray:
        return Encoding("utf-8", has_stray_bytes=True)
    return Encoding("cp1252") if _round_trips(Encoding("cp1252"), data) else Encoding("latin-1")


def _round_trips(encoding: Encoding, data: bytes) -> bool:
    try:
        return encoding.encode(encoding.decode(data)) == data
    except UnicodeError:
        return False


def visible(text: str) -> str:
    """Stray bytes as `\\xNN`, so that text can be sent; everything else as it is."""
    if text.isascii():
        return text
    return "".join(f"\\x{ord(char) - 0xDC00:02x}" if "\udc80" <= char <= "\udcff" else char for char in text)


def refusal_of_special_file(path: Path, status: os.stat_result) -> str:
    """Why this is not opened (opening it could block or never end); empty for a regular file."""
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        return f"{path} is a directory. List it with Glob (pattern `*`) or `ls`."
    for is_kind, kind in (
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if is_kind(mode):
            return f"{path} is {kind}, not a file: reading it could wait forever."
    if not stat.S_ISREG(mode):
        return f"{path} is not a regular file."
    return ""
