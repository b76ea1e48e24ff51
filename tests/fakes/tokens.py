"""Counts tokens the way the fake bills them: bytes over a factor, images by their patches."""

import base64
import binascii
import json
import math
import struct
from typing import Any

from tests.fakes.binding import decode_seal
from tests.fakes.model_table import ModelSpec

DEFAULT_BYTES_PER_TOKEN = 3.0
PATCH_PX = 28
"""An image costs one token for each 28 by 28 pixel patch."""
UNKNOWN_IMAGE_PX = (1_092, 1_092)
"""Taken for images whose size is not in the request (URL, file, unreadable header)."""

Json = dict[str, Any]


def image_size(data: str) -> tuple[int, int] | None:
    """Width and height in pixels from the header of a base64 PNG, GIF, WebP or JPEG; None if unreadable."""
    try:
        head = base64.b64decode(data[: 64 * 1024 - 64 * 1024 % 4], validate=True)
    except (binascii.Error, ValueError):
        return None
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        width, height = struct.unpack(">II", head[16:24])
        return width, height
    if head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10:
        width, height = struct.unpack("<HH", head[6:10])
        return width, height
    if head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X" and len(head) >= 30:
        return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    return _jpeg_size(head) if head.startswith(b"\xff\xd8") else None


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return None


def image_tokens(width: int, height: int, model: ModelSpec) -> int:
    """What one image costs after the API has scaled it down."""
    cap_tokens, edge_px = model.image_cap
    scale = min(1.0, edge_px / max(width, height, 1))
    wide, high = width * scale, height * scale
    return min(cap_tokens, math.ceil(wide / PATCH_PX) * math.ceil(high / PATCH_PX))


class TokenCounter:
    """Deterministic counts; `bytes_per_token` sets how dense text is."""

    def __init__(self, bytes_per_token: float = DEFAULT_BYTES_PER_TOKEN) -> None:
        self.bytes_per_token = bytes_per_token

    def text(self, text: str) -> int:
        """Tokens of a string."""
        return math.ceil(len(text.encode("utf-8", "surrogatepass")) / self.bytes_per_token)

    def json(self, value: object) -> int:
        """Tokens of a JSON value as its compact text."""
        return self.text(json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True))

    def block(self, block: Json, model: ModelSpec) -> int:
        """Tokens of one content block of a request."""
        kind = block.get("type")
        if kind == "text":
            return self.text(block["text"])
        if kind == "thinking" or kind == "redacted_thinking":
            seal = decode_seal(block.get("signature") or block.get("data") or "")
            return seal.tokens if seal else self.text(block.get("thinking") or "")
        if kind == "tool_use":
            return self.text(block["name"]) + self.json(block["input"])
        if kind == "tool_result":
            content = block.get("content") or ""
            if isinstance(content, str):
                return self.text(content)
            return sum(self.block(part, model) for part in content)
        if kind == "image":
            source = block["source"]
            size = image_size(source["data"]) if source.get("type") == "base64" else None
            return image_tokens(*(size or UNKNOWN_IMAGE_PX), model)
        if kind == "compaction":
            return self.text(block.get("content") or "")
        return self.json({key: value for key, value in block.items() if key != "cache_control"})
