"""Small files of pyagent's own, which a kill or a full disk must not leave half written."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace_file(path: Path, text: str, mode: int = 0o600) -> None:
    """Have the file hold this text, in one step and on the disk: whatever happens, it is the old one or the new one.

    Raises:
        OSError: the old one is still there.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        # Once it has taken the other's place there is none left.
        temporary.unlink(missing_ok=True)
