"""Which addresses of the network a page may be fetched from: public ones, as resolved, and as connected to."""

from __future__ import annotations

import ipaddress

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""The last 32 bits are an IPv4 address that a gateway connects to."""

_LOCAL_NAMES = ("localhost", "local", "internal", "lan", "home.arpa", "localdomain")
"""Last parts of names that mean something only in the own network."""


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public network: not this machine's, its network's, or a special one."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip.is_site_local:
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_unspecified and not ip.is_reserved


def is_local_name(host: str) -> bool:
    """Whether the name alone says that it is of the own network."""
    last = host.rstrip(".").lower()
    return ("." not in last and ":" not in last) or any(
        last == name or last.endswith("." + name) for name in _LOCAL_NAMES
    )
