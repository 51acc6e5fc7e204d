"""The lost time of an event is what the definition says, to the digit."""

from pathlib import Path

import pytest

from bench.peers.steplog import NUM_AFTER, Logs, Lost, Step, lost_time, new_steps, settled, usual_by_size


def step(at: float, number: int, size: int = 2) -> Step:
    return Step(at=at, number=number, size=size, rank=0, pid=1)


BEFORE = [step(float(n), n) for n in range(1, 6)]  # a step a second


def test_a_step_done_again_is_not_new() -> None:
    steps = [step(1, 1), step(2, 2), step(5, 1), step(6, 2), step(7, 3)]

    assert [(found.at, found.number) for found in new_steps(steps)] == [(1, 1), (2, 2), (7, 3)]


def test_of_two_workers_that_do_a_step_the_first_one_counts() -> None:
    assert new_steps([step(1.0, 1), step(1.5, 1)]) == [step(1.0, 1)]


def test_lost_time_is_the_gap_with_steps_done_again_minus_the_usual_step() -> None:
    # the event at 5.5; steps 4 and 5 are done again at 12 and 13, step 6 is the first new one
    after = [step(12, 4, 3), step(13, 5, 3), *(step(14.0 + n, 6 + n, 3) for n in range(NUM_AFTER))]

    found = lost_time([*BEFORE, *after], since=5.5, size=3)

    assert found == Lost(lost_s=8.0, usual_s=1.0, until_s=8.5)


def test_time_in_which_the_old_membership_still_trains_is_not_lost() -> None:
    still = [step(6.0 + n, 6 + n, 2) for n in range(20)]
    after = [step(27.0 + n, 26 + n, 4) for n in range(NUM_AFTER)]  # one gap of two seconds

    assert lost_time([*BEFORE, *still, *after], since=5.5, size=4).lost_s == pytest.approx(1.0)


def test_an_event_is_not_over_before_enough_steps_of_the_new_membership() -> None:
    after = [step(6.0 + n, 6 + n, 4) for n in range(NUM_AFTER)]

    assert not settled([*BEFORE, *after[:-1]], since=5.5, size=4)
    assert not settled([*BEFORE, *after], since=5.5, size=3)
    assert settled([*BEFORE, *after], since=5.5, size=4)


def test_the_usual_step_is_between_two_of_as_many_workers() -> None:
    more = [step(7.0, 6, 4), step(9.0, 7, 4), step(12.0, 8, 4), step(14.0, 9, 4)]

    assert usual_by_size([*BEFORE, *more]) == {2: 1.0, 4: 2.0}


def test_a_line_that_is_still_being_written_is_read_later(tmp_path: Path) -> None:
    log, logs = tmp_path / "7.steps", Logs(tmp_path)
    log.write_text("1.0 1 2 0\n2.0 2")
    assert [found.number for found in logs.read()] == [1]

    log.write_text("1.0 1 2 0\n2.0 2 2 0\n")

    assert logs.read() == [
        Step(at=1.0, number=1, size=2, rank=0, pid=7),
        Step(at=2.0, number=2, size=2, rank=0, pid=7),
    ]
