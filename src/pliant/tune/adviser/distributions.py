"""A search's parameters as Optuna has them, and values from one form to the other.

Optuna gets the position of a choice, never the choice itself: it takes 1, 1.0 and true for the same, and wants no
lists. Which position it chooses does not depend on what the choices are.
"""

from collections.abc import Mapping
from typing import Any, Final

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import Trial as OptunaTrial

from pliant.core.space import SearchParameter, Space, Value, Values
from pliant.tune.advice import AdviserFailure


class Distributions:
    """Every parameter that is chosen, in the order in which it is."""

    def __init__(self, space: Space) -> None:
        self._space: Final = space
        self._chosen: Final = {name: distribution_of(one) for name, one in space.items() if one.kind != "fixed"}

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that are chosen; not those that are fixed."""
        return tuple(self._chosen)

    def suggest(self, trial: OptunaTrial) -> dict[str, Value]:
        """Have all values chosen, those whose condition holds, in the order of the parameters."""
        values: dict[str, Value] = {}
        for name, parameter in self._space.items():
            if _holds(parameter, values):
                values[name] = parameter.value if parameter.kind == "fixed" else self._suggested(trial, name)
        return values

    def internal(self, values: Values) -> tuple[dict[str, Any], dict[str, BaseDistribution]]:
        """Return a trial's values as Optuna keeps them, and what each was chosen from, in the order of the parameters.

        Raises:
            AdviserFailure: a parameter cannot have such a value.
        """
        there = [name for name in self._chosen if name in values]
        params = {name: self._internal(name, values[name]) for name in there}
        return params, {name: self._chosen[name] for name in there}

    def enqueued(self, given: Values) -> dict[str, Any]:
        """Return values that somebody wants as Optuna keeps them, without those that are fixed.

        Raises:
            AdviserFailure: there is no such parameter, or it cannot have the value.
        """
        for name, value in given.items():
            if name not in self._space:
                raise AdviserFailure(f"{name!r:.80} is given, but no parameter is called so")
            parameter = self._space[name]
            if parameter.kind == "fixed" and not _same(parameter.value, value):
                raise AdviserFailure(f"{name}={value!r:.80} is given, but it is fixed to {parameter.value!r:.80}")
        return {name: self._internal(name, value) for name, value in given.items() if name in self._chosen}

    def _internal(self, name: str, value: Value) -> Any:
        parameter, distribution = self._space[name], self._chosen[name]
        if parameter.kind == "choice":
            place = next((i for i, one in enumerate(parameter.choices) if _same(one, value)), None)
            if place is None:
                raise AdviserFailure(f"{name} cannot be {value!r:.80}: it is not among its choices")
            return place
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise AdviserFailure(f"{name} cannot be {value!r:.80}: it is a number")
        number = float(value) if parameter.kind == "float" else int(value)
        if number != value or not distribution._contains(distribution.to_internal_repr(number)):
            raise AdviserFailure(f"{name} cannot be {value!r:.80}: it is none of its values")
        return number

    def _suggested(self, trial: OptunaTrial, name: str) -> Value:
        match self._chosen[name]:
            case FloatDistribution(low=low, high=high, step=step, log=log):
                return float(trial.suggest_float(name, low, high, step=step, log=log))
            case IntDistribution(low=low, high=high, step=step, log=log):
                return int(trial.suggest_int(name, low, high, step=step, log=log))
            case CategoricalDistribution(choices=places):
                return self._space[name].choices[int(trial.suggest_categorical(name, places))]  # type: ignore[arg-type]
            case other:
                raise AssertionError(f"no parameter is a {other}")


def distribution_of(parameter: SearchParameter) -> BaseDistribution:
    if parameter.kind == "choice":
        return CategoricalDistribution(tuple(range(len(parameter.choices))))
    low, high = parameter.low, parameter.high
    assert low is not None, "a parameter of numbers has a lowest value"
    assert high is not None, "a parameter of numbers has a highest value"
    if parameter.kind == "float":
        step = None if parameter.step is None else float(parameter.step)
        return FloatDistribution(float(low), float(high), log=parameter.log, step=step)
    return IntDistribution(int(low), int(high), log=parameter.log, step=int(parameter.step or 1))


def _holds(parameter: SearchParameter, values: Mapping[str, Value]) -> bool:
    """Tell whether a parameter is there, after those before it have their values."""
    return all(
        name in values and any(_same(one, values[name]) for one in among) for name, among in parameter.when.items()
    )


def _same(one: Value, other: Value) -> bool:
    """Tell whether two values are the same to a script: true is not 1, and the order in a list counts."""
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    return isinstance(one, bool) == isinstance(other, bool) and one == other
