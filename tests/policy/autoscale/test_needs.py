"""What was needed is known for as long as nothing larger has come since."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.policy.autoscale.needs import MAX_NEEDS, Need, most_needed, record


def test_a_need_that_lasts_is_one_entry() -> None:
    needs = record(record((), Need(1.0, 3), 60), Need(2.0, 3), 60)

    assert needs == (Need(2.0, 3),)
    assert most_needed(needs, 61.9, 60) == Need(2.0, 3)
    assert most_needed(needs, 62.0, 60) is None


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(0.1, 20), st.integers(0, 30)), min_size=1, max_size=40), st.floats(1, 100))
def test_the_most_of_the_last_seconds_is_known(steps: list[tuple[float, int]], within_s: float) -> None:
    needs: tuple[Need, ...] = ()
    said: list[Need] = []
    now = 0.0
    for step, num in steps:
        now += step
        said.append(Need(now, num))
        needs = record(needs, said[-1], within_s)

        most = most_needed(needs, now, within_s)

        assert most is not None
        assert most.num == max(need.num for need in said if now - need.at < within_s)


def test_if_too_many_are_kept_none_is_forgotten_early() -> None:
    needs: tuple[Need, ...] = ()
    for second in range(1000):
        needs = record(needs, Need(float(second), 4000 - second), 86_400)

    assert len(needs) == MAX_NEEDS
    assert needs[0].num == 4000
    for second in range(1000):
        most = most_needed(needs, second + 86_400 - 0.5, 86_400)
        assert most is not None
        assert most.num >= 4000 - second
