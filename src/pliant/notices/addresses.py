"""Which addresses the server calls for people: public ones by https, and what its administrator allowed besides.

A webhook makes the server send a request from where it stands in the network. So nothing that a stranger out there
could not reach may be reached through it: this machine, its neighbours, the metadata services of clouds. What counts is
the address that is connected with, whatever the name or the notation that led to it:

    https://hooks.slack.com/…      a public address: allowed
    http://hooks.slack.com/…       in the clear: refused, unless the host is allowed
    https://2130706433/            127.0.0.1: refused
    https://[::ffff:10.0.0.1]/     10.0.0.1: refused, unless 10.0.0.0/8 is allowed
    https://public.example:6379/   a port that no web server has: refused, unless allowed with the port
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pliant.core.errors import InvalidInput
from pliant.core.notice import DEFAULT_PORTS, WebhookUrl

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_HOST_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})?(\.[a-z0-9_]([a-z0-9_-]{0,62})?)*")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""All that is public in IPv6 is in it."""
_SPECIAL: Final = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20")))
"""Beside what Python's releases differ in: of protocols, and for documents."""
_HELP: Final = "its administrator allows addresses with `pliant up --allow-webhook`"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedTarget:
    """What an administrator allowed: a host by its name, or a network; on one port, or on all."""

    host: str = ""
    network: IpNetwork | None = None
    port: int | None = None

    def covers(self, url: WebhookUrl, address: IpAddress) -> bool:
        """Tell whether this URL may be called at this address."""
        if self.port not in (None, url.port):
            return False
        if self.network is not None:
            return address.version == self.network.version and address in self.network
        return self.host == _plain(url.host)


def read_allowed(text: str) -> AllowedTarget:
    """Return what HOST, ADDRESS or NETWORK, each perhaps with `:PORT`, allows.

    Raises:
        InvalidInput: it is none of them.
    """
    host, port = _split_port(text)
    try:
        return AllowedTarget(network=ipaddress.ip_network(host), port=port)
    except ValueError:
        plain = _plain(host)
        if not _HOST_NAME.fullmatch(plain) or plain.replace(".", "").isdigit():
            message = f"{text!r:.100} is no host and no network; give HOST, HOST:PORT or a network like 10.0.0.0/8"
            raise InvalidInput.at("--allow-webhook", message) from None
        return AllowedTarget(host=plain, port=port)


def _split_port(text: str) -> tuple[str, int | None]:
    if found := re.fullmatch(r"\[(?P<host>[^\]]+)\](?::(?P<port>[0-9]{1,5}))?", text):
        return found["host"], int(found["port"]) if found["port"] else None
    host, colon, port = text.rpartition(":")
    if colon and ":" not in host and re.fullmatch(r"[0-9]{1,5}", port):
        return host, int(port)
    return text, None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRules:
    """Which webhooks the server calls."""

    allowed: Sequence[AllowedTarget] = ()

    def refusal(self, url: WebhookUrl, address: str, *, is_own: bool = False) -> str:
        """Return why a URL is not called at an address, in words that follow what is shown of it; empty if it is.

        The address itself is not in them: it may be one that only the server learns from its names.

        Args:
            url: what a person gave.
            address: where it led to.
            is_own: it is one of this machine's, which a firewall may keep strangers from and not the server.
        """
        found = embedded(ipaddress.ip_address(address))
        if any(target.covers(url, found) for target in self.allowed):
            return ""
        if why := "the server's own machine" if is_own else _not_public(found):
            return f"leads to {why}, which this server does not call for people; {_HELP}"
        if url.scheme != "https":
            return "is not encrypted, so others could read it on the way; give one that begins with https"
        if url.port != DEFAULT_PORTS["https"]:
            return f"is on port {url.port}, and this server calls only port 443 for people; {_HELP}"
        return ""


def embedded(address: IpAddress) -> IpAddress:
    """Return the IPv4 address that an IPv6 address stands for, or the address itself if it stands for none."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _not_public(address: IpAddress) -> str:
    """Return what an address is that not everybody reaches, in words; empty for a public one."""
    if address.is_unspecified or address.is_loopback:
        return "the server's own machine"
    if address.is_link_local:
        return "an address of its own link"
    if address.is_multicast:
        return "an address of a group"
    is_special = any(address.version == network.version and address in network for network in _SPECIAL)
    is_strange = isinstance(address, ipaddress.IPv6Address) and address not in _UNICAST
    if not address.is_global or address.is_reserved or is_special or is_strange:
        return "an address of a private network"
    return ""


def _plain(host: str) -> str:
    return host.lower().rstrip(".")
