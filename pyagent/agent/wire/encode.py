"""Values as the bytes of a request: JSON that any server can read, made once and joined later."""

from __future__ import annotations

import json
import math
from hashlib import blake2b
from typing import Any

from pyagent.messages import scrub_json

DIGEST_BYTES = 16
"""Length of a digest. 128 bits: no two prefixes of a user's sessions will ever share one by chance."""


def to_bytes(value: Any) -> bytes:
    """Compact UTF-8 JSON of a value. Lone surrogates become U+FFFD and numbers JSON does not know become null."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return to_bytes(scrub_json(value))
    except ValueError:
        return to_bytes(_without_nan(value))


def digest(*parts: bytes) -> bytes:
    """A digest of a sequence of parts; where one part ends and the next begins matters."""
    rolling = blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        rolling.update(len(part).to_bytes(8, "big"))
        rolling.update(part)
    return rolling.digest()


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    return value
