"""A user message of standard input: its text, and its images as files, which is how a prompt carries them."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IMAGE_ALONE_TEXT = "[image]"
"""The text of a message that is nothing but images: a prompt has words."""


@dataclass(frozen=True, slots=True)
class InputMessage:
    text: str
    """Empty if there is nothing to send."""
    images: tuple[str, ...] = ()
    """Paths."""
    remarks: tuple[str, ...] = ()
    """One sentence for each block that is left out."""


def read_message(message: Any, home: Path) -> InputMessage:
    """What an API message asks; `home` is pyagent's own folder, where images are kept."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return InputMessage(content if content.strip() else "")
    texts: list[str] = []
    images: list[str] = []
    remarks: list[str] = []
    for block in content if isinstance(content, list) else []:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "image", "source": {"type": "base64", "data": str(data)}}:
                try:
                    images.append(_kept(data, home))
                except (binascii.Error, ValueError):
                    remarks.append("An image on standard input is left out: its data is no base64.")
                except OSError as error:
                    remarks.append(f"An image on standard input is left out: {error.strerror or error}.")
            case {"type": kind}:
                remarks.append(f"A block of type {kind!r} on standard input is left out.")
            case _:
                remarks.append("A block on standard input is left out: it has no type.")
    text = "\n".join(texts)
    if not text.strip():
        text = IMAGE_ALONE_TEXT if images else ""
    return InputMessage(text, tuple(images), tuple(remarks))


def _kept(data: str, home: Path) -> str:
    from pyagent.ui.images import kept_image

    return str(kept_image(base64.b64decode(data, validate=True), home))
