"""Who waits in which place, and for how many slots."""

from dataclasses import replace

import pytest
from tests.policy.schedule.world import job, pool

from pliant.core.plan import Policy, PolicyName, QueueRules, Snapshot
from pliant.policy.schedule.waiting import WaitingPlace, places

RUNS = job("runs", 1, on=[(1, 0)])
WAITING = (job("old", 2, bounds=(2, 4), size=2), job("new", 3), job("urgent", 4, priority=9000))
GIVES_BACK = job("wants-none", 5, bounds=(0, 0))


@pytest.mark.parametrize(
    ("policy", "ids"),
    [
        (PolicyName.FAIRSHARE, ["job-4", "job-2", "job-3"]),
        (PolicyName.PRIORITY, ["job-4", "job-2", "job-3"]),
        (PolicyName.FIFO, ["job-2", "job-3", "job-4"]),
    ],
)
def test_the_place_is_that_in_the_order_of_the_policy(policy: PolicyName, ids: list[str]) -> None:
    found = places(Snapshot(nodes=pool(1), workloads=(RUNS, *WAITING, GIVES_BACK)), Policy(name=policy))
    assert sorted(found, key=lambda one: found[one].place) == ids
    assert found[WAITING[0].id] == WaitingPlace(place=ids.index("job-2") + 1, num_waiting=3, num_needed=4)


def test_each_queue_has_places_and_a_policy_of_its_own() -> None:
    night = tuple(replace(one, queue="night") for one in WAITING)
    day = (replace(job("day", 6, bounds=(3, 3)), slot_share=250, queue="day"),)
    queues = (QueueRules(name="night", policy=PolicyName.FIFO), QueueRules(name="day"))
    found = places(Snapshot(nodes=pool(1), workloads=(*night, *day), queues=queues), Policy())
    assert [(one, found[one].place, found[one].num_waiting) for one in sorted(found)] == [
        ("job-2", 1, 3),
        ("job-3", 2, 3),
        ("job-4", 3, 3),
        ("job-6", 1, 1),
    ]
    assert found[day[0].id].num_needed == 1, "three quarters of a slot"
