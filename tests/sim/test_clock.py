"""The virtual clock runs what is due, in order, each thing at its own time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.sim.clock import VirtualClock


@given(delays=st.lists(st.floats(0, 100), max_size=20), cuts=st.lists(st.floats(0, 30), max_size=10))
def test_actions_run_in_order_at_their_own_time_however_the_clock_is_moved(
    delays: list[float], cuts: list[float]
) -> None:
    clock = VirtualClock()
    ran: list[tuple[float, int]] = []
    for index, delay in enumerate(delays):
        clock.call_later(delay, lambda index=index: ran.append((clock.now(), index)))  # type: ignore[misc]

    for seconds in [*cuts, 100.0]:
        clock.advance(seconds)

    assert ran == sorted((delay, index) for index, delay in enumerate(delays))
    assert clock.next_at() is None


def test_an_action_may_schedule_another_that_falls_due_on_the_way() -> None:
    clock = VirtualClock(start_at=10.0)
    seen: list[float] = []
    clock.call_later(1.0, lambda: clock.call_later(1.0, lambda: seen.append(clock.now())))

    clock.advance(5.0)

    assert (seen, clock.now()) == ([12.0], 15.0)


def test_time_does_not_run_backwards() -> None:
    clock = VirtualClock()
    with pytest.raises(ValueError, match="forward"):
        clock.advance(-1.0)
    with pytest.raises(ValueError, match="past"):
        clock.call_later(-1.0, lambda: None)
