"""Every sample exactly once an epoch, whatever happens to the number of workers."""

from hypothesis import given
from hypothesis import strategies as st

from pliant.train.data.sharding import Part, ShardingPlan, Worker, cut
from pliant.train.shares import without


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 60))
def test_cut_is_consecutive_whole_and_even(start: int, length: int, num_parts: int) -> None:
    whole = range(start, start + length)

    parts = [cut(whole, num_parts, part) for part in range(num_parts)]

    assert [position for part in parts for position in part] == list(whole)
    lengths = [len(part) for part in parts]
    assert max(lengths) - min(lengths) <= 1
    assert lengths == sorted(lengths, reverse=True)


plans = st.builds(
    lambda num_samples, batch_size, virtual_workers, accumulate, whole_shares: ShardingPlan(
        num_samples=max(num_samples, batch_size),
        batch_size=max(batch_size, virtual_workers),
        virtual_workers=virtual_workers,
        accumulate=accumulate,
        whole_shares=whole_shares,
    ),
    st.integers(1, 400),
    st.integers(1, 90),
    st.integers(1, 24),
    st.integers(1, 4),
    st.booleans(),
)


def parts_of(plan: ShardingPlan, step: int, size: int) -> list[Part]:
    return [part for rank in range(size) for part in plan.parts(step, Worker(size, rank))]


@given(plans, st.data())
def test_every_sample_is_used_once_an_epoch_for_any_history_of_sizes(plan: ShardingPlan, data: st.DataObject) -> None:
    used: list[int] = []
    for step in range(plan.steps_per_epoch):
        size = data.draw(st.integers(1, plan.virtual_workers), label=f"size at step {step}")
        used += [position for part in parts_of(plan, step, size) for position in part.positions]

    assert used == list(range(plan.num_samples))


@given(plans, st.integers(1, 24), st.integers(0, 30))
def test_parts_do_not_depend_on_the_number_of_workers(plan: ShardingPlan, size: int, step: int) -> None:
    if not plan.whole_shares:
        assert parts_of(plan, step, size) == parts_of(plan, step, 1)


@given(plans, st.integers(1, 24), st.integers(0, 30))
def test_parts_are_never_empty_and_weigh_together_what_the_batch_has(plan: ShardingPlan, size: int, step: int) -> None:
    parts = parts_of(plan, step, size)

    assert all(part.positions for part in parts)
    assert {part.of for part in parts} == {sum(len(part.positions) for part in parts)} == {len(plan.batch(step))}
    assert [part.virtual_worker for part in parts if part.last] == list(range(plan.num_parts(step, size)))


@given(plans, st.integers(1, 24))
def test_of_a_whole_batch_every_virtual_worker_has_a_part_and_no_worker_has_two_more_than_another(
    plan: ShardingPlan, size: int
) -> None:
    shares = [len([part for part in plan.parts(0, Worker(size, rank)) if part.last]) for rank in range(size)]

    if len(plan.batch(0)) == plan.batch_size:
        assert sum(shares) == (min(size, plan.batch_size) if plan.whole_shares else plan.virtual_workers)
    assert max(shares) - min(shares) <= 1


@st.composite
def uneven(draw: st.DrawFn) -> tuple[ShardingPlan, tuple[int, ...]]:
    """A plan of virtual workers, and how many each of some workers has."""
    shares = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=6)))
    batch_size = draw(st.integers(sum(shares), 90))
    num_samples = draw(st.integers(batch_size, 400))
    return ShardingPlan(num_samples=num_samples, batch_size=batch_size, virtual_workers=sum(shares)), shares


@given(uneven(), st.integers(0, 30))
def test_uneven_shares_are_of_the_same_parts(case: tuple[ShardingPlan, tuple[int, ...]], step: int) -> None:
    plan, shares = case
    workers = [Worker(len(shares), rank, shares) for rank in range(len(shares))]
    each = [plan.parts(step, worker) for worker in workers]

    assert [part for parts in each for part in parts] == parts_of(plan, step, 1)
    assert each[0], "the first virtual worker's part is always the first worker's"
    if len(plan.batch(step)) == plan.batch_size:
        assert tuple(len(parts) for parts in each) == shares


@given(plans, st.integers(0, 30), st.lists(st.booleans(), min_size=1, max_size=6))
def test_workers_that_rest_have_no_part_and_the_others_what_they_have_alone(
    plan: ShardingPlan, step: int, rest: list[bool]
) -> None:
    working = [rank for rank, rests in enumerate(rest) if not rests]
    if not working or plan.max_workers < len(working):
        return
    shares = without(plan.num_shares(len(working)), len(rest), [rank for rank in range(len(rest)) if rest[rank]])

    each = [plan.parts(step, Worker(len(rest), rank, shares)) for rank in range(len(rest))]

    assert [part for parts in each for part in parts] == parts_of(plan, step, len(working))
    assert all(not parts for parts, rests in zip(each, rest, strict=True) if rests)


def test_last_batch_of_an_epoch_is_what_is_left_in_parts_of_about_the_usual_size() -> None:
    plan = ShardingPlan(num_samples=21, batch_size=16, virtual_workers=4)

    assert [plan.batch(step) for step in range(3)] == [range(16), range(16, 21), range(16)]
    assert [part.positions for part in parts_of(plan, 1, 4)] == [range(16, 19), range(19, 21)]
    assert plan.parts(1, Worker(3, 2)) == ()


def test_pieces_follow_each_other_inside_a_part() -> None:
    plan = ShardingPlan(num_samples=24, batch_size=12, virtual_workers=2, accumulate=3)

    assert plan.parts(1, Worker(2, 1)) == tuple(
        Part(1, 1, range(18 + 2 * piece, 20 + 2 * piece), 12, piece, piece == 2) for piece in range(3)
    )


@given(plans, st.integers(0, 100))
def test_samples_used_are_those_of_the_steps(plan: ShardingPlan, num_steps: int) -> None:
    assert plan.num_used(num_steps) == sum(len(plan.batch(step)) for step in range(num_steps))


def test_the_example_of_the_module() -> None:
    plan = ShardingPlan(num_samples=10, batch_size=6, virtual_workers=4)

    def parts(step: int, size: int) -> list[list[list[int]]]:
        return [[list(part.positions) for part in plan.parts(step, Worker(size, rank))] for rank in range(size)]

    assert parts(0, 2) == [[[0, 1], [2, 3]], [[4], [5]]]
    assert parts(0, 3) == [[[0, 1], [2, 3]], [[4]], [[5]]]
    assert parts(1, 1) == [[[6, 7], [8, 9]]]
    uneven = [Worker(2, rank, (3, 1)) for rank in range(2)]
    assert [len(plan.parts(0, worker)) for worker in uneven] == [3, 1]
    assert [len(plan.parts(1, worker)) for worker in uneven] == [2, 0]
