"""What a person chooses for a training: its numbers, its optimizer, how its learning rate goes; and what fits.

Whoever checks what was entered and whoever builds an optimizer from it read the same two tables. It knows no torch.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final, Literal

from annotated_types import Ge, Le, MaxLen

from pliant.core.errors import Problem
from pliant.core.input import Input
from pliant.core.parameter import Real

Engine = Literal["single", "distributed", "elastic"]
"""One task; so many processes as an ordinary `torch.distributed` script has them; a job that grows and shrinks."""
ENGINES: Final[tuple[Engine, ...]] = ("single", "distributed", "elastic")


Count = Annotated[int, Input(Ge(1), Le(2**31 - 1))]
_Word = Annotated[str, Input(MaxLen(60))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperparameters:
    """The numbers of a training. None leaves a parameter of an optimizer at torch's own default."""

    learning_rate: Real = 0.01
    """At the beginning."""
    batch_size: Count = 32
    """Samples of one optimizer step, over all workers together."""
    test_batch_size: Count = 64
    """Samples that are evaluated at once."""
    epochs: Count = 10
    optimizer: _Word = "SGD"
    """SGD, Momentum, Nesterov, GradientDescent, Adam, AdamW, NAdam, RAdam, Adamax, SparseAdam, Adagrad, Adadelta,
    RMSprop, ASGD or Rprop, in letters of any case."""
    momentum: Real | None = None
    dampening: Real | None = None
    weight_decay: Real | None = None
    nesterov: bool | None = None
    beta1: Real | None = None
    beta2: Real | None = None
    epsilon: Real | None = None
    amsgrad: bool | None = None
    rho: Real | None = None
    alpha: Real | None = None
    centered: bool | None = None
    lambd: Real | None = None
    lr_decay: Real | None = None
    """Adagrad's own; not the policy's."""
    lr_policy: _Word = "fixed"  # the learning rate changes once an epoch
    """fixed, step, multistep, exp, inv, poly, sigmoid, exponential, inversetime, naturalexp, piecewise, polynomial,
    cosineannealing or reducelronplateau."""
    lr_gamma: Real | None = None
    """What the learning rate is multiplied by: a policy's gamma, decay rate or factor."""
    lr_step_size: Count | None = None
    """Epochs between two changes: a policy's step size, decay steps or period."""
    lr_power: Real | None = None
    lr_milestones: Annotated[tuple[Count, ...], Input(MaxLen(1000))] = ()
    """Epochs at which the learning rate changes, growing."""
    lr_values: Annotated[tuple[Real, ...], Input(MaxLen(1000))] = ()
    """The learning rates before, between and after the milestones; one more than those."""
    lr_end: Real | None = None
    """The lowest learning rate."""
    lr_staircase: bool | None = None
    """It changes at whole multiples of `lr_step_size` only."""
    lr_patience: Annotated[int, Input(Ge(0), Le(2**31 - 1))] | None = None
    """Epochs without a better loss before it changes."""


_BETAS: Final = frozenset({"beta1", "beta2", "epsilon"})
_ADAM: Final = _BETAS | {"weight_decay"}

OPTIMIZERS: Final[Mapping[str, frozenset[str]]] = {
    "SGD": frozenset({"momentum", "dampening", "weight_decay", "nesterov"}),
    "Momentum": frozenset({"momentum", "dampening", "weight_decay"}),
    "Nesterov": frozenset({"momentum", "weight_decay"}),
    "GradientDescent": frozenset({"weight_decay"}),
    "Adam": _ADAM | {"amsgrad"},
    "AdamW": _ADAM | {"amsgrad"},
    "NAdam": _ADAM,
    "RAdam": _ADAM,
    "Adamax": _ADAM,
    "SparseAdam": _BETAS,
    "Adagrad": frozenset({"lr_decay", "epsilon", "weight_decay"}),
    "Adadelta": frozenset({"rho", "epsilon", "weight_decay"}),
    "RMSprop": frozenset({"alpha", "momentum", "epsilon", "weight_decay", "centered"}),
    "ASGD": frozenset({"lambd", "alpha", "weight_decay"}),
    "Rprop": frozenset(),
}
"""The optimizers, each with the parameters that it has. Momentum, Nesterov and GradientDescent are forms of SGD."""

OF_TENSORFLOW: Final = ("AdagradDA", "Ftrl", "ProximalGradientDescent", "ProximalAdagrad")
"""Optimizers that people may know from there and that torch does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LrPolicy:
    """What a course of the learning rate has to be told, and what it may be told."""

    needs: frozenset[str] = frozenset()
    takes: frozenset[str] = frozenset()


def _policy(*needs: str, takes: Iterable[str] = ()) -> LrPolicy:
    return LrPolicy(needs=frozenset(needs), takes=frozenset(takes))


_DECAY: Final = _policy("lr_gamma", takes=("lr_step_size", "lr_staircase"))

LR_POLICIES: Final[Mapping[str, LrPolicy]] = {
    "fixed": _policy(),
    "step": _policy("lr_gamma", "lr_step_size"),
    "multistep": _policy("lr_gamma", "lr_milestones"),
    "exp": _policy("lr_gamma"),
    "inv": _policy("lr_gamma", "lr_power"),
    "poly": _policy("lr_power", takes=("lr_step_size",)),
    "sigmoid": _policy("lr_gamma", "lr_step_size"),
    "exponential": _DECAY,
    "inversetime": _DECAY,
    "naturalexp": _DECAY,
    "piecewise": _policy("lr_milestones", "lr_values"),
    "polynomial": _policy(takes=("lr_step_size", "lr_power", "lr_end")),
    "cosineannealing": _policy(takes=("lr_step_size", "lr_end")),
    "reducelronplateau": _policy(takes=("lr_gamma", "lr_patience", "lr_end")),
}
"""The courses of the learning rate by name."""

CONF_KEYS: Final[Mapping[str, str]] = {
    **{field.name: field.name for field in fields(Hyperparameters)},
    "learning_rate": "base_lr",
    "epochs": "epoch",
    "epsilon": "eps",
    "lr_gamma": "lr_decay_rate",
    "lr_step_size": "lr_decay_steps",
}
"""What each is called in `ps.conf`."""

_OF_OPTIMIZERS: Final = frozenset().union(*OPTIMIZERS.values())
_OF_POLICIES: Final = frozenset().union(*(policy.needs | policy.takes for policy in LR_POLICIES.values()))
_MAX_SHOWN: Final = 80


def find_optimizer(name: str) -> str | None:
    """Return the optimizer as `OPTIMIZERS` writes it, whatever the case of its letters; None if there is none."""
    return next((known for known in OPTIMIZERS if known.lower() == name.lower()), None)


def with_changes(before: Hyperparameters, changes: Mapping[str, Any]) -> Hyperparameters:
    """Return the numbers with these changes; None goes back to the default. Whether they fit is not looked at."""
    fresh = Hyperparameters()
    given = {name: getattr(fresh, name) if value is None else value for name, value in changes.items()}
    after = replace(before, **given)
    return replace(
        after, optimizer=find_optimizer(after.optimizer) or after.optimizer, lr_policy=after.lr_policy.lower()
    )


def problems_of(chosen: Hyperparameters) -> tuple[Problem, ...]:
    """Return everything that is wrong with these numbers, or that does not fit the optimizer or the policy."""
    return (*_of_numbers(chosen), *_of_optimizer(chosen), *_of_policy(chosen))


def conf_lines(chosen: Hyperparameters) -> tuple[str, ...]:
    """Return what was chosen as lines of `ps.conf`, in the order of the fields; what is left open has no line."""
    lines = []
    for field in fields(chosen):
        value = getattr(chosen, field.name)
        if value is not None and value != ():
            lines.append(f"{CONF_KEYS[field.name]}={_text(value)}")
    return tuple(lines)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(_text(one) for one in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


_ABOVE_ZERO: Final = ("learning_rate", "batch_size", "test_batch_size", "epochs", "lr_gamma", "lr_step_size", "epsilon")
_FROM_ZERO: Final = ("weight_decay", "dampening", "lambd", "alpha", "lr_decay", "lr_power", "lr_end", "lr_patience")
_BELOW_ONE: Final = ("beta1", "beta2", "momentum")


def _of_numbers(chosen: Hyperparameters) -> Iterator[Problem]:
    for name in (*_ABOVE_ZERO, *_FROM_ZERO, *_BELOW_ONE, "rho"):
        value = getattr(chosen, name)
        if value is not None and (wrong := _out_of_bounds(name, value)):
            yield Problem(field=name, message=f"{value} is {wrong}")
    if any(not (math.isfinite(rate) and rate > 0) for rate in chosen.lr_values):
        yield Problem(field="lr_values", message=f"{_show(chosen.lr_values)}: give numbers above 0")
    marks = chosen.lr_milestones
    if any(mark < 1 for mark in marks) or list(marks) != sorted(set(marks)):
        yield Problem(field="lr_milestones", message=f"{_show(marks)}: give growing numbers of epochs from 1 on")


def _out_of_bounds(name: str, value: float) -> str:
    if not math.isfinite(value):
        return "no finite number; give one"
    if name in _ABOVE_ZERO:
        return "" if value > 0 else "not above 0; give a larger one"
    if name in _FROM_ZERO:
        return "" if value >= 0 else "below 0; give 0 or more"
    if name in _BELOW_ONE:
        return "" if 0 <= value < 1 else "not from 0 to below 1; give one that is"
    return "" if 0 <= value <= 1 else "not from 0 to 1; give one that is"


def _of_optimizer(chosen: Hyperparameters) -> Iterator[Problem]:
    known = OPTIMIZERS.get(chosen.optimizer)
    if known is None:
        where = " (TensorFlow's; torch has none like it)" if chosen.optimizer in OF_TENSORFLOW else ""
        message = f"{chosen.optimizer!r:.{_MAX_SHOWN}} is no optimizer{where}; there are {', '.join(OPTIMIZERS)}"
        yield Problem(field="optimizer", message=message)
        return
    for name in _set(chosen, _OF_OPTIMIZERS - known):
        has = ", ".join(sorted(known)) or "none"
        yield Problem(field=name, message=f"{chosen.optimizer} has no such parameter (it has: {has}); leave it out")
    if (chosen.beta1 is None) != (chosen.beta2 is None):
        yield Problem(field="beta1", message="beta1 and beta2 go together; give both or neither")
    if chosen.optimizer == "SGD" and chosen.nesterov and not (chosen.momentum and not chosen.dampening):
        yield Problem(field="nesterov", message="Nesterov's form needs a momentum above 0 and no dampening; give them")
    if chosen.optimizer == "Nesterov" and chosen.momentum == 0:
        yield Problem(field="momentum", message="Nesterov's form needs a momentum above 0; give one, or leave it out")


def _of_policy(chosen: Hyperparameters) -> Iterator[Problem]:
    policy = LR_POLICIES.get(chosen.lr_policy)
    if policy is None:
        message = f"{chosen.lr_policy!r:.{_MAX_SHOWN}} is no policy; there are {', '.join(LR_POLICIES)}"
        yield Problem(field="lr_policy", message=message)
        return
    given = _set(chosen, _OF_POLICIES)
    for name in sorted(policy.needs.difference(given)):
        yield Problem(field=name, message=f"the policy {chosen.lr_policy!r} needs it; give it")
    for name in given:
        if name not in policy.needs | policy.takes:
            has = ", ".join(sorted(policy.needs | policy.takes)) or "nothing"
            yield Problem(field=name, message=f"the policy {chosen.lr_policy!r} takes {has}; leave it out")
    if chosen.lr_policy == "piecewise" and len(chosen.lr_values) != len(chosen.lr_milestones) + 1:
        message = f"{len(chosen.lr_milestones)} milestones make one part more; give so many values"
        yield Problem(field="lr_values", message=message)
    if chosen.lr_policy == "reducelronplateau" and chosen.lr_gamma is not None and chosen.lr_gamma >= 1:
        yield Problem(field="lr_gamma", message=f"{chosen.lr_gamma} would not lower it; give a factor below 1")


def _set(chosen: Hyperparameters, names: Iterable[str]) -> list[str]:
    """Return which of these were given."""
    return sorted(name for name in names if getattr(chosen, name) not in (None, ()))


def _show(value: object) -> str:
    return f"{value!r:.{_MAX_SHOWN}}"
