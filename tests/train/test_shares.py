"""Virtual workers for tasks of different speed: no division is done sooner, and noise moves nothing."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from pliant.train.shares import WORTH, apportion, even, rebalance, without
from pliant.train.sum.tree import global_sum

times = st.floats(1e-4, 100.0)


@st.composite
def divided(draw: st.DrawFn, most: int = 40) -> tuple[int, list[float]]:
    """V, and seconds for a virtual worker of every task."""
    seconds = draw(st.lists(times, min_size=1, max_size=min(12, most)))
    return draw(st.integers(len(seconds), most)), seconds


def done_at(shares: tuple[int, ...], seconds: list[float]) -> float:
    return max(share * of_one for share, of_one in zip(shares, seconds, strict=True))


def divisions(num_parts: int, num_tasks: int) -> Iterator[tuple[int, ...]]:
    if num_tasks == 1:
        yield (num_parts,)
        return
    for first in range(1, num_parts - num_tasks + 2):
        for others in divisions(num_parts - first, num_tasks - 1):
            yield (first, *others)


@given(divided())
def test_every_virtual_worker_is_somebodys_and_every_task_has_one(case: tuple[int, list[float]]) -> None:
    shares = apportion(*case)

    assert sum(shares) == case[0]
    assert min(shares) >= 1


@given(divided(most=9))
def test_no_other_division_is_done_sooner(case: tuple[int, list[float]]) -> None:
    num_parts, seconds = case

    assert done_at(apportion(*case), seconds) == min(
        done_at(shares, seconds) for shares in divisions(num_parts, len(seconds))
    )


@given(divided())
def test_who_is_faster_never_has_less(case: tuple[int, list[float]]) -> None:
    shares, seconds = apportion(*case), case[1]

    for one, share in enumerate(shares):
        for other, less in enumerate(shares):
            assert share >= less or seconds[one] >= seconds[other]


@given(divided(), st.data())
def test_who_becomes_faster_never_gets_less(case: tuple[int, list[float]], data: st.DataObject) -> None:
    num_parts, seconds = case
    task = data.draw(st.integers(0, len(seconds) - 1))
    faster = [*seconds[:task], seconds[task] * data.draw(st.floats(0.01, 1.0)), *seconds[task + 1 :]]

    assert apportion(num_parts, faster)[task] >= apportion(num_parts, seconds)[task]


@given(st.integers(1, 30), st.integers(1, 30), times)
def test_equal_speeds_have_even_shares(virtual_workers: int, size: int, of_one: float) -> None:
    if size <= virtual_workers:
        assert apportion(virtual_workers, [of_one] * size) == even(virtual_workers, size)


@given(divided(), st.data())
def test_noise_of_five_percent_moves_nothing(case: tuple[int, list[float]], data: st.DataObject) -> None:
    num_parts, seconds = case
    noise = st.floats(0.95, 1.05)
    measured = [of_one * data.draw(noise) for of_one in seconds]
    shares = apportion(num_parts, seconds)

    assert rebalance(shares, measured, data.draw(st.floats(0.0, 10.0))) == shares


@given(divided(), st.data())
def test_other_shares_save_what_is_worth_it_and_are_then_kept(
    case: tuple[int, list[float]], data: st.DataObject
) -> None:
    num_parts, seconds = case
    before, rest_s = even(num_parts, len(seconds)), data.draw(st.floats(0.0, 10.0))

    after = rebalance(before, seconds, rest_s)

    assert sum(after) == num_parts
    if after != before:
        assert done_at(after, seconds) + rest_s <= (1 - WORTH) * (done_at(before, seconds) + rest_s) * (1 + 1e-9)
    assert rebalance(after, seconds, rest_s) == after


def test_a_step_that_is_mostly_something_else_is_not_worth_a_change() -> None:
    assert rebalance((4, 4), [1.0, 2.0]) == (6, 2)
    assert rebalance((4, 4), [1.0, 2.0], rest_s=4.0) == (4, 4)


def test_partial_sums_that_are_sent_besides_count() -> None:
    assert global_sum(8, 2).num_partials == (1, 1)
    assert global_sum(8, 2, (6, 2)).num_partials == (2, 1)
    assert rebalance((4, 4), [1.0, 2.0], rest_s=1.0) == (6, 2)
    assert rebalance((4, 4), [1.0, 2.0], rest_s=2.4) == (4, 4)  # 6 s and 3.6 s, not 8 s and 2.4 s


def test_who_has_measured_nothing_counts_as_usual() -> None:
    assert rebalance((3, 3, 2), [1.0, 0.0, 3.0]) == apportion(8, [1.0, 2.0, 3.0])
    assert rebalance((4, 4), [0.0, float("nan")]) == (4, 4)


def test_the_example_of_the_module() -> None:
    assert apportion(8, [1.0, 2.0]) == (6, 2)
    assert done_at((4, 4), [1.0, 2.0]) == 8.0
    assert done_at((6, 2), [1.0, 2.0]) == 6.0


@given(st.integers(1, 40), st.integers(2, 9), st.data())
def test_without_some_the_others_share_evenly(num_parts: int, size: int, data: st.DataObject) -> None:
    resting = data.draw(st.sets(st.integers(0, size - 1), max_size=size - 1))

    shares = without(num_parts, size, resting)

    assert len(shares) == size
    assert sum(shares) == num_parts
    assert all(shares[rank] == 0 for rank in resting)
    working = [share for rank, share in enumerate(shares) if rank not in resting]
    assert max(working) - min(working) <= 1


def test_without_some_the_others_keep_their_proportions() -> None:
    assert without(12, 3, [1], shares=(6, 4, 2)) == (9, 0, 3)
