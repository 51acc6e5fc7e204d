"""Refuses a script that carries the state of an RNN from one batch to the next.

The parts of a batch are computed one after the other, by whichever task: what a variable of the script holds from the
part before is the state of other samples, and which ones depends on the number of tasks. Nobody would see it.

The look is at the first two parts of every task: what `torch.nn.RNN`, `LSTM` and `GRU` modules give in the first must
come in again in the second. It is told by the memory of a tensor, so `detach` does not hide it, and `clone` does.
"""

from collections.abc import Mapping
from typing import Any, Final

import torch

from pliant.train.errors import TrainingError
from pliant.train.state.pytree import place

_NUM_PARTS: Final = 2


class CarriedState:
    """Watches the RNNs of a model while a task computes its first parts; does nothing after them."""

    def __init__(self, model: torch.nn.Module, *, is_enabled: bool) -> None:
        self._modules = {
            name: module
            for name, module in model.named_modules()
            if is_enabled and isinstance(module, torch.nn.RNNBase)
        }
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []
        self._num_left = _NUM_PARTS if self._modules else 0
        self._before: dict[int, torch.Tensor] = {}
        """What came out in the part before, by its place in memory, which is not used again as long as it is here."""
        self._now: dict[int, torch.Tensor] = {}

    def begin_part(self) -> None:
        """Watch from here on."""
        if self._num_left == 0:
            return
        self._now.clear()
        for name, module in self._modules.items():
            self._hooks.append(module.register_forward_pre_hook(_Check(name, self._before), with_kwargs=True))
            self._hooks.append(module.register_forward_hook(self._keep))

    def end_part(self) -> None:
        """Watch no longer, until the next part."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._num_left = max(0, self._num_left - 1)
        self._before = dict(self._now) if self._num_left else {}
        self._now.clear()

    def _keep(self, _module: torch.nn.Module, _inputs: Any, output: Any) -> None:
        for tensor in _tensors(output[1]):
            self._now[place(tensor)] = tensor.detach()


class _Check:
    """Refuses a state that comes in and is known."""

    def __init__(self, name: str, known: Mapping[int, torch.Tensor]) -> None:
        self._name = name
        self._known = known

    def __call__(self, module: torch.nn.Module, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        given = inputs[1] if len(inputs) > 1 else named.get("hx")
        if any(place(tensor) in self._known for tensor in _tensors(given)):
            raise TrainingError(
                f"the state of {self._name} ({type(module).__name__}) is carried from one batch to the next; Pliant "
                f"computes the parts of a batch one after the other, in any task, so it is that of other samples. Let "
                f"every sample be a sequence of its own, whose state begins at zero (docs/recipes.md), or train with "
                f"virtual_workers=1 on one task, as a plain loop does"
            )


def _tensors(state: Any) -> list[torch.Tensor]:
    """Return the tensors of what an RNN takes and gives as its state: none, one, or two of an LSTM."""
    if isinstance(state, torch.Tensor):
        return [state]
    return [one for one in state if isinstance(one, torch.Tensor)] if isinstance(state, tuple | list) else []
