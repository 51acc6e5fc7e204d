"""Commits optimizer steps, and carries the training from one generation of tasks to the next.

Theory of operation
-------------------
A *generation* is a numbered, fixed set of tasks with connections of its own. All its members hold the same state
(`SharedState`) and compute the same step; what differs is which samples each of them uses. A step has one collective,
the sum of the gradients. It either succeeds in a member, which then *commits* the step (optimizer step, `committed`
plus one), or raises GenerationLost there. Membership changes between two steps, in one of two ways.

*Planned.* The server announces generation g+1 while g trains; every task connects to g+1 in the background. Whoever is
connected pledges to switch, by adding 1 to an element of the gradients' tail (`NUM_PLEDGE_ELEMENTS` of them; generation
n uses element n % 4). All members of g see the same sum at the same step, so they all switch after the same step and
need no further message. Example, g = 1 with the tasks A and B, g+1 = 2 with A, B and C:

    committed  A pledges  B pledges  sum of element 2
    5          no         no         0
    6          yes        no         1    1 of 2 members: train on in generation 1
    7          yes        yes        2    all members: commit this step, then switch; generation 2 starts at 8

A pledge binds: a member that pledged cannot take it back, because the others may already have seen the full sum.

*Loss.* A member died, or the server gave g up. A collective raises GenerationLost, or `is_lost` becomes true between
two of them. The step in work is undone (`recover`), and the task waits for the next generation that it is a member of.

Either way a task *joins* its new generation in the same manner: all members tell where they stand, `agree` decides
whose state counts and who copies it, and the copies are made (`StateCopies`): before the next step, or beside it, if
that costs less. If nobody holds a state, rank 0 loads the newest checkpoint or starts anew, and the others copy from
it.

Invariants: a step is committed in a task only after its reduction succeeded there; all members of a generation begin it
with the same state; the highest committed step wins, so a committed step is lost only if all tasks that have it are.

Knows nothing of data sets or of the user's loop.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from pliant.core.link import Left, Switched
from pliant.tracking.tracker import Outcome
from pliant.train.agreement import Agreement, MemberState, agree
from pliant.train.balance import SpeedBalance
from pliant.train.data.audit import SampleAudit
from pliant.train.data.sharding import ShardingPlan, Worker
from pliant.train.errors import Departed, GenerationLost
from pliant.train.evaluate import Evaluation
from pliant.train.group.collectives import Group
from pliant.train.group.membership import TaskMembership
from pliant.train.optimize import Stepper
from pliant.train.shares import without
from pliant.train.state.shared import SharedState
from pliant.train.state_copies import StateCopies
from pliant.train.sum.reducer import Reducer
from pliant.train.sum.running import RunningBuffers

NUM_PLEDGE_ELEMENTS: Final = 4
"""The numbers of generations that are announced at the same time differ by less than this."""


@dataclass(slots=True, kw_only=True)
class Engine:
    """The part of a training that must survive changes of its membership.

    `committed` counts optimizer steps since the start of the job; `epoch` is the one that the user's loop is in.
    """

    membership: TaskMembership
    state: SharedState
    plan: ShardingPlan
    stepper: Stepper
    reducer: Reducer
    running: RunningBuffers
    audit: SampleAudit
    copies: StateCopies
    clock: Callable[[], float]
    """Monotonic, seconds."""
    find_checkpoint: Callable[[], Mapping[str, Any] | None]
    """Return the state to start from if no live task has one."""
    save: Callable[..., bool]
    """Called on the leader with `step` and `epoch` when all tasks leave; returns whether the state is saved."""
    after_reduction: Callable[[Sequence[float]], None] = lambda _sums: None
    """Called before the optimizers step, with the sums of the control elements that follow the pledges."""
    after_commit: Callable[[], None] = lambda: None
    """Called after every commit."""
    divisor: Callable[[Sequence[float]], float] = lambda _sums: 1.0
    """What the gradients are divided by, from the same sums."""
    before_departure: Callable[[], None] = lambda: None
    """Called when this task leaves, before the server hears of it."""
    balance: SpeedBalance = field(default_factory=SpeedBalance)
    """How many virtual workers each member has, if they are not even."""
    committed: int = 0
    epoch: int = 0
    holds_state: bool = False
    samples: list[int] = field(default_factory=list)
    """Indices of the samples that this task uses in the present attempt; only kept for the audit."""
    _goes_on: bool = False
    """When this generation began, the next step was to come before any other line of the script."""
    _is_attempting: bool = False
    _paused_at: float | None = None
    _received: Mapping[str, Any] | None = None
    """The state that this task started from, as long as its loop has not come to where that state was captured."""
    _evaluated: tuple[str, int] = ("", 0)
    """Place in the script, and how many evaluations this task has had there."""

    @property
    def device(self) -> torch.device:
        """Where the trained parameters are."""
        return self.reducer.parameters[0].device

    @property
    def worker(self) -> Worker:
        """Which share of a step this task computes in the present generation."""
        group = self.membership.group
        return Worker(group.size, group.rank, self.copies.shares or self.balance.shares)

    @property
    def next_worker(self) -> Worker | None:
        """Which share this task is likely to compute soon, if it is another one."""
        if upcoming := self.membership.upcoming():
            return Worker(*upcoming)
        group = self.membership.group
        return Worker(group.size, group.rank, self.balance.shares) if self.copies.shares else None

    # -- steps ------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start an attempt at the next step."""
        self.membership.check_dismissed()
        group, worker = self.membership.group, self.worker
        self._is_attempting = True
        self.running.start()
        num_leaves = self.plan.num_parts(self.committed, worker.num_working)
        num_mine = len(worker.share(num_leaves))
        self.reducer.begin(group, num_leaves=num_leaves, in_one=self.plan.whole_shares, shares=worker.shares)
        self.samples.clear()
        self.copies.begin_step(num_parts=num_mine)
        self.balance.begin_step(self.device, num_parts=num_mine)

    def commit(self, *, computed: bool = True) -> None:
        """Reduce, step the optimizer, and switch to the next generation if all members have pledged to.

        When it returns, `committed` tells which step comes next: the same one if the generation was lost before any
        member committed it.

        Args:
            computed: whether this task had a part of the step.

        Raises:
            Departed: this task leaves the job.
        """
        group, step = self.membership.group, self.committed
        if self.audit.is_enabled:
            self.audit.attempt(generation=group.number, step=step, epoch=self.epoch, samples=self.samples)
        pledged = self.membership.pledge()
        if pledged is not None:
            self.reducer.control[pledged % NUM_PLEDGE_ELEMENTS] = 1.0
        if group.rank == 0 and self.balance.is_due():
            self.reducer.control[-1] = 1.0
        try:
            if computed:
                self.reducer.close_leaf()
            else:
                self.stepper.init_scaler()
            self.balance.end_computing()
            self.copies.end_computing()
            sums = self.reducer.finish(is_lost=self.membership.is_lost)
            self.copies.settle()
        except GenerationLost as error:
            self.recover(self.copies.why_lost(error))
            return
        control = sums[NUM_PLEDGE_ELEMENTS:]
        self.after_reduction(control)
        self.reducer.attach(divisor=self.divisor(control))
        self.stepper.step()
        self.reducer.release()
        self.balance.end_step()
        self.copies.end_step()
        self._is_attempting = False
        self.committed += 1
        self.membership.record_commit(self.committed)
        self.audit.commit(generation=group.number, step=step)
        self._paused_at = self.clock()
        self.after_commit()
        # Only a member that pledged can see the full sum, since its own pledge is a part of it.
        if pledged is not None and round(sums[pledged % NUM_PLEDGE_ELEMENTS]) == group.size:
            self._switch(pledged)
        elif self.balance.is_enabled and sums[-1] > 0:
            self._rebalance(group)

    def recover(self, error: GenerationLost) -> None:
        """Leave a lost generation as if the step in work had not begun, and enter the next one."""
        self.reducer.forget()
        self.running.restore()
        self.enter(error, goes_on=True)

    # -- beside the steps -------------------------------------------------------------------------------------------

    def evaluate(self, evaluation: Evaluation, *, after_steps: bool) -> dict[str, float]:
        """Share an evaluation among the members; a task that joins after it gets its result with the state.

        Args:
            after_steps: whether the script is behind the steps of the present epoch.
        """
        place = f"{self.epoch} {'after' if after_steps else 'before'}"
        number = self._evaluated[1] if self._evaluated[0] == place else 0
        while number >= len(self.state.evaluations.get(place, ())):
            try:
                values = evaluation.run(self.membership.group, is_lost=self.membership.is_lost)
            except GenerationLost as error:
                self.enter(error)  # another member may have had the result: then it came with that member's state
            else:
                self.state.keep_evaluation(place, values, epoch=self.epoch)
        self._evaluated = (place, number + 1)
        return dict(self.state.evaluations[place][number])

    def restart_epoch(self) -> None:
        """Undo what the script did to the state on its way to the batches of this epoch, if that state was received.

        A task that joins inside an epoch runs the script's lines before the inner loop. The state that it received has
        these lines behind it already: `lr *= 0.1` must not happen twice.
        """
        if self._received is not None and int(self._received["epoch"]) == self.epoch:
            self.state.load(self._received)
            self._received = None

    def barrier(self) -> bool:
        """Wait until every member is here; return False if the generation was lost and another one was entered."""
        try:
            self.membership.group.all_reduce([torch.zeros(1)], is_lost=self.membership.is_lost)
        except GenerationLost as error:
            self.enter(error)
            return False
        return True

    def _rebalance(self, group: Group) -> None:
        """Share the virtual workers by the times that all members have measured."""
        try:
            self.balance.divide(self._times(group))
        except GenerationLost as error:
            self.enter(error, goes_on=True)

    # -- generations ------------------------------------------------------------------------------------------------

    def enter(self, lost: GenerationLost | None = None, *, goes_on: bool = False) -> None:
        """Wait for a generation that holds, and take over its state.

        Args:
            lost: why the present one is over, if it is.
            goes_on: the script is inside a step, so that another one comes next, if there is one in this epoch.
        """
        if lost is not None:
            self.membership.lose(str(lost))
        self._goes_on = goes_on
        self._join(self.membership.wait_for_generation())

    def _switch(self, number: int) -> None:
        self._paused_at = self.clock()
        was_leader, leaving_from = self.membership.group.rank == 0, self.membership.group.number
        form = self.membership.switch(number)
        if self.membership.task_id in form.members:
            self._goes_on = True
            self._join(self.membership.group)
            return
        self.before_departure()
        saved = was_leader and not form.members and self.save(step=self.committed, epoch=self.epoch)
        self.membership.send(Left(generation=leaving_from, step=self.committed, saved=saved))
        outcome = Outcome.HANDED_OVER
        if not form.members:
            outcome = Outcome.STOPPED if form.is_end else Outcome.PAUSED
        raise Departed(form.cause or "the scheduler gives this task's slots to others", outcome)

    def _join(self, group: Group) -> None:
        while True:
            self.copies.interrupt()
            try:
                num_redone_steps = self._agree(group)
                break
            except GenerationLost as error:
                self.membership.lose(str(error))
                group = self.membership.wait_for_generation()
        self.membership.record_commit(self.committed)
        pause_s = 0.0 if self._paused_at is None else self.clock() - self._paused_at
        self.membership.send(
            Switched(
                generation=group.number,
                step=self.committed,
                size=group.size,
                pause_s=pause_s,
                redone_steps=num_redone_steps,
                leader=group.rank == 0,
            )
        )
        self._paused_at = self.clock()  # if this one is lost before its first step, training has stood still since now

    def _agree(self, group: Group) -> int:
        """Bring all members to the same state; return how many steps have to be computed again (0 or 1)."""
        if self.membership.is_lost():
            raise GenerationLost("given up before it was entered")
        members = self._exchange(group)
        if self.balance.is_enabled:
            self.balance.begin_generation(self._times(group))
        agreement = agree(members)
        if agreement.is_new and group.rank == 0:
            self._start_or_resume()
        if resting := agreement.resting:
            num_parts = self.plan.num_shares(group.size - len(resting))
            self.copies.shares = without(num_parts, group.size, resting, self.balance.shares)
        self._copy_state(group, agreement)
        if agreement.is_mixed:
            self.state.claim.downgrade(f"since step {self.committed} tasks on different systems train together")
        self.holds_state, self._is_attempting = True, False
        return agreement.num_redone_steps

    def _exchange(self, group: Group) -> list[MemberState]:
        """Return where every member stands."""
        mine = MemberState(
            holds_state=self.holds_state,
            committed=self.committed,
            epoch=self.epoch,
            num_evaluations=self.state.num_evaluations(self.epoch),
            attempted=self.committed + (1 if self._is_attempting else 0),
            fingerprint=self.state.claim.number,
            goes_on=self._goes_on and self.committed % self.plan.steps_per_epoch != 0 and self.copies.may_go_on,
            state_bytes=self.copies.state_bytes if self.holds_state else 0,
            step_us=self.copies.step_us,
        )
        rows = group.tell_all(mine.row(), torch.int64, is_lost=self.membership.is_lost)
        return [MemberState.of_row(row) for row in rows]

    def _times(self, group: Group) -> list[list[float]]:
        """Return the times of all members."""
        return group.tell_all(self.balance.row(), torch.float64, is_lost=self.membership.is_lost)

    def _start_or_resume(self) -> None:
        saved = self.find_checkpoint()
        if saved is not None:
            self.state.load(saved)
            self.state.evaluations.update(saved["evaluations"])
            self.committed, self.epoch = int(saved["step"]), int(saved["epoch"])
            self._received = saved

    def _copy_state(self, group: Group, agreement: Agreement) -> None:
        """Send the state to the members that copy mine, or receive it."""
        if receivers := [receiver for donor, receiver in agreement.copies if donor == group.rank]:
            meanwhile = bool(agreement.resting)
            self.copies.give(group, receivers, step=self.committed, epoch=self.epoch, meanwhile=meanwhile)
        for donor, receiver in agreement.copies:
            if receiver == group.rank:
                self._take_over(self.copies.receive(group, donor))

    def _take_over(self, tree: dict[str, Any]) -> None:
        self.state.load(tree)
        self.state.evaluations.clear()
        self.state.evaluations.update(tree["evaluations"])
        self.committed = int(tree["step"])
        if not self.holds_state:
            self.epoch = int(tree["epoch"])
            self._received = tree
        elif int(tree["epoch"]) > self.epoch:
            self._received = tree  # my loop has yet to pass the end of the epoch, which the donor's has passed
