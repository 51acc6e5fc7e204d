"""What was entered for a training of a model, as the files that its code reads; and the values of a trial among it.

`ps.conf` holds the hyperparameters line by line, as IBM has them; `parameters.json` holds all that was entered:

    {"hyperparameters": {"learning_rate": 0.01, "optimizer": "SGD", ...}, "parameters": {"width": 64}, ...}

A trial's value called like a hyperparameter is that one, every other one is a parameter of the template's own. If a
trial has an optimizer or a policy, what was entered for another one is left out: the momentum of SGD is none of Adam's.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, Final

from pliant.core.errors import Problem
from pliant.core.hyperparameters import (
    LR_POLICIES,
    OPTIMIZERS,
    Hyperparameters,
    conf_lines,
    find_optimizer,
    problems_of,
    with_changes,
)
from pliant.core.space import Values

PS_CONF: Final = "ps.conf"
PARAMETERS: Final = "parameters.json"
"""Everything, with the template's own parameters, as JSON."""
NUMBERS: Final = frozenset(one.name for one in fields(Hyperparameters))
"""The names of the hyperparameters."""
_DEFAULTS: Final[Mapping[str, object]] = asdict(Hyperparameters())
WHOLE: Final = frozenset({"batch_size", "test_batch_size", "epochs", "lr_step_size", "lr_patience"})
FLAGS: Final = frozenset({"nesterov", "amsgrad", "centered", "lr_staircase"})
WORDS: Final = frozenset({"optimizer", "lr_policy"})
LISTS: Final = frozenset({"lr_milestones", "lr_values"})
_LARGEST: Final = 2**53
_MAX_SHOWN: Final = 80


def files_of(entered: Mapping[str, Any]) -> Mapping[str, bytes]:
    """Return the files that tell code what was entered, by name; the same gives the same bytes."""
    chosen = Hyperparameters(**entered["hyperparameters"])
    lines = ("# What was entered for this training; Pliant wrote it.", *conf_lines(chosen))
    text = json.dumps({**entered, "hyperparameters": asdict(chosen)}, indent=2, ensure_ascii=False, sort_keys=True)
    return {PS_CONF: "".join(f"{line}\n" for line in lines).encode(), PARAMETERS: f"{text}\n".encode()}


def split(values: Values) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of a trial that are hyperparameters, and those of the template's own parameters."""
    mine = {name: value for name, value in values.items() if name in NUMBERS}
    return mine, {name: value for name, value in values.items() if name not in NUMBERS}


def changes_of(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return what hyperparameters of a trial change, with None for all that does not belong to what it has chosen."""
    gone: set[str] = set()
    if "optimizer" in numbers:
        known = OPTIMIZERS.get(find_optimizer(str(numbers["optimizer"])) or "", frozenset())
        gone |= frozenset().union(*OPTIMIZERS.values()) - known
    if "lr_policy" in numbers and (policy := LR_POLICIES.get(str(numbers["lr_policy"]).lower())) is not None:
        gone |= frozenset().union(*(one.needs | one.takes for one in LR_POLICIES.values()))
        gone -= policy.needs | policy.takes
    return {
        **dict.fromkeys(sorted(gone - numbers.keys())),
        **{name: _plain(name, one) for name, one in numbers.items()},
    }


def with_values(entered: Mapping[str, Any], values: Values) -> tuple[Mapping[str, Any], tuple[Problem, ...]]:
    """Return what was entered with the values of a trial in its place, and everything that is wrong with that."""
    before, own_before = entered.get("hyperparameters"), entered.get("parameters")
    if not isinstance(before, Mapping) or not isinstance(own_before, Mapping):
        said = f"its {PARAMETERS} is none that tells what was entered for a training; take code that a model has run"
        return entered, (Problem(field="pass_as", message=said),)
    numbers, own = split(values)
    problems = [*_misfits({**before, **numbers}), *_unknown(own, own_before)]
    if problems:
        return entered, tuple(problems)
    entered_before = Hyperparameters(**{name: _plain(name, value) for name, value in before.items()})
    chosen = with_changes(entered_before, changes_of(numbers))
    wrong = [Problem(field=f"hyperparameters.{one.field}", message=one.message) for one in problems_of(chosen)]
    return {**entered, "hyperparameters": asdict(chosen), "parameters": {**own_before, **own}}, tuple(wrong)


def misfit(name: str, value: object) -> str:
    """Return why a value is of no kind that a hyperparameter has; empty if it may be."""
    shown = f"{value!r:.{_MAX_SHOWN}}" if not isinstance(value, int) or _is_short(value) else "a number so large"
    if name in WORDS:
        return "" if isinstance(value, str) else f"{shown} is no text; give one"
    if name in FLAGS:
        return "" if isinstance(value, bool) else f"{shown} is neither true nor false; give one of them"
    if name in LISTS:
        kind: type | tuple[type, ...] = int if name == "lr_milestones" else (int, float)
        fits = isinstance(value, list | tuple) and all(_is(one, kind) for one in value)
        return "" if fits else f"{shown} is no list of {'whole ' * (kind is int)}numbers; give one"
    if name in WHOLE:
        fits = _is(value, int) or (isinstance(value, float) and value.is_integer())
        return "" if fits else f"{shown} is no whole number; give one"
    return "" if _is(value, (int, float)) else f"{shown} is no number; give one"


def _misfits(numbers: Mapping[str, object]) -> Iterator[Problem]:
    for name, value in numbers.items():
        if name not in NUMBERS:
            message = f"there is no such hyperparameter; there are {', '.join(sorted(NUMBERS))}"
            yield Problem(field=f"hyperparameters.{name}"[:200], message=message)
        elif (value is not None or _DEFAULTS[name] is not None) and (message := misfit(name, value)):
            yield Problem(field=f"hyperparameters.{name}", message=message)


def _unknown(own: Mapping[str, object], there: Mapping[str, object]) -> Iterator[Problem]:
    names = ", ".join(there) or "none"
    for name in own.keys() - there.keys():
        message = f"the template has no such parameter (it has: {names:.1000}); leave it out"
        yield Problem(field=f"parameters.{name}"[:200], message=message)


def _is(value: object, kind: type | tuple[type, ...]) -> bool:
    """Tell whether a value is a number of this kind, and none that has no end."""
    return isinstance(value, kind) and not isinstance(value, bool) and (isinstance(value, float) or _is_short(value))


def _is_short(value: object) -> bool:
    return isinstance(value, int) and abs(value) <= _LARGEST


def _plain(name: str, value: Any) -> Any:
    """Return a value as the noun has it: lists as tuples, and 8 for 8.0 where a number is whole."""
    if isinstance(value, list):
        return tuple(value)
    return int(value) if name in WHOLE and isinstance(value, float) else value
