"""The courses of the learning rate that a person can choose, as torch's schedulers that are stepped once an epoch.

Their formulas are those of Caffe (step, exp, inv, poly, sigmoid, multistep) and of TensorFlow (exponential,
inversetime, naturalexp, piecewise, polynomial); cosineannealing and reducelronplateau are torch's own.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LRScheduler,
    MultiStepLR,
    ReduceLROnPlateau,
    StepLR,
)

from pliant.ibm.modules.pth_settings import FILE_NAME, bad, flag, number, numbers

Found = Mapping[str, str]
Make = Callable[[torch.optim.Optimizer, Found], LRScheduler]


def schedule(optimizer: torch.optim.Optimizer, found: Found) -> LRScheduler:
    """Return the schedule that `lr_policy` names.

    Raises:
        InvalidInput: there is none of that name, or what it takes is wrong.
        NotFound: something that it needs is not said.
    """
    policy = found.get("lr_policy", "fixed").lower()
    make = _MAKE.get(policy)
    if make is None:
        raise bad("lr_policy", f"{FILE_NAME} says {policy!r}; known are {', '.join(_MAKE)}")
    return make(optimizer, found)


def _scale_by(factor: Callable[[Found], Callable[[int], float]]) -> Make:
    """Return what makes a schedule that multiplies the first learning rate by a function of the epoch."""
    return lambda optimizer, found: LambdaLR(optimizer, factor(found))


def _fixed(_: Found) -> Callable[[int], float]:
    return lambda _: 1.0


def _inv(found: Found) -> Callable[[int], float]:
    gamma, power = _rate(found), number(float, found, "lr_power")
    return lambda epoch: float((1 + gamma * epoch) ** -power)


def _poly(found: Found) -> Callable[[int], float]:
    power, period = number(float, found, "lr_power"), _period(found)
    return lambda epoch: float((1 - min(epoch, period) / period) ** power)


def _sigmoid(found: Found) -> Callable[[int], float]:
    gamma, middle = _rate(found), _steps(found)
    return lambda epoch: 1 / (1 + math.exp(-gamma * (epoch - middle)))


def _exponential(found: Found) -> Callable[[int], float]:
    rate, passed = _rate(found), _passed(found)
    return lambda epoch: float(rate ** passed(epoch))


def _inversetime(found: Found) -> Callable[[int], float]:
    rate, passed = _rate(found), _passed(found)
    return lambda epoch: 1 / (1 + rate * passed(epoch))


def _naturalexp(found: Found) -> Callable[[int], float]:
    rate, passed = _rate(found), _passed(found)
    return lambda epoch: math.exp(-rate * passed(epoch))


def _piecewise(optimizer: torch.optim.Optimizer, found: Found) -> LRScheduler:
    marks, values = numbers(int, found, "lr_milestones"), numbers(float, found, "lr_values")
    if len(values) != len(marks) + 1:
        raise bad("lr_values", f"{len(marks)} milestones make {len(marks) + 1} parts, and it has {len(values)} values")
    first = number(float, found, "base_lr")
    return LambdaLR(optimizer, lambda epoch: values[bisect_right(marks, epoch)] / first)


def _polynomial(optimizer: torch.optim.Optimizer, found: Found) -> LRScheduler:
    first, end, period = number(float, found, "base_lr"), _end(found), _period(found)
    power = number(float, found, "lr_power") if "lr_power" in found else 1.0

    def factor(epoch: int) -> float:
        return float(((first - end) * (1 - min(epoch, period) / period) ** power + end) / first)

    return LambdaLR(optimizer, factor)


def _plateau(optimizer: torch.optim.Optimizer, found: Found) -> LRScheduler:
    given: dict[str, Any] = {"min_lr": _end(found)}
    if "lr_decay_rate" in found:
        given["factor"] = _rate(found)
    if "lr_patience" in found:
        given["patience"] = number(int, found, "lr_patience")
    return ReduceLROnPlateau(optimizer, **given)


_MAKE: Final[Mapping[str, Make]] = {
    "fixed": _scale_by(_fixed),
    "step": lambda optimizer, found: StepLR(optimizer, step_size=_steps(found), gamma=_rate(found)),
    "multistep": lambda optimizer, found: MultiStepLR(
        optimizer, milestones=numbers(int, found, "lr_milestones"), gamma=_rate(found)
    ),
    "exp": lambda optimizer, found: ExponentialLR(optimizer, gamma=_rate(found)),
    "inv": _scale_by(_inv),
    "poly": _scale_by(_poly),
    "sigmoid": _scale_by(_sigmoid),
    "exponential": _scale_by(_exponential),
    "inversetime": _scale_by(_inversetime),
    "naturalexp": _scale_by(_naturalexp),
    "piecewise": _piecewise,
    "polynomial": _polynomial,
    "cosineannealing": lambda optimizer, found: CosineAnnealingLR(optimizer, T_max=_period(found), eta_min=_end(found)),
    "reducelronplateau": _plateau,
}


def _rate(found: Found) -> float:
    return number(float, found, "lr_decay_rate")


def _steps(found: Found) -> int:
    return number(int, found, "lr_decay_steps")


def _period(found: Found) -> int:
    """Return over how many epochs it runs: what is said, or else the whole training."""
    return _steps(found) if "lr_decay_steps" in found else number(int, found, "epoch")


def _end(found: Found) -> float:
    return number(float, found, "lr_end") if "lr_end" in found else 0.0


def _passed(found: Found) -> Callable[[int], float]:
    """Return the function that tells how many steps of the decay an epoch is after."""
    steps = _steps(found) if "lr_decay_steps" in found else 1
    return (lambda epoch: float(epoch // steps)) if flag(found, "lr_staircase") else (lambda epoch: epoch / steps)
