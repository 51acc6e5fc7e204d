"""Which address of this machine others reach its tasks at.

An interface is named by its name, by one of its addresses, by a network that holds one, or is `auto`: the address that
packets to the server leave from. Of one that has addresses of both families that of the server's is taken. Addresses of
IPv6 that hold on one link only are of no use to other machines, and never named.
"""

import fcntl
import ipaddress
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
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
        return _global_source_towards(towards)
    own = list(_own_addresses())
    try:
        network = ipaddress.ip_network(interface)  # one address is a network, too
    except ValueError:
        network = None
    found = [address for name, address in own if name == interface or (network is not None and address in network)]
    if not found:
        there = ", ".join(f"{name} ({address})" for name, address in own) or "none"
        raise InvalidInput.at("--interface", f"{interface!r:.60} is no interface of this machine; there are {there}")
    if len({address.version for address in found}) > 1:
        with suppress(InvalidInput):  # the server may be known by another way than this one
            version = ipaddress.ip_address(_source_towards(towards)).version
            found = [address for address in found if address.version == version]
    return str(found[0])


def _global_source_towards(host: str) -> str:
    source = _source_towards(host)
    address = ipaddress.ip_address(source)
    if address.version == 6 and address.is_link_local:
        raise InvalidInput.at(
            "--interface",
            f"packets to {host} leave from {source}, an address that holds on one link only, so other machines would "
            f"not find this one by it; reach the server by another address, or name an interface",
        )
    return source


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
    """Yield the name of an interface and an address of it; of IPv6, those that others reach."""
    for _, name in socket.if_nameindex():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                request = struct.pack(f"{_IFREQ_BYTES}s", name.encode()[:_MAX_NAME_BYTES])
                answer = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue
            yield name, ipaddress.IPv4Address(answer[_ADDRESS])
    path = Path("/proc/net/if_inet6")
    for line in path.read_text().splitlines() if path.exists() else ():
        digits, _, _, scope, _, name = line.split()
        if scope == _GLOBAL_SCOPE:  # an address that holds on one link only is of no use to others
            yield name, ipaddress.IPv6Address(bytes.fromhex(digits))
