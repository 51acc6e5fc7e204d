"""Sums gradients over virtual workers and tasks, while the backward pass still runs.

A gradient joins the partial sums of this task the moment autograd has it; with the last virtual worker of the task they
land in flat buckets, and a bucket's exchange begins as soon as it is complete (`pliant.train.sum.exchange`).

The tail carries what else belongs to a step, so that it costs no collective of its own: control elements (pledges,
loss, metrics), which parameters had a gradient, and running buffers. A task alone with one part has nothing to sum,
and nothing is copied.
"""

from collections.abc import Callable, Iterable
from functools import partial

import torch

from pliant.train.errors import GenerationLost, TrainingError
from pliant.train.group.collectives import Group
from pliant.train.sum import tree
from pliant.train.sum.buckets import BUCKET_BYTES, Layout
from pliant.train.sum.exchange import Exchange
from pliant.train.sum.running import Running


class Reducer:
    """Owns the gradients of `parameters` for the length of a training.

    Args:
        parameters: those that are trained; the order must be the same in every task.
        num_control: float32 elements that travel with the gradients.
        running: the buffers that travel with them.
    """

    def __init__(
        self,
        parameters: Iterable[torch.nn.Parameter],
        *,
        num_control: int,
        running: Running,
        bucket_bytes: int = BUCKET_BYTES,
    ) -> None:
        self.parameters = tuple(dict.fromkeys(parameters))
        self._running = running
        num_tail = num_control + len(self.parameters) + running.num_elements
        self._sections = [num_control, len(self.parameters), running.num_elements]
        self._layout = Layout(self.parameters, num_tail=num_tail, bytes_at_most=bucket_bytes)
        self._num_tail, self._num_control = num_tail, num_control
        self.control: list[float | torch.Tensor] = [0.0] * num_control
        self._exchange = Exchange(self._layout)
        self._sums: list[list[torch.Tensor | None]] = []  # of every parameter, and of the tail: partial sums so far
        self._held: list[torch.Tensor | None] = []
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []
        self._group = Group(number=0, rank=0, size=1, backend=None)
        self._share = tree.share(1, 1, 0)
        self._alone = True
        self._some_idle = False
        self._leaf = 0
        self._armed = False
        self._lost: Callable[[], bool] = lambda: False
        self._fired: list[bool] = []
        self._missing: list[int] = []
        self._next_exchange = 0

    # -- a step -----------------------------------------------------------------------------------------------------

    def begin(self, group: Group, *, num_leaves: int, in_one: bool) -> None:
        """Start a step of `num_leaves` virtual workers over all tasks (`in_one`: every task is one)."""
        self._group = group
        self._alone = group.size == 1 and num_leaves == 1
        total = None
        if in_one:
            self._share = tree.share(min(1, max(0, num_leaves - group.rank)), 1, 0)
        else:
            self._share = tree.share(num_leaves, group.size, group.rank)
            total = tree.total(num_leaves, group.size)
            if total.num_partials == (1, 1):
                total = None  # of two numbers there is one sum
        self._exchange.begin(group, total, self._share.num_partials)
        self._some_idle = total is not None and num_leaves < group.size
        self._leaf, self._next_exchange = 0, 0
        self.release()
        self._held.clear()
        self.control = [0.0] * self._num_control
        self._sums = [[] for _ in range(len(self.parameters) + 1)]
        self._watch(not self._alone)

    def restore(self) -> None:
        """Give the parameters the gradients that were put aside: the next backward pass adds to them."""
        for parameter, kept in zip(self.parameters, self._held, strict=False):
            parameter.grad = kept
        self._held.clear()

    def hold(self) -> None:
        """Put the gradients of a piece aside, where user code cannot spoil them before the next one."""
        before = self._held or [None] * len(self.parameters)
        self._held = [_joined(kept, parameter.grad) for kept, parameter in zip(before, self.parameters, strict=True)]
        for parameter in self.parameters:
            parameter.grad = None

    def arm(self, *, lost: Callable[[], bool]) -> None:
        """Prepare for the backward pass that ends a virtual worker: gradients go on their way as they come.

        It raises GenerationLost when a gradient is ready and `lost()` is true, or the exchange of a bucket fails.
        """
        if not self._alone:
            self._open_leaf()
            self._armed, self._lost = True, lost

    def weigh(self, weight: float) -> None:
        """Multiply the gradients that user code left in the parameters."""
        for parameter in self.parameters:
            if parameter.grad is not None and weight != 1.0:
                parameter.grad.mul_(weight)

    def close_leaf(self) -> None:
        """End a virtual worker: what is in the parameters and the control elements belongs to it, and is taken away."""
        if self._alone:
            return
        if not self._armed:
            self._open_leaf()
        self._armed = False
        tail = self._tail()
        flags = tail[self._sections[0] : self._sections[0] + self._sections[1]]
        flags.fill_(1.0)
        for place in [place for place, fired in enumerate(self._fired) if not fired]:
            gradient, self.parameters[place].grad = self.parameters[place].grad, None
            if gradient is None:
                flags[place] = 0.0
            self._join(place, gradient)
        if self._group.rank == 0 and self._leaf == 0:
            self._running.write(tail[sum(self._sections[:2]) :])
        self._join(len(self.parameters), tail)
        self.control = [0.0] * self._num_control
        self._leaf += 1
        if self._ends_share(self._leaf - 1):
            for number, missing in enumerate(self._missing):
                if missing >= 0:
                    self._complete(number)

    def finish(self, *, lost: Callable[[], bool]) -> list[float]:
        """Sum over all virtual workers; return the sums of the control elements. `attach` gives the gradients.

        Raises:
            GenerationLost: the step must be computed again, after `forget`.
        """
        if self._group.size > 1 and not self._share.additions:
            self._contribute_nothing()
        self._exchange.finish(lost=lost)
        if self._alone:
            return [float(value) for value in self.control]
        tail = self._summed_tail()
        self._running.read(tail[sum(self._sections[:2]) :])
        sums: list[float] = tail[: self._sections[0]].tolist()
        return self._with_those_of_idle_members(sums, lost) if self._some_idle else sums

    def _with_those_of_idle_members(self, sums: list[float], lost: Callable[[], bool]) -> list[float]:
        """Add the control elements of members without a virtual worker, whose tail goes into no partial sum.

        There are some only at an epoch's smaller last batch, and where a loss left more members than virtual workers.
        """
        theirs = self._tail()[: self._num_control]
        if self._share.additions:
            theirs.zero_()
        self._group.all_reduce([theirs], lost=lost)
        return [mine + other for mine, other in zip(sums, theirs.tolist(), strict=True)]

    def attach(self) -> None:
        """Give every parameter its summed gradient; those that no virtual worker had a gradient of get None."""
        if self._alone:
            return
        flags = self._summed_tail()[self._sections[0] : self._sections[0] + self._sections[1]]
        used: list[bool] = (flags > 0).tolist()
        slots = self._exchange.slots
        sums = slots[0].views if slots else [partials[0] for partials in self._sums[:-1]]
        for parameter, total, is_used in zip(self.parameters, sums, used, strict=True):
            parameter.grad = total if is_used else None

    def release(self) -> None:
        """Take the gradients away from the parameters."""
        for parameter in self.parameters:
            parameter.grad = None
        self._sums.clear()

    def forget(self) -> None:
        """Drop everything of a step whose generation was lost."""
        self._armed = False
        self._exchange.forget()
        self._held.clear()
        self.release()

    def close(self) -> None:
        """Let go of the parameters and of all buffers: hooks would keep both alive."""
        self._watch(False)
        self.forget()

    # -- gradients as they come -------------------------------------------------------------------------------------

    def _watch(self, wanted: bool) -> None:
        if wanted and not self._hooks:
            self._hooks = [
                parameter.register_post_accumulate_grad_hook(partial(self._ready, place))  # type: ignore[no-untyped-call]
                for place, parameter in enumerate(self.parameters)
                if parameter.requires_grad  # one that is frozen now is collected at the end of the leaf
            ]
        elif not wanted and self._hooks:
            for hook in self._hooks:
                hook.remove()
            self._hooks.clear()

    def _open_leaf(self) -> None:
        self._fired = [False] * len(self.parameters)
        self._missing = [len(bucket.places) for bucket in self._layout.buckets]
        self._missing[-1] += 1  # the tail comes last

    def _ready(self, place: int, parameter: torch.Tensor) -> None:
        if not self._armed:
            return
        gradient, parameter.grad = parameter.grad, None
        if self._lost():
            raise GenerationLost("the coordinator gave this generation up")
        if self._fired[place]:
            raise TrainingError(
                "a parameter got a gradient twice in one backward pass; activation checkpointing of shared parameters "
                "needs torch.utils.checkpoint(…, use_reentrant=False)"
            )
        self._fired[place] = True
        self._join(place, gradient)
        if self._ends_share(self._leaf):
            bucket = self._layout.bucket_of[place]
            self._missing[bucket] -= 1
            if self._missing[bucket] == 0:
                self._complete(bucket)

    def _ends_share(self, leaf: int) -> bool:
        """With this leaf, buckets are complete and can go to other tasks."""
        return self._group.size > 1 and leaf + 1 == len(self._share.additions)

    def _join(self, place: int, value: torch.Tensor | None) -> None:
        """Add one leaf's value to the partial sums of a place; after the last leaf they go into the buckets.

        None is zero. Zeros are not left out: they turn a negative zero into a positive one, here as elsewhere.
        """
        if value is not None and value.is_sparse:
            value = value.to_dense()
        partials, num_additions = self._sums[place], self._share.additions[self._leaf]
        if not self._ends_share(self._leaf):
            for _ in range(num_additions):
                value = _added(partials.pop(), value)
            partials.append(value)
            return
        for _ in range(num_additions - 1):
            value = _added(partials.pop(), value)
        left = partials.pop() if num_additions else None
        *others, target = self._targets(place)
        for other, partial_sum in zip(others, partials, strict=True):
            _put(other, partial_sum)
        if left is not None and value is not None:
            torch.add(left, value, out=target)
        else:
            _put(target, _added(left, value) if num_additions else value)
        partials.clear()

    def _targets(self, place: int) -> list[torch.Tensor]:
        """Return where the partial sums of a place go."""
        slots = self._exchange.slots[: self._share.num_partials]
        return [slot.tail if place == len(self.parameters) else slot.views[place] for slot in slots]

    def _complete(self, number: int) -> None:
        """Begin the exchange of a bucket that has all it needs, in the buckets' order."""
        self._missing[number] = -1
        while self._next_exchange < len(self._missing) and self._missing[self._next_exchange] < 0:
            self._exchange.start(self._next_exchange)
            self._next_exchange += 1

    def _tail(self) -> torch.Tensor:
        """Return a tail with the control elements in it."""
        tail = torch.zeros(self._num_tail, device=self._layout.home)
        if any(isinstance(value, torch.Tensor) for value in self.control):
            values = [torch.as_tensor(value, dtype=torch.float32, device=tail.device) for value in self.control]
            tail[: self._num_control] = torch.stack(values)
        else:
            tail[: self._num_control] = torch.tensor(self.control)
        return tail

    def _summed_tail(self) -> torch.Tensor:
        if self._exchange.slots:
            return self._exchange.slots[0].tail
        tail = self._sums[-1][0]
        assert tail is not None
        return tail

    def _contribute_nothing(self) -> None:
        """Take part in the exchange of a step without a virtual worker of my own."""
        if self._exchange.total is None:
            slot = self._exchange.slots[0]
            for buffer in slot.buffers:
                buffer.zero_()
            slot.tail.copy_(self._tail())
        for number in range(len(self._layout.buckets)):
            self._exchange.start(number)


def _joined(kept: torch.Tensor | None, gradient: torch.Tensor | None) -> torch.Tensor | None:
    if kept is None or gradient is None:
        return gradient if kept is None else kept
    return kept.add_(gradient)


def _added(left: torch.Tensor | None, right: torch.Tensor | None) -> torch.Tensor | None:
    """Return left + right, None being zeros; the terms may be overwritten."""
    if left is None or right is None:
        value = right if left is None else left
        return None if value is None else value.add_(0.0)
    return left.add_(right)


def _put(target: torch.Tensor, value: torch.Tensor | None) -> None:
    if value is None:
        target.zero_()
    else:
        target.copy_(value)
