"""Faults of the network between hosts: each does what it says, is undone, and adds to others."""

import hashlib
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.hosts import Host, Network
from tests.hosts.conftest import (
    PATIENCE_S,
    SILENCE_S,
    answer,
    datagrams,
    hears_nothing,
    require_reach,
    round_trip_s,
    stream,
)
from tests.hosts.filters import lose_share

pytestmark = pytest.mark.slow

Add = Callable[..., Host]


def sees_its_link(host: Host) -> bool:
    """Tell whether a host has a signal on its cable."""
    return "NO-CARRIER" not in host.run(["ip", "link", "show", "eth0"]).stdout


def test_a_cut_is_silence_both_ways_that_no_host_sees(network: Network, answering: Add) -> None:
    a, b, c = answering("a"), answering("b"), answering("c")
    require_reach(a, b)
    with stream(a, b.address) as connection:
        with network.cut(a):
            connection.sendall(b"late")
            assert hears_nothing(a, b)
            assert hears_nothing(b, a)
            require_reach(b, c)
            assert sees_its_link(a)
        assert connection.recv(100) == b"late"  # TCP has tried again
    require_reach(a, b)


def test_a_cut_of_one_way_lets_the_other_through(network: Network, answering: Add) -> None:
    a, b = answering("a"), answering("b")
    require_reach(a, b)  # and they know each other's Ethernet address
    with closing(datagrams(b)) as at_b, closing(datagrams(a)) as at_a:
        for host, channel in ((a, at_a), (b, at_b)):
            channel.bind((host.address, 1000))
            channel.settimeout(SILENCE_S)

        def arrives(sender: socket.socket, receiver: socket.socket, address: str) -> bool:
            sender.sendto(b"one way", (address, 1000))
            try:
                return bool(receiver.recv(100))
            except TimeoutError:
                return False

        with network.cut(a, "to"):
            assert arrives(at_a, at_b, b.address)
            assert not arrives(at_b, at_a, a.address)
        with network.cut(a, "from"):
            assert not arrives(at_a, at_b, b.address)
            assert arrives(at_b, at_a, a.address)
        assert arrives(at_a, at_b, b.address)
        assert arrives(at_b, at_a, a.address)


def test_a_host_sees_that_its_cable_is_out(network: Network, answering: Add) -> None:
    a, b = answering("a"), answering("b")
    with stream(a, b.address) as connection:
        with network.unplug(a):
            with network.unplug(a):
                connection.sendall(b"late")
            assert not sees_its_link(a)
            assert sees_its_link(b)
            assert hears_nothing(a, b)
            assert hears_nothing(b, a)
        assert connection.recv(100) == b"late"
    assert sees_its_link(a)
    require_reach(a, b)


def test_a_cut_between_two_lets_each_reach_the_others(network: Network, answering: Add) -> None:
    a, b, c = answering("a"), answering("b"), answering("c")

    with network.cut_between(a, b):
        assert hears_nothing(a, b)
        assert hears_nothing(b, a)
        require_reach(a, c)
        require_reach(b, c)
        with pytest.raises(TimeoutError), a.inside():  # silence, not "no route to host"
            socket.create_connection((b.address6, 7), timeout=SILENCE_S)
        for address in (b.address, b.address6):  # they find each other, and are not heard
            assert "lladdr 02:00:00:00:00:02" in a.run(["ip", "neighbour", "show", address]).stdout

    require_reach(a, b)


def test_a_share_of_the_packets_is_lost(network: Network) -> None:
    a, b = network.add("a"), network.add("b")
    with closing(datagrams(a)) as at_a, closing(datagrams(b)) as at_b:
        at_b.bind((b.address, 1000))

        def num_lost() -> int:
            num_arrived, at_b_has = 0, True
            at_b.setblocking(False)
            for _ in range(500):
                at_a.sendto(b"?", (b.address, 1000))
                num_arrived += _num_waiting(at_b)
            at_b.settimeout(SILENCE_S)
            while at_b_has:
                num_arrived += (at_b_has := bool(_num_waiting(at_b)))
            return 500 - num_arrived

        at_a.sendto(b"who has b?", (b.address, 1000))
        at_b.recv(100)
        with network.lose(a, 0.2):
            assert 50 < num_lost() < 150  # 100, and more than five standard deviations on either side
        assert num_lost() == 0
        with network.lose(a, 1.0):
            assert num_lost() == 500
    with pytest.raises(ValueError, match=r"a share of 1\.5 cannot be lost"):
        lose_share(1.5)


def _num_waiting(channel: socket.socket) -> int:
    try:
        return len(channel.recv(100))
    except (TimeoutError, BlockingIOError):
        return 0


def test_a_delay_makes_every_round_trip_longer(network: Network, answering: Add) -> None:
    a, b, c = answering("a"), answering("b"), answering("c")

    with network.delay(a, 0.05) as delay:
        assert 0.05 <= least_s(a, b) < 0.1
        assert 0.05 <= least_s(b, a) < 0.1
        assert least_s(b, c) < 0.05
        with network.delay(a, 0.05), network.delay(b, 0.02):
            assert 0.12 <= least_s(a, b) < 0.18
        delay.heal()
        assert least_s(a, b) < 0.05


def least_s(sender: Host, receiver: Host) -> float:
    """Return the shortest of some round trips: a busy machine makes them longer, never shorter."""
    addresses = (receiver.address, receiver.address6)
    trips = [round_trip_s(sender, address, patience_s=PATIENCE_S) for address in addresses for _ in range(3)]
    return min(trip for trip in trips if trip is not None)


@pytest.mark.parametrize("six", [False, True])
def test_streams_pass_a_delay_and_loss_whole(network: Network, answering: Add, six: bool) -> None:
    a, b = answering("a"), answering("b")
    sent = bytes(range(256)) * 2**14
    with network.delay(a, 0.01), network.lose(b, 0.02), stream(a, b.address6 if six else b.address) as connection:
        sender = threading.Thread(target=connection.sendall, args=[sent])
        sender.start()
        received = bytearray()
        while len(received) < len(sent):
            received += connection.recv(2**20)
        sender.join(PATIENCE_S)

    assert hashlib.sha256(received).digest() == hashlib.sha256(sent).digest()


def test_a_delayed_host_can_be_cut_unplugged_killed_and_restarted(
    network: Network, answering: Add, tmp_path: Path
) -> None:
    a, b = answering("a"), answering("b")
    with network.delay(b, 0.05) as delay:
        with network.cut(b):
            assert hears_nothing(a, b)
            with network.delay(b, 0.01):
                assert hears_nothing(a, b)
        require_reach(a, b)
        with network.unplug(b):
            assert hears_nothing(a, b)
        require_reach(a, b)
        network.cut(b, "to")
        b.restart()
        assert hears_nothing(b, a)
        network.heal()
        answer(b, tmp_path)
        require_reach(b, a)
        assert least_s(b, a) < 0.05
        b.kill()
        delay.heal()
    with network.delay(b, 0.01), network.cut(b), network.unplug(b):
        pass  # of a host that is not there
    b.restart()
    answer(b, tmp_path)
    require_reach(b, a)
