"""What kernels have shown that they can do (`KernelSpeed`), and what follows for a profile (`KernelPace`).

A kernel computes one batch at a time, and what a batch takes depends on its size: eight images may take a GPU no longer
than one. So the time of batches is kept by their size, in classes of 1, 2, 3 to 4, 5 to 8, … requests. The load says
which sizes occur; what was seen once is known when the load has fallen, too. Example: batches of 1 took 0.10 s, those
of 4 took 0.12 s. Asked for answers within 0.5 s, a kernel can give 33 per second in batches of 4, though one that is
asked by a single client gives 10.

Knows no load and no number of kernels. Of larger batches than have occurred nothing is presumed.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Final

from pliant.core.serving_profile import ServingProfile

HEADROOM: Final = 0.7
"""Of the latency objective, and of what a kernel can do, so much is planned with."""
_NUM_CLASSES: Final = 13
"""The last one holds batches of 2049 to 4096."""
_FORGET_BUSY_S: Final = 30.0
_FORGET_BATCHES: Final = 1000.0
"""What was measured counts less after so many seconds of computing, or batches."""
_ENOUGH_BUSY_S: Final = 0.5
_ENOUGH_BATCHES: Final = 20.0
"""So much makes a measurement."""
_LEAST_S: Final = 1e-6
"""No batch takes less, whatever clocks say."""
_SMALL: Final = 1.5
"""Batches of this mean size say what one request takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTime:
    """Batches of similar sizes, added up; older ones count less."""

    requests: float = 0.0
    batches: float = 0.0
    busy_s: float = 0.0

    @property
    def size(self) -> float:
        """Return the mean number of requests of a batch."""
        return max(self.requests / self.batches, 1.0)

    @property
    def batch_s(self) -> float:
        """Return the mean time of a batch."""
        return max(self.busy_s / self.batches, _LEAST_S)

    def then(self, later: "BatchTime") -> "BatchTime":
        """Return both together, the earlier one with less weight."""
        keep = math.exp(-later.busy_s / _FORGET_BUSY_S - later.batches / _FORGET_BATCHES)
        return BatchTime(
            requests=self.requests * keep + later.requests,
            batches=self.batches * keep + later.batches,
            busy_s=self.busy_s * keep + later.busy_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPace:
    """What one kernel can do in batches of one size."""

    batch: float
    """Requests."""
    batch_s: float
    """What it computes for them."""

    @property
    def per_second(self) -> float:
        """Return how many requests it answers per second if it never rests."""
        return self.batch / self.batch_s

    @property
    def answer_s(self) -> float:
        """Return what a request takes that finds the kernel computing a batch, and goes with the next one.

        A kernel that takes one at a time is free when the request comes: what waits otherwise is counted as a queue.
        """
        return self.batch_s * (2 - 1 / self.batch)

    def at_once(self, seconds: float) -> float:
        """Return how many requests at once it answers within these seconds; a batch, if even one takes longer."""
        return max(self.batch, self.per_second * seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSpeed:
    """The time of batches by the class of their size."""

    classes: tuple[BatchTime, ...] = (BatchTime(),) * _NUM_CLASSES
    pending: BatchTime = field(default_factory=BatchTime)
    """Not enough for a measurement yet."""

    def measure(self, *, requests: float, batches: float, busy_s: float) -> "KernelSpeed":
        """Return the speed with what kernels did in some time."""
        pending = BatchTime(
            requests=self.pending.requests + requests,
            batches=self.pending.batches + batches,
            busy_s=self.pending.busy_s + busy_s,
        )
        enough = pending.busy_s >= _ENOUGH_BUSY_S or pending.batches >= _ENOUGH_BATCHES or not self.is_known
        # Seconds without an answer are those of a batch that is not done, or of kernels that died: they wait for one.
        if not enough or pending.requests < 1 or pending.batches < 1 or pending.busy_s <= 0:
            return replace(self, pending=pending)
        index = min((math.ceil(pending.size) - 1).bit_length(), _NUM_CLASSES - 1)
        updated = self.classes[index].then(pending)
        return KernelSpeed(classes=(*self.classes[:index], updated, *self.classes[index + 1 :]))

    @property
    def is_known(self) -> bool:
        """Whether anything was ever measured."""
        return any(batches.batches > 0 for batches in self.classes)

    def pace(self, profile: ServingProfile) -> KernelPace | None:
        """Return the most that a kernel has shown to do within the latency objective; None if nothing was measured.

        No batch is fast enough for some models: then twice what a request takes at least is let pass. As long as
        kernels have only computed large batches, a small one is presumed to take less in proportion. That may ask for
        more kernels than help, but with them batches get smaller, and then it is known; to presume the contrary would
        leave requests waiting for ever.
        """
        known = [
            KernelPace(batch=min(batches.size, profile.batch_size), batch_s=batches.batch_s)
            for batches in self.classes
            if batches.batches > 0
        ]
        if not known:
            return None
        if known[0].batch > _SMALL:
            known.insert(0, KernelPace(batch=1.0, batch_s=known[0].batch_s / known[0].batch))
        within_s = max(HEADROOM * profile.latency_objective_s, 2 * known[0].answer_s)
        possible = [pace for pace in known if pace.answer_s <= within_s]
        return max(possible, key=lambda pace: pace.per_second)
