"""The proxy that the environment names for a page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Proxy:
    host: str
    port: int
    authorization: str = ""
    """Value of `Proxy-Authorization`, if the environment names a user."""


def proxy_for(scheme: str, host: str, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy for a host, by `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy` in either case.

    Raises:
        ValueError: a proxy is named that is none of HTTP.
    """
    named = _variable(environ, f"{scheme}_proxy") or _variable(environ, "all_proxy")
    if not named or _is_excepted(host, _variable(environ, "no_proxy")):
        return None
    parts = urlsplit(named if "://" in named else f"http://{named}")
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"the {scheme} proxy of the environment is not an http:// one")
    authorization = ""
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + b64encode(user.encode()).decode("ascii")
    return Proxy(parts.hostname, parts.port or 80, authorization)


def _variable(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name) or environ.get(name.upper()) or "").strip()


def _is_excepted(host: str, no_proxy: str) -> bool:
    for entry in no_proxy.lower().replace(",", " ").split():
        name = entry.removeprefix("*").removeprefix(".").partition(":")[0]
        if entry == "*" or (name and (host == name or host.endswith("." + name))):
            return True
    return False
