"""The slot that a task goes into is the one that a look at all slots finds."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pliant.core.job import NodeId
from pliant.policy.schedule.bins import Bin, Bins
from pliant.policy.schedule.fold import SlotPlace, num_slots_for

amounts = st.integers(0, 10).map(lambda part: 100 * part)
places = st.one_of(st.none(), st.builds(SlotPlace, st.sampled_from("abc").map(NodeId), st.integers(0, 3)))
slots = st.lists(st.builds(Bin, place=places, now=amounts, later=amounts), max_size=12)
sizes = st.integers(1, 10).map(lambda part: 100 * part)


def found_among_all(bins: Sequence[Bin], size: int, excluded: frozenset[NodeId]) -> int | None:
    fitting = [
        (one.now < size, one.later, one.place is None, one.place or (), number)
        for number, one in enumerate(bins)
        if one.later >= size and (one.place is None or one.place.node_id not in excluded)
    ]
    return min(fitting)[-1] if fitting else None


@given(slots, st.lists(st.tuples(sizes, st.frozensets(st.sampled_from("abc").map(NodeId)), amounts, amounts)))
def test_a_task_goes_where_a_look_at_all_slots_finds_room(
    known: list[Bin], steps: list[tuple[int, frozenset[NodeId], int, int]]
) -> None:
    bins = Bins(known)
    for size, excluded, now, later in steps:
        at = bins.find(size, excluded)
        assert at == found_among_all(list(bins), size, excluded)
        if at is not None:
            bins.change(at, now=now, later=later)


def test_the_largest_goes_first_into_the_first_slot_with_room() -> None:
    assert num_slots_for([]) == 0
    assert num_slots_for([400, 400, 400, 300, 300]) == 2
    assert num_slots_for([600, 500, 500, 400, 1000]) == 3


@given(st.lists(sizes, max_size=30))
def test_slots_are_counted_as_one_after_the_other_would_be_filled(tasks: list[int]) -> None:
    left: list[int] = []
    for size in sorted(tasks, reverse=True):
        at = next((at for at, room in enumerate(left) if room >= size), len(left))
        left[at : at + 1] = [left[at] - size if at < len(left) else 1000 - size]

    assert num_slots_for(tasks) == len(left)
