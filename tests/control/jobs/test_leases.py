"""Leases run on the time that somebody listened; whoever is silent for too long is told once."""

import math

import pytest

from pliant.control.jobs.leases import AGAIN_S, STARTING_FACTOR, Leases
from pliant.core.job import TaskId
from pliant.core.link import Hello, Pulse, Ready

A, B = TaskId("job-1.1"), TaskId("job-1.2")
READY = Ready(host="h", port=1, virtual_workers=8)


def listened(leases: Leases, begin: float, end: float, every: float = 0.1) -> dict[TaskId, float]:
    """Listen a few times a second from one instant to another; return who was silent, and when that was told."""
    told = {}
    for tick in range(round((end - begin) / every) + 1):
        now = begin + tick * every
        told.update(dict.fromkeys(leases.listen(now).ended, round(now - begin, 1)))
    return told


def test_a_ready_task_that_is_silent_for_its_lease_is_named_once() -> None:
    leases = Leases(2.0)
    leases.listen(100.0)
    leases.renew(A, READY)

    assert listened(leases, 100.0, 110.0) == {A: 2.0}
    assert not leases.has_lease(A)


def test_whatever_a_task_says_renews_its_lease() -> None:
    leases = Leases(2.0)
    leases.listen(100.0)
    for task in (A, B):
        leases.renew(task, READY)
    for second in range(10):
        leases.renew(A, Pulse(step=second))
        told = listened(leases, 100.0 + second, 101.0 + second)
        assert told.keys() <= {B}

    assert leases.has_lease(A)
    assert not leases.has_lease(B)


def test_a_task_that_still_starts_or_has_said_goodbye_has_longer() -> None:
    leases = Leases(2.0)
    leases.listen(0.0)
    leases.renew(A, Hello(task_id=A, pid=1))
    leases.renew(B, Hello(task_id=B, pid=2, ready=True, host="h", port=1))
    leases.extend(B)

    assert listened(leases, 0.0, 40.0) == {A: 2.0 * STARTING_FACTOR, B: 2.0 * STARTING_FACTOR}


def test_time_in_which_nobody_listened_does_not_count() -> None:
    leases = Leases(2.0)
    listened(leases, 0.0, 1.0)
    leases.renew(A, READY)

    after = leases.listen(3600.0)

    assert after.ended == ()
    assert after.stalled_s > 3590
    assert listened(leases, 3600.0, 3610.0) == {A: 1.5}


def test_a_reader_that_stands_still_again_and_again_blames_nobody_who_speaks_when_it_reads() -> None:
    leases = Leases(2.0)
    leases.listen(0.0)
    leases.renew(A, READY)
    for stall in range(1, 20):
        assert leases.listen(10.0 * stall).ended == ()
        leases.renew(A, Pulse())

    assert leases.has_lease(A)


def test_a_clock_that_is_set_back_ends_no_lease_and_moves_no_deadline() -> None:
    leases = Leases(2.0)
    listened(leases, 1000.0, 1001.0)
    leases.renew(A, READY)

    assert leases.listen(0.0).stalled_s == 0.0
    assert listened(leases, 0.0, 1.9) == {}
    assert listened(leases, 1.9, 2.1) == {A: 0.1}


def test_nobody_is_blamed_while_nobody_ever_listens() -> None:
    leases = Leases(2.0)
    leases.renew(A, READY)

    assert leases.has_lease(A)
    assert not leases.is_behind(1e9)


def test_after_a_pause_it_is_behind_until_what_was_read_is_delivered() -> None:
    leases = Leases(2.0)
    leases.listen(0.0)
    leases.note_delivered(0.0)
    assert not leases.is_behind(0.5)
    assert leases.is_behind(4.0)

    leases.listen(4.0)
    assert leases.is_behind(4.0)
    leases.note_delivered(4.0)
    assert not leases.is_behind(4.0)


def test_a_task_that_has_ended_is_forgotten() -> None:
    leases = Leases(2.0)
    leases.listen(0.0)
    leases.renew(A, READY)
    leases.drop(A)

    assert listened(leases, 0.0, 60.0) == {}


def test_the_example_of_the_module_is_true() -> None:
    leases = Leases(2.0)
    leases.listen(100.0)
    leases.listen(100.3)
    leases.renew(A, READY)
    assert leases.listen(3700.4).stalled_s == pytest.approx(3599.6)
    ended = [leases.listen(3700.4 + 0.1 * n).ended for n in range(1, 17)]

    assert not any(ended[:13])
    assert sum(ended, ()) == (A,)


@pytest.mark.parametrize(("doubt_s", "told_after_s"), [(0.1, 0.1), (AGAIN_S, 0.3), (10.0, 0.3), (math.inf, 0.3)])
def test_a_task_in_doubt_is_looked_at_again_as_soon_as_more_is_known(doubt_s: float, told_after_s: float) -> None:
    leases = Leases(2.0)
    leases.listen(0.0)
    leases.wait_again(A, doubt_s)

    assert listened(leases, 0.0, 5.0) == {A: told_after_s}
