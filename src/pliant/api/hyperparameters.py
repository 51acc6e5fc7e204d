"""What can be chosen for a training, as REST shows it to who makes a form of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pliant.api.derive import settable
from pliant.core.hyperparameters import LR_POLICIES, OPTIMIZERS, Hyperparameters

NumberKind = Literal["int", "float", "bool", "text", "ints", "floats"]
_KINDS: Mapping[Any, NumberKind] = {int: "int", float: "float", bool: "bool", str: "text"}
_LISTS: Mapping[str, NumberKind] = {"lr_milestones": "ints", "lr_values": "floats"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperparameterView:
    """One of the numbers of a training, for who makes a form of them."""

    name: str
    kind: NumberKind
    """`ints` and `floats` are lists."""
    default: bool | int | float | str | None
    """None: left open, or an empty list."""
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerView:
    """An optimizer, with the numbers that it has."""

    name: str
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LrPolicyView:
    """A course of the learning rate, with the numbers that it needs, and those that it may be given."""

    name: str
    needs: tuple[str, ...]
    takes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperparameterTables:
    """All numbers of a training, and which of them an optimizer and a course of the learning rate take."""

    numbers: tuple[HyperparameterView, ...]
    optimizers: tuple[OptimizerView, ...]
    lr_policies: tuple[LrPolicyView, ...]


def hyperparameter_tables() -> HyperparameterTables:
    """Return what can be chosen for a training, in the order in which it is declared."""
    fresh, all_numbers = Hyperparameters(), settable(Hyperparameters)
    order = [number.name for number in all_numbers]
    numbers = (
        HyperparameterView(
            name=number.name,
            kind=_LISTS.get(number.name) or _KINDS[number.type],
            default=getattr(fresh, number.name) or None,
            description=number.doc,
        )
        for number in all_numbers
    )
    optimizers = (
        OptimizerView(name=n, parameters=tuple(sorted(has, key=order.index))) for n, has in OPTIMIZERS.items()
    )
    policies = (
        LrPolicyView(
            name=name,
            needs=tuple(sorted(policy.needs, key=order.index)),
            takes=tuple(sorted(policy.takes, key=order.index)),
        )
        for name, policy in LR_POLICIES.items()
    )
    return HyperparameterTables(numbers=tuple(numbers), optimizers=tuple(optimizers), lr_policies=tuple(policies))
