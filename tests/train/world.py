"""A job in one process: tasks are threads with real gloo between them, the coordinator is the real one.

A task's death is an exception raised inside it at a scripted step, after which its connections are closed, which is all
that the others can see of it.
"""

import itertools
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
import torch

from pliant.core.job import Balance, JobId, TaskId
from pliant.core.link import Dismiss, FromTask, Hello, Left, Lost, Ready, Switched
from pliant.policy.elastic.coordinator import handle
from pliant.policy.elastic.membership import Activated, Gone, Membership, Send, TaskMessage, Tick, Wanted
from pliant.train.context import TRAIN_CONTEXT, TrainContext
from pliant.train.errors import Departed
from pliant.train.group import gloo
from pliant.train.group.membership import TaskMembership

JOB = JobId("job-1")
OPERATION_TIMEOUT: Final = timedelta(seconds=15)
"""Gloo does not tell an operation that its peer went away while it wrote; this ends it before the test is over."""


class Crash(BaseException):
    """The scripted death of a task."""


@dataclass(slots=True)
class Actor:
    membership: TaskMembership
    thread: threading.Thread
    error: BaseException | None = None
    left: bool = False
    ended: bool = False


WORLDS: Final[list["World"]] = []
"""Those of the present test; they are ended after it."""


@dataclass(slots=True)
class World:
    """Runs `script` in every task. `script` may call `world.maybe_crash(task_id)` wherever it may die."""

    script: Callable[["World", TaskId], None]
    result_dir: Path
    virtual_workers: int = 8
    balance: Balance = "even"
    checkpoint_freq: int = 1
    audit: bool = True
    metrics_every: int | None = None
    histograms_every: int | None = None
    now: Callable[[], float] = time.time
    membership: Membership = field(default_factory=lambda: Membership(job_id=JOB, gather_s=0.05))
    actors: dict[TaskId, Actor] = field(default_factory=dict)
    heard: list[tuple[TaskId, FromTask]] = field(default_factory=list)
    activated: list[Activated] = field(default_factory=list)
    doomed: set[TaskId] = field(default_factory=set)
    changed: threading.Condition = field(default_factory=threading.Condition)
    _patch: pytest.MonkeyPatch = field(default_factory=pytest.MonkeyPatch)
    _ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        WORLDS.append(self)
        self._patch.setattr(gloo, "OPERATION_TIMEOUT", OPERATION_TIMEOUT)

    def resize(self, num_tasks: int) -> None:
        """Want this many tasks: start new ones, or let the newest go."""
        with self.changed:
            wanted = sorted(self.membership.wanted, key=_number)
            keep = wanted[:num_tasks]
            fresh = [self._start() for _ in range(num_tasks - len(keep))]
            self._feed(Wanted(tasks=frozenset([*keep, *fresh]), cause=f"resize to {num_tasks}"))

    def kill(self, task_id: TaskId) -> None:
        """Let a task die at its next chance."""
        with self.changed:
            self.doomed.add(task_id)

    def maybe_crash(self, task_id: TaskId) -> None:
        if task_id in self.doomed:
            raise Crash

    def wait(self, condition: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
        """Wait until something holds; time passes for the coordinator meanwhile."""
        deadline = time.monotonic() + timeout_s
        with self.changed:
            while not condition():
                self._feed(Tick())
                self.raise_errors()
                assert time.monotonic() < deadline, f"waited {timeout_s} s for: {what}; {self.membership}"
                self.changed.wait(0.02)

    def wait_for_size(self, num_tasks: int) -> None:
        self.wait(lambda: len(self.membership.active) == num_tasks, f"{num_tasks} tasks train")

    def wait_for_end(self) -> None:
        self.wait(lambda: all(actor.ended for actor in self.actors.values()), "all tasks end")

    def raise_errors(self) -> None:
        for actor in self.actors.values():
            if actor.error is not None:
                raise actor.error

    def end(self, timeout_s: float = 20.0) -> None:
        """End every task that is still there, as a test does that failed; nothing of the world is left after it."""
        self._patch.undo()
        for actor in self.actors.values():
            actor.membership.deliver(Dismiss(reason="the test is over"))
            actor.membership.close()
        deadline = time.monotonic() + timeout_s
        for actor in self.actors.values():
            actor.thread.join(max(0.0, deadline - time.monotonic()))

    def live(self) -> list[TaskId]:
        with self.changed:
            return [task for task, actor in self.actors.items() if not actor.ended and task not in self.doomed]

    def _start(self) -> TaskId:
        task_id = TaskId(f"{JOB}.{next(self._ids)}")

        def send(message: FromTask) -> None:
            self._receive(task_id, message)

        membership = TaskMembership(
            job_id=JOB, task_id=task_id, pid=1, host="127.0.0.1", key=b"the key of job-1", send=send
        )
        context = copy_context()
        thread = threading.Thread(target=context.run, args=(self._live, task_id), name=str(task_id), daemon=True)
        self.actors[task_id] = Actor(membership, thread)
        thread.start()
        return task_id

    def _live(self, task_id: TaskId) -> None:
        actor = self.actors[task_id]
        context = TrainContext(
            membership=actor.membership,
            clock=time.monotonic,
            now=self.now,
            virtual_workers=self.virtual_workers,
            balance=self.balance,
            checkpoint_freq=self.checkpoint_freq,
            result_dir=self.result_dir,
            audit=self.audit,
            metrics_every=self.metrics_every,
            histograms_every=self.histograms_every,
        )
        TRAIN_CONTEXT.set(context)
        torch.set_num_threads(1)
        try:
            self.script(self, task_id)
            for close in context.closers:
                close()
        except Departed:
            actor.left = True
        except Crash:
            actor.membership.close()  # first of all, as the kernel does for a process that was killed
        except BaseException as error:  # noqa: BLE001 (reported to the test's own thread)
            actor.error = error
        try:
            for clean_up in context.cleanups:
                clean_up()
        except BaseException as error:  # noqa: BLE001 (reported to the test's own thread)
            actor.error = actor.error or error
        actor.membership.close()
        with self.changed:
            actor.ended = True
            self._feed(Gone(task_id=task_id, reason="crashed" if task_id in self.doomed else ""))
            self.changed.notify_all()

    def _receive(self, task_id: TaskId, message: FromTask) -> None:
        with self.changed:
            self.heard.append((task_id, message))
            if isinstance(message, Hello | Ready | Switched | Lost | Left):
                self._feed(TaskMessage(task_id=task_id, message=message))
            self.changed.notify_all()

    def _feed(self, event: Wanted | TaskMessage | Gone | Tick) -> None:
        self.membership, effects = handle(self.membership, event, time.monotonic())
        for effect in effects:
            if isinstance(effect, Send) and effect.task_id in self.actors:
                self.actors[effect.task_id].membership.deliver(effect.message)
            elif isinstance(effect, Activated):
                self.activated.append(effect)


def _number(task_id: TaskId) -> int:
    return int(task_id.rpartition(".")[2])
