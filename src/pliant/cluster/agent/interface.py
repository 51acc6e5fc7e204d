"""Which address of this machine others reach its tasks at.

An interface is named by its name, by one of its addresses, by a network that holds one, or is `auto`: the address that
packets to the server leave from.
"""

import fcntl
import ipaddress
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pliant.core.errors import InvalidInput

AUTO: Final = "auto"
_SIOCGIFADDR: Final = 0x8915
_IFREQ_BYTES: Final = 256
_MAX_NAME_BYTES: Final = 15
_ADDRESS: Final = slice(20, 24)
_GLOBAL_SCOPE: Final = "00"

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def address_of(interface: str, towards: str) -> str:
    """Return the address that an interface stands for.

    Args:
        interface: see the module.
        towards: a host, for `auto`.

    Raises:
        InvalidInput: this machine has no such interface, or no way to that host.
    """
    if interface == AUTO:
        return _source_towards(towards)
    own = dict(_own_addresses())
    for name, address in own.items():
        if interface == name.rpartition("/")[0] or interface == str(address):
            return str(address)
    try:
        network = ipaddress.ip_network(interface)
    except ValueError:
        network = None
    found = next((address for address in own.values() if network is not None and address in network), None)
    if found is None:
        there = ", ".join(f"{name.rpartition('/')[0]} ({address})" for name, address in own.items()) or "none"
        raise InvalidInput.at("--interface", f"{interface!r:.60} is no interface of this machine; there are {there}")
    return str(found)


def _source_towards(host: str) -> str:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect(address)  # sends nothing
            return str(sock.getsockname()[0])
    except OSError as error:
        raise InvalidInput.at(
            "--interface", f"there is no way from this machine to {host}: {error.strerror}"
        ) from error


def _own_addresses() -> Iterator[tuple[str, IpAddress]]:
    """Yield `NAME/FAMILY` and an address, of every interface but those that only this machine reaches."""
    for _, name in socket.if_nameindex():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                request = struct.pack(f"{_IFREQ_BYTES}s", name.encode()[:_MAX_NAME_BYTES])
                answer = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue
            yield f"{name}/4", ipaddress.IPv4Address(answer[_ADDRESS])
    path = Path("/proc/net/if_inet6")
    for line in path.read_text().splitlines() if path.exists() else ():
        digits, _, _, scope, _, name = line.split()
        if scope == _GLOBAL_SCOPE:  # an address that holds on one link only is of no use to others
            yield f"{name}/6", ipaddress.IPv6Address(bytes.fromhex(digits))
