"""The usual step is a median of whole steps, and of nothing else."""

from pliant.train.pace import Pace


def test_the_usual_step_is_the_median_of_those_that_nothing_interrupted() -> None:
    now = [0.0]
    pace = Pace(clock=lambda: now[0])

    def commit_after(seconds: float) -> None:
        now[0] += seconds
        pace.commit()

    commit_after(5.0)
    assert pace.step_us == 0, "when it began is not known"
    for seconds in (0.1, 0.1, 0.7):
        commit_after(seconds)
    pace.interrupt()
    commit_after(60.0)

    assert pace.step_us == 100_000
