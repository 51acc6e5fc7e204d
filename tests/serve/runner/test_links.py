"""Which gateways a kernel is connected to, on a clock of the test."""

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.runner.fake_gateway import FakeGateway

from pliant.serve.protocol.frames import MAX_GATEWAYS, KernelFrameKind
from pliant.serve.runner.channel import LocalChannel, connect_local, set_send_timeout
from pliant.serve.runner.connection import GatewayConnection
from pliant.serve.runner.errors import NoGateway
from pliant.serve.runner.failures import FailuresInRow
from pliant.serve.runner.leaving import LeaveSignal
from pliant.serve.runner.link import GatewayLink
from pliant.serve.runner.links import FIRST_PAUSE_S, HELD_UP_S, LONGEST_PAUSE_S, GatewayLinks

Kind = KernelFrameKind


class Server:
    """Gateways that come and go, and the links of one kernel to them."""

    def __init__(self, leave: LeaveSignal, patience_s: float = 600.0) -> None:
        self.now = 100.0
        self.there: dict[int, bool] = {}
        """The sockets, and whether somebody listens."""
        self.tried: list[int] = []
        self.gateways: dict[int, FakeGateway] = {}
        self._leave = leave
        self.links = GatewayLinks({}, self._connect, self._begin, leave, lambda: self.now, patience_s)

    def _connect(self, number: int) -> LocalChannel:
        self.tried.append(number)
        if number not in self.there:
            raise FileNotFoundError(f"gateway {number} does not exist")
        if not self.there[number]:
            raise ConnectionRefusedError(f"gateway {number} is away")
        ours, theirs = socket.socketpair()
        self.gateways[number] = FakeGateway(theirs)
        return LocalChannel(ours)

    def _begin(self, number: int, to: GatewayConnection, on_welcome: Callable[[GatewayLink], None]) -> GatewayLink:
        clock = lambda: self.now  # noqa: E731
        return GatewayLink(number, to, self._leave, FailuresInRow(clock), clock, on_welcome)

    def ticks(self, seconds: float = 0.0) -> float | None:
        """Let time pass, as a kernel that has nothing to do lets it; return what the last tick says."""
        end = self.now + seconds
        while True:
            self.links.receive()
            look_again_s = self.links.tick()
            if look_again_s is None or self.now + look_again_s > end:
                self.now = end
                return look_again_s
            self.now += max(look_again_s, 1e-6)

    def welcome(self, *numbers: int, said: int | None = None) -> None:
        for number in numbers:
            self.gateways[number].welcome(**({} if said is None else {"num_gateways": said}))
        self.links.receive()

    def stop(self, *numbers: int, gone: bool = False) -> None:
        for number in numbers:
            self.gateways.pop(number).close()
            self.there[number] = False
            if gone:
                del self.there[number]

    @property
    def linked(self) -> list[int]:
        return sorted(link.number for link in self.links.open if link.is_open)


@contextmanager
def server(num: int, patience_s: float = 600.0) -> Iterator[Server]:
    leave = LeaveSignal()
    found = Server(leave, patience_s)
    found.there = dict.fromkeys(range(num), True)
    try:
        found.links.begin()
        found.links.be_ready({})
        yield found
    finally:
        found.links.close()
        for gateway in found.gateways.values():
            gateway.close()
        leave.close()


def test_names_are_tried_in_their_order_until_one_does_not_exist() -> None:
    with server(3) as found:
        assert (found.linked, found.tried) == ([0, 1, 2], [0, 1, 2, 3])


def test_a_kernel_that_is_connected_to_all_has_no_timer_and_looks_for_nothing() -> None:
    for num in (1, 3):
        with server(num) as found:
            found.welcome(*range(num))
            found.tried.clear()

            assert found.ticks(1000.0) is None
            assert found.tried == []


def test_a_gateway_that_is_away_is_tried_again_after_longer_and_longer_pauses() -> None:
    with server(2) as found:
        found.welcome(0, 1)
        found.stop(1)
        found.links.receive()
        found.tried.clear()
        found.ticks(FIRST_PAUSE_S * 7.5)
        assert found.tried.count(1) == 3
        found.ticks(100.0)
        assert 100 <= found.tried.count(1) <= 110
        assert found.ticks() is not None
        assert (found.ticks() or 0.0) <= LONGEST_PAUSE_S

        found.there[1] = True
        found.ticks(LONGEST_PAUSE_S)
        assert found.linked == [0, 1]
        found.welcome(1)
        assert found.ticks() is None


def test_a_name_that_does_not_exist_is_forgotten_and_that_of_number_0_never() -> None:
    with server(3) as found:
        found.welcome(0, 1, 2)
        found.stop(2, gone=True)
        found.links.receive()
        assert found.ticks(10.0) is None
        found.stop(0, 1, gone=True)
        found.links.receive()
        found.ticks(10.0)
        found.tried.clear()
        found.ticks(10.0)
        assert set(found.tried) == {0, 1}  # 1 because there might be more now


def test_a_gateway_that_is_lost_is_the_time_to_look_for_more() -> None:
    with server(1) as found:
        found.welcome(0)
        found.there = {0: True, 1: True, 2: False}
        assert found.ticks(10.0) is None
        found.gateways.pop(0).close()
        found.links.receive()
        found.ticks(FIRST_PAUSE_S)
        assert found.linked == [0, 1]
        found.there[2] = True
        found.ticks(LONGEST_PAUSE_S)
        assert found.linked == [0, 1, 2]


def test_what_a_gateway_says_counts_and_not_the_names() -> None:
    with server(1) as found:
        found.there |= {1: False}
        found.welcome(0, said=3)
        assert found.ticks(10.0) is not None
        assert {1, 2} <= set(found.tried)
        found.there |= {1: True, 2: True}
        found.ticks(LONGEST_PAUSE_S)
        found.welcome(1, 2, said=3)
        assert (found.linked, found.ticks()) == ([0, 1, 2], None)

        found.stop(0, 1, 2)  # a restart with one gateway; sockets of the others are left over
        found.there[0] = True
        found.links.receive()
        found.ticks(1.0)
        found.welcome(0, said=1)
        assert found.ticks(10.0) is None
        assert found.linked == [0]


@pytest.mark.parametrize("said", [0, -1, MAX_GATEWAYS + 1, 10**9])
def test_a_number_of_gateways_that_makes_no_sense_is_passed_over(said: int) -> None:
    with server(2) as found:
        found.welcome(0, 1, said=said)
        assert (found.linked, found.ticks(5.0)) == ([0, 1], None)


def test_a_gateway_that_has_not_welcomed_the_kernel_is_left_in_peace_as_long_as_another_has() -> None:
    with server(2, patience_s=50.0) as found:
        found.welcome(1)
        found.tried.clear()
        assert found.ticks(1000.0) is None
        assert (found.tried, found.linked) == ([], [0, 1])


def test_a_kernel_that_no_gateway_welcomes_gives_up_and_one_that_serves_another_does_not() -> None:
    with server(2, patience_s=50.0) as found:
        found.ticks(49.0)
        with pytest.raises(NoGateway, match="for 50 s; the last attempt: the gateway does not answer"):
            found.ticks(2.0)
    with server(2, patience_s=50.0) as found:
        found.welcome(0, 1)
        found.stop(0)
        found.links.receive()
        found.ticks(1000.0)
        found.stop(1)
        found.links.receive()
        found.ticks(49.0)
        with pytest.raises(NoGateway, match=r"ConnectionRefusedError: gateway [01] is away"):
            found.ticks(2.0)


def bounds(links: GatewayLinks) -> set[float]:
    channels = [link.connection._channel for link in links.open]
    local = [channel._sock for channel in channels if isinstance(channel, LocalChannel)]
    said = [sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16) for sock in local]
    return {whole + micro / 1e6 for whole, micro in (struct.unpack("@ll", one) for one in said)}


def test_what_is_sent_is_bounded_only_while_it_could_hold_others_up() -> None:
    with server(1) as found:
        assert bounds(found.links) == {0.0}
    with server(2) as found:
        assert bounds(found.links) == {HELD_UP_S}
        found.stop(1, gone=True)
        found.links.receive()
        found.ticks(1.0)
        assert bounds(found.links) == {0.0}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        set_send_timeout(ours, 0.25)
        whole, micro = struct.unpack("@ll", ours.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16))
        assert whole + micro / 1e6 == pytest.approx(0.25, abs=0.02)  # the system rounds it to its own ticks


def test_a_gateway_with_too_many_connections_that_it_has_not_taken_is_not_waited_for(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("sockets") / "gateway"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stopped:
        stopped.bind(str(path))
        stopped.listen(0)
        waiting = [connect_local(path.parent, path.name)]  # as many as are queued
        with pytest.raises(BlockingIOError):
            waiting.append(connect_local(path.parent, path.name))
        assert waiting[0]._sock.getblocking()
    for one in waiting:
        one.close()


@given(st.data())
def test_in_the_end_a_kernel_is_connected_to_all_that_are_there_and_to_no_other(data: st.DataObject) -> None:
    with server(data.draw(st.integers(0, 4))) as found:
        says = data.draw(st.booleans())
        for _ in range(data.draw(st.integers(0, 12))):
            act = data.draw(st.sampled_from(["die", "go", "come", "welcome", "wait"]))
            if act == "wait":
                found.ticks(data.draw(st.floats(0, 3)))
            elif act == "welcome":
                for gateway in found.gateways.values():
                    if not gateway.log:
                        gateway.welcome(**({"num_gateways": max(1, len(found.there))} if says else {}))
            elif act == "come":
                found.there[data.draw(st.integers(0, 5))] = True
            elif found.gateways:
                found.stop(data.draw(st.sampled_from(sorted(found.gateways))), gone=act == "go")
            found.links.receive()
        num = data.draw(st.integers(1, 6))
        found.stop(*found.gateways)
        found.there = dict.fromkeys(range(num), True)
        found.links.receive()
        found.ticks(3.0)
        for gateway in found.gateways.values():
            gateway.welcome(**({"num_gateways": num} if says else {}))
        found.ticks(3.0)
        for number, gateway in found.gateways.items():
            if not gateway.log:
                found.welcome(number)

        assert found.linked == list(range(num))
        assert found.ticks(100.0) is None
        assert len(found.links.open) == num
