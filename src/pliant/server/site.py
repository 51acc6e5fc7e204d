"""Where browsers find this server: below which path, behind which proxies, and what its cookie is called.

A server is at the root of its own address. A reverse proxy may show it below a path (`root_path`), and pass that path
on, or take it away: the server answers both. What a proxy says of a request (who sent it, to which name, over TLS or
not) is believed from the addresses in `proxies` alone.
"""

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.requests import HTTPConnection

from pliant.core.address import parse_address

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

BUNDLE: Final = Path(__file__).parent / "console" / "bundle"
"""Where the built console lies."""
API_FOLDERS: Final = frozenset({"assets", "auth", "dlim", "docs", "metrics", "openapi.json", "platform", "v1"})
"""How paths begin that are no pages of the console; a test holds it to the routes that there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where browsers find this server."""

    port: int = 0
    """Where the server itself listens."""
    root_path: str = ""
    """Such as `/pliant`; without a slash at its end, so that none is the empty text."""
    proxies: tuple[IpNetwork, ...] = ()
    bundle: Path = BUNDLE

    @property
    def base(self) -> str:
        """The path that all pages lie below, with a slash at its end."""
        return f"{self.root_path}/"

    @property
    def cookie(self) -> str:
        """What the cookie is called: browsers tell servers apart by name and path, and not by port."""
        return f"pliant_{self.port}{self.root_path.replace('/', '~')}"

    def trusts(self, address: str) -> bool:
        """Tell whether a proxy is at this address."""
        parsed = parse_address(address)
        return parsed is not None and any(parsed in network for network in self.proxies)


def site_of(connection: HTTPConnection) -> Site:
    """Return where browsers find the app that serves this request."""
    site = connection.app.state.site
    assert isinstance(site, Site)
    return site
