"""Gets web pages for the WebFetch tool: public addresses only, within caps of size and time.

A name is resolved once, all its addresses are checked, and the connection goes to one of these very addresses, which
is checked again once it stands: a name that resolves to something else a moment later gains nothing. Where the
environment names a proxy, the proxy resolves; the name and what it resolves to here are checked all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import urljoin, urlsplit

from pyagent import __version__
from pyagent.agent.addresses import is_local_name, is_public
from pyagent.agent.proxies import Proxy, proxy_for
from pyagent.tools.web import FetchedPage, FetchError

MAX_PAGE_BYTES = 5 * 1024 * 1024
"""As sent and as unpacked. A page of text is rarely above one megabyte."""

PAGE_TIMEOUT_S = 30.0
"""For one page, from the name to the last byte."""

_CHUNK_BYTES = 65_536

Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""Host and port → IP addresses. Raises OSError."""

Connect: TypeAlias = Callable[[str, int, float], socket.socket]
"""IP address (or a proxy's host), port, seconds → a connected socket. Raises OSError."""


def resolve(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def connect(address: str, port: int, timeout_s: float) -> socket.socket:
    return socket.create_connection((address, port), timeout_s)


class WebClient:
    """The `Fetcher` of the real program. What it resolves and connects with can be replaced, as can what is public."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        resolve: Resolve = resolve,
        connect: Connect = connect,
        is_public: Callable[[str], bool] = is_public,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        timeout_s: float = PAGE_TIMEOUT_S,
        max_bytes: int = MAX_PAGE_BYTES,
    ) -> None:
        self._environ = environ
        self._resolve = resolve
        self._connect = connect
        self._is_public = is_public
        self._tls = tls
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes

    async def get(self, url: str) -> FetchedPage:
        request = _Request(self, url)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[FetchedPage] = loop.create_future()

        def work() -> None:
            page: FetchedPage | None = None
            problem = FetchError("there was no answer")
            try:
                page = request.run()
            except FetchError as error:
                problem = error
            except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
                problem = FetchError(_words(error))
            # A loop that is closed has nobody left to tell.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, page, problem)

        def settle(page: FetchedPage | None, problem: FetchError) -> None:
            if done.done():
                return
            if page is None:
                done.set_exception(problem)
            else:
                done.set_result(page)

        # A daemon thread, not the loop's pool: a resolver that hangs must not hold up the program's end.
        threading.Thread(target=work, name="web", daemon=True).start()
        try:
            async with asyncio.timeout(self._timeout_s):
                return await done
        except TimeoutError:
            raise FetchError(f"it took longer than {self._timeout_s:g} s") from None
        finally:
            request.close()

    # ── for requests, on their threads ───────────────────────────────────────────────────────────────────────────

    def addresses(self, host: str, port: int, *, is_proxied: bool) -> Sequence[str]:
        """Where a host may be reached; all of it public.

        Raises:
            FetchError: it may not be connected to, or there is no such host.
        """
        if is_local_name(host):
            raise FetchError(_refusal(host))
        try:
            found = self._resolve(host, port)
        except OSError as error:
            if is_proxied:
                # Behind a proxy there is often no other way out, and no name service either.
                return ()
            raise FetchError(f"the host {host} is not known ({error.strerror or error})") from error
        if not found or not all(self._is_public(address) for address in found):
            raise FetchError(_refusal(host))
        return found

    def open(self, host: str, port: int, addresses: Sequence[str]) -> socket.socket:
        """A connection to one of these addresses, checked once more."""
        problem: OSError | None = None
        for address in addresses:
            try:
                connection = self._connect(address, port, self._timeout_s)
            except OSError as error:
                problem = error
                continue
            if not self._is_public(str(connection.getpeername()[0])):
                connection.close()
                raise FetchError(_refusal(host))
            return connection
        raise FetchError(f"no connection to {host} ({_words(problem) if problem else 'no address'})") from problem

    def open_proxy(self, proxy: Proxy) -> socket.socket:
        return self._connect(proxy.host, proxy.port, self._timeout_s)

    def proxy_for(self, scheme: str, host: str) -> Proxy | None:
        return proxy_for(scheme, host, self._environ)

    def wrap(self, connection: socket.socket, host: str) -> socket.socket:
        return self._tls().wrap_socket(connection, server_hostname=host)

    @property
    def timeout_s(self) -> float:
        return self._timeout_s

    @property
    def max_bytes(self) -> int:
        return self._max_bytes


class _Request:
    """One request on its own thread; `close` may be called from any thread and ends it."""

    def __init__(self, client: WebClient, url: str) -> None:
        self._client = client
        self._url = url
        self._socket: socket.socket | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def run(self) -> FetchedPage:
        try:
            return self._get()
        finally:
            if self._socket is not None:
                self._socket.close()

    def _get(self) -> FetchedPage:
        parts = urlsplit(self._url)
        host = parts.hostname or ""
        is_tls = parts.scheme == "https"
        port = parts.port or (443 if is_tls else 80)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        proxy = self._client.proxy_for(parts.scheme, host)
        addresses = self._client.addresses(host, port, is_proxied=proxy is not None)
        headers = {
            "Host": parts.netloc,
            "User-Agent": f"pyagent/{__version__}",
            "Accept": "text/markdown, text/html;q=0.9, text/*;q=0.8, */*;q=0.5",
            "Accept-Encoding": "gzip, deflate",
            "Connection": "close",
        }
        if proxy is None:
            connection = self._hold(self._client.open(host, port, addresses))
        else:
            connection = self._hold(self._client.open_proxy(proxy))
            sign = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
            if is_tls:
                self._tunnel(connection, f"{_bracketed(host)}:{port}", sign)
            else:
                target, headers = self._url, headers | sign
        if is_tls:
            connection = self._hold(self._client.wrap(connection, host))
        return self._exchange(connection, host, port, target, headers)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._socket is not None:
                _cut(self._socket)

    def _hold(self, connection: socket.socket) -> socket.socket:
        with self._lock:
            self._socket = connection
            if self._is_closed:
                _cut(connection)
        return connection

    def _tunnel(self, connection: socket.socket, authority: str, headers: Mapping[str, str]) -> None:
        """Have the proxy connect to the host."""
        lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}", *(f"{k}: {v}" for k, v in headers.items())]
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("ascii"))
        answer = b""
        while b"\r\n\r\n" not in answer:
            # Byte by byte at the end of a head: what follows it belongs to the TLS handshake.
            byte = connection.recv(1)
            if not byte or len(answer) > _CHUNK_BYTES:
                raise FetchError("the proxy gave no answer")
            answer += byte
        status = answer.split(b" ", 2)[1:2]
        if status != [b"200"]:
            raise FetchError(f"the proxy refused the connection ({answer.splitlines()[0].decode('latin-1')})")

    def _exchange(
        self, connection: socket.socket, host: str, port: int, target: str, headers: Mapping[str, str]
    ) -> FetchedPage:
        talk = http.client.HTTPConnection(host, port, timeout=self._client.timeout_s)
        talk.sock = connection
        try:
            talk.putrequest("GET", target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                talk.putheader(name, value)
            talk.endheaders()
            with talk.getresponse() as response:
                body, is_cut = self._body(response)
        finally:
            talk.close()
        location = response.getheader("Location", "")
        return FetchedPage(
            response.status,
            response.headers.get_content_type() if response.getheader("Content-Type") else "",
            response.headers.get_content_charset() or "",
            body,
            urljoin(self._url, location) if location else "",
            is_cut,
        )

    def _body(self, response: http.client.HTTPResponse) -> tuple[bytes, bool]:
        """The body, unpacked, and whether it goes on beyond the cap."""
        max_bytes = self._client.max_bytes
        encoding = response.getheader("Content-Encoding", "").strip().lower()
        # 32: a gzip or zlib head, whichever is there.
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in ("gzip", "x-gzip", "deflate") else None
        if unpack is None and encoding not in ("", "identity"):
            raise FetchError(f"the page is packed as {encoding}, which was not asked for")
        body = bytearray()
        taken_bytes = 0
        while chunk := response.read1(_CHUNK_BYTES):
            taken_bytes += len(chunk)
            body += chunk if unpack is None else unpack.decompress(chunk, max_bytes + 1 - len(body))
            if len(body) > max_bytes or taken_bytes > max_bytes:
                return bytes(body[:max_bytes]), True
        if response.length:
            raise FetchError(f"the connection broke off {response.length:,} bytes before the end")
        return bytes(body), False


def _cut(connection: socket.socket) -> None:
    """End a connection so that a thread that reads from it wakes up."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # It had ended by itself.
        return


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _refusal(host: str) -> str:
    return (
        f"{host} is an address of this machine or its network, and only public pages are fetched; "
        "for a local server use curl in Bash"
    )


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "the connection timed out"
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return f"{text or type(error).__name__}"
