"""A model of a job's tasks, of the network between them and the server, and of a server that remembers and crashes.

The tasks' side follows `train.group.session` and `train.engine` rule by rule, without threads or tensors: what
happens at the same time there happens in any order here. Wherever two things may happen, a test says which does.

What the model checks while it runs: generation numbers grow; feeding an event twice changes nothing; the members of a
generation that trains are on the same step; no two generations can commit steps at the same time; nobody goes on from a
step, or from a checkpoint, behind the newest step of those who live, but for the one step that a loss may cost.
"""

from collections import deque
from collections.abc import Collection, Iterable

from tests.policy.elastic.fake_task import JOB, FakeTask, Phase
from tests.policy.elastic.records import Records

from pliant.core.job import TaskId
from pliant.core.link import Abandon, Dismiss, Form, Hello, Left, Lost, Ready, Switched
from pliant.policy.elastic.coordinator import handle
from pliant.policy.elastic.membership import (
    Announced,
    Gone,
    Membership,
    MembershipEvent,
    Send,
    TaskMessage,
    Tick,
    Wanted,
)


class Fleet:
    """Everything there is; every method is one thing that may happen."""

    def __init__(self) -> None:
        self.now = 100.0
        self.tasks: dict[TaskId, FakeTask] = {}
        self.server: Membership | None = Membership(job_id=JOB)
        self.records = Records()
        self.wanted: frozenset[TaskId] = frozenset()
        self.exits: list[TaskId] = []
        """Processes that are gone, which the server has not been told."""
        self.checkpoint: int | None = None
        self.forms: dict[int, tuple[TaskId, ...]] = {}
        self.started: dict[int, set[TaskId]] = {}
        """Who has begun to connect a generation."""
        self.closed: dict[int, set[TaskId]] = {}
        """Who has closed the connections of a generation, or will never make them."""
        self.crash_before_sending = False

    # -- the server -------------------------------------------------------------------------------------------------

    def feed(self, event: MembershipEvent) -> None:
        """Let the server decide, remember, and then act; it may crash in between."""
        if self.server is None:
            return
        after, effects = handle(self.server, event, self.now)
        again, more = handle(after, event, self.now)
        assert again == after, f"{event} twice is not {event} once"
        assert all(isinstance(effect, Send) for effect in more), f"{event} twice did {more}"
        self._check(after)
        self.server = after
        for effect in effects:
            if isinstance(effect, Announced):
                assert all(after.tasks[task].ready and not after.tasks[task].left for task in effect.members)
                self.forms[effect.generation] = effect.members
            self.records.store(effect)
        if self.crash_before_sending:
            self.crash_server()
            return
        for effect in effects:
            if isinstance(effect, Send) and (task := self.tasks.get(effect.task_id)) and task.linked and task.alive:
                task.inbox.append(effect.message)
        self._release_leavers()

    def _check(self, membership: Membership) -> None:
        current, forming = membership.current, membership.forming
        assert current is None or current.number <= membership.number
        if forming is not None:
            assert current is None or current.number < forming.number <= membership.number
            assert not forming.dead
            assert len(set(forming.members)) == len(forming.members)
        assert membership.wake_at is None or membership.wake_at > self.now

    def _release_leavers(self) -> None:
        """Dismiss the unwanted whom nobody waits for, as the control loop does."""
        assert self.server is not None
        forming = self.server.forming.members if self.server.forming else ()
        for task in self._known():
            standing = self.server.tasks.get(task.id)
            needed = (standing is not None and standing.holds_state) or task.id in forming
            if task.id in self.wanted or needed:
                continue
            if task.linked:
                task.inbox.append(Dismiss(reason="not needed"))
            if task.alive and task.standing is None and task.phase is not Phase.LEAVING:
                self._depart(task)  # SIGTERM

    def _known(self) -> list[FakeTask]:
        """Processes that live as far as the server knows."""
        return [task for task in self.tasks.values() if task.alive or task.id in self.exits]

    def crash_server(self) -> None:
        self.server, self.crash_before_sending = None, False
        for task in self.tasks.values():
            self.cut(task)

    def restart_server(self) -> None:
        if self.server is not None:
            return
        known = {task.id for task in self._known()}
        self.server = self.records.restore(JOB, wanted=self.wanted, living=known)
        for task_id in sorted(self.server.tasks.keys() - known):
            self.feed(Gone(task_id=task_id))
        if known:
            self.feed(Wanted(tasks=self.wanted, cause="the server is back"))
        else:
            self.records.end_all()

    def order(self, num_tasks: int) -> list[TaskId]:
        """Start tasks and want them."""
        if self.server is None:
            return []
        fresh = [TaskId(f"{JOB}.{len(self.tasks) + i + 1}") for i in range(num_tasks)]
        for task_id in fresh:
            self.tasks[task_id] = FakeTask(id=task_id)
        self.want(self.wanted | frozenset(fresh))
        return fresh

    def want(self, tasks: Iterable[TaskId]) -> None:
        if self.server is not None:
            self.wanted = frozenset(tasks)
            self.feed(Wanted(tasks=self.wanted, cause="the scheduler says so"))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.feed(Tick())

    def notice_exit(self) -> None:
        """Tell the server of one process that is gone."""
        if self.server is None or not self.exits:
            return
        task_id = self.exits.pop(0)
        self.wanted -= {task_id}
        self.feed(Gone(task_id=task_id))
        if not self._known():
            self.records.end_all()

    # -- the network ------------------------------------------------------------------------------------------------

    def cut(self, task: FakeTask, num_lost: int = 0) -> None:
        """Break a connection: what was on its way to the task is lost, and some of what was on its way from it."""
        task.linked = False
        task.inbox.clear()
        for _ in range(min(num_lost, len(task.outbox))):
            task.outbox.popleft()
        task.outbox = deque(message for message in task.outbox if not isinstance(message, Hello))

    def connect_link(self, task: FakeTask) -> None:
        if task.alive and not task.linked and self.server is not None:
            task.linked = True
            task.outbox.appendleft(task.hello())

    def hear(self, task: FakeTask, *, keep: bool = False) -> None:
        """Deliver a task's oldest message; with `keep`, the task does not know that it arrived and says it again."""
        if self.server is None or not task.linked or not task.outbox:
            return
        message = task.outbox[0]
        if not keep:
            task.outbox.popleft()
        if task.alive or task.id in self.exits:
            self.feed(TaskMessage(task_id=task.id, message=message))

    def tell(self, task: FakeTask) -> None:
        """Deliver the oldest message to a task."""
        if not task.inbox:
            return
        message = task.inbox.popleft()
        match message:
            case Form():
                self._announce(task, message)
            case Abandon():
                task.abandoned.add(message.generation)
                if message.generation in task.connected:
                    self._close(task, message.generation)
            case Dismiss():
                task.dismissed = True

    def _announce(self, task: FakeTask, form: Form) -> None:
        number = form.generation
        if number <= task.here or number in task.forms or number in task.abandoned:
            return
        assert form.members == self.forms[number]
        assert not form.members or form.host == form.members[0], "the rendezvous of the first member"
        task.forms[number] = form
        if task.id in form.members:
            task.connecting.add(number)
            self.started.setdefault(number, set()).add(task.id)

    # -- the connections between tasks ------------------------------------------------------------------------------

    def _close(self, task: FakeTask, number: int) -> None:
        task.connected.discard(number)
        self.closed.setdefault(number, set()).add(task.id)

    def can_connect(self, task: FakeTask, number: int) -> bool:
        """Everybody has begun to, once."""
        return number in task.connecting and self.started[number] >= set(self.forms[number])

    def connect(self, task: FakeTask, number: int) -> None:
        task.connecting.discard(number)
        task.connected.add(number)
        if number in task.abandoned or number <= task.here:
            self._close(task, number)

    def fail_to_connect(self, task: FakeTask, number: int) -> None:
        """Give up waiting for a member that is dead, has given up, or did not come in time."""
        task.connecting.discard(number)
        task.forms.pop(number, None)
        self._close(task, number)
        self.started[number].discard(task.id)
        if number not in task.abandoned:
            task.outbox.append(Lost(generation=number, step=task.step or 0, error="did not connect"))

    def is_broken(self, number: int) -> bool:
        """A collective of this generation fails."""
        closed = self.closed.get(number, set())
        return any(member in closed or not self.tasks[member].alive for member in self.forms[number])

    # -- the tasks --------------------------------------------------------------------------------------------------

    def become_ready(self, task: FakeTask) -> None:
        if task.alive and task.phase is Phase.BUILDING:
            if task.dismissed:  # it would notice in `enter`
                self._depart(task)
                return
            task.phase = Phase.WAITING
            task.outbox.append(Ready(host=task.id, port=1, virtual_workers=8))

    def kill(self, task: FakeTask) -> None:
        if task.alive:
            task.alive = False
            self.exits.append(task.id)

    def exit(self, task: FakeTask) -> None:
        if task.phase is Phase.LEAVING:
            self.kill(task)

    def _depart(self, task: FakeTask) -> None:
        assert task.alive
        self._check_nothing_is_lost_with(task)
        task.phase = Phase.LEAVING
        for number in [*task.connected, *([task.here] if task.standing else [])]:
            self._close(task, number)

    def notice_loss(self, task: FakeTask) -> None:
        """Find out that the generation the task stands in will never be whole."""
        if not task.alive or task.phase not in (Phase.JOINING, Phase.TRAINING):
            return
        if task.here in task.abandoned or task.dismissed or self.is_broken(task.here):
            self._lose(task)

    def fail_collective(self, task: FakeTask) -> None:
        """A connection to another member breaks though both live."""
        if task.alive and task.phase in (Phase.JOINING, Phase.TRAINING) and len(self.forms[task.here]) > 1:
            self._lose(task)

    def _lose(self, task: FakeTask) -> None:
        self._close(task, task.here)
        task.phase = Phase.WAITING
        task.outbox.append(Lost(generation=task.here, step=task.step or 0, error="lost", trained=task.trained))

    def enter(self, task: FakeTask) -> None:
        """Stop waiting, if there is reason to."""
        if not task.alive or task.phase is not Phase.WAITING:
            return
        form = task.newest()
        if task.dismissed:
            self._depart(task)
        elif form is not None and form.generation in task.connected:
            self._stand(task, form)

    def _stand(self, task: FakeTask, form: Form) -> None:
        assert task.id in form.members, "nobody enters a generation that it is not a member of"
        whole = form.generation in task.connected
        if task.standing is not None:
            self._close(task, task.here)
        for number in [n for n in task.forms if n <= form.generation]:
            if number in task.connected and number != form.generation:
                self._close(task, number)
            del task.forms[number]
        task.connected.discard(form.generation)
        task.abandoned = {n for n in task.abandoned if n >= form.generation}
        task.standing, task.phase = form, Phase.JOINING
        if not whole:
            self._close(task, form.generation)

    def together(self, number: int, phase: Phase) -> list[FakeTask]:
        """Return the members of a generation if all of them are in this phase of it and its connections hold."""
        members = []
        for task_id in self.forms.get(number, ()):
            task = self.tasks[task_id]
            if not (task.alive and task.phase is phase and task.here == number):
                return []
            members.append(task)
        if not members or self.is_broken(number):
            return []
        if len(members) == 1 and (number in members[0].abandoned or members[0].dismissed):
            return []  # nothing to wait in, so this is seen at once
        return members

    def agree(self, number: int, *, victim: FakeTask | None = None, losers: Collection[TaskId] = ()) -> None:
        """All members take over the newest state. If one dies meanwhile, some of the others may fail."""
        members = self.together(number, Phase.JOINING)
        if not members:
            return
        held = [task.step for task in members if task.step is not None]
        step = max(held) if held else (self.checkpoint or 0)
        self._check_newest(members, step, from_checkpoint=not held)
        if victim in members:
            self.kill(victim)
        for task in members:
            if victim in members and task.id in losers:
                self.notice_loss(task)
            elif task is not victim:
                task.step, task.trained, task.phase = step, number, Phase.TRAINING
                task.outbox.append(
                    Switched(
                        generation=number,
                        step=step,
                        size=len(members),
                        pause_s=0.0,
                        redone_steps=0,
                        leader=task is members[0],
                    )
                )

    def _check_newest(self, members: list[FakeTask], step: int, *, from_checkpoint: bool) -> None:
        for other in self._who_may_train():
            if other not in members and other.step is not None:
                # Who has lost a generation may enter the planned one before the server knows of the loss. A leaver that
                # alone committed the last step is then ahead, and the step is computed again: the one a loss may cost.
                may_lag = 0 if from_checkpoint or self.together(other.here, Phase.TRAINING) else 1
                assert other.step <= step + may_lag, f"{members} go on from step {step} while {other} is further"

    def _who_may_train(self) -> list[FakeTask]:
        return [task for task in self.tasks.values() if task.alive and task.phase is not Phase.LEAVING]

    def _check_nothing_is_lost_with(self, leaver: FakeTask) -> None:
        others = [task.step or 0 for task in self._who_may_train() if task is not leaver]
        others += [self.checkpoint] if self.checkpoint is not None else []
        assert not others or (leaver.step or 0) <= max(others) + 1, f"{leaver} was dismissed, and was the furthest"

    def train(self, number: int, *, victim: FakeTask | None = None, losers: Collection[TaskId] = ()) -> None:
        """Commit a step on all members. If one dies meanwhile, some of the others may not commit."""
        members = self.together(number, Phase.TRAINING)
        if not members or any(task.dismissed for task in members):
            return
        assert len({task.step for task in members}) == 1, "members of a generation are on the same step"
        for other in self.forms:
            assert other == number or not self.together(other, Phase.TRAINING), f"{other} and {number} both train"
        pledges = {task.pledge() for task in members}
        switch_to = pledges.pop() if len(pledges) == 1 else None
        if victim in members:
            self.kill(victim)
        committing = [t for t in members if t is not victim and (victim not in members or t.id not in losers)]
        for task in committing:
            task.step = (task.step or 0) + 1
        for task in members:
            if task.alive and task not in committing:
                self._lose(task)
            elif task in committing and switch_to is not None:
                self._switch(task, switch_to)

    def _switch(self, task: FakeTask, number: int) -> None:
        form = task.forms[number]
        if task.id in form.members:
            self._stand(task, form)
            return
        saved = not form.members and task.id == self.forms[task.here][0]
        if saved:
            self.checkpoint = task.step
        task.outbox.append(Left(generation=task.here, step=task.step or 0, saved=saved))
        task.phase = Phase.LEAVING
        self._close(task, task.here)

    def save(self) -> None:
        """The leader of a generation that trains writes a checkpoint."""
        for number in self.forms:
            if members := self.together(number, Phase.TRAINING):
                self.checkpoint = members[0].step
