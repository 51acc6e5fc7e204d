"""Addresses that requests come from: which of them one person can have, and which are this machine's own."""

import ipaddress

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def network_of(address: str) -> str:
    """Return what an address counts as; one person can have all the IPv6 addresses of a /64, so they count as one."""
    parsed = parse_address(address)
    if parsed is None:
        return f"{address:.60}"
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((int(parsed) >> 64 << 64, 64)))
    return str(parsed)


def is_loopback(address: str) -> bool:
    """Tell whether an address is this machine's own: everybody on it shares it."""
    parsed = parse_address(address)
    return parsed is not None and parsed.is_loopback


def parse_address(address: str) -> IpAddress | None:
    """Return an address, IPv4 also where it is written as IPv6; None if it is none."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return parsed if mapped is None else mapped
