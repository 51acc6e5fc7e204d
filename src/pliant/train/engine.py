"""Commits optimizer steps and carries the state from generation to generation.

Owns what has to be the same in every task (model, optimizer, registered extras, position) and knows how to get it
there. Knows nothing of data sets or of the user's loop.

Invariants: a step is committed in a task only after its reduction succeeded there; all tasks of a generation begin it
with the same state; the highest committed step wins, so a committed step is lost only if all tasks that have it are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import torch

from pliant.core.link import Left, Switched
from pliant.train import claim
from pliant.train.audit import Audit
from pliant.train.claim import Standing
from pliant.train.data.sharding import Plan
from pliant.train.errors import Departed, GenerationLost, TrainingError
from pliant.train.evaluate import Evaluation
from pliant.train.group.collectives import Group
from pliant.train.group.session import Session
from pliant.train.optimize import Stepper
from pliant.train.state import pytree
from pliant.train.sum.reducer import Reducer
from pliant.train.sum.running import Running, unsaved

NUM_PLEDGE_SLOTS: Final = 4
"""Generations in flight at the same time differ by less than this."""


class Stateful(Protocol):
    """Anything that can be saved and loaded: a scheduler, an average of the weights, a counter."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What every task of the job holds a copy of."""

    model: torch.nn.Module
    optimizers: Mapping[str, torch.optim.Optimizer]
    extras: Mapping[str, Stateful]
    identity: Mapping[str, int]
    """What a checkpoint must agree with: seed, num_samples, batch_size, …"""
    standing: Standing
    last: dict[str, float] = field(default_factory=dict)
    """Loss and metrics of the newest committed global batch; who joins at the end of an epoch needs them too."""
    evaluations: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    """Results of the evaluations of this epoch, before and after its steps, for who joins later."""

    def capture(self, *, step: int, epoch: int) -> dict[str, Any]:
        """Return the tree of the whole state; its tensors are the live ones."""
        return {
            "step": step,
            "epoch": epoch,
            "identity": dict(self.identity),
            "model": self.model.state_dict(),
            "buffers": unsaved(self.model),
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()},
            "last": dict(self.last),
            "evaluations": {place: list(results) for place, results in self.evaluations.items()},
            "claim": self.standing.state_dict(),
            "extras": {name: extra.state_dict() for name, extra in self.extras.items()},
        }

    def load(self, tree: Mapping[str, Any]) -> None:
        """Take over a captured state.

        Raises:
            TrainingError: it belongs to another training (other data, batch size or seed).
        """
        differing = [
            f"{name} was {was}, is {self.identity.get(name)}"
            for name, was in tree["identity"].items()
            if self.identity.get(name) != was
        ]
        if differing:
            raise TrainingError(
                f"the saved state belongs to another training: {'; '.join(differing)}; "
                f"submit a new job to train with the new values"
            )
        tree = pytree.repacked(tree)
        self._check_names("optimizers", tree["optimizers"], self.optimizers)
        self._check_names("objects in state", tree["extras"], self.extras)
        try:
            self.model.load_state_dict(tree["model"])
            for name, optimizer in self.optimizers.items():
                optimizer.load_state_dict(tree["optimizers"][name])
        except (RuntimeError, ValueError) as error:
            raise TrainingError(
                f"the saved state does not fit the model and the optimizers of this script: {error}; submit a new job "
                f"to train another model"
            ) from error
        for name, buffer in unsaved(self.model).items():
            if name in tree["buffers"]:
                buffer.copy_(tree["buffers"][name])
        self.last.clear()
        self.last.update(tree["last"])
        self.standing.load_state_dict(tree["claim"])
        for name, extra in self.extras.items():
            extra.load_state_dict(tree["extras"][name])

    def _check_names(self, what: str, saved: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
        if set(saved) != set(mine):
            raise TrainingError(
                f"the saved state has the {what} {sorted(saved)}, and this script has {sorted(mine)}; give the same, "
                f"or submit a new job (with the weights of the old one, if it goes on from them)"
            )

    def digest(self) -> str:
        """Return the SHA-256 of parameters, buffers and optimizer state, in hex."""
        optimizers = {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()}
        return claim.digest([self.model.state_dict(), optimizers])


@dataclass(slots=True, kw_only=True)
class Engine:
    """The part of a training that must survive changes of its membership.

    `committed` counts optimizer steps since the start of the job; `epoch` is the one that the user's loop is in.
    """

    session: Session
    shared: Shared
    plan: Plan
    stepper: Stepper
    reducer: Reducer
    running: Running
    audit: Audit
    clock: Callable[[], float]
    """Monotonic, seconds."""
    find_checkpoint: Callable[[], Mapping[str, Any] | None]
    """Return the state to start from if nobody who lives has one."""
    after_commit: Callable[[Sequence[float]], None]
    """Called after every commit with the sums of the control elements that follow the pledge slots."""
    save: Callable[..., bool]
    """Called on the leader with `step` and `epoch` when everybody leaves: save; tell whether it is saved."""
    committed: int = 0
    epoch: int = 0
    samples: list[int] = field(default_factory=list)
    """Indices of the samples that this task uses in the present attempt (only kept for the audit)."""
    _holds_state: bool = False
    _attempting: bool = False
    _paused_at: float | None = None
    _arrived_with: Mapping[str, Any] | None = None
    _evaluated: tuple[str, int] = ("", 0)

    def begin(self) -> None:
        """Start an attempt at the next step."""
        self.session.check_dismissed()
        group = self.session.group
        self._attempting = True
        self.running.start()
        num_leaves = self.plan.num_parts(self.committed, group.size)
        self.reducer.begin(group, num_leaves=num_leaves, in_one=self.plan.whole_shares)
        self.samples.clear()

    def commit(self, *, computed: bool = True) -> None:
        """Reduce, step the optimizer, and change generation if all are ready to; `computed`: I had a part.

        When it returns, `committed` tells which step comes next; it is the same one if the generation was lost before
        anybody committed it.

        Raises:
            Departed: this task leaves the job.
        """
        group, step = self.session.group, self.committed
        if self.audit.wanted:
            self.audit.attempt(generation=group.number, step=step, epoch=self.epoch, samples=self.samples)
        pledged = self.session.pledge()
        if pledged is not None:
            self.reducer.control[pledged % NUM_PLEDGE_SLOTS] = 1.0
        try:
            if computed:
                self.reducer.close_leaf()
            else:
                self.stepper.wake()
            sums = self.reducer.finish(lost=self.session.is_lost)
        except GenerationLost as error:
            self.recover(error)
            return
        self.reducer.attach()
        self.stepper.step()
        self.reducer.release()
        self._attempting = False
        self.committed += 1
        self.session.hold(self.committed)
        self.audit.commit(generation=group.number, step=step)
        self._paused_at = self.clock()
        self.after_commit(sums[NUM_PLEDGE_SLOTS:])
        if pledged is not None and round(sums[pledged % NUM_PLEDGE_SLOTS]) == group.size:
            self._switch(pledged)

    def recover(self, error: GenerationLost) -> None:
        """Leave a generation that is lost, as if the step in work had not begun, and enter the next."""
        self.reducer.forget()
        self.running.restore()
        self.session.lose(str(error))
        self.enter()

    def is_lost(self) -> bool:
        """Tell whether the present generation was given up."""
        return self.session.is_lost()

    def evaluate(self, evaluation: Evaluation, *, after_steps: bool) -> dict[str, float]:
        """Share an evaluation among the members; who joins after it gets its result.

        `after_steps`: the script has the steps of the present epoch behind it.
        """
        place = f"{self.epoch} {'after' if after_steps else 'before'}"
        number = self._evaluated[1] if self._evaluated[0] == place else 0
        while number >= len(self.shared.evaluations.get(place, ())):
            try:
                values = evaluation.run(self.session.group, lost=self.session.is_lost)
            except GenerationLost as error:
                self.session.lose(str(error))
                self.enter()  # others may have had the result: then it is among what they gave me
            else:
                self._keep(place, values)
        self._evaluated = (place, number + 1)
        return dict(self.shared.evaluations[place][number])

    def _keep(self, place: str, values: dict[str, float]) -> None:
        for old in [key for key in self.shared.evaluations if int(key.split()[0]) < self.epoch - 1]:
            del self.shared.evaluations[old]
        self.shared.evaluations.setdefault(place, []).append(values)

    def _num_results(self) -> int:
        """Return how many evaluations of this epoch I know the result of."""
        return sum(len(found) for key, found in self.shared.evaluations.items() if int(key.split()[0]) == self.epoch)

    def _switch(self, number: int) -> None:
        self._paused_at = self.clock()
        was_leader, leaving_from = self.session.group.rank == 0, self.session.group.number
        form = self.session.switch(number)
        if self.session.task_id in form.members:
            self._join(self.session.group)
            return
        saved = was_leader and not form.members and self.save(step=self.committed, epoch=self.epoch)
        self.session.send(Left(generation=leaving_from, step=self.committed, saved=saved))
        raise Departed(form.cause or "the scheduler gives this task's slots to others")

    def enter(self) -> None:
        """Wait for a generation that holds, and take over its state."""
        self._join(self.session.wait_for_generation())

    def _join(self, group: Group) -> None:
        while True:
            try:
                redone = self._agree(group)
                break
            except GenerationLost as error:
                self.session.lose(str(error))
                group = self.session.wait_for_generation()
        self.session.hold(self.committed)
        pause_s = 0.0 if self._paused_at is None else self.clock() - self._paused_at
        self.session.send(
            Switched(
                generation=group.number,
                step=self.committed,
                size=group.size,
                pause_s=pause_s,
                redone_steps=redone,
                leader=group.rank == 0,
            )
        )
        self._paused_at = self.clock()  # lost again before its first step: training has stood still since now

    def _agree(self, group: Group) -> int:
        """Bring all members to the same state; return how many steps have to be computed again (0 or 1)."""
        if self.session.is_lost():
            raise GenerationLost("given up before it was entered")
        table = torch.zeros(group.size, 6, dtype=torch.int64)
        attempted = self.committed + (1 if self._attempting else 0)
        mine = self.shared.standing.number
        position = [self.committed, self.epoch, self._num_results()]
        table[group.rank] = torch.tensor([int(self._holds_state), *position, attempted, mine])
        group.all_reduce([table], lost=self.session.is_lost)
        rows: list[list[int]] = table.tolist()
        standings = [tuple(row[1:4]) if row[0] else None for row in rows]
        held = [standing for standing in standings if standing is not None]
        if not held and group.rank == 0:
            self._start_or_resume()
        donors = [rank for rank, standing in enumerate(standings) if standing == max(held)] if held else [0]
        needy = [rank for rank in range(group.size) if rank not in donors]
        self._hand_over(group, donors, needy)
        if any(row[5] != mine for row in rows):
            self.shared.standing.downgrade(f"since step {self.committed} tasks on different systems train together")
        self._holds_state, self._attempting = True, False
        return 1 if held and max(row[4] for row in rows) > self.committed else 0

    def _start_or_resume(self) -> None:
        saved = self.find_checkpoint()
        if saved is not None:
            self.shared.load(saved)
            self.shared.evaluations.update(saved["evaluations"])
            self.committed, self.epoch = int(saved["step"]), int(saved["epoch"])
            self._arrived_with = saved

    def _hand_over(self, group: Group, donors: Sequence[int], needy: Sequence[int]) -> None:
        """Every needy member copies the state of one donor; the donors share the work."""
        pairs = [(donors[i % len(donors)], rank) for i, rank in enumerate(needy)]
        mine = [to for donor, to in pairs if donor == group.rank]
        if mine:
            tree = self.shared.capture(step=self.committed, epoch=self.epoch)
            for to in mine:
                pytree.send(group, tree, to)
        for donor, to in pairs:
            if to == group.rank:
                self._take_over(pytree.receive(group, donor))

    def _take_over(self, tree: dict[str, Any]) -> None:
        self.shared.load(tree)
        self.shared.evaluations.clear()
        self.shared.evaluations.update(tree["evaluations"])
        self.committed = int(tree["step"])
        if not self._holds_state:
            self.epoch = int(tree["epoch"])
            self._arrived_with = tree
        elif int(tree["epoch"]) > self.epoch:
            self._arrived_with = tree  # my loop still has to pass the border between the epochs, the donor's has

    def settle(self) -> None:
        """Begin the batches of an epoch: undo what user code did on its way to where the state already was.

        A task that joins inside an epoch runs the script's lines before the inner loop, which the state it was given
        has behind it (`lr *= 0.1` must not happen twice).
        """
        if self._arrived_with is not None and int(self._arrived_with["epoch"]) == self.epoch:
            self.shared.load(self._arrived_with)
            self._arrived_with = None

    def meet(self) -> bool:
        """Wait until every member is here; return False if the generation was lost and another one was entered."""
        try:
            self.session.group.all_reduce([torch.zeros(1)], lost=self.session.is_lost)
        except GenerationLost as error:
            self.session.lose(str(error))
            self.enter()
            return False
        return True
