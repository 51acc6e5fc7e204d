import errno
import os
import socket
from pathlib import Path

import pytest

from pliant.cluster.agent import free_ports
from pliant.cluster.agent.free_ports import FreePorts
from pliant.core.job import NodeId

HERE = NodeId("here")
OWN_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


@pytest.mark.skipif(not OWN_RANGE.exists(), reason="only Linux says which ports it gives by itself")
def test_a_port_is_none_that_the_system_gives_to_whoever_asks_for_any() -> None:
    with socket.create_server(("127.0.0.1", 0)) as any_port:
        assert any_port.getsockname()[1] >= int(OWN_RANGE.read_text().split()[0])
    ports = FreePorts(HERE, "127.0.0.1")
    assert all(ports.address(HERE).port < int(OWN_RANGE.read_text().split()[0]) for _ in range(100))


def test_a_port_that_somebody_listens_on_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    free = FreePorts(HERE, "127.0.0.1").address(HERE).port
    monkeypatch.setattr(free_ports, "_PORTS", range(free, free + 1))
    monkeypatch.setattr(free_ports, "_TRIES", 1)
    with (
        socket.create_server(("127.0.0.1", free)),
        pytest.raises(OSError, match=rf"1 ports of 127\.0\.0\.1 from {free} to {free} are all in use; try again"),
    ):
        FreePorts(HERE, "127.0.0.1").address(HERE)
    assert FreePorts(HERE, "127.0.0.1").address(HERE).port == free


def test_an_address_that_is_not_this_machines_is_told() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.EADDRNOTAVAIL)):
        FreePorts(HERE, "192.0.2.1").address(HERE)
