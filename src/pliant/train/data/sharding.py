"""Which samples a step uses and which worker computes them: pure arithmetic over positions.

A *position* is an index into an epoch's order of samples; `SampleOrder` turns positions into samples. Laws
(property-tested): within an epoch the steps cut `range(num_samples)` into consecutive batches; a batch is cut into V
parts that depend on nothing but the batch; a worker computes consecutive parts. So every sample is used exactly once an
epoch, whatever happens to the number of workers.

Example: 10 samples in global batches of 6, V = 4 virtual workers. Step 0 uses the positions 0 to 5, cut into 2, 2, 1
and 1; step 1 uses 6 to 9, which are too few for 4 parts of the usual size 2 and are cut into 2 and 2. Of step 0, two
workers compute the parts 0, 1 and 2, 3; three workers compute 0 and 1, only 2, and only 3. If the first of two is three
times as fast and their shares are 3 and 1, they compute 0, 1, 2 and 3; of step 1 the first one computes both parts.

Knows nothing of data sets, processes or random numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass


def cut(whole: range, num_parts: int, part: int) -> range:
    """Return part `part` of `whole` cut into `num_parts` consecutive parts whose lengths differ by at most one.

    The longer parts come first.
    """
    short, num_long = divmod(len(whole), num_parts)
    start = whole.start + part * short + min(part, num_long)
    return range(start, start + short + (1 if part < num_long else 0))


@dataclass(frozen=True, slots=True)
class Worker:
    """Worker `rank` of `size`."""

    size: int
    rank: int
    shares: tuple[int, ...] = ()
    """Virtual workers of every worker, in rank order, 0 for one that rests; empty: as even as can be."""

    @property
    def num_working(self) -> int:
        """Return how many of all workers have a share."""
        return sum(1 for share in self.shares if share) if self.shares else self.size

    def share(self, num_parts: int) -> range:
        """Return which parts this worker computes of a step that has so many.

        Where they are fewer than the shares add up to, every worker has as much of them as its share is of all virtual
        workers, rounded so that the first one has a part.
        """
        if not self.shares:
            return cut(range(num_parts), self.size, self.rank)
        total, before = sum(self.shares), sum(self.shares[: self.rank])
        start, stop = (-(-held * num_parts // total) for held in (before, before + self.shares[self.rank]))
        return range(start, stop)


@dataclass(frozen=True, slots=True)
class Part:
    """Samples of one forward and backward pass: what a virtual worker computes of a step, or a piece of it."""

    step: int
    """Counted from the start of the training."""
    virtual_worker: int
    """From 0 to the number of parts of this step."""
    positions: range
    """Consecutive positions in the epoch's order."""
    of: int
    """Samples of the whole global batch."""
    piece: int = 0
    last: bool = True
    """This is the last piece of its virtual worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardingPlan:
    """Which worker computes what at which step: a pure function of the numbers of a training.

    A global batch is cut into `virtual_workers` parts; an epoch's last one, if it is smaller, into fewer parts of about
    the usual size (BatchNorm has no use for parts of one sample), so that some workers may have none. With
    `whole_shares` every worker's share is one part instead, so that the parts depend on the number of workers.
    """

    num_samples: int
    batch_size: int
    virtual_workers: int
    whole_shares: bool = False
    accumulate: int = 1
    """Pieces that a part of the usual size is computed in, one after the other."""
    max_shares: int | None = None
    """With `whole_shares`: so many workers can have one, at most; None: as many as virtual workers."""

    @property
    def max_workers(self) -> int:
        """Return how many workers can work on a global batch."""
        return self.virtual_workers if self.max_shares is None else self.max_shares

    @property
    def is_cut(self) -> bool:
        """Tell whether a global batch may be computed in several passes, here or by several workers."""
        return self.max_workers > 1 or self.accumulate > 1

    @property
    def has_whole_parts(self) -> bool:
        """Tell whether a global batch has several parts, the same for any number of workers, each in one piece."""
        return self.virtual_workers > 1 and self.accumulate == 1 and not self.whole_shares

    @property
    def steps_per_epoch(self) -> int:
        """Return how many global batches an epoch has; the last one may be smaller than the others."""
        return -(-self.num_samples // self.batch_size)

    def num_shares(self, num_working: int) -> int:
        """Return how many parts a global batch of the usual size has if so many workers share it."""
        return num_working if self.whole_shares else self.virtual_workers

    def num_parts(self, step: int, num_working: int) -> int:
        """Return how many parts the global batch of this step has, over all workers together."""
        num_samples, usual = len(self.batch(step)), self.num_shares(num_working)
        if num_samples == self.batch_size:
            return min(usual, num_samples)
        return min(usual, -(-num_samples // -(-self.batch_size // usual)))

    def num_used(self, num_steps: int) -> int:
        """Return how many samples the first `num_steps` steps of the training use."""
        epochs, rest = divmod(num_steps, self.steps_per_epoch)
        return epochs * self.num_samples + min(rest * self.batch_size, self.num_samples)

    def batch(self, step: int) -> range:
        """Return the positions of the global batch of this step, counted from the start of the training."""
        start = step % self.steps_per_epoch * self.batch_size
        return range(start, min(start + self.batch_size, self.num_samples))

    def parts(self, step: int, worker: Worker) -> tuple[Part, ...]:
        """Return what a worker computes at this step, in order."""
        whole, num_parts = self.batch(step), self.num_parts(step, worker.num_working)
        mine = worker.share(num_parts)
        usual = -(-self.batch_size // self.num_shares(worker.num_working))
        at_most = -(-usual // self.accumulate)
        return tuple(
            piece for v in mine for piece in _pieces(Part(step, v, cut(whole, num_parts, v), len(whole)), at_most)
        )


def _pieces(part: Part, at_most: int) -> Iterator[Part]:
    num_pieces = -(-len(part.positions) // at_most)
    for piece in range(num_pieces):
        positions = cut(part.positions, num_pieces, piece)
        yield Part(part.step, part.virtual_worker, positions, part.of, piece, piece == num_pieces - 1)
