"""Limits that several processes keep together: real processes where that matters, made-up ones where a law does."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.process_state import has_ended, state_of

from pliant.core.serving import RequestLimits
from pliant.serve.gateway import shared_counts
from pliant.serve.gateway.refused import Refused
from pliant.serve.gateway.request_limiter import RequestLimiter, enter
from pliant.serve.gateway.shared_counts import SharedCounts, SharedTable
from pliant.serve.protocol.frames import MAX_GATEWAYS

PATIENCE_S: Final = 30.0


@pytest.fixture
def table() -> Iterator[SharedTable]:
    with closing(SharedTable()) as made:
        yield made


def is_let_in(limiter: RequestLimiter) -> bool:
    """Tell whether one more request may begin; it has, then."""
    try:
        enter(limiter)
    except Refused:
        return False
    return True


def limiters(table: SharedTable, num: int, limits: RequestLimits, now: Callable[[], float]) -> list[RequestLimiter]:
    """Return what the processes hold the same token to."""
    views = [SharedCounts(table, number, now) for number in range(num)]
    return [RequestLimiter(limits, now, use=view.of("token", b"t")) for view in views]


def test_requests_under_way_count_wherever_they_began(table: SharedTable) -> None:
    first, second, third = limiters(table, 3, RequestLimits(max_concurrent=2), lambda: 5.0)
    assert is_let_in(first)
    assert is_let_in(second)
    assert not is_let_in(third)
    first.leave()
    assert is_let_in(third)
    assert not is_let_in(first)


def test_a_rate_holds_for_all_together(table: SharedTable) -> None:
    now = [1000.0]
    made = limiters(table, 2, RequestLimits(max_rate=2.0), lambda: now[0])
    assert [is_let_in(made[turn % 2]) for turn in range(4)] == [True, True, False, False]
    now[0] += 0.5
    assert [is_let_in(one) for one in made] == [True, False]


def test_what_a_process_had_under_way_that_died_counts_no_longer(table: SharedTable) -> None:
    first, second = limiters(table, 2, RequestLimits(max_concurrent=1), lambda: 5.0)
    assert is_let_in(second)
    assert not is_let_in(first)
    table.clear(1)
    assert is_let_in(first)


def test_two_limiters_of_one_process_with_one_key_count_together(table: SharedTable) -> None:
    view = SharedCounts(table, 0, lambda: 5.0)
    before, after = (view.of("token", b"t") for _ in range(2))
    before.add(2)
    after.add(1)
    before.add(-2)
    assert (before.num, after.num) == (1, 1)


def test_keys_of_different_kinds_are_different(table: SharedTable) -> None:
    view = SharedCounts(table, 0, lambda: 5.0)
    view.of("token", b"t").add(1)
    assert view.of("endpoint", b"t").num == 0


def test_a_row_goes_to_another_key_once_it_says_nothing_more(
    table: SharedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_counts, "_NUM_SETS", 1)
    now = [1000.0]
    view, other = (SharedCounts(table, number, lambda: now[0]) for number in range(2))
    counts = [view.of("token", b"%d" % number) for number in range(8)]
    for count in counts:
        count.lock()
        count.due = 1001.0
        count.unlock()
    late = view.of("token", b"late")
    late.add(3)
    assert (late.num, other.of("token", b"late").num) == (3, 0), "no row was free: it counts for itself"
    late.add(-2)
    assert late.num == 1
    now[0] = 1002.0
    late.add(4)
    assert late.num == 5
    late.add(-5)
    assert late.num == 0
    late.add(2)
    known = other.of("token", b"late")
    assert (late.num, known.num, known.num_elsewhere) == (2, 2, 2)
    assert counts[7].due == 1001.0
    assert counts[0].due <= now[0], "its row is another's; it has nothing to say any more"


Step = tuple[int, str, float]
STEPS: Final = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["begin", "begin", "end", "die", "later"]), st.floats(0, 2)),
    max_size=60,
)


@given(
    steps=STEPS,
    most=st.none() | st.integers(1, 4),
    rate=st.none() | st.sampled_from([0.5, 1.0, 3.0]),
)
def test_several_processes_let_in_what_one_would(steps: list[Step], most: int | None, rate: float | None) -> None:
    """Requests that a process had which dies are over, as if each had ended."""
    now = [1000.0]
    limits = RequestLimits(max_rate=rate, max_concurrent=most)
    one = RequestLimiter(limits, lambda: now[0])
    under_way = [0, 0, 0, 0]
    with closing(SharedTable()) as table:
        several = limiters(table, 4, limits, lambda: now[0])
        for number, what, seconds in steps:
            if what == "begin":
                let_in = is_let_in(several[number])
                assert let_in == is_let_in(one)
                under_way[number] += let_in
            elif what == "end" and under_way[number]:
                several[number].leave()
                one.leave()
                under_way[number] -= 1
            elif what == "die":
                table.clear(number)
                several[number] = limiters(table, 4, limits, lambda: now[0])[number]
                for _ in range(under_way[number]):
                    one.leave()
                under_way[number] = 0
            elif what == "later":
                now[0] += seconds


def forked(act: Callable[[], object]) -> int:
    """Return the id of a process that does this and ends."""
    pid = os.fork()
    if not pid:
        code = 1
        with suppress(BaseException):
            act()
            code = 0
        os._exit(code)
    return pid


def test_processes_that_hurry_never_exceed_a_limit_and_lose_no_count(
    table: SharedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_counts, "_PATIENCE_S", PATIENCE_S)  # none of them is stopped, though it may be slow
    num, each, most = 3, 3000, 2
    worst = SharedCounts(table, MAX_GATEWAYS - 1, time.monotonic).of("queue", b"worst")

    def hurry(number: int) -> None:
        view = SharedCounts(table, number, time.monotonic)
        limiter = RequestLimiter(RequestLimits(max_concurrent=most), time.monotonic, use=view.of("token", b"t"))
        use, let_in = view.of("token", b"t"), view.of("queue", b"let in")
        while let_in.num < each:
            if is_let_in(limiter):
                assert use.num <= most
                let_in.add(1)
                limiter.leave()

    pids = [forked(partial(hurry, number)) for number in range(num)]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * num
    view = SharedCounts(table, 0, time.monotonic)
    assert view.of("token", b"t").num == 0
    assert view.of("queue", b"let in").num >= each
    assert worst.num == 0


def test_one_that_is_stopped_with_the_lock_holds_up_nobody_and_one_that_dies_gives_it_back(table: SharedTable) -> None:
    own = SharedCounts(table, 0, time.monotonic).of("token", b"t")

    def keep() -> None:
        count = SharedCounts(table, 1, time.monotonic).of("token", b"t")
        count.lock()
        count.add(1)
        os.kill(os.getpid(), signal.SIGSTOP)

    pid = forked(keep)
    deadline = time.monotonic() + PATIENCE_S
    while state_of(pid) != "T":
        assert time.monotonic() < deadline
        time.sleep(0.001)
    own.lock()  # returns
    assert own.num == 1
    own.unlock()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert has_ended(pid)
    table.clear(1)
    own.lock()
    assert own.num == 0
    own.unlock()
