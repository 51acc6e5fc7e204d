"""A network for each test, and hosts on it that answer."""

import itertools
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from tests.hosts import Host, Network, require_hosts
from tests.hosts.echo import PORT

ECHO: Final[list[str | Path]] = [sys.executable, "-I", "-S", Path(__file__).with_name("echo.py")]
PATIENCE_S: Final = 10.0
SILENCE_S: Final = 0.25
"""A host that has not answered in this time does not: a round trip takes a millisecond."""


@pytest.fixture
def network() -> Iterator[Network]:
    """A network of a test's own."""
    require_hosts()
    with Network() as made:
        yield made


@pytest.fixture
def answering(network: Network, tmp_path: Path) -> Callable[..., Host]:
    """Return what adds a host that answers whatever it is sent."""

    def add(name: str, **options: Any) -> Host:
        host = network.add(name, **options)
        answer(host, tmp_path)
        return host

    return add


def answer(host: Host, folder: Path) -> None:
    """Have a host answer whatever it is sent, from now on."""
    output = folder / f"echo-{host.name}-{time.monotonic_ns()}"
    host.popen(ECHO, output=output)
    until(lambda: "listens" in output.read_text(), f"{host.name} listens")


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until something is the case."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}"
        time.sleep(0.005)


def round_trip_s(sender: Host, address: str, *, patience_s: float = SILENCE_S) -> float | None:
    """Send one datagram to an address; return the seconds until it has come back, or None."""
    with closing(datagrams(sender, ":" in address)) as channel:
        channel.settimeout(patience_s)
        begun = time.monotonic()
        try:
            channel.connect((address, PORT))
            channel.send(b"there?")
            channel.recv(100)
        except OSError:  # no answer, or no way
            return None
        return time.monotonic() - begun


def require_reach(*hosts: Host) -> None:
    """Wait until each of these hosts gets answers from each other one, over IPv4 and IPv6.

    At once is too early: a host that was asked for its Ethernet address in vain is asked again after a second.
    """
    for sender, receiver in itertools.permutations(hosts, 2):
        for address in (receiver.address, receiver.address6):
            until(lambda: round_trip_s(sender, address) is not None, f"{sender.name} reaches {address}")  # noqa: B023


def hears_nothing(sender: Host, receiver: Host) -> bool:
    """Tell whether a host gets no answer from another one, neither over IPv4 nor over IPv6."""
    return all(round_trip_s(sender, address) is None for address in (receiver.address, receiver.address6))


def datagrams(host: Host, is_six: bool = False) -> socket.socket:
    """Open a socket for UDP on a host."""
    with host.inside():
        return socket.socket(socket.AF_INET6 if is_six else socket.AF_INET, socket.SOCK_DGRAM)


def stream(sender: Host, address: str) -> socket.socket:
    """Connect a host to one that answers."""
    with sender.inside():
        return socket.create_connection((address, PORT), timeout=PATIENCE_S)
