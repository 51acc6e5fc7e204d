"""A Keras optimizer as one of torch's: steps on the gradients that are in the parameters, and has a state."""

from collections.abc import Callable, Sequence
from typing import Any

import torch


def own_optimizer(given: Any, model: Any) -> Any:
    """Return an optimizer for a model: a copy, with its state, of one that was built for another copy of the model."""
    held = getattr(given, "_trainable_variables", None)
    mine = {id(variable) for variable in model.trainable_variables}
    if not getattr(given, "built", False) or not held or {id(variable) for variable in held} == mine:
        return given
    copied = type(given).from_config(given.get_config())
    copied.build(model.trainable_variables)
    for variable, before in zip(copied.variables, given.variables, strict=True):
        variable.assign(before.value)
    return copied


class KerasOptimizer(torch.optim.Optimizer):
    """Steps with a Keras optimizer, whose clipping, constraints and schedules are those of Keras.

    Args:
        optimizer: of Keras; built for the variables if it is not yet.
        variables: those of the model that are trained.
    """

    def __init__(self, optimizer: Any, variables: Sequence[Any]) -> None:
        if not optimizer.built:
            optimizer.build(variables)
        super().__init__([variable.value for variable in variables], {})
        self.keras = optimizer
        self._variables = list(variables)

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Apply the gradients; variables without one stay as they are."""
        assert closure is None, "the engine gives none"
        found = [one for one in self._variables if one.value.grad is not None]
        if found:
            with torch.no_grad():
                self.keras.apply([one.value.grad for one in found], found)

    def state_dict(self) -> dict[str, Any]:
        """Return the optimizer's variables, by their paths: the step, the learning rate, moments."""
        return {"variables": {path: variable.value.detach() for path, variable in self._by_path().items()}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the optimizer's variables.

        Raises:
            ValueError: they are those of another optimizer.
        """
        mine, given = self._by_path(), state_dict["variables"]
        if mine.keys() != given.keys():
            differing = sorted(mine.keys() ^ given.keys())
            raise ValueError(f"the optimizer {self.keras.name} has other variables: {', '.join(differing[:5])}")
        for path, variable in mine.items():
            variable.assign(given[path])

    def _by_path(self) -> dict[str, Any]:
        return {f"{number} {variable.path}": variable for number, variable in enumerate(self.keras.variables)}
