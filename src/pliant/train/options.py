"""What a person tells a training: every argument of `Run`, with what it means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch

from pliant.core.job import Mode
from pliant.train.data.feed import Collate, Order
from pliant.train.engine import Stateful
from pliant.train.optimize import Optimizers
from pliant.train.results import Saving


@dataclass(eq=False)
class Options:
    """The arguments of `Run`; what is left out is filled in by the job."""

    model: torch.nn.Module
    """Its parameters that require a gradient are trained; the same in every task after the first step."""
    optimizers: Optimizers
    """One, a list or a dict; all step once per global batch, on the mean gradient over it."""
    data: Any
    """Map-style data set, `IterableDataset`, or a `DataLoader`, whose settings are taken over. Every sample is used
    exactly once an epoch."""
    _: KW_ONLY
    batch_size: int | None = None
    """Samples per optimizer step, over all workers together. Default: the DataLoader's."""
    mode: Mode | None = None
    """"exact": bitwise the same result for any number of tasks; "fast": every task computes its share in one piece.
    Default: the job's, and "exact"."""
    virtual_workers: int | None = None
    """V, parts that a global batch is cut into; at most V tasks can work. Default: the job's."""
    accumulate: int = 1
    """Pieces that every part is computed in, one after the other, to save memory."""
    seed: int = 0
    """Of the order of samples and of the random numbers inside a step."""
    shuffle: bool | None = None
    """A new order every epoch (from `seed`); False keeps the data set's. Default: what a DataLoader says, or True."""
    order: Order | None = None
    """Called with an epoch, returns the sample indices in their order, instead of `shuffle`."""
    collate_fn: Collate | None = None
    """This and the next four are as for torch's DataLoader."""
    num_workers: int = 0
    prefetch_factor: int | None = None
    pin_memory: bool = False
    worker_init_fn: Callable[[int], None] | None = None
    num_samples: int | None = None
    """Samples of an epoch, for an `IterableDataset` without a length."""
    schedulers: Sequence[Any] = ()
    """Learning-rate schedulers that step once per optimizer step. (Those that step once an epoch go into `state`, and
    step in the script.)"""
    scaler: torch.amp.GradScaler | None = None
    """For float16 autocast: `step` scales the loss, unscales the summed gradient, and updates the scale."""
    clip_norm: float | None = None
    """Clip the gradient of the global batch to this norm."""
    clip_value: float | None = None
    """Clip the elements of the gradient of the global batch."""
    before_step: Callable[[], object] | None = None
    """Called with the gradient of the global batch in the parameters, clipped, before the optimizers step."""
    after_step: Callable[[], object] | None = None
    """Called after every optimizer step in every task, to update averages of the weights and the like."""
    checkpoint_freq: int | None = None
    """Epochs between checkpoints; 0 saves only by time and when all tasks leave. Default: the job's."""
    state: Mapping[str, Stateful] | None = None
    """More objects with `state_dict` and `load_state_dict` that must be the same in every task."""
    save: Callable[[Saving], None] | None = None
    """Called on the leader after every checkpoint by epochs and at the end, to save more than `model.pt`."""
