"""A Keras model as the engine wants a module: what is trained are parameters, all other variables are buffers.

The tensors are those of the model itself. Seeds of random layers are not part of it: they are drawn anew before every
forward pass, from torch's generator, which the engine seeds for every part of a step.
"""

import importlib
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, Self

import torch
from torch import nn

_SEED: Final = "seed_generator_state"
"""The name that Keras gives the variable of every seed generator."""
_MAX_SEED: Final = 2**31 - 1
_NUMBER: Final = re.compile(r"_\d+$")


class KerasModule(nn.Module):
    """A Keras model that has its variables; `module(inputs)` calls it in the module's mode.

    `state_dict` has the weights by their layers' names, such as `dense/kernel` and `dense_1/kernel`.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._held = (model,)  # in a tuple, so that it is not registered: it has the same tensors under other names
        self.trained = list(model.trainable_variables)
        names = _Names(model)
        for variable in self.trained:
            self.register_parameter(names.of(variable), variable.value)
        trained = {id(variable) for variable in self.trained}
        for variable in model.weights:
            if id(variable) not in trained:
                self.register_buffer(names.of(variable), variable.value.detach())
        self._seeds = [variable for variable in model.variables if variable.name == _SEED]
        self._seeds.append(importlib.import_module("keras.src.random.seed_generator").global_seed_generator().state)

    @property
    def model(self) -> Any:
        """The Keras model."""
        return self._held[0]

    def forward(self, inputs: Any) -> Any:
        """Return the model's outputs; random layers draw other numbers with every state of torch's generator."""
        for variable, seed in zip(self._seeds, torch.randint(_MAX_SEED, (len(self._seeds),)).tolist(), strict=True):
            variable.assign([seed, 0])
        if self.model._call_has_training_arg:
            return self.model(inputs, training=self.training)
        return self.model(inputs)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        """Stay where Keras has put the variables, which is a GPU if there is one."""
        del fn, recurse
        return self


class _Names:
    """Gives variables names that torch accepts, each once: that of their layer without its number, and their own.

    Layers of one name are numbered in the order in which the model has them. So the names are the same for a model that
    was loaded, or made after others: Keras' own paths are not.
    """

    def __init__(self, model: Any) -> None:
        self._owner: dict[int, str] = {}
        labels: set[str] = set()
        for layer in model._flatten_layers():
            label = _unused(_NUMBER.sub("", layer.name.replace(".", "_")) or layer.name, labels, "_", 1)
            labels.add(label)
            self._owner.update({id(variable): label for variable in layer.weights})  # the innermost comes last
        self._taken: set[str] = set()

    def of(self, variable: Any) -> str:
        """Return the name of a variable of the model."""
        name = _unused(f"{self._owner[id(variable)]}/{variable.name.replace('.', '_')}", self._taken, "#", 2)
        self._taken.add(name)
        return name


def _unused(name: str, taken: set[str], sign: str, number: int) -> str:
    """Return the name, with a number behind it if it is taken."""
    found = name
    while found in taken:
        found, number = f"{name}{sign}{number}", number + 1
    return found


def flatten(tree: Any) -> Iterable[Any]:
    """Yield the leaves of nested lists, tuples and dicts."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        for one in tree:
            yield from flatten(one)
    else:
        yield tree
