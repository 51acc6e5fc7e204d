"""Buffers that a forward pass changes, such as the running statistics of BatchNorm.

Every virtual worker starts a step from the same values, and those that the first virtual worker ends with are kept; so
DistributedDataParallel with `broadcast_buffers` keeps those of the first rank. They travel in the tail of the
gradients, which is float32. Buffers of other dtypes travel exactly, too: byte by byte if float32 cannot hold them.
"""

from collections.abc import Iterator
from typing import Final

import torch

_MAX_ELEMENTS: Final = 4096
"""A larger buffer travels only if a normalization layer has it; others should be constant, which is checked."""
_EXACT: Final = (torch.float32, torch.float16, torch.bfloat16)


class RunningBuffers:
    """The buffers of a model that travel with every step."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._carried: list[tuple[torch.nn.Module, str]] = []
        self._watched: dict[str, tuple[torch.nn.Module, str]] = {}
        for full_name, place in _places(model):
            if _travels(*place):
                self._carried.append(place)
            else:
                self._watched[full_name] = place
        self._names = {place: full_name for full_name, place in _places(model)}
        self._sizes = [_num_elements(getattr(*place)) for place in self._carried]
        self.num_elements = sum(self._sizes)
        self._at_start: list[torch.Tensor] = []
        self._versions: dict[str, tuple[int, int]] = {}

    def start(self) -> None:
        """Remember the values that every virtual worker of the step starts from."""
        if not self._carried and not self._watched:
            return
        buffers = [getattr(*place) for place in self._carried]
        if [kept.shape for kept in self._at_start] == [buffer.shape for buffer in buffers]:
            for kept, buffer in zip(self._at_start, buffers, strict=True):
                kept.copy_(buffer)
        else:
            self._at_start = [buffer.detach().clone() for buffer in buffers]
        self._versions = self._now()

    def restore(self) -> None:
        """Go back to the values of the step's start."""
        for (module, name), kept in zip(self._carried, self._at_start, strict=True):
            buffer = getattr(module, name).detach()
            if buffer.shape == kept.shape:
                buffer.copy_(kept)
            else:
                setattr(module, name, kept.clone())

    def write(self, out: torch.Tensor) -> None:
        """Put the present values into float32 elements, shape (num_elements,); skip buffers that changed their size."""
        for place, piece in zip(self._carried, torch.split(out, self._sizes), strict=True):
            buffer = getattr(*place).detach()
            if _num_elements(buffer) == len(piece):
                piece.copy_(buffer.reshape(-1) if buffer.dtype in _EXACT else _bytes(buffer))

    def read(self, values: torch.Tensor) -> None:
        """Set the values that `write` gave."""
        for place, piece in zip(self._carried, torch.split(values, self._sizes), strict=True):
            buffer = getattr(*place).detach()
            if _num_elements(buffer) != len(piece):
                continue
            if buffer.dtype in _EXACT:
                buffer.copy_(piece.view_as(buffer))
            else:
                buffer.copy_(piece.to(torch.uint8).view(buffer.dtype).view_as(buffer))

    def find_untracked_changes(self) -> list[str]:
        """Return the names of buffers that changed since `start` and did not travel: too large, or changed in size."""
        if not self._carried and not self._watched:
            return []
        grown = [
            self._names[place]
            for place, size in zip(self._carried, self._sizes, strict=True)
            if _num_elements(getattr(*place)) != size
        ]
        return grown + [name for name, version in self._now().items() if self._versions.get(name, version) != version]

    def _now(self) -> dict[str, tuple[int, int]]:
        buffers = {name: getattr(*place) for name, place in self._watched.items()}
        return {name: (id(buffer), buffer._version) for name, buffer in buffers.items()}


def unsaved_buffers(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the buffers that travel and that `state_dict` leaves out (`persistent=False`), by name."""
    return {
        name: getattr(*place)
        for name, place in _places(model)
        if _travels(*place) and place[1] in place[0]._non_persistent_buffers_set
    }


def _places(model: torch.nn.Module) -> Iterator[tuple[str, tuple[torch.nn.Module, str]]]:
    """Yield every buffer once: its full name, and the module and name that it is found by."""
    seen: set[torch.Tensor] = set()
    for prefix, module in model.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            if buffer not in seen:
                seen.add(buffer)
                yield f"{prefix}.{name}".lstrip("."), (module, name)


def _travels(module: torch.nn.Module, name: str) -> bool:
    normalizes = isinstance(module, torch.nn.modules.batchnorm._NormBase)
    return normalizes or getattr(module, name).numel() <= _MAX_ELEMENTS


def _num_elements(buffer: torch.Tensor) -> int:
    return buffer.numel() if buffer.dtype in _EXACT else buffer.nbytes


def _bytes(buffer: torch.Tensor) -> torch.Tensor:
    return buffer.contiguous().reshape(-1).view(torch.uint8)
