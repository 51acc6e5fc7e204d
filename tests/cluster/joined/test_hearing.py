"""How long nothing was heard of machines, on clocks that tests move."""

import pytest

from pliant.cluster.joined.hearing import END_S, RETURN_S, RETURNING_S, SILENT_S, Hearing, ListenedTime


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def listen(listened: ListenedTime, clock: Clock, seconds: float) -> None:
    for _ in range(round(seconds * 10)):
        clock.now_s += 0.1
        listened.look()


def heard(listened: ListenedTime, **more: bool) -> Hearing:
    return Hearing(listened_at=listened.total_s, real_at=500.0, **({"is_met": True} | more))


def test_a_machine_is_silent_after_a_second_and_away_after_its_lease() -> None:
    clock = Clock()
    listened = ListenedTime(2.0, clock)
    one = heard(listened)
    listen(listened, clock, SILENT_S - 0.1)
    assert not one.is_silent(listened)
    listen(listened, clock, 0.2)
    assert one.is_silent(listened)
    assert not one.is_away(listened)
    listen(listened, clock, 1.0)
    assert one.is_away(listened)
    one.note(listened, 600.0)
    assert not one.is_silent(listened)
    assert not one.is_away(listened)


def test_nobody_is_blamed_for_what_a_server_did_not_hear_while_it_stood_still() -> None:
    clock = Clock()
    listened = ListenedTime(2.0, clock)
    one = heard(listened)
    clock.now_s += 3600.0
    listened.look()

    assert listened.total_s == 0.5
    assert not one.is_silent(listened)


def test_a_clock_that_goes_back_takes_no_time_away() -> None:
    clock = Clock()
    listened = ListenedTime(2.0, clock)
    clock.now_s -= 50.0
    listened.look()

    assert listened.total_s == 0.0


def test_tasks_have_ended_for_sure_only_a_while_after_the_orphan_time() -> None:
    one = heard(ListenedTime(2.0, Clock()))

    assert not one.is_over(500.0 + 60.0 + END_S - 0.01, 60.0)
    assert one.is_over(500.0 + 60.0 + END_S, 60.0)
    one.is_gone = True
    assert not one.is_over(10_000.0, 60.0), "once is enough"


def test_a_machine_that_a_server_has_not_met_or_has_given_up_is_away() -> None:
    listened = ListenedTime(2.0, Clock())

    for one in (heard(listened, is_met=False), heard(listened, is_gone=True)):
        assert one.is_silent(listened)
        assert one.is_away(listened)


def test_a_machine_is_unsteady_until_it_is_away_and_says_for_how_long() -> None:
    clock = Clock()
    listened = ListenedTime(2.0, clock)
    one = heard(listened)
    listen(listened, clock, RETURN_S - 0.1)
    assert one.unsteady_s(listened) is None
    listen(listened, clock, 0.2)
    assert one.unsteady_s(listened) == pytest.approx(1.3)
    listen(listened, clock, 1.4)
    assert one.unsteady_s(listened) is None, "it is away"


def test_a_machine_that_returns_is_unsteady_for_a_while() -> None:
    clock = Clock()
    listened = ListenedTime(2.0, clock)
    one = heard(listened)
    listen(listened, clock, 1.0)
    one.note(listened, 600.0)
    assert one.unsteady_s(listened) == pytest.approx(2.0)
    for _ in range(round(RETURNING_S * 2) - 1):
        listen(listened, clock, RETURN_S - 0.1)
        one.note(listened, 600.0)
    assert one.unsteady_s(listened) == pytest.approx(0.5), "it is heard, and back then"
    listen(listened, clock, 0.5)
    one.note(listened, 600.0)
    listen(listened, clock, 0.1)
    assert one.unsteady_s(listened) is None
