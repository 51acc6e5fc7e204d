"""Control elements of a step: numbers of the host, and numbers on a GPU that the host reads without standing still.

`float(tensor)` waits until the device has done all that it was given. Asked for after a backward pass, the loss would
keep the host from starting the optimizer as long as the device computes gradients, and the device would then stand
still until the host has caught up. So a copy is queued behind the forward pass, and an event behind the copy; `finish`
waits for that event alone. What a number is multiplied by is multiplied on the host: every operation that a device is
given takes the host tens of microseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Weighed:
    """A number on a device, and what it is multiplied by."""

    value: torch.Tensor
    """Shape (), float32."""
    weight: float

    def product(self) -> torch.Tensor:
        return self.value * self.weight


Element = float | torch.Tensor | Weighed


class Readout:
    """Reads the elements of one step after the other."""

    def __init__(self) -> None:
        self._copied: list[torch.Tensor] = []
        self._copies: list[torch.Tensor] = []
        """Places in memory that a GPU writes to by itself; used again at every step."""
        self._is_done: torch.cuda.Event | None = None

    def start(self, elements: Sequence[Element]) -> None:
        """Queue the copies of those on a GPU (on the first one's, if there are several); drop what was not finished."""
        values = [_value(one) for one in elements if not isinstance(one, float)]
        on_gpu = [value for value in values if value.is_cuda]
        self._copied = [value for value in on_gpu if value.device == on_gpu[0].device]
        if not self._copied:
            return
        if self._is_done is None or len(self._copies) < len(self._copied):
            self._copies = list(torch.empty(len(elements), pin_memory=True))
            self._is_done = torch.cuda.Event()  # type: ignore[no-untyped-call]
        for copy, value in zip(self._copies, self._copied, strict=False):
            copy.copy_(value, non_blocking=True)
        self._is_done.record(torch.cuda.current_stream(on_gpu[0].device))

    def finish(self, elements: Sequence[Element]) -> list[float]:
        """Return all as numbers; those that `start` was not given, or did not copy, are waited for as `float` does."""
        copied, self._copied = self._copied, []
        if copied:
            assert self._is_done is not None
            self._is_done.synchronize()
        numbers = {id(value): copy.item() for value, copy in zip(copied, self._copies, strict=False)}
        return [one if isinstance(one, float) else _number(one, numbers) for one in elements]


def _value(element: torch.Tensor | Weighed) -> torch.Tensor:
    return element.value if isinstance(element, Weighed) else element


def _number(element: torch.Tensor | Weighed, copied: dict[int, float]) -> float:
    value = _value(element)
    number = copied.get(id(value))
    if number is None:
        number = float(value)
    return number * element.weight if isinstance(element, Weighed) else number
