"""Scripted faults happen where and as often as the plan says, and leave a claim."""

from pathlib import Path

import pytest
from tests.contracts.faults import Act, Fault, FaultError, Faults, Place, add, claims


def passes(faults: Faults, place: Place, *, rank: int = 0, step: int = 0) -> bool:
    """Pass a place; tell whether a fault happened."""
    try:
        faults.at(place, rank=rank, step=step)
    except FaultError:
        return True
    return False


def fault(**more: object) -> Fault:
    return Fault(id="one", place=Place.STEP, act=Act.RAISE, **more)  # type: ignore[arg-type]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return tmp_path / "plan"


def test_without_a_plan_nothing_happens(plan: Path) -> None:
    assert not passes(Faults(plan, task_id="job-1.1"), Place.STEP)
    assert claims(plan) == ()


def test_a_fault_happens_once_and_only_at_its_place(plan: Path) -> None:
    faults = Faults(plan, task_id="job-1.1")
    add(plan, fault())
    happened = [passes(faults, place) for place in (Place.START, Place.STEP, Place.STEP)]
    assert happened == [False, True, False]


def test_a_fault_of_several_tasks_happens_once_in_each(plan: Path) -> None:
    add(plan, fault(times=2))
    tasks = [Faults(plan, task_id=f"job-1.{number}") for number in (1, 2, 3)]
    happened = [passes(faults, Place.STEP) for faults in (*tasks, *tasks)]
    assert happened == [True, True, False, False, False, False]
    assert [claim.task for claim in claims(plan)] == [1, 2]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"rank": 1}, [(1, 0)]),
        ({"step": 2}, [(0, 2), (0, 3)]),
        ({"step": 2, "exactly": True}, [(0, 2)]),
        ({"task": 8}, []),
    ],
    ids=["rank", "from a step on", "at a step", "another task"],
)
def test_a_fault_happens_to_those_it_names(
    tmp_path: Path, more: dict[str, object], expected: list[tuple[int, int]]
) -> None:
    happened = []
    for number, (rank, step) in enumerate([(0, 0), (1, 0), (0, 2), (0, 3)]):
        plan = tmp_path / str(number)
        add(plan, fault(**more))
        if passes(Faults(plan, task_id="job-1.7"), Place.STEP, rank=rank, step=step):
            happened.append((rank, step))
    assert happened == expected


def test_a_plan_may_grow_while_the_script_runs(plan: Path) -> None:
    faults = Faults(plan, task_id="job-1.1")
    add(plan, Fault(id="elsewhere", place=Place.START, act=Act.RAISE))
    assert not passes(faults, Place.STEP, rank=2, step=5)
    add(plan, fault())
    assert passes(faults, Place.STEP, rank=2, step=5)
    (claim,) = claims(plan)
    assert (claim.id, claim.task, claim.rank, claim.step) == ("one", 1, 2, 5)
