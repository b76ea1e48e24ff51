"""The little of HTTP/1.1 the fake server speaks."""

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 413: "Content Too Large"}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    raw: bytes
    size_bytes: int
    """Length of the body; larger than `raw` where the body was above the limit and thrown away."""


class Connection:
    """One client connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._is_chunked = False
        self._hangup: asyncio.Task[bytes] | None = None

    async def read_request(self, limit_bytes: int) -> HttpRequest | None:
        """The next request, or None once the client has closed."""
        try:
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        request_line, *lines = head.split("\r\n")
        method, target, _ = request_line.split(" ", 2)
        pairs = (line.split(":", 1) for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        size = int(headers.get("content-length", "0"))
        try:
            raw = await self._read_body(size, keep=size <= limit_bytes)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return HttpRequest(method, target.split("?", 1)[0], headers, raw, size)

    async def _read_body(self, size: int, *, keep: bool) -> bytes:
        if keep:
            return await self._reader.readexactly(size)
        left = size
        while left:
            chunk = await self._reader.read(min(left, 1 << 20))
            if not chunk:
                raise asyncio.IncompleteReadError(b"", left)
            left -= len(chunk)
        return b""

    async def send_json(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """A whole JSON answer."""
        await self.send(status, json.dumps(body).encode(), {"content-type": "application/json", **headers})

    async def send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """A whole answer."""
        self._write_head(status, {**headers, "content-length": str(len(body))})
        self._writer.write(body)
        await self._drain()

    async def start_stream(self, headers: Mapping[str, str]) -> None:
        """Status and headers of an event stream."""
        stream = {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"}
        self._write_head(200, {**headers, **stream})
        self._is_chunked = True
        await self._drain()

    def _write_head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def send_chunk(self, data: bytes) -> None:
        """One chunk of an event stream."""
        self._writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await self._drain()

    async def end_stream(self) -> None:
        """The clean end of an event stream."""
        self._writer.write(b"0\r\n\r\n")
        self._is_chunked = False
        await self._drain()

    async def cut(self, how: str) -> None:
        """End the connection as a fault says; only "eof" leaves it usable."""
        if how == "eof":
            if self._is_chunked:
                await self.end_stream()
            else:
                self._writer.close()
            return
        if how == "mid_chunk":
            self._writer.write(b"ff\r\nevent: cont")
            await self._drain()
            self._writer.close()
            return
        sock: socket.socket | None = self._writer.get_extra_info("socket")
        if sock is not None:
            # Zero linger makes the kernel send a reset instead of an orderly close.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def wait_for(self, event: asyncio.Event | None, timeout_s: float | None = None) -> bool:
        """Wait for the event, the time, or the client hanging up; False if it hung up."""
        if self._hangup is None:
            self._hangup = asyncio.ensure_future(self._reader.read(1))
        waiters: set[asyncio.Task[Any]] = {self._hangup}
        released = asyncio.ensure_future(event.wait()) if event else None
        if released:
            waiters.add(released)
        try:
            await asyncio.wait(waiters, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if released:
                released.cancel()
        return not self.is_hung_up

    @property
    def is_hung_up(self) -> bool:
        """True once the client has closed its side."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def end_waiting(self) -> None:
        """Stop watching for a hang-up, so that the next request can be read."""
        if self._hangup is not None:
            self._hangup.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await self._hangup
            self._hangup = None

    async def close(self) -> None:
        """Close the connection and wait until it is."""
        await self.end_waiting()
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _drain(self) -> None:
        await self._writer.drain()
