"""A Keras optimizer as one of torch's: steps on the gradients that are in the parameters, and has a state."""

from collections.abc import Callable, Sequence
from typing import Any

import torch


def own_optimizer(given: Any, model: Any) -> Any:
    """Return an optimizer for a model: with its state, if it was built for another copy of the model."""
    values = getattr(given, "sent_values", None)
    if values:
        del given.sent_values
        return _with_state(given, model, values)
    held = getattr(given, "_trainable_variables", None)
    mine = {id(variable) for variable in model.trainable_variables}
    if not getattr(given, "built", False) or not held or {id(variable) for variable in held} == mine:
        return given
    copied = type(given).from_config(given.get_config())
    return _with_state(copied, model, [variable.value for variable in given.variables])


def _with_state(optimizer: Any, model: Any, values: Sequence[torch.Tensor]) -> Any:
    optimizer.build(model.trainable_variables)
    for variable, value in zip(optimizer.variables, values, strict=True):
        variable.assign(value)
    return optimizer


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
        """Return the optimizer's variables in their order: the step, the learning rate, moments."""
        return {"variables": [variable.value.detach() for variable in self.keras.variables]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the optimizer's variables.

        Raises:
            ValueError: they are those of another optimizer.
        """
        mine, given = self.keras.variables, state_dict["variables"]
        if [tuple(variable.shape) for variable in mine] != [tuple(value.shape) for value in given]:
            kind = type(self.keras).__name__
            raise ValueError(f"{kind} has {len(mine)} variables here, and the saved optimizer others, {len(given)}")
        for variable, value in zip(mine, given, strict=True):
            variable.assign(value)
