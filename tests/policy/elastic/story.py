"""Feeds a membership one event after the other, and says in short what it did."""

from collections.abc import Iterable

from tests.policy.elastic.fake_task import JOB

from pliant.core.job import TaskId
from pliant.core.link import Abandon, Form, Hello, Left, Lost, Ready, Switched
from pliant.policy.elastic.coordinator import handle
from pliant.policy.elastic.membership import (
    Abandoned,
    Activated,
    Announced,
    Effect,
    GenerationView,
    Gone,
    Membership,
    MembershipEvent,
    Send,
    TaskMessage,
    Wanted,
)

A, B, C, D = (TaskId(f"job-1.{n}") for n in range(1, 5))


class Story:
    """Feeds events and keeps what the newest one did."""

    def __init__(self, membership: Membership | None = None) -> None:
        self.membership = membership or Membership(job_id=JOB)
        self.now = 10.0

    def feed(self, event: MembershipEvent) -> tuple[Effect, ...]:
        self.membership, effects = handle(self.membership, event, self.now)
        return effects

    def want(self, *tasks: TaskId, cause: str = "grant") -> tuple[Effect, ...]:
        return self.feed(Wanted(tasks=frozenset(tasks), cause=cause))

    def ready(self, task: TaskId) -> tuple[Effect, ...]:
        return self.feed(TaskMessage(task_id=task, message=Ready(host=f"host-{task}", port=7, virtual_workers=8)))

    def switched(self, *tasks: TaskId, step: int = 0, redone: int = 0) -> tuple[Effect, ...]:
        """The members enter the newest generation, the leader first."""
        effects: list[Effect] = []
        for rank, task in enumerate(tasks):
            message = Switched(
                generation=self.membership.number,
                step=step,
                size=len(tasks),
                pause_s=0.5,
                redone_steps=redone,
                leader=rank == 0,
            )
            effects += self.feed(TaskMessage(task_id=task, message=message))
        return tuple(effects)

    def left(self, task: TaskId, generation: int, *, saved: bool = False) -> tuple[Effect, ...]:
        return self.feed(TaskMessage(task_id=task, message=Left(generation=generation, step=9, saved=saved)))

    def gone(self, task: TaskId, reason: str = "killed") -> tuple[Effect, ...]:
        return self.feed(Gone(task_id=task, reason=reason))

    def broken(self, task: TaskId, generation: int, *, trained: int | None = None) -> tuple[Effect, ...]:
        message = Lost(generation=generation, step=3, error="reset by peer", trained=trained)
        return self.feed(TaskMessage(task_id=task, message=message))

    def hello(
        self,
        task: TaskId,
        generation: int | None,
        step: int | None,
        *,
        lost: bool = False,
        failed: int | None = None,
    ) -> tuple[Effect, ...]:
        message = Hello(
            task_id=task,
            pid=1,
            generation=generation,
            step=step,
            ready=True,
            host=f"host-{task}",
            port=7,
            lost=lost,
            failed=failed,
        )
        return self.feed(TaskMessage(task_id=task, message=message))


def training(*tasks: TaskId) -> Story:
    """Return a job that trains on these tasks in generation 1."""
    story = Story()
    for task in tasks:
        story.ready(task)
    story.want(*tasks)
    story.switched(*tasks)
    assert story.membership.current == GenerationView(number=1, members=tasks, cause="grant")
    return story


def form(generation: int, *members: TaskId, cause: str, to: Iterable[TaskId]) -> tuple[Effect, ...]:
    """Return what announces a generation."""
    host, port = (f"host-{members[0]}", 7) if members else ("", 0)
    addresses = tuple((f"host-{member}", 7) for member in members)
    message = Form(generation=generation, members=members, host=host, port=port, addresses=addresses, cause=cause)
    return (
        Announced(generation=generation, members=members, cause=cause),
        *(Send(task_id=task, message=message) for task in to),
    )


def abandon(generation: int, reason: str, *to: TaskId) -> tuple[Effect, ...]:
    """Return what gives a generation up."""
    return (
        Abandoned(generation=generation, reason=reason),
        *(Send(task_id=task, message=Abandon(generation=generation, reason=reason)) for task in to),
    )


def activated(generation: int, *members: TaskId, from_size: int, cause: str, step: int = 0) -> tuple[Effect, ...]:
    return (
        Activated(
            generation=generation,
            members=members,
            from_size=from_size,
            step=step,
            pause_s=0.5,
            redone_steps=0,
            cause=cause,
        ),
    )
