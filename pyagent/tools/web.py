"""What WebFetch needs of the network, and what an address may look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

MAX_URL_CHARS = 2_000
"""Longer addresses carry data rather than name a page."""


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """One response, whatever its status. `location` is where a redirect points to, as an absolute URL."""

    status: int
    content_type: str
    charset: str
    body: bytes
    location: str = ""
    is_cut: bool = False
    """Whether the body goes on beyond the size cap."""


class FetchError(Exception):
    """No response came; the text says why, for the model."""


class Fetcher(Protocol):
    """Gets one page over the network."""

    async def get(self, url: str) -> FetchedPage:
        """One request, no redirect followed, within caps of size and time.

        Raises:
            FetchError: there is no answer, or the address may not be connected to.
        """
        ...


def normal_url(text: str) -> str:
    """The address to fetch: https unless an explicit port says that plain http is meant.

    Raises:
        ValueError: it is no address of a web page; the text says why.
    """
    text = text.strip()
    if len(text) > MAX_URL_CHARS:
        raise ValueError(f"the address is longer than {MAX_URL_CHARS:,} characters")
    parts = urlsplit(text if "://" in text else f"https://{text}")
    if parts.scheme.lower() not in ("http", "https"):
        raise ValueError(f"{parts.scheme}: is not a scheme of web pages")
    if not parts.hostname:
        raise ValueError("it names no host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("it holds a user name or password")
    port = parts.port
    scheme = "https" if parts.scheme.lower() == "https" or port in (None, 80) else "http"
    host = _ascii_host(parts.hostname)
    if port is not None and port != (443 if scheme == "https" else 80) and not (scheme == "https" and port == 80):
        host = f"{host}:{port}"
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]")
    return urlunsplit(SplitResult(scheme, host, path, query, ""))


def _ascii_host(host: str) -> str:
    host = host.rstrip(".").lower()
    if ":" in host:
        return f"[{host}]"
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise ValueError(f"{host!r} is not a host name") from error


def host_of(url: str) -> str:
    return (urlsplit(url).hostname or "").lower().rstrip(".")
