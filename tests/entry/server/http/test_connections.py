"""Which connections are counted, who has to go, and who is refused, whatever happens in which order."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from pliant.entry.server.http.connections import ConnectionCounts, CountedConnection
from pliant.entry.server.http.limits import HttpLimits

LIMITS = HttpLimits(total=9, per_address=3, per_loopback=5)
ADDRESSES = ("127.0.0.1", "10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8::2", "2001:db8:1::1")


class Connections(RuleBasedStateMachine):
    """Connections that come, wait, work, become links and go."""

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.counts = ConnectionCounts(LIMITS)
        self.waiting: list[CountedConnection] = []
        self.working: list[CountedConnection] = []
        self.links: list[CountedConnection] = []
        self.dropped: list[int] = []
        self.next_number = 0

    def of(self, network: str) -> list[CountedConnection]:
        return [one for one in (*self.waiting, *self.working) if one.network == network]

    @rule(target=held, address=st.sampled_from(ADDRESSES))
    def come(self, address: str) -> CountedConnection | None:
        number = self.next_number = self.next_number + 1
        oldest = list(self.waiting)
        self.dropped.clear()
        made = self.counts.admit(address, number, lambda: self.dropped.append(number), 0.0)
        for gone in self.dropped:
            (connection,) = [one for one in oldest if one.file_number == gone]
            mine = [one for one in oldest if made is None or one.network == made.network]
            assert connection in (oldest[0], *mine[:1]), "the one that has waited longest goes"
            self.waiting.remove(connection)
        if made is None:
            full = len(self.working) + len(self.links) + len(self.waiting) >= LIMITS.total
            assert full or not self.dropped
        else:
            self.waiting.append(made)
        return made

    @rule(connection=held)
    def work(self, connection: CountedConnection | None) -> None:
        if connection is not None:
            self.counts.work(connection)
            if connection in self.waiting:
                self.waiting.remove(connection)
                self.working.append(connection)

    @rule(connection=held)
    def wait(self, connection: CountedConnection | None) -> None:
        if connection is not None:
            self.counts.wait(connection)
            for those in (self.waiting, self.working):
                if connection in those:
                    those.remove(connection)
                    self.waiting.append(connection)
                    break

    @rule(connection=held)
    def link(self, connection: CountedConnection | None) -> None:
        if connection is not None:
            self.counts.link(connection)
            for those in (self.waiting, self.working):
                if connection in those:
                    those.remove(connection)
                    self.links.append(connection)

    @rule(connection=consumes(held))
    def go(self, connection: CountedConnection | None) -> None:
        if connection is not None:
            self.counts.release(connection)
            self.counts.release(connection)
            for those in (self.waiting, self.working, self.links):
                if connection in those:
                    those.remove(connection)

    @invariant()
    def no_bound_is_passed_and_none_is_forgotten(self) -> None:
        assert len(self.counts) == len(self.waiting) + len(self.working) + len(self.links) <= LIMITS.total
        assert self.counts.num_waiting() == len(self.waiting)
        for network in {one.network for one in (*self.waiting, *self.working)}:
            most = LIMITS.per_loopback if network == "127.0.0.1" else LIMITS.per_address
            assert len(self.of(network)) <= most
        for one in (*self.waiting, *self.working, *self.links):
            assert self.counts.find(one.file_number) is one


TestConnections = Connections.TestCase
TestConnections.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_addresses_of_one_network_share_their_bound_and_others_have_their_own() -> None:
    counts = ConnectionCounts(LIMITS)
    at_work = [counts.admit(f"2001:db8::{n}", n, lambda: None, 0.0) for n in range(1, 4)]
    for connection in at_work:
        assert connection is not None
        counts.work(connection)
    assert counts.admit("2001:db8::ffff", 10, lambda: None, 0.0) is None
    assert counts.admit("2001:db8:0:1::1", 11, lambda: None, 0.0) is not None
