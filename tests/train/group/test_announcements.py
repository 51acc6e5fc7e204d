"""Which generation a task goes to next: the example of the module."""

from pliant.core.job import TaskId
from pliant.core.link import Form
from pliant.train.group.announcements import Announcements
from pliant.train.group.collectives import Group

A, B, C = TaskId("A"), TaskId("B"), TaskId("C")


def form(number: int, *members: TaskId) -> Form:
    return Form(generation=number, members=members, host="h", port=1)


def group(number: int, size: int) -> Group:
    return Group(number=number, rank=0, size=size, backend=None)


def test_a_task_pledges_the_newest_generation_that_it_is_ready_for() -> None:
    announced = Announcements(task_id=A, entered=1)
    seen: list[tuple[int | None, int | None]] = []

    def look() -> None:
        newest = announced.newest()
        seen.append((newest.generation if newest else None, announced.pledge()))

    announced.add(form(2, A, B, C))
    look()
    announced.connected[2] = group(2, 3)
    look()
    announced.add(form(3, A, B))
    look()
    announced.connected[3] = group(3, 2)
    look()
    announced.abandon(2)
    look()
    announced.add(form(4, B))
    look()

    assert seen == [(2, None), (2, 2), (3, None), (3, 3), (3, 3), (4, 4)]
    assert list(announced.connected) == [3]


def test_what_is_old_known_or_abandoned_is_not_announced_again() -> None:
    announced = Announcements(task_id=A, entered=1)
    announced.abandon(3)

    assert [announced.add(form(number, A)) for number in (1, 2, 2, 3)] == [False, True, False, False]


def test_entering_a_generation_forgets_it_and_those_before() -> None:
    announced = Announcements(task_id=A)
    for number in (1, 2, 3):
        announced.add(form(number, A))
        announced.connected[number] = group(number, 1)
    announced.abandon(1)

    announced.enter(announced.connected.pop(2).number)

    assert (list(announced.forms), list(announced.connected), announced.abandoned) == ([3], [3], set())
    assert announced.is_over(2)
    assert not announced.is_over(3)
