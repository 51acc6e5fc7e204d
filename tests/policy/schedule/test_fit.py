"""Whether a minimum fits at all, in words that name queue, group and numbers."""

import pytest

from pliant.core.plan import QueueRules
from pliant.policy.schedule.fit import misfit

QUEUE = QueueRules(name="q", group="g")


@pytest.mark.parametrize(
    ("min_tasks", "size", "slots", "why"),
    [
        (1, 1, [1], ""),
        (2, 4, [8], ""),
        (2, 4, [4, 4], ""),
        (1, 1, [], "its minimum needs 1 slot and queue q (group g) has none"),
        (1, 1, [0, 0], "its minimum needs 1 slot and queue q (group g) has none"),
        (20, 1, [8], "its minimum needs 20 slots and queue q (group g) has only 8"),
        (1, 6, [4, 4], "its minimum needs 6 slots on one node and queue q (group g) has 4 at most"),
        (
            3,
            3,
            [5, 5],
            "its minimum needs 3 times 3 slots on one node and queue q (group g) has room for only 2 such tasks",
        ),
    ],
)
def test_a_minimum_that_never_fits_says_why(min_tasks: int, size: int, slots: list[int], why: str) -> None:
    assert misfit(min_tasks, size, QUEUE, slots) == why


def test_a_queue_without_a_group_is_named_alone() -> None:
    assert misfit(1, 1, QueueRules(name="q"), []) == "its minimum needs 1 slot and queue q has none"
