"""When a training counts as stalled."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.policy.elastic.stall import (
    LEAST_S,
    StallLimits,
    StepWatch,
    look,
    next_look,
    note_sign,
    note_step,
    postpone,
)

LIMITS = StallLimits()


def stepping(every_s: float, num_steps: int = 20, start: float = 0.0) -> tuple[StepWatch, float]:
    """Return the watch of a training that has done steps at this pace, and the time of the newest one."""
    watch, now = note_sign(StepWatch(), start), start
    for step in range(1, num_steps + 1):
        now = start + step * every_s
        watch = note_step(watch, step, now)
    return watch, now


def test_nothing_is_watched_before_a_task_is_ready() -> None:
    assert next_look(StepWatch(), LIMITS) is None
    assert look(StepWatch(), LIMITS, 1e9) == StepWatch()


def test_the_first_step_has_a_limit_of_its_own() -> None:
    watch = note_sign(StepWatch(), 100.0)
    limits = StallLimits(first_step_s=600.0)
    assert next_look(watch, limits) == 700.0
    assert look(watch, limits, 699.9).phase != "stalled"
    assert look(watch, limits, 700.0).phase == "stalled"


@pytest.mark.parametrize(("every_s", "limit_s"), [(0.1, 30.0), (1.0, 30.0), (2.0, 40.0), (60.0, 1200.0)])
def test_a_training_is_stalled_after_twenty_usual_steps_and_not_before_half_a_minute(
    every_s: float, limit_s: float
) -> None:
    watch, now = stepping(every_s)
    assert watch.usual_s == pytest.approx(every_s)
    assert look(watch, LIMITS, now + limit_s * 0.999).phase != "stalled"
    assert look(watch, LIMITS, now + limit_s * 1.001).phase == "stalled"


def test_the_speed_is_not_true_any_more_long_before_that() -> None:
    watch, now = stepping(0.1)
    assert next_look(watch, LIMITS) == pytest.approx(now + 5.0)
    quiet = look(watch, LIMITS, now + 5.0)
    assert quiet.phase == "quiet"
    assert next_look(quiet, LIMITS) == pytest.approx(now + LEAST_S)


def test_what_a_person_says_counts_instead_and_zero_is_never() -> None:
    watch, now = stepping(0.1)
    assert look(watch, StallLimits(stall_after_s=7.0), now + 7.1).phase == "stalled"
    never = StallLimits(stall_after_s=0.0)
    quiet = look(watch, never, now + 1e6)
    assert quiet.phase == "quiet"
    assert next_look(quiet, never) is None
    assert next_look(note_sign(StepWatch(), 0.0), never) is None


def test_a_sign_without_a_step_keeps_it_going() -> None:
    watch, now = stepping(0.1)
    watch = note_sign(watch, now + 29.0)
    assert look(watch, LIMITS, now + 58.0).phase != "stalled"
    assert watch.usual_s == pytest.approx(0.1)


def test_a_training_that_went_on_by_itself_has_three_times_as_long_the_next_time() -> None:
    watch, now = stepping(0.1)
    watch = note_step(look(watch, LIMITS, now + 50.0), 21, now + 50.0)
    assert watch.phase == "goes"
    assert watch.longest_s == pytest.approx(50.0)
    assert look(watch, LIMITS, now + 50.0 + 149.0).phase != "stalled"
    assert look(watch, LIMITS, now + 50.0 + 151.0).phase == "stalled"


def test_one_long_step_says_little_about_the_usual_one() -> None:
    watch, now = stepping(0.1)
    watch = note_step(watch, 21, now + 20.0)
    assert watch.usual_s is not None
    assert watch.usual_s < 0.25


def test_what_loads_libraries_before_the_first_step_is_not_usual() -> None:
    watch = note_step(note_sign(StepWatch(), 0.0), 1, 300.0)
    assert watch.usual_s is None
    watch = note_step(watch, 2, 300.5)
    assert watch.usual_s == pytest.approx(0.5)
    assert watch.longest_s == 0.0


def test_time_in_which_nobody_listened_does_not_count() -> None:
    watch, now = stepping(0.1)
    assert look(postpone(watch, 3600.0), LIMITS, now + 3604.0).phase == "goes"
    assert postpone(StepWatch(), 5.0) == StepWatch()


def test_a_step_that_is_told_twice_is_a_sign_and_no_step() -> None:
    watch, now = stepping(0.1)
    again = note_step(watch, 20, now + 1.0)
    assert again == replace(watch, sign_at=now + 1.0, longest_s=1.0)


@given(gaps=st.lists(st.floats(0.001, 100.0), min_size=2, max_size=60))
def test_no_training_is_stalled_that_is_never_slower_than_twenty_times_its_fastest(gaps: list[float]) -> None:
    slowest = 19.9 * min(gaps)  # after twenty times it is stalled
    watch, now = note_sign(StepWatch(), 0.0), 0.0
    for step, gap in enumerate(gaps, 1):
        now += min(gap, slowest)
        assert step <= 2 or look(watch, LIMITS, now).phase != "stalled"
        watch = note_step(watch, step, now)
