"""The stock of free ports is of ports that are free, and is filled as it is used."""

import errno
import os
import socket
from pathlib import Path

import pytest

from pliant.cluster.agent import free_ports
from pliant.cluster.agent.free_ports import FreePorts
from pliant.cluster.agent.messages import Addresses

OWN_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def changes(ports: FreePorts) -> Addresses:
    found = ports.changes()
    assert found is not None
    return found


@pytest.mark.skipif(not OWN_RANGE.exists(), reason="only Linux says which ports it gives by itself")
def test_a_port_is_none_that_the_system_gives_to_whoever_asks_for_any() -> None:
    with socket.create_server(("127.0.0.1", 0)) as any_port:
        assert any_port.getsockname()[1] >= int(OWN_RANGE.read_text().split()[0])
    added = changes(FreePorts("127.0.0.1", 100)).added
    assert len(added) == 100
    assert all(address.port < int(OWN_RANGE.read_text().split()[0]) for address in added)


def test_what_is_used_is_replaced_and_not_offered_again() -> None:
    ports = FreePorts("127.0.0.1", 3)
    offered = changes(ports).added
    assert ports.changes() is None, "nothing has changed"

    for _ in range(50):
        ports.use(offered[-1].port)
        (new,) = changes(ports).added
        assert new not in offered
        offered = (*offered, new)


def test_a_port_that_somebody_listens_on_is_withdrawn_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_ports, "_CHECK_EVERY_S", 0.0)
    ports = FreePorts("127.0.0.1", 2)
    taken, other = changes(ports).added
    with socket.create_server((taken.host, taken.port)):
        found = changes(ports)

    assert found.withdrawn == (taken,)
    assert len(found.added) == 1
    assert not set(found.added) & {taken, other}


def test_a_port_that_somebody_listens_on_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    (free,) = changes(FreePorts("127.0.0.1", 1)).added
    monkeypatch.setattr(free_ports, "_PORTS", range(free.port, free.port + 1))
    with socket.create_server((free.host, free.port)):
        ports = FreePorts("127.0.0.1", 1)
        error = changes(ports).error
        assert error == f"1 ports of 127.0.0.1 from {free.port} to {free.port} are all in use; try again"
        assert ports.changes() is None, "the same error is not sent again"
    assert changes(ports) == Addresses(added=(free,))


def test_an_address_that_is_not_this_machines_is_told() -> None:
    found = changes(FreePorts("192.0.2.1", 4))

    assert found.added == ()
    assert os.strerror(errno.EADDRNOTAVAIL) in found.error


def test_ports_of_an_address_of_ipv6_are_offered_too() -> None:
    (address,) = changes(FreePorts("::1", 1)).added

    with socket.create_server((address.host, address.port), family=socket.AF_INET6):
        assert address.host == "::1"
