"""Limits that gateways of several machines keep together: a table for each machine, and the server's own relay."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.api.serving_link import MAX_FROM_GATEWAY_BYTES, MAX_ROWS, decode_from_gateway, encode_from_gateway
from pliant.core.serving import GatewayHello, RequestLimits, SharedRow, SharedUse, UseElsewhere
from pliant.serve.gateway.dispatch import Dispatch, DispatchedRequest
from pliant.serve.gateway.refused import Refused
from pliant.serve.gateway.request_limiter import RequestLimiter, enter
from pliant.serve.gateway.server_link import gateway_name
from pliant.serve.gateway.shared_counts import SharedCount, SharedCounts, SharedTable
from pliant.serve.gateway.use_news import UseNews
from pliant.server.gateway_relay import GatewayRelay

KEY: Final = "5f" * 16


@dataclass
class Process:
    """A gateway process."""

    name: str
    machine: str
    counts: SharedCounts
    news: UseNews
    limiter: RequestLimiter


@dataclass
class World:
    """Machines with gateways, the server's relay, and a clock."""

    stack: ExitStack
    num_here: int
    limits: RequestLimits
    now: float = 1000.0
    relay: GatewayRelay = field(default_factory=GatewayRelay)
    processes: list[Process] = field(default_factory=list)
    connected: set[str] = field(default_factory=set)

    def add_machine(self, machine: str) -> None:
        table = self.stack.enter_context(closing(SharedTable()))
        for _ in range(self.num_here):
            number = len(self.processes)
            counts = SharedCounts(table, number, lambda: self.now)
            limiter = RequestLimiter(self.limits, lambda: self.now, use=counts.of("token", b"t"))
            news = UseNews(counts, self.num_here)
            self.processes.append(Process(gateway_name(number, machine), machine, counts, news, limiter))

    def connect(self, number: int) -> None:
        one = self.processes[number]
        hello = GatewayHello(pid=1, http_url="", number=number, machine=one.machine)
        self.relay.join(one.name, hello, lambda: None)
        self.connected.add(one.name)
        for whole in one.news.begin():
            self.relay.take_use(one.name, whole)

    def disconnect(self, number: int) -> None:
        self.processes[number].news.end()
        self.relay.leave(self.processes[number].name)
        self.connected.discard(self.processes[number].name)

    def pass_on(self) -> None:
        """Let everybody say and hear all that there is."""
        there = [one for one in self.processes if one.name in self.connected]
        for one in there:
            for said in one.news.take_news():
                self.relay.take_use(one.name, said)
        for one in there:
            while (heard := self.relay.take_next(one.name)) is not None:
                one.news.hear(heard)

    def is_let_in(self, number: int) -> bool:
        try:
            enter(self.processes[number].limiter)
        except Refused:
            return False
        return True

    def count(self, number: int, name: bytes = b"t", kind: str = "token") -> SharedCount:
        return self.processes[number].counts.of(kind, name)

    def nums(self) -> list[int]:
        return [self.count(number).num for number in range(len(self.processes))]


Build = Callable[..., World]


@pytest.fixture
def build() -> Iterator[Build]:
    with ExitStack() as stack:

        def make(limits: RequestLimits, *, num_here: int = 2, machines: tuple[str, ...] = ("", "gpu3")) -> World:
            return built(stack, limits, num_here, machines)

        yield make


def built(stack: ExitStack, limits: RequestLimits, num_here: int, machines: tuple[str, ...]) -> World:
    world = World(stack, num_here, limits)
    for machine in machines:
        world.add_machine(machine)
    for number in range(len(world.processes)):
        world.connect(number)
    world.pass_on()
    return world


CONCURRENT: Final = RequestLimits(max_concurrent=2)


def test_requests_under_way_count_on_whichever_machine_they_began(build: Build) -> None:
    world = build(CONCURRENT)
    assert world.is_let_in(0)
    assert world.is_let_in(3)
    world.pass_on()
    assert [world.is_let_in(number) for number in range(4)] == [False] * 4
    world.processes[0].limiter.leave()
    world.pass_on()
    assert [world.is_let_in(number) for number in (2, 1)] == [True, True], "its own machine has the news first"
    world.pass_on()
    assert world.nums() == [3] * 4


def test_one_process_on_each_machine_is_enough(build: Build) -> None:
    world = build(CONCURRENT, num_here=1, machines=("", "gpu3", "gpu4"))
    assert [world.is_let_in(2), world.is_let_in(2)] == [True, True]
    world.pass_on()
    assert [world.is_let_in(number) for number in range(3)] == [False] * 3


def test_the_queue_of_a_version_is_bounded_over_machines(build: Build) -> None:
    world = build(CONCURRENT)
    queues = [Dispatch[DispatchedRequest](3, world.count(number, b"job-1", "queue")) for number in (0, 2)]
    queued = [queues[0].queue(DispatchedRequest(number)) for number in range(2)]
    for queue in queues:
        queue.count_waiting()
    world.pass_on()
    queued += [queues[1].queue(DispatchedRequest(number)) for number in (8, 9)]
    assert queued == [True, True, True, False]


@pytest.mark.parametrize("rate", [0.5, 5.0])
def test_a_rate_holds_in_the_long_run_for_all_machines_together(build: Build, rate: float) -> None:
    world = build(RequestLimits(max_rate=rate), num_here=1, machines=("", "gpu3", "gpu4"))
    delay_s, num_rounds, num = 0.1, 600, 0
    for _ in range(num_rounds):
        for number in range(3):
            while world.is_let_in(number):
                num += 1
                world.processes[number].limiter.leave()
        world.pass_on()
        world.now += delay_s
    passed_s = delay_s * num_rounds
    assert num <= rate * passed_s + 3 * max(1.0, rate) + 3 * rate * delay_s
    assert num >= 0.9 * rate * passed_s


def test_what_is_spent_elsewhere_is_gone_here_soon(build: Build) -> None:
    world = build(RequestLimits(max_rate=2.0))
    assert [world.is_let_in(0), world.is_let_in(0)] == [True, True]
    world.pass_on()
    assert not world.is_let_in(2)
    world.now += 0.5
    assert world.is_let_in(2)


def test_nothing_is_said_when_nothing_has_changed(build: Build) -> None:
    world = build(CONCURRENT)
    news = world.processes[0].news
    assert news.take_news() == []
    world.is_let_in(0)
    (said,) = news.take_news()
    assert (list(said.rows.values()), said.is_whole) == ([SharedRow(num=1)], False)
    world.processes[0].limiter.leave()
    world.is_let_in(0)
    assert news.take_news() == [], "a request has ended and another one has begun"
    world.count(0).spend(world.now, 0.25)
    (said,) = news.take_news()
    assert list(said.rows.values()) == [SharedRow(num=1, spent_s=0.25)]
    assert news.take_news() == []


def test_who_has_no_gateways_elsewhere_notes_nothing() -> None:
    with closing(SharedTable()) as table:
        counts = SharedCounts(table, 0, lambda: 5.0)
        counts.of("token", b"t").add(1)
        counts.of("token", b"t").spend(5.0, 1.0)
        assert counts.noted is None


def test_what_a_machine_used_that_is_gone_counts_no_longer(build: Build) -> None:
    world = build(CONCURRENT)
    for number in (2, 3):
        assert world.is_let_in(number)
    world.pass_on()
    assert world.nums() == [2] * 4
    world.disconnect(2)
    world.pass_on()
    assert world.nums() == [1, 1, 2, 2]
    world.connect(2)
    world.disconnect(3)
    world.pass_on()
    assert world.nums() == [1, 1, 2, 2], "it says all that it uses when it is back"


def test_another_process_hears_for_its_machine_when_the_first_is_gone(build: Build) -> None:
    world = build(CONCURRENT)
    world.is_let_in(0)
    world.disconnect(2)
    world.is_let_in(0)
    world.pass_on()
    assert world.nums() == [2] * 4
    world.processes[2].news.forget()
    assert world.nums() == [2] * 4, "another one hears now"
    late = UseElsewhere(gateway=0, rows={KEY: SharedRow(num=7)}, is_whole=False)
    world.connect(2)
    world.pass_on()
    world.processes[3].news.hear(late)
    assert dict(world.processes[3].counts.numbers_of(0)).get(bytes.fromhex(KEY)) is None, "it was on its way"


def test_a_machine_that_has_lost_the_server_holds_to_the_limits_alone(build: Build) -> None:
    world = build(CONCURRENT)
    for number in (0, 2):
        assert world.is_let_in(number)
    world.pass_on()
    for number in (2, 3):
        world.processes[number].news.end()
    for number in (3, 2):
        world.processes[number].news.forget()
    assert world.nums() == [2, 2, 1, 1]


def test_a_gateway_that_a_new_server_never_speaks_of_is_forgotten(build: Build) -> None:
    world = build(CONCURRENT, num_here=1, machines=("", "gpu3", "gpu4"))
    for number in (1, 2):
        assert world.is_let_in(number)
    world.pass_on()
    world.relay = GatewayRelay()
    world.connected.clear()
    for number in (0, 1):
        world.connect(number)
    world.pass_on()
    assert world.nums() == [2, 2, 2]
    world.processes[0].news.forget()
    assert world.nums() == [1, 2, 2]


@pytest.mark.parametrize("number", [0, 1, 16, -1, 1 << 80])
def test_nobody_speaks_for_a_gateway_of_this_machine_or_for_none(build: Build, number: int) -> None:
    world = build(CONCURRENT)
    world.is_let_in(1)
    world.processes[0].news.hear(UseElsewhere(gateway=number, rows={KEY: SharedRow(num=7)}, is_whole=True))
    assert world.nums()[:2] == [1, 1]
    assert world.processes[0].counts.find(bytes.fromhex(KEY)) is None


def test_more_than_a_message_holds_goes_in_several(build: Build) -> None:
    world = build(CONCURRENT)
    num = 2 * MAX_ROWS + 500
    counts = [world.count(0, b"%d" % number) for number in range(num)]
    for count in counts:
        count.add(1)
        count.spend(world.now, 1 / 3)
    num_there = len(list(world.processes[0].counts.numbers_of(0)))
    said = world.processes[0].news.take_news()
    assert [len(one.rows) for one in said] == [MAX_ROWS, MAX_ROWS, 500]
    frames = [encode_from_gateway(one) for one in said]
    assert max(map(len, frames)) < MAX_FROM_GATEWAY_BYTES
    for frame in frames:
        decoded = decode_from_gateway(frame)
        assert isinstance(decoded, SharedUse)
        world.relay.take_use("local", decoded)
    world.disconnect(2)
    world.pass_on()
    assert num_there > num // 2, "the others found no free row"
    assert len(list(world.processes[3].counts.numbers_of(0))) == num_there


Step = tuple[int, str, float]


@settings(max_examples=40)
@given(
    steps=st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from(["begin", "begin", "end", "pass", "lose", "later"]), st.floats(0, 1)
        ),
        max_size=50,
    ),
    rate=st.sampled_from([0.5, 3.0]),
)
def test_every_machine_knows_what_all_use_once_they_have_said_so(steps: list[Step], rate: float) -> None:
    with ExitStack() as stack:
        world = built(stack, RequestLimits(max_rate=rate, max_concurrent=3), 2, ("", "gpu3"))
        began_at, under_way, num = world.now, [0, 0, 0, 0], 0
        for number, what, seconds in steps:
            if what == "begin" and world.is_let_in(number):
                under_way[number] += 1
                num += 1
            elif what == "end" and under_way[number]:
                world.processes[number].limiter.leave()
                under_way[number] -= 1
            elif what == "pass":
                world.pass_on()
            elif what == "lose":
                world.disconnect(number)
                world.connect(number)
            elif what == "later":
                world.now += seconds
            assert sum(under_way) <= 2 * 3
            assert num <= 2 * (rate * (world.now - began_at) + max(1.0, rate)) + 1e-6
        world.pass_on()
        assert world.nums() == [sum(under_way)] * 4
