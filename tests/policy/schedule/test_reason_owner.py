"""What a sentence tells of other people's jobs: whose they are, and not what they are called."""

from dataclasses import replace

from tests.policy.schedule.world import job, line, pool

from pliant.core.plan import Policy, Snapshot
from pliant.core.workload import Workload
from pliant.policy.schedule.plan import plan


def reasons(*jobs: Workload) -> dict[str, str]:
    decided = plan(Snapshot(nodes=tuple(pool(8)), workloads=jobs), Policy(), 100.0)
    names = {view.id: view.name for view in jobs}
    return {names[job_id]: reason for job_id, reason in decided.reasons.items()}


def of(owner: str, view: Workload) -> Workload:
    return replace(view, owner=owner)


def test_jobs_of_one_owner_are_told_of_each_other_by_name() -> None:
    said = reasons(of("ann", job("a", 1, on=line(1, range(4)))), of("ann", job("b", 2, on=line(1, range(4, 8)))))
    assert said["a"] == "4 of 8 slots: shares them with b in the ratio of priorities 5000:5000"


def test_another_persons_job_has_no_name() -> None:
    said = reasons(of("ann", job("a", 1, on=line(1, range(8)))), of("bob", job("secret", 2)))
    assert said["a"] == "4 of 8 slots: shares them with a job of bob in the ratio of priorities 5000:5000"
    assert said["secret"] == "1 of 8 slots to start with: its minimum; 3 more as a job of ann gives them up"


def test_several_jobs_of_one_person_are_counted() -> None:
    jobs = [
        of("bob", job(name, n, bounds=(2, 8))) for n, name in enumerate(("secret-1", "secret-2", "secret-3"), start=1)
    ]
    said = reasons(*jobs, of("ann", job("a", 4, bounds=(3, 8))))
    assert said["a"] == (
        "waits: its minimum needs 3 slots, and minimums of jobs ahead of it hold 6 of 8 (3 jobs of bob)"
    )
