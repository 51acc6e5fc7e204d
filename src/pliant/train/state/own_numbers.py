"""A state that another training has had, with the numbers of this one: learning rate, momentum, weight decay …

A checkpoint holds the numbers that the optimizers of its own training were built with, in their parameter groups. A
child of a population begins from the state of another trial, to train on with other numbers: those that its script gave
its optimizers.

    parent   lr 0.02, built with 0.1 (a schedule is at a fifth)      momentum 0.9
    child    built with 0.05                                         momentum 0.8
    result   lr 0.01, built with 0.05                                momentum 0.8

Of schedulers the learning rates that they began with are the child's; where they are, and all other numbers of theirs
(`gamma`, `T_max`), are the parent's: their state does not tell the one from the other.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard

import torch

from pliant.train.state.shared import OF_ANOTHER, SharedState

_INITIAL: Final = "initial_lr"
"""What schedulers note in a group: the learning rate that it was built with."""
_BASES: Final = "base_lrs"
_LAST: Final = "_last_lr"


def with_own_numbers(saved: Mapping[str, Any], state: SharedState) -> dict[str, Any]:
    """Return a captured state with the numbers of the training that goes on from it.

    Args:
        saved: as it was captured; not changed.
        state: as the script of that training has built it. What does not fit stays as it was saved: loading it says
            what is wrong.

    The returned state says that it is another training's (`OF_ANOTHER`).
    """
    own = state.capture(step=0, epoch=0)
    optimizers = {
        name: _with_groups(one, own["optimizers"][name]) if name in own["optimizers"] else one
        for name, one in saved["optimizers"].items()
    }
    extras = {name: _with_bases(one, own["extras"].get(name)) for name, one in saved["extras"].items()}
    return {**saved, "optimizers": optimizers, "extras": extras, OF_ANOTHER: True}


def _with_groups(saved: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    was, now = saved.get("param_groups"), own.get("param_groups")
    if not (_is_list(was) and _is_list(now) and len(was) == len(now)):
        return saved
    return {**saved, "param_groups": [_with_numbers(*pair) for pair in zip(was, now, strict=True)]}


def _with_numbers(saved: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {name: value for name, value in own.items() if name != "params" and _is_plain(value)}
    first = saved.get(_INITIAL)
    if first is not None and "lr" in saved and "lr" in own:
        numbers["lr"] = _scaled(saved["lr"], own.get(_INITIAL, own["lr"]), first, otherwise=own["lr"])
    return {**saved, **numbers}


def _with_bases(saved: Any, own: Any) -> Any:
    """Return the state of a scheduler, or of what holds some, with the learning rates that its own began with."""
    if isinstance(saved, Mapping) and isinstance(own, Mapping):
        state = {name: _with_bases(value, own.get(name)) for name, value in saved.items()}
        was, now = saved.get(_BASES), own.get(_BASES)
        if _is_list(was) and _is_list(now) and len(was) == len(now):
            state[_BASES] = now
            last = saved.get(_LAST)
            if _is_list(last) and len(last) == len(now):
                triples = zip(last, now, was, strict=True)
                state[_LAST] = [_scaled(lr, base, before, otherwise=lr) for lr, base, before in triples]
        return state
    if isinstance(saved, list) and _is_list(own) and len(saved) == len(own):
        return [_with_bases(*pair) for pair in zip(saved, own, strict=True)]
    return saved


def _scaled(value: Any, own: Any, saved: Any, *, otherwise: Any) -> Any:
    """Return a learning rate in the scale of another first one; the same bits if the first ones are equal."""
    if float(saved) == float(own):
        return value
    return value * (float(own) / float(saved)) if float(saved) else otherwise


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, torch.Tensor):
        return value.numel() == 1
    return value is None or isinstance(value, bool | int | float | str)


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str)
