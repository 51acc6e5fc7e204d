"""What a library other than PyTorch brings of its own to a training of `FabricModel`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch


class Events(Protocol):
    """Hears how far the training is, as one of the callbacks."""

    def bind(self, run: Any) -> None:
        """Take the run."""

    def count(self) -> None:
        """Take note that steps may have been committed."""

    def note_validation(self, values: Mapping[str, float]) -> None:
        """Take in the means over the test set."""

    @property
    def has_stopped(self) -> bool:
        """The training is to end with this epoch."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """How the models of a library are computed, ordered, saved and loaded."""

    name: str
    """As the log says it."""
    model: Any
    """The library's own, which callbacks get."""
    measure: Callable[[Any], tuple[torch.Tensor, Mapping[str, Any]]]
    """Loss and metrics of a batch, means over its samples."""
    order: Callable[[int], Iterable[int]] | None
    """Of the samples in an epoch, if the data set wants one."""
    events: Events
    save: Callable[[Path], None]
    """Writes the trained model into a folder as the library has it."""
    load: Callable[[Path], bool]
    """Loads first weights from a file, if it is one of the library's."""
