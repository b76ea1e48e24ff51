"""Pages over real sockets on the loopback: what may be connected to, caps, packing, proxies, TLS."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest
import trustme

from pyagent.agent.addresses import is_local_name, is_public
from pyagent.agent.proxies import Proxy, proxy_for
from pyagent.agent.web import WebClient
from pyagent.tools.web import FetchError

PUBLIC = "93.184.215.14"
AUTHORITY = trustme.CA()
"""Signs what these tests trust; its keys live as long as the process."""

Answer = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def sends(*parts: bytes) -> Answer:
    async def answer(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return answer


def ok(body: bytes, *headers: str) -> bytes:
    head = "\r\n".join(("HTTP/1.1 200 OK", "Content-Type: text/plain; charset=utf-8", *headers))
    return head.encode() + b"\r\n\r\n" + body


@contextlib.asynccontextmanager
async def server(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """(port, heads of the requests that came)."""
    heads: list[bytes] = []
    serving: set[asyncio.Task[Any] | None] = set()
    is_ending, last_came = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        if is_ending.is_set():
            last_came.set()
        try:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            await answer(heads[-1], reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with listening:
        yield listening.sockets[0].getsockname()[1], heads
        # A connection that is still being accepted or served would outlive the loop. They are taken in order, so
        # once one more has come, all before it have.
        is_ending.set()
        port = listening.sockets[0].getsockname()[1]
        _, last = await asyncio.open_connection("127.0.0.1", port, ssl=unchecked() if tls else None)
        await asyncio.wait_for(last_came.wait(), 30)
        last.close()
        await asyncio.gather(*(task for task in serving if task is not None), return_exceptions=True)
        with contextlib.suppress(OSError):
            await last.wait_closed()


def unchecked() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def client(port: int, environ: Mapping[str, str] | None = None, **changes: Any) -> WebClient:
    """A client for which every name is public and every connection ends at the server."""
    parts: dict[str, Any] = {
        "resolve": lambda host, port: [PUBLIC],
        "connect": lambda address, _port, timeout_s: socket.create_connection(("127.0.0.1", port), timeout_s),
        "is_public": lambda address: True,
        "timeout_s": 20.0,
    }
    return WebClient(environ or {}, **(parts | changes))


async def test_a_page_comes_with_its_type_and_the_request_names_the_host() -> None:
    async with server(sends(ok("grüß".encode()))) as (port, heads):
        page = await client(port).get("http://page.example:8080/a?b=1")
    assert (page.status, page.content_type, page.charset, page.body) == (200, "text/plain", "utf-8", "grüß".encode())
    assert heads[0].startswith(b"GET /a?b=1 HTTP/1.1\r\nHost: page.example:8080\r\n")


async def test_the_connection_goes_to_the_address_that_was_checked_and_not_to_the_name() -> None:
    asked: list[tuple[str, int]] = []

    async with server(sends(ok(b"x"))) as (port, _):

        def connect(address: str, to_port: int, timeout_s: float) -> socket.socket:
            asked.append((address, to_port))
            return socket.create_connection(("127.0.0.1", port), timeout_s)

        await client(port, connect=connect).get("http://page.example:8080/")
    assert asked == [(PUBLIC, 8080)]


@pytest.mark.parametrize(
    "found",
    [["127.0.0.1"], [PUBLIC, "10.0.0.1"], ["169.254.169.254"], ["::1"], ["::ffff:192.168.0.1"], []],
    ids=["loopback", "one of two", "cloud metadata", "IPv6 loopback", "mapped", "none"],
)
async def test_a_name_with_an_address_that_is_not_public_is_never_connected_to(found: list[str]) -> None:
    def connect(address: str, port: int, timeout_s: float) -> socket.socket:
        raise AssertionError("connected")

    web = WebClient({}, resolve=lambda host, port: found, connect=connect)
    with pytest.raises(FetchError, match="of this machine or its network"):
        await web.get("https://page.example/")


async def test_a_name_that_turns_out_to_lead_home_is_dropped_before_anything_is_sent() -> None:
    async with server(sends(ok(b"secret"))) as (port, heads):
        with pytest.raises(FetchError, match="of this machine or its network"):
            await client(port, is_public=is_public).get("http://page.example:8080/")
    assert heads == []


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1%eth0",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:db8::1",
        "localhost",
        "",
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", [PUBLIC, "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"])
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("localhost", True),
        ("a.localhost.", True),
        ("printer.local", True),
        ("metadata.google.internal", True),
        ("intranet", True),
        ("2130706433", True),
        ("a.example", False),
        ("mylocal.example", False),
        ("2606:4700::1", False),
    ],
)
def test_names_of_the_own_network_are_known_by_their_ending(host: str, is_local: bool) -> None:
    assert is_local_name(host) is is_local


@pytest.mark.parametrize(
    ("body", "header"),
    [
        (gzip.compress(b"x" * 200_000), "Content-Encoding: gzip"),
        (zlib.compress(b"x" * 200_000), "Content-Encoding: deflate"),
        (b"x" * 200_000, "X-Nothing: 1"),
    ],
    ids=["gzip", "deflate", "as it is"],
)
async def test_a_page_is_cut_at_the_size_cap_once_unpacked(body: bytes, header: str) -> None:
    async with server(sends(ok(body, header))) as (port, _):
        whole = await client(port).get("http://page.example:8080/")
        cut = await client(port, max_bytes=1_000).get("http://page.example:8080/")
    assert (len(whole.body), whole.is_cut) == (200_000, False)
    assert (cut.body, cut.is_cut) == (b"x" * 1_000, True)


async def test_a_server_that_never_ends_is_left_at_the_time_cap() -> None:
    gone = asyncio.Event()

    async def drip(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(ok(b"x"))
        await reader.read()
        gone.set()

    async with server(drip) as (port, _):
        with pytest.raises(FetchError, match=r"longer than 0\.2 s"):
            await client(port, timeout_s=0.2).get("http://page.example:8080/")
        async with asyncio.timeout(60):
            await gone.wait()


async def test_an_interrupt_closes_the_connection() -> None:
    has_begun, gone = asyncio.Event(), asyncio.Event()

    async def hang(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        has_begun.set()
        await reader.read()
        gone.set()

    async with server(hang) as (port, _):
        fetching = asyncio.create_task(client(port).get("http://page.example:8080/"))
        async with asyncio.timeout(60):
            await has_begun.wait()
            fetching.cancel()
            await gone.wait()
        with pytest.raises(asyncio.CancelledError):
            await fetching


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"", "without response"),
        (b"nonsense\r\n\r\n", "nonsense"),
        (ok(b"not gzip", "Content-Encoding: gzip"), "header"),
        (ok(b"x", "Content-Encoding: br"), "packed as br"),
        (ok(b"short", "Content-Length: 500"), "broke off 495 bytes"),
    ],
    ids=["nothing", "no HTTP", "not packed as said", "unknown packing", "broken off"],
)
async def test_an_answer_that_cannot_be_read_is_told_in_words(sent: bytes, told: str) -> None:
    async with server(sends(sent)) as (port, _):
        with pytest.raises(FetchError, match=told):
            await client(port).get("http://page.example:8080/")


async def test_a_redirect_is_not_followed_and_its_target_made_absolute() -> None:
    async with server(sends(b"HTTP/1.1 301 Moved\r\nLocation: ../x\r\nContent-Length: 0\r\n\r\n")) as (port, heads):
        page = await client(port).get("http://page.example:8080/a/b/")
    assert (page.status, page.location) == (301, "http://page.example:8080/a/x")
    assert len(heads) == 1


def tls_server() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("page.example").configure_cert(context)
    return context


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    return context


async def test_over_tls_the_certificate_must_be_of_the_name_although_the_address_is_pinned() -> None:
    async with server(sends(ok(b"safe")), tls_server()) as (port, _):
        assert (await client(port, tls=trusting).get("https://page.example/")).body == b"safe"
        with pytest.raises(FetchError, match="certificate is not trusted"):
            await client(port, tls=trusting).get("https://other.example/")
        with pytest.raises(FetchError, match="certificate is not trusted"):
            await client(port).get("https://page.example/")


async def test_a_proxy_gets_the_whole_address_and_its_password() -> None:
    async with server(sends(ok(b"by proxy"))) as (port, heads):
        environ = {"http_proxy": f"http://ada:s%20t@127.0.0.1:{port}"}
        page = await client(port, environ).get("http://page.example:8080/x")
    assert page.body == b"by proxy"
    assert heads[0].startswith(b"GET http://page.example:8080/x HTTP/1.1\r\nHost: page.example:8080\r\n")
    assert b"Proxy-Authorization: Basic YWRhOnMgdA==\r\n" in heads[0]


async def test_a_proxy_tunnels_to_a_tls_server_that_it_resolves_itself() -> None:
    async with server(sends(ok(b"safe")), tls_server()) as (inner_port, _):

        async def tunnel(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", inner_port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

            async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
                while data := await source.read(65_536):
                    target.write(data)
                target.close()

            await asyncio.gather(pass_on(reader, far_writer), pass_on(far_reader, writer))

        def unknown(host: str, port: int) -> list[str]:
            raise OSError("no name service")

        async with server(tunnel) as (port, heads):
            environ = {"HTTPS_PROXY": f"http://127.0.0.1:{port}"}
            page = await client(port, environ, resolve=unknown, tls=trusting).get("https://page.example/")
    assert page.body == b"safe"
    assert heads[0].startswith(b"CONNECT page.example:443 HTTP/1.1\r\n")


async def test_a_proxy_that_refuses_is_quoted() -> None:
    async with server(sends(b"HTTP/1.1 403 Forbidden\r\n\r\n")) as (port, _):
        with pytest.raises(FetchError, match="403 Forbidden"):
            await client(port, {"https_proxy": f"127.0.0.1:{port}"}).get("https://page.example/")


async def test_a_host_that_is_not_known_is_told() -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(FetchError, match=r"host page\.example is not known \(Name or service not known\)"):
        await client(1, resolve=unknown).get("https://page.example/")


@pytest.mark.parametrize(
    ("environ", "host", "proxy"),
    [
        ({}, "a.example", None),
        ({"https_proxy": "http://p.example:3128"}, "a.example", Proxy("p.example", 3128)),
        ({"HTTPS_PROXY": "p.example"}, "a.example", Proxy("p.example", 80)),
        ({"ALL_PROXY": "http://p.example:1"}, "a.example", Proxy("p.example", 1)),
        ({"http_proxy": "http://p.example:1"}, "a.example", None),
        ({"https_proxy": "http://p.example:1", "no_proxy": ".a.example, b.example"}, "x.a.example", None),
        ({"https_proxy": "http://p.example:1", "no_proxy": "a.example"}, "ba.example", Proxy("p.example", 1)),
        ({"https_proxy": "http://p.example:1", "NO_PROXY": "*"}, "a.example", None),
    ],
)
def test_the_environment_names_the_proxy(environ: dict[str, str], host: str, proxy: Proxy | None) -> None:
    assert proxy_for("https", host, environ) == proxy


async def test_a_proxy_of_another_kind_is_an_error() -> None:
    with pytest.raises(FetchError, match="not an http:// one"):
        await client(1, {"all_proxy": "socks5://127.0.0.1:1"}).get("https://page.example/")
