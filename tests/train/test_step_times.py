"""The usual step is a median of whole steps, and of nothing else."""

from pliant.train.step_times import StepTimes


def test_the_usual_step_is_the_median_of_those_that_nothing_interrupted() -> None:
    now = [0.0]
    times = StepTimes(clock=lambda: now[0])

    def commit_after(seconds: float) -> None:
        now[0] += seconds
        times.commit()

    commit_after(5.0)
    assert times.step_us == 0, "when it began is not known"
    for seconds in (0.1, 0.1, 0.7):
        commit_after(seconds)
    times.interrupt()
    commit_after(60.0)

    assert times.step_us == 100_000
