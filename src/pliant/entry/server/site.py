"""What the server is told about where browsers find it, and behind which proxies: options, checked."""

import argparse
import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pliant.core.errors import Problem
from pliant.server.site import API_FOLDERS, IpNetwork

_MAX_PATH: Final = 200
_STEP: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


def add_site(parser: argparse.ArgumentParser, env: Mapping[str, str]) -> None:
    """Add the options."""
    path_help = "a reverse proxy shows the server below this path, such as /pliant; or PLIANT_ROOT_PATH"
    parser.add_argument("--root-path", default=env.get("PLIANT_ROOT_PATH") or "", metavar="PATH", help=path_help)
    proxy_help = (
        "believe this address, or network, who sent a request and how (X-Forwarded-For, -Proto, -Host); may be "
        "repeated; and those in PLIANT_TRUSTED_PROXIES, with commas"
    )
    proxies = [one.strip() for one in env.get("PLIANT_TRUSTED_PROXIES", "").split(",") if one.strip()]
    parser.add_argument("--trusted-proxy", action="append", default=proxies, metavar="ADDRESS", help=proxy_help)


def site_settings(given: argparse.Namespace) -> dict[str, Any]:
    """Return what the options say, for `ServerSettings`."""
    networks = [_network(text) for text in given.trusted_proxy]
    return {
        "root_path": given.root_path.removesuffix("/"),
        "proxies": tuple(network for network in networks if network is not None),
    }


def site_problems(given: argparse.Namespace) -> Iterator[Problem]:
    """Yield what is wrong with the options."""
    path = given.root_path.removesuffix("/")
    first, *steps = path.split("/")
    if path and (first or len(path) > _MAX_PATH or not all(map(_STEP.fullmatch, steps))):
        message = (
            f"{given.root_path!r:.80} is no path to be below; give one like /pliant, of letters, digits, '.', '_' and "
            f"'-' between single slashes, {_MAX_PATH} characters at most"
        )
        yield Problem(field="--root-path", message=message)
    elif path and steps[0] in API_FOLDERS:
        message = f"{given.root_path!r} begins like paths of the server itself; give another one, such as /pliant"
        yield Problem(field="--root-path", message=message)
    for text in given.trusted_proxy:
        network = _network(text)
        if network is None:
            message = f"{text!r:.80} is no address; give one like 10.0.0.5, or a network like 10.0.0.0/24"
            yield Problem(field="--trusted-proxy", message=message)
        elif not network.prefixlen:
            message = f"{text!r} is every address there is, and anybody could say to be anybody; name your proxies"
            yield Problem(field="--trusted-proxy", message=message)


def _network(text: str) -> IpNetwork | None:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None
