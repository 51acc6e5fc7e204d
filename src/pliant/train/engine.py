"""Commits optimizer steps and carries the state from generation to generation.

Owns what has to be the same in every task (model, optimizer, registered extras, position) and knows how to get it
there. Knows nothing of data sets or of the user's loop.

Invariants: a step is committed in a task only after its reduction succeeded there; all tasks of a generation begin it
with the same state; the highest committed step wins, so a committed step is lost only if all tasks that have it are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import torch

from pliant.core.link import Left, Switched
from pliant.train import checkpoint, state
from pliant.train.audit import Audit
from pliant.train.collectives import Group
from pliant.train.errors import Departed, GenerationLost, TrainingError
from pliant.train.reducer import Reducer
from pliant.train.session import Session

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
    optimizer: torch.optim.Optimizer
    extras: Mapping[str, Stateful]
    last: dict[str, float]
    """Loss and metrics of the newest committed global batch; who joins at the end of an epoch needs them too."""
    identity: Mapping[str, int]
    """What a checkpoint must agree with: seed, num_samples, batch_size, …"""

    def capture(self, *, step: int, epoch: int) -> dict[str, Any]:
        """Return the tree of the whole state; its tensors are the live ones."""
        return {
            "step": step,
            "epoch": epoch,
            "identity": dict(self.identity),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "last": dict(self.last),
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
        self.model.load_state_dict(tree["model"])
        self.optimizer.load_state_dict(tree["optimizer"])
        self.last.clear()
        self.last.update(tree["last"])
        for name, extra in self.extras.items():
            extra.load_state_dict(tree["extras"][name])


@dataclass(slots=True, kw_only=True)
class Engine:
    """The part of a training that must survive changes of its membership.

    `committed` counts optimizer steps since the start of the job; `epoch` is the one that the user's loop is in.
    """

    session: Session
    shared: Shared
    reducer: Reducer
    audit: Audit
    clock: Callable[[], float]
    """Monotonic, seconds."""
    checkpoint_folder: Path | None
    after_commit: Callable[[Sequence[float]], None]
    """Called after every commit with the sums of the control elements that follow the pledge slots."""
    before_leaving: Callable[[], bool]
    """Called on the leader when everybody leaves: save; tell whether it is saved."""
    committed: int = 0
    epoch: int = 0
    samples: list[int] = field(default_factory=list)
    """Indices of the samples that this task uses in the present attempt (only kept for the audit)."""
    _holds_state: bool = False
    _attempting: bool = False
    _paused_at: float | None = None
    _arrived_with: dict[str, Any] | None = None

    @property
    def control(self) -> torch.Tensor:
        """My share of the control elements that travel with the step; summed over the members by the commit."""
        return self.reducer.control[NUM_PLEDGE_SLOTS:]

    def begin(self) -> None:
        """Start an attempt at the next step."""
        self.session.check_dismissed()
        self._attempting = True
        self.reducer.zero()
        self.samples.clear()

    def commit(self) -> None:
        """Reduce, step the optimizer, and change generation if all are ready to.

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
            self.reducer.reduce(group, lost=self.session.is_lost)
        except GenerationLost as error:
            self.session.lose(str(error))
            self.enter()
            return
        sums: list[float] = self.reducer.control.tolist()
        self.reducer.attach()
        self.shared.optimizer.step()
        self.reducer.release()
        self._attempting = False
        self.committed += 1
        self.session.hold(self.committed)
        self.audit.commit(generation=group.number, step=step)
        self._paused_at = self.clock()
        self.after_commit(sums[NUM_PLEDGE_SLOTS:])
        if pledged is not None and round(sums[pledged % NUM_PLEDGE_SLOTS]) == group.size:
            self._switch(pledged)

    def _switch(self, number: int) -> None:
        self._paused_at = self.clock()
        was_leader, leaving_from = self.session.group.rank == 0, self.session.group.number
        form = self.session.switch(number)
        if self.session.task_id in form.members:
            self._join(self.session.group)
            return
        saved = was_leader and not form.members and self.before_leaving()
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

    def _agree(self, group: Group) -> int:
        """Bring all members to the same state; return how many steps have to be computed again (0 or 1)."""
        if self.session.is_lost():
            raise GenerationLost("given up before it was entered")
        table = torch.zeros(group.size, 4, dtype=torch.int64)
        attempted = self.committed + (1 if self._attempting else 0)
        table[group.rank] = torch.tensor([int(self._holds_state), self.committed, self.epoch, attempted])
        group.all_reduce([table], lost=self.session.is_lost)
        rows: list[list[int]] = table.tolist()
        standings = [(step, epoch) if holds else None for holds, step, epoch, _ in rows]
        held = [standing for standing in standings if standing is not None]
        if not held and group.rank == 0:
            self._start_or_resume()
        donors = [rank for rank, standing in enumerate(standings) if standing == max(held)] if held else [0]
        needy = [rank for rank in range(group.size) if rank not in donors]
        self._hand_over(group, donors, needy)
        self._holds_state, self._attempting = True, False
        return 1 if held and max(row[3] for row in rows) > self.committed else 0

    def _start_or_resume(self) -> None:
        saved = checkpoint.newest(self.checkpoint_folder) if self.checkpoint_folder is not None else None
        if saved is not None:
            self.shared.load(saved)
            self.committed, self.epoch = int(saved["step"]), int(saved["epoch"])
            self._arrived_with = saved

    def _hand_over(self, group: Group, donors: Sequence[int], needy: Sequence[int]) -> None:
        """Every needy member copies the state of one donor; the donors share the work."""
        pairs = [(donors[i % len(donors)], rank) for i, rank in enumerate(needy)]
        mine = [to for donor, to in pairs if donor == group.rank]
        if mine:
            tree = self.shared.capture(step=self.committed, epoch=self.epoch)
            for to in mine:
                state.send(group, tree, to)
        for donor, to in pairs:
            if to == group.rank:
                self._take_over(state.receive(group, donor))

    def _take_over(self, tree: dict[str, Any]) -> None:
        self.shared.load(tree)
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
