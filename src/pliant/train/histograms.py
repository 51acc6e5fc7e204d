"""Histograms of weights, gradients and whatever a script gives: counted where the values are, told by the leader.

Counting only reads, with whole numbers and no random ones: the bits of a training are the same with histograms and
without. A step at which none are due costs one comparison. The gradients are those that the optimizers step with: of
the whole global batch, unscaled and clipped.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from pliant.core.link import FromTask, Histograms, Note
from pliant.core.tensor_histogram import (
    GRADIENTS,
    MAX_MAGNITUDE,
    MAX_NAME,
    MAX_NAMES,
    MAX_STEP,
    NUM_BINS,
    WEIGHTS,
    TensorHistogram,
    edges,
    is_name,
)
from pliant.train.errors import TrainingError

EVERY_S: Final = 1.0
"""Histograms of one name are told no more often."""
_MAX_PARAMETERS: Final = MAX_NAMES // 2
_AT_ONCE: Final = 50
"""Histograms in one message."""
_CHUNK: Final = 1 << 20
"""Values that are counted at once, which bounds the memory for it to about 40 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How some values lie; the fields are those of `TensorHistogram`."""

    lowest: float
    highest: float
    counts: tuple[int, ...]
    num_nan: int
    num_infinite: int


@dataclass(slots=True, kw_only=True)
class HistogramLog:
    """Counts and tells the histograms of one task's training. Only that of the leader is asked to."""

    send: Callable[[FromTask], None]
    now: Callable[[], float]
    """Seconds since the epoch."""
    model: torch.nn.Module
    steps_per_epoch: int
    every: int | None
    """Tell those of all trained parameters every so many steps; None: never."""
    _sent_at: dict[str, float] = field(default_factory=dict)
    """When histograms of each name were told last; of all parameters under the empty name."""
    _gradients: list[TensorHistogram] = field(default_factory=list)
    """Of the step that is about to be committed."""
    _parameters: dict[str, torch.nn.Parameter] | None = None

    def take_gradients(self, step: int, *, leads: bool) -> None:
        """Count the gradients that step number `step` (counted from 1) is made with, if histograms are due there."""
        self._gradients.clear()
        if self.every is None or not leads or not (step % self.every == 0 or step == 1) or not self._is_due(""):
            return
        self._gradients += (
            self._count(GRADIENTS + name, parameter.grad, step)
            for name, parameter in self._logged()
            if parameter.grad is not None and not parameter.grad.is_sparse
        )

    def commit(self, step: int) -> None:
        """Tell the histograms of a step that is done, with the weights as they are after it, if it has any."""
        if not self._gradients:
            return
        weights = (self._count(WEIGHTS + name, parameter, step) for name, parameter in self._logged())
        self._send([*self._gradients, *weights])
        self._gradients.clear()

    def log(self, name: str, values: Any, *, step: int, leads: bool) -> None:
        """Tell the histogram of values that the script gives.

        Raises:
            TrainingError: name or step cannot be, or they are no real numbers.
        """
        if not is_name(name):
            raise TrainingError(
                f"a histogram cannot be named {name!r:.300}; give 1 to {MAX_NAME} characters of one line"
            )
        if not 0 <= step <= MAX_STEP:
            raise TrainingError(f"the histogram {name!r} was given the step {step}; give one from 0 to {MAX_STEP}")
        tensor = _as_tensor(name, values)
        if leads and self._is_due(name):
            self._send([self._count(name, tensor, step)])

    def _is_due(self, name: str) -> bool:
        now, sent_at = self.now(), self._sent_at.get(name, -math.inf)
        if now - sent_at < EVERY_S or (name not in self._sent_at and len(self._sent_at) > MAX_NAMES):
            return False  # of more names the server keeps none
        self._sent_at[name] = now
        return True

    def _logged(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """Yield the trained parameters by name: if there are very many, the largest of them."""
        if self._parameters is None:
            named = {name: one for name, one in self.model.named_parameters() if one.requires_grad and one.numel()}
            largest = set(sorted(named, key=lambda name: -named[name].numel())[:_MAX_PARAMETERS])
            self._parameters = {name: one for name, one in named.items() if name in largest}
            if len(named) > len(largest):
                what = f"the model has {len(named)} trained parameters"
                self.send(Note(message=f"{what}; histograms are logged of the {len(largest)} largest"))
        yield from self._parameters.items()

    def _count(self, name: str, values: torch.Tensor, step: int) -> TensorHistogram:
        found = spread_of(values)
        return TensorHistogram(
            name=name[:MAX_NAME],
            step=step,
            epoch=step // self.steps_per_epoch,
            at=self.now(),
            lowest=found.lowest,
            highest=found.highest,
            counts=found.counts,
            num_nan=found.num_nan,
            num_infinite=found.num_infinite,
        )

    def _send(self, histograms: Sequence[TensorHistogram]) -> None:
        for start in range(0, len(histograms), _AT_ONCE):
            self.send(Histograms(histograms=tuple(histograms[start : start + _AT_ONCE])))


def _as_tensor(name: str, values: Any) -> torch.Tensor:
    try:
        tensor = torch.as_tensor(values).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise TrainingError(
            f"the histogram {name!r} was given a {type(values).__name__}: {error}; give numbers"
        ) from error
    if tensor.is_complex() or tensor.numel() == 0:
        what = "complex numbers" if tensor.is_complex() else "no values"
        raise TrainingError(f"the histogram {name!r} was given {what}; give real numbers, one at least")
    return tensor


@torch.no_grad()
def spread_of(values: torch.Tensor, num_bins: int = NUM_BINS) -> Spread:
    """Count how values lie in equally wide bins from the lowest to the highest, as `numpy.histogram` of float64 does.

    Values that are all the same are in one bin. NaN and infinite ones are counted apart. Two passes over the values, in
    chunks, on their device; the same counts on any device.
    """
    flat = values.detach().reshape(-1)
    lowest, highest, num_nan, num_infinite = _extremes(flat)
    num_finite = flat.numel() - num_nan - num_infinite
    if num_finite == 0:
        return Spread(lowest=0.0, highest=0.0, counts=(), num_nan=num_nan, num_infinite=num_infinite)
    counts = [num_finite]
    if lowest < highest:
        inner = torch.tensor(edges(lowest, highest, num_bins)[1:-1], dtype=torch.float64, device=flat.device)
        counts = torch.stack([_bins(chunk.double(), inner) for chunk in torch.split(flat, _CHUNK)]).sum(dim=0).tolist()
    return Spread(lowest=lowest, highest=highest, counts=tuple(counts), num_nan=num_nan, num_infinite=num_infinite)


def _extremes(flat: torch.Tensor) -> tuple[float, float, int, int]:
    """Return the lowest and the highest finite value, and how many are NaN and infinite."""
    lowest, highest = (float(one) for one in torch.aminmax(flat))  # NaN if there is one
    if -MAX_MAGNITUDE <= lowest <= highest <= MAX_MAGNITUDE:
        return lowest, highest, 0, 0
    found = torch.stack([_finite_extremes(chunk.double()) for chunk in torch.split(flat, _CHUNK)]).cpu()
    num_nan, num_infinite = (int(number) for number in found[:, 2:].sum(dim=0).tolist())
    return float(found[:, 0].min()), float(found[:, 1].max()), num_nan, num_infinite


def _finite_extremes(chunk: torch.Tensor) -> torch.Tensor:
    """Return the lowest and the highest finite value, and how many are NaN and infinite; shape (4,)."""
    finite = chunk.abs() <= MAX_MAGNITUDE
    lowest = torch.where(finite, chunk, math.inf).amin()
    highest = torch.where(finite, chunk, -math.inf).amax()
    num_nan = chunk.isnan().sum()
    return torch.stack([lowest, highest, num_nan.double(), (chunk.numel() - finite.sum() - num_nan).double()])


def _bins(chunk: torch.Tensor, inner: torch.Tensor) -> torch.Tensor:
    """Return how many finite values are in each bin; `inner` are the edges between bins."""
    number, num_bins = torch.bucketize(chunk, inner, right=True), len(inner) + 1
    number = torch.where(chunk.abs() <= MAX_MAGNITUDE, number, num_bins)
    return torch.bincount(number, minlength=num_bins + 1)[:num_bins]
