"""One task's way through a step: its parts one after the other, from the data to the commit.

Knows the user's loop (a batch is handed out, a loss comes back) and nothing of epochs, files or the server.

Example: a global batch of 10 samples, 4 virtual workers, 2 tasks. The parts have 3, 3, 2 and 2 samples. Task 0 computes
the first two: it multiplies their mean losses by 3/10 each before backward, and task 1 its two by 2/10 each. The sum of
all gradients is then the gradient of the mean loss over the 10 samples, whoever computed which part. Losses that are
sums over their parts are added up as they are. A part that has a weight of its own is multiplied by that, and the sum
of all gradients is divided by the sum of all weights (`Reducer.attach`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import torch

from pliant.train.carried import CarriedState
from pliant.train.data.feed import Feed
from pliant.train.data.sharding import Part
from pliant.train.engine import NUM_PLEDGE_ELEMENTS, Engine
from pliant.train.errors import GenerationLost, TrainingError
from pliant.train.reduction import Reduction, check_reduction, describe_sum, find_sum
from pliant.train.seeds import mix, seed_forward
from pliant.train.sum.metrics import MetricSums
from pliant.train.sum.reducer import Reducer

Metrics = Mapping[str, float | torch.Tensor]


@dataclass(slots=True, kw_only=True)
class Loop:
    """Hands out the parts of a step and takes in what the script makes of them."""

    engine: Engine
    feed: Feed
    seed: int
    warn: Callable[[str], None]
    """Tells the person something, once."""
    carried: CarriedState
    metric_sums: MetricSums = field(default_factory=MetricSums)
    is_inside: bool = False
    """The script is working on a part."""
    _part: Part | None = None
    _ends_share: bool = False
    _is_examined: bool = False
    """A loss of which nothing was said was looked at."""

    def parts(self) -> Iterator[Any]:
        """Yield the batches of this task's parts of one step, or of one attempt at it."""
        engine, step = self.engine, self.engine.committed
        group, worker = engine.membership.group, engine.worker
        parts = engine.plan.parts(step, worker)
        self.feed.begin_step(step, worker, engine.next_worker)
        engine.begin()
        if not parts:
            engine.commit(computed=False)
        for place, part in enumerate(parts):
            if engine.membership.is_lost():
                engine.recover(GenerationLost("the coordinator gave this generation up"))
                return
            if engine.audit.is_enabled:
                engine.samples.extend(self.feed.indices(part))
            loaded = self.feed.load(part)
            self._part, self._ends_share = part, place == len(parts) - 1
            if part.piece == 0 and place > 0:
                engine.running.restore()  # every virtual worker starts from the same running statistics
            seed_forward(mix(self.seed, part.step, part.virtual_worker, part.piece))
            self.is_inside = True
            self.carried.begin_part()
            try:
                yield loaded
            finally:  # the script may leave its loop here; then it stays inside of it, where tasks are not together
                self.carried.end_part()
            self.is_inside = False
            if engine.membership.group is not group:
                return  # it was lost, or all have switched: what was computed of this step is undone or committed
            if self._part is not None:
                raise TrainingError("a batch was not trained on: call run.step(loss) once for every batch")

    def step(
        self, loss: torch.Tensor, metrics: Metrics, reduction: Reduction | None = None, weight: float | None = None
    ) -> bool:
        """Call backward on the loss of a part; return whether the optimizers stepped, as they do after the last one."""
        part, reducer, factor = self._begin_take(loss, metrics, reduction, weight)
        reducer.restore()
        if part.last:
            reducer.arm(is_lost=self.engine.membership.is_lost)
        weighted = loss if factor == 1.0 else loss * factor
        try:
            self.engine.stepper.scale(weighted).backward()  # type: ignore[no-untyped-call]
        except GenerationLost as error:  # raised by a hook of the reducer, to end a pass whose gradients are useless
            self.engine.recover(error)
        else:
            self._end_part(part)
        return self.engine.committed > part.step

    def take(
        self,
        loss: float | torch.Tensor,
        metrics: Metrics,
        reduction: Reduction | None = None,
        weight: float | None = None,
    ) -> bool:
        """Take the gradients of a part's loss from the parameters; return whether the optimizers stepped."""
        part, reducer, factor = self._begin_take(loss, metrics, reduction, weight)
        reducer.weigh(factor)
        if part.piece > 0:
            reducer.hold()
            reducer.restore()
        self._end_part(part)
        return self.engine.committed > part.step

    def _begin_take(
        self, loss: float | torch.Tensor, metrics: Metrics, reduction: Reduction | None, weight: float | None
    ) -> tuple[Part, Reducer, float]:
        """Count the loss and the metrics of a part; return it, with what its gradients are multiplied by."""
        check_reduction(reduction)
        _check_weight(weight, reduction)
        part, reducer = self._take_part(), self.engine.reducer
        factor = _factor(part, reduction, weight)
        self.metric_sums.add(
            reducer.control,
            loss,
            metrics,
            len(part.positions),
            first=NUM_PLEDGE_ELEMENTS,
            loss_weight=part.of if reduction == "sum" else (None if weight is None else factor),
            is_weighted=weight is not None,
        )
        if reduction is None and weight is None and not self._is_examined:
            self._is_examined = True
            self._examine(loss, part)
        return part, reducer, factor

    def _examine(self, loss: float | torch.Tensor, part: Part) -> None:
        """Look at the very first loss of a job: if it is a sum, it would be trained on with a part of its gradient."""
        plan, group = self.engine.plan, self.engine.membership.group
        if plan.is_cut and part.step == 0 and group.rank == 0 and (found := find_sum(loss, len(part.positions))):
            assert isinstance(loss, torch.Tensor)
            self.warn(describe_sum(found, loss, len(part.positions), plan.batch_size))

    def _take_part(self) -> Part:
        part, self._part = self._part, None
        if part is None:
            raise TrainingError("step was called twice for one batch, or outside of the loop over the run's batches")
        return part

    def _end_part(self, part: Part) -> None:
        if self._ends_share:
            self.engine.commit()
        elif part.last:
            self.engine.reducer.close_leaf()
        else:
            self.engine.reducer.hold()


def _check_weight(weight: float | None, reduction: Reduction | None) -> None:
    if weight is None:
        return
    if not isfinite(weight) or weight < 0:
        raise TrainingError(f"weight is {weight!r}; give the number that the mean of this batch counts, at least 0")
    if reduction == "sum":
        raise TrainingError('a weight says how much a mean counts; leave it out with reduction="sum"')


def _factor(part: Part, reduction: Reduction | None, weight: float | None) -> float:
    """Return what a part's loss is multiplied by, so that the sum over all parts is the loss of the global batch.

    With weights that sum is still to be divided by the weights' sum. A part that is the whole batch needs neither.
    """
    if reduction == "sum" or len(part.positions) == part.of:
        return 1.0
    return len(part.positions) / part.of if weight is None else float(weight)
