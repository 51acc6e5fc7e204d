"""Who comes first."""

import pytest
from tests.policy.schedule.world import job

from pliant.core.plan import PolicyName
from pliant.policy.schedule.order import age, natural, precedence


def test_numbers_in_names_count_as_numbers() -> None:
    assert sorted(["job-10", "job-9", "job-2b", "a", "2", "10"], key=natural) == [
        "2", "10", "a", "job-2b", "job-9", "job-10",
    ]  # fmt: skip


def test_different_ids_are_never_equal() -> None:
    assert natural("job-01") != natural("job-1")


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        (PolicyName.FAIRSHARE, ["old", "urgent", "new", "late"]),
        (PolicyName.PRIORITY, ["urgent", "new", "late", "old"]),
        (PolicyName.FIFO, ["old", "new", "urgent", "late"]),
    ],
)
def test_every_policy_has_its_order(policy: PolicyName, names: list[str]) -> None:
    jobs = {
        job("late", 10): 0,
        job("new", 2): 0,
        job("urgent", 3, priority=9000): 0,
        job("old", 1, priority=100): 1,
    }

    order = sorted(jobs, key=lambda view: (precedence(policy, view, jobs[view]), age(view)))

    assert [view.name for view in order] == names


def test_under_fairshare_who_holds_the_minimum_comes_before_who_lost_a_part_of_it() -> None:
    whole = precedence(PolicyName.FAIRSHARE, job("whole", 2, priority=1, bounds=(2, 4)), 2)
    part = precedence(PolicyName.FAIRSHARE, job("part", 1, priority=9000, bounds=(2, 4)), 1)

    assert whole < part
