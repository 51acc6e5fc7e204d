"""One task's way through a step: its parts one after the other, from the data to the commit.

Knows the user's loop (a batch is handed out, a loss comes back) and nothing of epochs, files or the server.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from pliant.train.data.feed import Feed
from pliant.train.data.sharding import Owner, Part
from pliant.train.engine import NUM_PLEDGE_SLOTS, Engine
from pliant.train.errors import GenerationLost, TrainingError
from pliant.train.process import reseed
from pliant.train.seeds import mix
from pliant.train.sum.totals import Tally

Values = Mapping[str, float | torch.Tensor]


@dataclass(slots=True, kw_only=True)
class Loop:
    """Hands out the parts of a step and takes in what the script makes of them."""

    engine: Engine
    feed: Feed
    seed: int
    tally: Tally = field(default_factory=Tally)
    inside: bool = False
    """The script works on a part."""
    _part: Part | None = None
    _ends_share: bool = False

    def parts(self) -> Iterator[Any]:
        """Yield the batches of my parts of one step, or of one attempt at it."""
        engine, step = self.engine, self.engine.committed
        group, coming = engine.session.group, engine.session.coming()
        owner = Owner(group.size, group.rank)
        parts = engine.plan.parts(step, owner)
        self.feed.aim(step, owner, Owner(*coming) if coming else None)
        engine.begin()
        if not parts:
            engine.commit(computed=False)
        for place, part in enumerate(parts):
            if engine.is_lost():
                engine.recover(GenerationLost("the coordinator gave this generation up"))
                return
            if engine.audit.wanted:
                engine.samples.extend(self.feed.indices(part))
            loaded = self.feed.load(part)
            self._part, self._ends_share = part, place == len(parts) - 1
            if part.piece == 0 and place > 0:
                engine.running.restore()
            reseed(mix(self.seed, part.step, part.virtual_worker, part.piece))
            self.inside = True
            yield loaded
            self.inside = False
            if engine.session.group is not group:
                return  # it was lost, or all have switched: what I had computed of this step is gone or committed
            if self._part is not None:
                raise TrainingError("a batch was not trained on: call run.step(loss) once for every batch")

    def step(self, loss: torch.Tensor, metrics: Values) -> None:
        """Call backward on the mean loss of a part."""
        part, reducer = self._take_part(), self.engine.reducer
        weight = len(part.positions) / part.of
        self._count(part, loss, metrics)
        reducer.restore()
        if part.last:
            reducer.arm(lost=self.engine.is_lost)
        weighted = loss if weight == 1.0 else loss * weight
        try:
            self.engine.stepper.scale(weighted).backward()  # type: ignore[no-untyped-call]
        except GenerationLost as error:  # what is left of this pass would be in vain
            self.engine.recover(error)
            return
        self._end_part(part)

    def take(self, loss: float | torch.Tensor, metrics: Values) -> None:
        """Take the gradients of a part's mean loss from the parameters."""
        part, reducer = self._take_part(), self.engine.reducer
        self._count(part, loss, metrics)
        reducer.weigh(len(part.positions) / part.of)
        if part.piece > 0:
            reducer.hold()
            reducer.restore()
        self._end_part(part)

    def _count(self, part: Part, loss: float | torch.Tensor, metrics: Values) -> None:
        control = self.engine.reducer.control
        self.tally.add(control, loss, metrics, len(part.positions), first=NUM_PLEDGE_SLOTS)

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
