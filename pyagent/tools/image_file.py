"""Images as image blocks within the API's limits."""

from __future__ import annotations

import base64
import io
import struct
from pathlib import Path

from pyagent.messages import ImageBlock
from pyagent.tools.paths import printable_name, short_path
from pyagent.tools.tool import ToolContext, ToolResult

MAX_SIDE_PX = 2_000
"""With more than 20 images in a request the API refuses larger ones, so they are made smaller when they come in."""
MAX_IMAGE_BYTES = 3_750_000
"""The API takes 5 MB of base64 an image, which is this much."""
MAX_FILE_BYTES = 50 * 1024 * 1024
MAX_PIXELS = 80_000_000
"""More would take over 300 MB decoded; Pillow warns of a decompression bomb from about here on."""
SMALL_JPEG_QUALITY = 85


def media_type_of(start: bytes) -> str:
    """By the first bytes, whatever the file is called; empty if it is no image the API takes."""
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return ""


def is_image(start: bytes) -> bool:
    return bool(media_type_of(start))


def image_result(path: Path, context: ToolContext) -> ToolResult:
    """The image as a block, made smaller where it must be. Blocks."""
    name = printable_name(path)
    if path.stat().st_size > MAX_FILE_BYTES:
        return ToolResult.error(f"{name} is over {MAX_FILE_BYTES // 2**20} MB. Make it smaller first.")
    data = path.read_bytes()
    media_type = media_type_of(data)
    width, height = pixel_size(data)
    if width * height > MAX_PIXELS:
        return ToolResult.error(f"{name} has {width} × {height} pixels: too many to be decoded safely.")
    if max(width, height) > MAX_SIDE_PX or len(data) > MAX_IMAGE_BYTES:
        smaller = _downscaled(data, media_type)
        if smaller is None:
            return ToolResult.error(
                f"{name} has {width} × {height} pixels and {len(data):,} bytes; at most {MAX_SIDE_PX} pixels and "
                f"{MAX_IMAGE_BYTES:,} bytes can be sent. Make it smaller first (such as `convert -resize`), "
                "or ask the user to install pyagent's extra `images`."
            )
        data, media_type, width, height = smaller
    if not width or not height:
        return ToolResult.error(f"{name} begins like an image but cannot be decoded.")
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode("ascii")}
    display = {"summary": f"image, {width} × {height}", "path": short_path(path, context.cwd)}
    return ToolResult((ImageBlock(source, width, height),), display=display)


def pixel_size(data: bytes) -> tuple[int, int]:
    """Width and height from the header; (0, 0) if it is broken."""
    try:
        match media_type_of(data):
            case "image/png":
                return struct.unpack(">II", data[16:24])
            case "image/gif":
                return struct.unpack("<HH", data[6:10])
            case "image/jpeg":
                return _jpeg_size(data)
            case "image/webp":
                return _webp_size(data)
            case _:
                return 0, 0
    except (struct.error, IndexError):
        return 0, 0


def _jpeg_size(data: bytes) -> tuple[int, int]:
    position = 2
    while position + 9 < len(data):
        if data[position] != 0xFF:
            return 0, 0
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return width, height
        elif marker in (0x01, *range(0xD0, 0xD9)):
            position += 2
        else:
            position += 2 + struct.unpack(">H", data[position + 2 : position + 4])[0]
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack("<HH", data[26:30])
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return 0, 0


def _downscaled(data: bytes, media_type: str) -> tuple[bytes, str, int, int] | None:
    """The image within the limits, or None without Pillow or if it cannot be decoded."""
    try:
        from PIL import Image
    except ImportError:
        return None
    try:
        with Image.open(io.BytesIO(data)) as opened:
            image = opened.convert("RGBA" if opened.has_transparency_data else "RGB")
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    image.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX))
    for kind, options in (("PNG", {"optimize": True}), ("JPEG", {"quality": SMALL_JPEG_QUALITY})):
        if kind == "PNG" and media_type == "image/jpeg":
            continue
        buffer = io.BytesIO()
        (image.convert("RGB") if kind == "JPEG" else image).save(buffer, kind, **options)
        if buffer.tell() <= MAX_IMAGE_BYTES:
            return buffer.getvalue(), f"image/{kind.lower()}", image.width, image.height
    return None
