"""Sums gradients over virtual workers and tasks, while the backward pass still runs.

Theory of operation
-------------------
A task computes its share of a step as one or several *leaves*: a leaf is what one virtual worker computes. The gradient
of a parameter goes through four stations:

1. Autograd has it. A hook takes it out of the parameter at once (`_collect`).
2. It joins the partial sums of this task (`PartialSums`), in the order that the tree says.
3. With the task's last leaf the partial sums go into flat buckets (`BucketLayout`), the same in every task.
4. A bucket that is complete begins its exchange with the other tasks (`Exchange`) while autograd computes the rest.
   Exchanges begin in the order of the buckets, since all members must start the same ones in the same order.

`finish` waits for the exchanges, and `attach` gives the sums to the parameters. What else belongs to a step travels in
the tail of the last bucket (`TailLayout`), so a step costs no other collective.

Example: 8 virtual workers, 3 tasks; this is task 0 with the leaves 0, 1 and 2, and a parameter w whose gradients there
are 1.0, 2.0 and 4.0:

    leaf 0   w.grad = 1.0 is taken and pushed                   partial sums of w: 1.0
    leaf 1   2.0 is pushed, and the top two are added           3.0
    leaf 2   the last: 3.0 goes into the first buffer set and 4.0 into the second. When all parameters of w's bucket
             have come, the bucket's exchange begins

The tree does not add 3.0 and 4.0: it adds 4.0 and the gradient of leaf 3, which task 1 has. The exchange does that.

A part that is computed in several pieces (`accumulate`) is one leaf all the same: `hold` puts the gradient of a piece
aside, `restore` gives it back before the next backward pass, which adds to it.

The gradient of a large linear layer may come as a product that is not computed yet (`LateLinears`). Such products wait
in the partial sums until the last leaf, and are multiplied and added together there, with the result of any other way.

Three cases have less to do. A task alone with one leaf copies nothing: autograd's gradients stay where they are, while
the control elements are on their way to the host (`Readout`). A task alone with several leaves has no exchange, and the
partial sum is the result. With two tasks of one partial sum each, there is only one order to add them, so the stock
all-reduce does it.
"""

from collections.abc import Callable, Iterable
from functools import partial

import torch

from pliant.train.data.sharding import Worker
from pliant.train.errors import GenerationLost, TrainingError
from pliant.train.group.collectives import Group
from pliant.train.sum import tree
from pliant.train.sum.buckets import BUCKET_BYTES, BucketLayout
from pliant.train.sum.exchange import Exchange
from pliant.train.sum.late_linear import LateLinears
from pliant.train.sum.partial_sums import PartialSums
from pliant.train.sum.products import Product
from pliant.train.sum.readout import Element, Readout
from pliant.train.sum.running import RunningBuffers
from pliant.train.sum.tail import TailLayout

_STARTED = -1
"""Instead of the number of missing gradients: the bucket is complete."""


class Reducer:
    """Owns the gradients of `parameters` for the length of a training.

    Args:
        parameters: those that are trained; the order must be the same in every task.
        num_control: float32 elements that travel with the gradients.
        running: the buffers that travel with them.
        are_late: let the gradients of large linear layers wait for each other, see `pliant.train.sum.late_linear`.
    """

    def __init__(
        self,
        parameters: Iterable[torch.nn.Parameter],
        *,
        num_control: int,
        running: RunningBuffers,
        bucket_bytes: int = BUCKET_BYTES,
        are_late: bool = False,
    ) -> None:
        self.parameters = tuple(dict.fromkeys(parameters))
        self._late = LateLinears(self.parameters, is_enabled=are_late)
        self.control: list[Element] = [0.0] * num_control
        """Control elements of the present leaf."""
        self._running = running
        self._tail = TailLayout(
            num_control=num_control, num_flags=len(self.parameters), num_running=running.num_elements
        )
        self._layout = BucketLayout(self.parameters, num_tail=self._tail.num_elements, bytes_at_most=bucket_bytes)
        self._exchange = Exchange(self._layout)
        self._sums = PartialSums(len(self.parameters) + 1)  # the last place is that of the tail
        self._readout = Readout()
        self._held: list[torch.Tensor | None] = []
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []
        self._group = Group(number=0, rank=0, size=1, backend=None)
        self._share = tree.local_sum(1, 1, 0)
        self._is_alone = True
        self._some_idle = False
        self._leaf = 0
        self._is_armed = False
        self._is_lost: Callable[[], bool] = lambda: False
        self._collected: list[bool] = []
        """Of every parameter: its gradient of the present leaf was taken by a hook."""
        self._missing: list[int] = []
        """Of every bucket: gradients that are still to come, or `_STARTED`."""
        self._next_exchange = 0

    def prepare(self, worker: Worker, *, num_leaves: int, in_one: bool) -> None:
        """Have memory ready for a generation that still connects, of which this task is `worker`; from any thread."""
        share, total = _way(worker, num_leaves, in_one=in_one)
        self._exchange.prepare(worker.size, total, share.num_partials)

    # -- a step -----------------------------------------------------------------------------------------------------

    def begin(self, group: Group, *, num_leaves: int, in_one: bool, shares: tuple[int, ...] = ()) -> None:
        """Start a step of `num_leaves` virtual workers over all tasks (`in_one`: every task that works is one).

        `shares` are those of `Worker`.
        """
        self._group = group
        self._is_alone = group.size == 1 and num_leaves == 1
        self._share, total = _way(Worker(group.size, group.rank, shares), num_leaves, in_one=in_one)
        self._exchange.begin(group, total, self._share.num_partials)
        self._some_idle = total is not None and 0 in total.num_partials
        self._leaf, self._next_exchange = 0, 0
        self.release()
        self._held.clear()
        self.control = [0.0] * self._tail.num_control
        self._late.end()
        if not self._is_alone:
            self._sums.begin(are_whole=group.size == 1)
        self._set_hooks(not self._is_alone)

    def restore(self) -> None:
        """Give the parameters the gradients that were put aside: the next backward pass adds to them."""
        for parameter, kept in zip(self.parameters, self._held, strict=False):
            parameter.grad = kept
        self._held.clear()

    def hold(self) -> None:
        """Put the gradients of a piece aside, where user code cannot spoil them before the next one."""
        before = self._held or [None] * len(self.parameters)
        self._held = [_join(kept, parameter.grad) for kept, parameter in zip(before, self.parameters, strict=True)]
        for parameter in self.parameters:
            parameter.grad = None

    def arm(self, *, is_lost: Callable[[], bool]) -> None:
        """Prepare for the backward pass that ends a leaf: the hooks take the gradients as they come.

        The pass raises GenerationLost when a gradient is ready and `is_lost()` is true, or an exchange fails.
        """
        self._late.begin(num_own_hooks=1 if self._hooks else 0)
        if self._is_alone:
            self._readout.start(self.control)
        else:
            self._open_leaf()
            self._is_armed, self._is_lost = True, is_lost

    def weigh(self, weight: float) -> None:
        """Multiply the gradients that user code left in the parameters."""
        for parameter in self.parameters:
            if parameter.grad is not None and weight != 1.0:
                parameter.grad.mul_(weight)

    def close_leaf(self) -> None:
        """End a leaf: take what is left in the parameters, and the control elements."""
        if self._is_alone:
            self._late.attach()
            self._late.end()
            return
        if not self._is_armed:
            self._open_leaf()
        self._is_armed = False
        tail = self._tail.make(self.control, self._layout.home)
        flags = self._tail.flags(tail)
        flags.fill_(1.0)
        for place in [place for place, collected in enumerate(self._collected) if not collected]:
            value = self._late.take(place, self.parameters[place].grad)
            self.parameters[place].grad = None
            if value is None:
                flags[place] = 0.0
            self._add(place, value)
        self._late.end()
        if self._group.rank == 0 and self._leaf == 0:
            self._running.write(self._tail.running(tail))
        self._add(len(self.parameters), tail)
        self.control = [0.0] * self._tail.num_control
        self._leaf += 1
        if self._ends_share(self._leaf - 1):
            for number, missing in enumerate(self._missing):
                if missing != _STARTED:
                    self._complete(number)

    def finish(self, *, is_lost: Callable[[], bool]) -> list[float]:
        """Sum over all virtual workers; return the sums of the control elements. `attach` gives the gradients.

        Raises:
            GenerationLost: the step must be computed again, after `forget`.
        """
        if self._group.size > 1 and not self._share.additions:
            self._contribute_nothing()
        self._exchange.finish(is_lost=is_lost)
        if self._is_alone:
            return self._readout.finish(self.control)
        tail = self._sum_tail()
        self._running.read(self._tail.running(tail))
        sums: list[float] = self._tail.control(tail).tolist()
        return self._add_idle_members(sums, is_lost) if self._some_idle else sums

    def _add_idle_members(self, sums: list[float], is_lost: Callable[[], bool]) -> list[float]:
        """Add the control elements of members without a leaf, whose tail goes into no partial sum.

        There are some only at an epoch's smaller last batch, where a loss left more members than virtual workers, and
        where newcomers copy the state meanwhile.
        """
        theirs = self._tail.control(self._tail.make(self.control, self._layout.home))
        if self._share.additions:
            theirs.zero_()
        self._group.all_reduce([theirs], is_lost=is_lost)
        return [mine + other for mine, other in zip(sums, theirs.tolist(), strict=True)]

    def attach(self, *, divisor: float = 1.0) -> None:
        """Give every parameter its summed gradient, and None to those that no virtual worker had a gradient of.

        Args:
            divisor: of every sum.
        """
        self._attach_sums()
        for parameter in self.parameters:
            if divisor != 1.0 and parameter.grad is not None:
                parameter.grad.div_(divisor)

    def _attach_sums(self) -> None:
        if self._is_alone:
            return
        for parameter, total in zip(self.parameters, self._totals(), strict=True):
            parameter.grad = total

    def _totals(self) -> list[torch.Tensor | None]:
        if not self._exchange.buffer_sets:
            return self._sums.totals()[:-1]
        used: list[bool] = (self._tail.flags(self._sum_tail()) > 0).tolist()
        return [
            total if is_used else None for total, is_used in zip(self._exchange.buffer_sets[0].views, used, strict=True)
        ]

    def release(self) -> None:
        """Take the gradients away from the parameters."""
        for parameter in self.parameters:
            parameter.grad = None
        self._sums.clear()

    def forget(self) -> None:
        """Drop everything of a step whose generation was lost."""
        self._is_armed = False
        self._exchange.forget()
        self._held.clear()
        self._late.end()
        self.release()
        self._sums.forget()

    def close(self) -> None:
        """Drop the hooks and all buffers, which would keep the parameters alive."""
        self._set_hooks(False)
        self._late.close()
        self.forget()
        self._exchange.close()

    # -- gradients as they come -------------------------------------------------------------------------------------

    def _set_hooks(self, wanted: bool) -> None:
        if wanted and not self._hooks:
            self._hooks = [
                parameter.register_post_accumulate_grad_hook(partial(self._collect, place))  # type: ignore[no-untyped-call]
                for place, parameter in enumerate(self.parameters)
                if parameter.requires_grad  # the gradient of one that is frozen now is taken at the end of the leaf
            ]
        elif not wanted and self._hooks:
            for hook in self._hooks:
                hook.remove()
            self._hooks.clear()

    def _open_leaf(self) -> None:
        self._collected = [False] * len(self.parameters)
        self._missing = [len(bucket.places) for bucket in self._layout.buckets]
        self._missing[-1] += 1  # the tail comes last

    def _collect(self, place: int, parameter: torch.Tensor) -> None:
        """Take a gradient that autograd has just accumulated; called in the middle of a backward pass."""
        if not self._is_armed:
            return
        value, parameter.grad = self._late.take(place, parameter.grad), None
        if self._is_lost():
            raise GenerationLost("the coordinator gave this generation up")
        if self._collected[place]:
            raise TrainingError(
                "a parameter got a gradient twice in one backward pass; activation checkpointing of shared parameters "
                "needs torch.utils.checkpoint(…, use_reentrant=False)"
            )
        self._collected[place] = True
        self._add(place, value)
        if self._ends_share(self._leaf):
            bucket = self._layout.bucket_of[place]
            self._missing[bucket] -= 1
            if self._missing[bucket] == 0:
                self._complete(bucket)

    def _ends_share(self, leaf: int) -> bool:
        """Tell whether the buckets are filled with this leaf, to be exchanged with other tasks."""
        return self._group.size > 1 and leaf + 1 == len(self._share.additions)

    def _add(self, place: int, value: torch.Tensor | Product | None) -> None:
        """Add one leaf's value to the partial sums of a place; after the last leaf they go into the buckets."""
        if isinstance(value, torch.Tensor) and value.is_sparse:
            value = value.to_dense()
        num_additions = self._share.additions[self._leaf]
        if self._ends_share(self._leaf):
            self._sums.push_last(place, value, num_additions, self._targets(place))
        else:
            self._sums.push(place, value, num_additions)

    def _targets(self, place: int) -> list[torch.Tensor]:
        """Return where the partial sums of a place go."""
        sets = self._exchange.buffer_sets[: self._share.num_partials]
        return [one.tail if place == len(self.parameters) else one.views[place] for one in sets]

    def _complete(self, number: int) -> None:
        """Mark a bucket as complete, and begin all exchanges whose turn it is."""
        self._missing[number] = _STARTED
        while self._next_exchange < len(self._missing) and self._missing[self._next_exchange] == _STARTED:
            self._exchange.start(self._next_exchange)
            self._next_exchange += 1

    def _sum_tail(self) -> torch.Tensor:
        if self._exchange.buffer_sets:
            return self._exchange.buffer_sets[0].tail
        tail = self._sums.total(len(self.parameters))
        assert tail is not None
        return tail

    def _contribute_nothing(self) -> None:
        """Take part in the exchange of a step in which this task has no leaf."""
        if self._exchange.total is None:
            buffer_set = self._exchange.buffer_sets[0]
            for buffer in buffer_set.buffers:
                buffer.zero_()
            buffer_set.tail.copy_(self._tail.make(self.control, self._layout.home))
        for number in range(len(self._layout.buckets)):
            self._exchange.start(number)


def _way(worker: Worker, num_leaves: int, *, in_one: bool) -> tuple[tree.LocalSum, tree.GlobalSum | None]:
    """Return how a worker sums its leaves, and how all workers' partial sums become one; None: by the all-reduce."""
    size, rank, shares = worker.size, worker.rank, worker.shares
    if in_one:
        return tree.local_sum(len(worker.share(num_leaves)), 1, 0), None
    total = tree.global_sum(num_leaves, size, shares)
    # two numbers have one sum: floating-point addition is commutative
    return tree.local_sum(num_leaves, size, rank, shares), None if total.num_partials == (1, 1) else total


def _join(kept: torch.Tensor | None, gradient: torch.Tensor | None) -> torch.Tensor | None:
    if kept is None or gradient is None:
        return gradient if kept is None else kept
    return kept.add_(gradient)
