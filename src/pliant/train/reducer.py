"""Gradients in flat buffers, summed over the members of a generation in one go.

Gradients are accumulated straight into views of the buffers, so that nothing is copied before or after the reduction.
The tail of the float32 buffer carries the control elements of a step (pledges, loss, metrics): a step costs no
collective besides that of its gradients. Buffers of a lost generation may still be written to, so they are replaced.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from pliant.train.collectives import Group


@dataclass(slots=True)
class _Bucket:
    buffer: torch.Tensor
    views: list[torch.Tensor]
    parameters: list[torch.nn.Parameter]
    num_control: int

    def fresh(self) -> None:
        self.buffer = torch.zeros_like(self.buffer)
        self.views = _views(self.buffer, self.parameters)


class Reducer:
    """Owns the gradients of `parameters` for the length of a training.

    Args:
        parameters: those that are trained; the order must be the same in every task.
        num_control: float32 elements that travel with the gradients.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], *, num_control: int) -> None:
        unique = list(dict.fromkeys(parameters))
        control_home = unique[0].device if unique else torch.device("cpu")
        keys = dict.fromkeys([(torch.float32, control_home), *((p.dtype, p.device) for p in unique)])
        self._buckets = [
            _bucket(
                [p for p in unique if (p.dtype, p.device) == key],
                key,
                num_control if key == (torch.float32, control_home) else 0,
            )
            for key in keys
        ]
        self.num_control = num_control

    @property
    def control(self) -> torch.Tensor:
        """The control elements, shape (num_control,): mine before a reduction, the sums after it."""
        return self._buckets[0].buffer[self._buckets[0].buffer.numel() - self.num_control :]

    def zero(self) -> None:
        """Start a step: all gradients and control elements are zero."""
        for bucket in self._buckets:
            bucket.buffer.zero_()

    def release(self) -> None:
        """Take the gradients away from the parameters, so that user code may call backward on its own."""
        for bucket in self._buckets:
            for parameter in bucket.parameters:
                parameter.grad = None

    def attach(self) -> None:
        """Give every parameter its view of the buffer as `grad`: backward adds into it, the optimizer reads it."""
        for bucket in self._buckets:
            for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
                parameter.grad = view

    def take(self, weight: float) -> None:
        """Add `weight` times the gradients that user code left in the parameters, and release them."""
        for bucket in self._buckets:
            for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
                if parameter.grad is not None and parameter.grad is not view:
                    view.add_(parameter.grad.to(view.dtype), alpha=weight)
                parameter.grad = None

    def reduce(self, group: Group, *, lost: Callable[[], bool]) -> None:
        """Sum gradients and control elements over the members.

        Raises:
            GenerationLost: the buffers have been replaced by fresh ones; the step must be computed again.
        """
        completed = False
        try:
            group.all_reduce([bucket.buffer for bucket in self._buckets], lost=lost)
            completed = True
        finally:
            if not completed:
                for bucket in self._buckets:
                    bucket.fresh()


def _bucket(parameters: list[torch.nn.Parameter], key: tuple[torch.dtype, torch.device], num_control: int) -> _Bucket:
    num_elements = sum(p.numel() for p in parameters) + num_control
    buffer = torch.zeros(num_elements, dtype=key[0], device=key[1])
    return _Bucket(buffer=buffer, views=_views(buffer, parameters), parameters=parameters, num_control=num_control)


def _views(buffer: torch.Tensor, parameters: Sequence[torch.nn.Parameter]) -> list[torch.Tensor]:
    views, offset = [], 0
    for parameter in parameters:
        views.append(_view(buffer[offset : offset + parameter.numel()], parameter))
        offset += parameter.numel()
    return views


def _view(flat: torch.Tensor, parameter: torch.nn.Parameter) -> torch.Tensor:
    """Return a piece of a buffer in the parameter's shape, and in its layout if that is dense: autograd asks for it."""
    if any(
        parameter.dim() == num_dims and parameter.is_contiguous(memory_format=layout)
        for num_dims, layout in ((4, torch.channels_last), (5, torch.channels_last_3d))
    ):
        return flat.as_strided(parameter.size(), parameter.stride(), flat.storage_offset())
    return flat.view_as(parameter)
