"""Who leads a PostgreSQL database: terms, lost connections, stopped leaders, and commits that nobody saw."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.contracts.store import a_job, an_event
from tests.databases import cut_all, execute

from pliant.core.errors import Deposed, Diverged, Unavailable
from pliant.core.ports import EventFilter, Writes
from pliant.core.registry import AuditEntry
from pliant.store.leadership import Leadership
from pliant.store.sql import SqlStore

BRIEF_S = 1.5
"""A lease that a test waits for the end of."""
LONG_S = 120.0
"""A lease that does not end while a test stands still."""


def until(condition: Callable[[], Any], timeout_s: float = 20.0) -> None:
    """Wait for something."""
    began_at = time.monotonic()
    while not condition():
        assert time.monotonic() < began_at + timeout_s
        time.sleep(0.02)  # between two looks


def kept(leader: Leadership) -> bool:
    """Let a leader say that it lives; tell whether the database answered."""
    try:
        leader.keep()
    except Unavailable:  # a session that was cut holds the lead until it is gone
        return False
    return True


@pytest.fixture
def leaders(postgres_url: str, request: pytest.FixtureRequest) -> Iterator[list[Leadership]]:
    """Two who would lead; with a brief lease if the test says so."""
    both = [Leadership(postgres_url, lease_s=getattr(request, "param", LONG_S)) for _ in range(2)]
    yield both
    for one in both:
        one.close()


def test_one_leads_at_a_time_and_the_next_has_a_new_term(leaders: list[Leadership]) -> None:
    first, second = leaders
    assert first.take()
    assert not second.take()
    assert (first.term, second.term) == (1, None)
    first.release()
    assert second.take()
    assert second.term == 2


def test_the_lead_of_a_new_database_can_be_taken_at_once(new_postgresql_url: str) -> None:
    with closing(Leadership(new_postgresql_url)) as leader:
        assert leader.take()
        with closing(SqlStore(new_postgresql_url, term=leader.term)) as store:
            store.write(Writes(events=(an_event("x"),)))


def test_a_leader_that_was_cut_off_goes_on_if_nobody_led_meanwhile(
    leaders: list[Leadership], postgres_url: str
) -> None:
    leader, other = leaders
    assert leader.take()
    with closing(SqlStore(postgres_url, term=leader.term)) as store:
        cut_all(postgres_url)
        until(lambda: kept(leader))
        assert not other.take()
        assert store.write(Writes(events=(an_event("x"),)))


@pytest.mark.parametrize("leaders", [BRIEF_S], indirect=True)
def test_a_leader_that_says_nothing_loses_the_lead_and_cannot_write_any_more(
    leaders: list[Leadership], postgres_url: str
) -> None:
    stopped, next_one = leaders
    began_at = time.monotonic()
    assert stopped.take()
    with closing(SqlStore(postgres_url, term=stopped.term)) as store:
        store.write(Writes(jobs=(a_job(),), events=(an_event("first"),)))
        until(next_one.take)
        assert time.monotonic() - began_at > BRIEF_S
        for write in (
            lambda: store.write(Writes(events=(an_event("late"),))),
            lambda: store.next_id("job"),
            lambda: store.audit.append(an_entry()),
        ):
            with pytest.raises(Deposed, match="its term is 2, ours was 1"):
                write()
        assert [event.message for event in store.events(EventFilter())] == ["first"]
    with pytest.raises(Deposed, match="another server leads"):
        stopped.keep()


def an_entry() -> AuditEntry:
    return AuditEntry(at=1.0, who="ann", action="x", status=200)


def within_a_transaction(connection: Connection) -> None:
    connection.exec_driver_sql("INSERT INTO counters VALUES ('half', 1)")


def within_a_batch(connection: Connection) -> None:
    """Send one of the statements that are sent together, as for rows that are inserted, and not the others."""
    wire: Any = connection.connection.driver_connection
    wire.pgconn.enter_pipeline_mode()
    wire.pgconn.send_query_params(b"INSERT INTO counters VALUES ('half', 1)", None)
    wire.pgconn.send_flush_request()
    wire.pgconn.flush()


@pytest.mark.parametrize("leaders", [BRIEF_S], indirect=True)
@pytest.mark.parametrize("begin", [within_a_transaction, within_a_batch])
def test_a_new_term_waits_for_what_is_being_written_and_ends_what_stands_still(
    leaders: list[Leadership], postgres_url: str, begin: Callable[[Connection], None]
) -> None:
    stopped, next_one = leaders
    assert stopped.take()
    with closing(SqlStore(postgres_url, term=stopped.term)) as store:

        def stand_still() -> None:
            with store._write_transaction() as connection:
                begin(connection)
                until(next_one.take)
                connection.exec_driver_sql("INSERT INTO counters VALUES ('other half', 1)")

        began_at = time.monotonic()
        with pytest.raises(Unavailable):
            stand_still()
        assert time.monotonic() - began_at < 8
    assert next_one.term == 2
    assert not execute(postgres_url, "SELECT 1 FROM counters WHERE name LIKE '%half'")


class Wire:
    """A wire to PostgreSQL that can lose the answer to a commit, and be cut."""

    def __init__(self, url: str) -> None:
        server, _, name = url.rpartition("/")
        user, _, address = server.rpartition("@")
        host, _, port = address.partition(":")
        self._there = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{user}@127.0.0.1:{self._listener.getsockname()[1]}/{name}?sslmode=disable&gssencmode=disable"
        self.lose_commit = False
        self.reaches = True
        self.num_lost = 0
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if not self.reaches:
                    near.close()
                    continue
                far = socket.create_connection(self._there)
                self._ends += [near, far]
                for one, other, asks in ((near, far, True), (far, near, False)):
                    threading.Thread(target=self._carry, args=(one, other, asks), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket, asks: bool) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                lost = asks and self.lose_commit and b"COMMIT" in data
                other.sendall(data)
                if lost:
                    self.num_lost += 1
                    self.lose_commit = False
                    one.shutdown(socket.SHUT_RDWR)
                    other.recv(65536)  # its answer: it has committed
                    return
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for end in (self._listener, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.fixture
def wire(postgres_url: str) -> Iterator[Wire]:
    made = Wire(postgres_url)
    yield made
    made.close()


def test_a_commit_whose_answer_was_lost_counts_as_made(wire: Wire) -> None:
    with closing(SqlStore(wire.url)) as store:
        store.write(Writes(events=(an_event("before"),)))
        wire.lose_commit = True
        assert [event.seq for event in store.write(Writes(events=(an_event("in doubt"),)))] == [2]
        assert wire.num_lost == 1
        assert [event.message for event in store.events(EventFilter())] == ["before", "in doubt"]
        assert [event.seq for event in store.write(Writes(events=(an_event("after"),)))] == [3]
        assert not store.diverged


def test_a_commit_that_turns_out_to_be_made_later_stops_all_further_writes(
    wire: Wire, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pliant.store.fence._SETTLE_S", 0.3)
    with closing(SqlStore(wire.url)) as store:
        wire.lose_commit, wire.reaches = True, False
        with pytest.raises(Unavailable, match="lost during a commit"):
            store.write(Writes(events=(an_event("in doubt"),)))
        with pytest.raises(Unavailable, match="does not say yet"):
            store.write(Writes(events=(an_event("too early"),)))
        until(lambda: execute(postgres_url, "SELECT 1 FROM events"))
        wire.reaches = True
        with pytest.raises(Diverged, match="must start again"):
            store.write(Writes(events=(an_event("after"),)))
        assert store.diverged
        assert [event.message for event in store.events(EventFilter())] == ["in doubt"]


def test_a_commit_that_never_arrived_is_told_as_not_written(wire: Wire, postgres_url: str) -> None:
    with closing(SqlStore(wire.url)) as store:

        def cut_before_the_commit() -> None:
            with store._write_transaction() as connection:
                connection.exec_driver_sql("INSERT INTO counters VALUES ('x', 1)")
                cut_all(postgres_url)

        with pytest.raises(Unavailable, match="nothing was written"):
            cut_before_the_commit()
        assert not execute(postgres_url, "SELECT 1 FROM counters WHERE name = 'x'")
        assert store.write(Writes(events=(an_event("after"),)))
