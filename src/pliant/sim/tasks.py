"""Tasks without processes: they say what real ones say, at the times at which real ones would, and train by the clock.

Members of an announced generation switch at a step boundary; when a member is lost, its generation stands still until
the next one is whole. Processes that are given no control link say nothing: those of a job end all together, or die of
SIGTERM. Deterministic, in the thread that moves the clock. They decide nothing and know no scheduler.
"""

import math
from collections.abc import Callable
from typing import Protocol, assert_never

from pliant.core.job import JobId, TaskId
from pliant.core.link import (
    Abandon,
    Dismiss,
    Finished,
    Form,
    FromTask,
    Hello,
    Left,
    Ready,
    Report,
    Saved,
    ShowStacks,
    Stacks,
    Switched,
    ToTask,
)
from pliant.core.ports import StartOrder
from pliant.sim.clock import VirtualClock
from pliant.sim.cluster import SimCluster
from pliant.sim.training import SimTraining, SimWork

_SIGTERM = 15


class LinkListener(Protocol):
    """Where the control links lead; `pliant.control.loop.tick.Control` is one."""

    def receive(self, task_id: TaskId, message: FromTask) -> None: ...

    def disconnect(self, task_id: TaskId) -> None: ...


class SimTasks:
    """All tasks of a simulated cluster, and the server's ends of their links; implements `pliant.core.ports.Links`.

    `sent` keeps, in order, the messages to them. Tasks that are not `obedient` say and do nothing.
    """

    def __init__(self, clock: VirtualClock, cluster: SimCluster, work_of: Callable[[JobId], SimWork]) -> None:
        self._clock = clock
        self._cluster = cluster
        self._work_of = work_of
        self._server: LinkListener | None = None
        self._trainings: dict[JobId, SimTraining] = {}
        self._alive: dict[TaskId, int] = {}
        self.sent: list[tuple[TaskId, ToTask]] = []
        self.obedient = True
        self._without_link: set[TaskId] = set()
        cluster.attend(self._begun, self._gone, self._asked)

    # the port

    def send(self, task_id: TaskId, message: ToTask) -> None:
        self.sent.append((task_id, message))
        if self.obedient:
            self._clock.call_later(0.0, lambda: self._obey(task_id, message))

    def close(self, task_id: TaskId) -> None:
        """Do nothing; a link ends with its task."""

    # the script

    def connect(self, server: LinkListener) -> None:
        """Lead the links to this server from now on."""
        self._server = server

    def training(self, job_id: JobId) -> SimTraining:
        """Return where a job's training stands."""
        if job_id not in self._trainings:
            self._trainings[job_id] = SimTraining(work=self._work_of(job_id))
        return self._trainings[job_id]

    def exit(self, task_id: TaskId, exit_code: int | None) -> None:
        """Let a task end; its link is closed first, as it is in life."""
        assert self._server is not None
        self._server.disconnect(task_id)
        self._cluster.exit(task_id, exit_code)

    # what tasks do

    def _say(self, task_id: TaskId, message: FromTask) -> None:
        assert self._server is not None
        self._server.receive(task_id, message)

    def _begun(self, order: StartOrder, pid: int) -> None:
        if "PLIANT_TASK_TOKEN" not in order.env:
            self._begin_without_link(order)
        elif self.obedient:
            self._alive[order.task_id] = pid
            self._say(order.task_id, Hello(task_id=order.task_id, pid=pid))
            warm_s = self.training(_job_of(order.task_id)).work.warm_s
            self._clock.call_later(warm_s, lambda: self._ready(order.task_id))

    def _begin_without_link(self, order: StartOrder) -> None:
        self._without_link.add(order.task_id)
        work = self.training(_job_of(order.task_id)).work
        if math.isfinite(work.step_s):
            runs_s = work.warm_s + work.num_steps * work.step_s / int(order.env.get("WORLD_SIZE", "1"))
            self._clock.call_later(runs_s, lambda: self.exit(order.task_id, 0))

    def _asked(self, task_id: TaskId) -> None:
        if task_id in self._without_link:
            self._clock.call_later(0.0, lambda: self._cluster.exit(task_id, -_SIGTERM))

    def _ready(self, task_id: TaskId) -> None:
        if task_id in self._alive and self.obedient:
            virtual_workers = self.training(_job_of(task_id)).work.virtual_workers
            self._say(task_id, Ready(host="127.0.0.1", port=self._alive[task_id], virtual_workers=virtual_workers))

    def _gone(self, task_id: TaskId) -> None:
        self._alive.pop(task_id, None)
        self._without_link.discard(task_id)
        training = self._trainings.get(_job_of(task_id))
        if training is None:
            return
        training.holders.discard(task_id)
        if training.active is not None and task_id in training.active.members:
            training.halt(self._clock.now())

    def _obey(self, task_id: TaskId, message: ToTask) -> None:
        if task_id not in self._alive or not self.obedient:
            return
        training = self.training(_job_of(task_id))
        match message:
            case Dismiss():
                self.exit(task_id, 0)
            case Abandon():
                if training.newest is not None and training.newest.generation == message.generation:
                    training.newest = None
                elif training.active is not None and training.active.generation == message.generation:
                    training.halt(self._clock.now())
            case Form():
                self._learn_of(training, task_id, message)
            case ShowStacks():
                self._say(task_id, Stacks(text="Thread MainThread:\n", at="sim.py:1 in train", waits=False))
            case _:
                assert_never(message)

    def _learn_of(self, training: SimTraining, task_id: TaskId, form: Form) -> None:
        if training.newest is None or form.generation > training.newest.generation:
            training.newest, training.informed = form, set()
        if form.generation < training.newest.generation or task_id in training.informed:
            return
        training.informed.add(task_id)
        concerned = {*form.members, *(training.active.members if training.active else ())}
        if training.informed >= concerned & self._alive.keys():
            self._switch_later(training, form, training.work.connect_s)

    def _switch_later(self, training: SimTraining, form: Form, connect_s: float) -> None:
        """Switch at the first step boundary at which all are connected."""
        delay_s = connect_s
        if training.rate > 0.0:
            connected = training.step_at(self._clock.now() + connect_s)
            delay_s += (math.ceil(connected) - connected) / training.rate
        self._clock.call_later(delay_s, lambda: self._switch(training, form))

    def _switch(self, training: SimTraining, form: Form) -> None:
        if training.newest != form or not self._alive.keys() >= set(form.members):
            return
        before = training.active.members if training.active else ()
        redone_steps = training.enter(form, self._clock.now())
        for member in form.members:
            switched = Switched(
                generation=form.generation,
                step=int(training.step),
                size=len(form.members),
                pause_s=training.work.pause_s,
                redone_steps=redone_steps,
                leader=member == form.members[0],
            )
            self._say(member, switched)
        self._leave(training, [task for task in before if task not in form.members], form)
        if training.rate > 0.0:
            self._clock.call_later(training.work.pause_s, lambda: self._go_on(training, form))

    def _leave(self, training: SimTraining, leavers: list[TaskId], form: Form) -> None:
        step = int(training.step)
        for task_id in leavers:
            saved = not form.members and task_id == leavers[0]
            if saved:
                training.saved_step = step
                self._say(task_id, _checkpoint(step))
            self._say(task_id, Left(generation=form.generation, step=step, saved=saved))
            self.exit(task_id, 0)

    def _go_on(self, training: SimTraining, form: Form) -> None:
        """Train until the next report or the end, whichever comes first."""
        if training.active is form:
            left_s = (training.work.num_steps - training.step_at(self._clock.now())) / training.rate
            if left_s <= training.work.report_s:
                self._clock.call_later(max(0.0, left_s), lambda: self._finish(training, form))
            else:
                self._clock.call_later(training.work.report_s, lambda: self._report(training, form))

    def _report(self, training: SimTraining, form: Form) -> None:
        if training.active is form:
            training.saved_step = math.floor(training.step_at(self._clock.now()))
            self._say(form.members[0], Report(generation=form.generation, progress=training.progress()))
            self._go_on(training, form)

    def _finish(self, training: SimTraining, form: Form) -> None:
        if training.active is form:
            training.step, training.active = training.work.num_steps, None
            for member in form.members:
                self._say(member, Finished(step=training.work.num_steps))
            for member in form.members:
                self.exit(member, 0)


def _checkpoint(step: int) -> Saved:
    path = f"checkpoint/step-{step:012d}.ckpt"
    return Saved(what="checkpoint", step=step, epoch=0, path=path, num_bytes=1000, seconds=0.01)


def _job_of(task_id: TaskId) -> JobId:
    return JobId(task_id.rpartition(".")[0])
