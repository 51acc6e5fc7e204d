"""Hyperparameters of a model's tuning: IBM's names as Pliant's, values of the right kind, and samples of them. Pure.

{name: learningrate, type: Range, dataType: DOUBLE, ...}     learning_rate
{name: solvertype, type: Discrete, ...: [SGD, Adam]}         optimizer
{name: momentum, type: Range, ...}                           momentum, there only if the optimizer is SGD
{name: width, userDefined: true, ...}                        the template's own parameter `width`
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any, Final

from pliant.core.entered import FLAGS, NUMBERS, WHOLE
from pliant.core.errors import InvalidInput, Problem
from pliant.core.hyperparameters import LR_POLICIES, OPTIMIZERS, find_optimizer
from pliant.core.near_name import near_name
from pliant.core.parameter import Parameter
from pliant.core.space import SearchParameter, Value, Values, applies, same_as
from pliant.ibm.rest.translate.hpo.request import HpoRequest, HyperParam
from pliant.ibm.rest.translate.hyper import NAMES, read_value

_ALL_NAMES: Final[Mapping[str, str]] = {
    **NAMES,
    "batchsize": "batch_size",
    "optimizer": "optimizer",
    "epochs": "epochs",
}
_HEADS: Final = ("optimizer", "lr_policy")
_MAX_SAMPLES: Final = 4000
_TRUTH: Final = {"true": True, "false": False}
_OF_OPTIMIZERS: Final[Mapping[str, frozenset[str]]] = OPTIMIZERS
_OF_POLICIES: Final[Mapping[str, frozenset[str]]] = {
    name: policy.needs | policy.takes for name, policy in LR_POLICIES.items()
}


def names_of(request: HpoRequest, own: Sequence[Parameter]) -> Mapping[str, str]:
    """Return Pliant's names of all hyperparameters that are given, by those that were sent.

    Args:
        own: parameters of the template's.

    Raises:
        InvalidInput: with all that the model does not have, and those that it has.
    """
    theirs = {one.name for one in own}
    found: dict[str, str] = {}
    problems: dict[str, Problem] = {}
    for field, one in _given(request):
        if one.name in found or one.name in problems:
            continue
        name = one.name if one.userDefined and one.name in theirs else _ALL_NAMES.get(one.name.lower())
        if name is None and one.name in theirs:
            name = one.name
        if name is None:
            problems[one.name] = Problem(field=f"{field}.name", message=_unknown(one.name, own))
        elif name in theirs and name in NUMBERS:
            message = f"{one.name!r} is a hyperparameter and a parameter of the template's; call that one otherwise"
            problems[one.name] = Problem(field=f"{field}.name", message=message)
        elif name in found.values():
            other = next(sent for sent, ours in found.items() if ours == name)
            message = f"{one.name!r} is the same as {other!r}; give one of them"
            problems[one.name] = Problem(field=f"{field}.name", message=message)
        else:
            found[one.name] = name
    if problems:
        raise InvalidInput(*problems.values())
    return found


def _given(request: HpoRequest) -> Iterator[tuple[str, HyperParam]]:
    for place, one in enumerate(request.hyperParams):
        yield f"hyperParams.{place}", one
    for number, experiment in enumerate(request.experiments):
        for place, one in enumerate(experiment.hyperParams):
            yield f"experiments.{number}.hyperParams.{place}", one


def _unknown(name: str, own: Sequence[Parameter]) -> str:
    there = [*dict.fromkeys((*NAMES, "batchsize")), *(one.name for one in own)]
    near = near_name(name, there)
    meant = f"; is {near!r} meant?" if near else ""
    return f"the model has no hyperparameter {name!r:.80}; it has {', '.join(there)}{meant}"


def kinds_of(request: HpoRequest, names: Mapping[str, str], own: Sequence[Parameter]) -> Iterator[Problem]:
    """Yield which ranges are of numbers that are no whole ones where the hyperparameter is."""
    whole = {*WHOLE, *(one.name for one in own if one.kind == "int")}
    for place, one in enumerate(request.hyperParams):
        is_real = one.type.strip().lower() == "range" and one.dataType.strip().lower() == "double"
        if is_real and names.get(one.name) in whole:
            message = f"of {one.name!r:.60}: it is a whole number; give INT, with minIntVal and maxIntVal"
            yield Problem(field=f"hyperParams.{place}.dataType", message=message)


def to_model_space(
    space: Mapping[str, SearchParameter], names: Mapping[str, str], own: Sequence[Parameter], *, conditional: bool
) -> dict[str, SearchParameter]:
    """Return what may be chosen by Pliant's names, with values as a training has them.

    Args:
        conditional: what an optimizer or a policy does not have is not chosen with it.
    """
    read = {
        names.get(name, name): replace(
            one,
            choices=_distinct(read_own(names.get(name, name), value, own) for value in one.choices),
            value=read_own(names.get(name, name), one.value, own),
        )
        for name, one in space.items()
    }
    ordered = {name: read[name] for name in (*(head for head in _HEADS if head in read), *read)}
    return {name: _conditional(name, one, ordered) for name, one in ordered.items()} if conditional else ordered


def read_own(name: str, value: Value, own: Sequence[Parameter]) -> Value:
    """Return the value of a hyperparameter, by Pliant's name, as a training has it."""
    kinds = {one.name: one.kind for one in own}
    if isinstance(value, str) and (name in FLAGS or kinds.get(name) == "bool"):
        return _TRUTH.get(value.lower(), value)
    if isinstance(value, float) and value.is_integer() and kinds.get(name) == "int":
        return int(value)
    if name not in NUMBERS or value is None:
        return value
    found: Any = read_value(name, value)
    if name == "optimizer":
        return find_optimizer(found) or str(found)
    if name == "lr_policy":
        return str(found).lower()
    return tuple(found) if isinstance(found, list) else found


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple({same_as(value): value for value in values}.values())


def _conditional(name: str, one: SearchParameter, space: Mapping[str, SearchParameter]) -> SearchParameter:
    """Return a parameter that is there only with what has it; as it is if all do, or none: that is told later."""
    when = {}
    for head, table in zip(_HEADS, (_OF_OPTIMIZERS, _OF_POLICIES), strict=True):
        if head not in space or name not in frozenset().union(*table.values()) or name == head:
            continue
        values = [str(value) for value in _candidates(space[head])]
        having = tuple(value for value in values if name in table.get(value, ()))
        if having and len(having) < len(values):
            when[head] = having
    return replace(one, when=when) if when else one


def samples_of(space: Mapping[str, SearchParameter], enqueued: Sequence[Values]) -> Iterator[Values]:
    """Yield values that a trial may have: those that are given; or every bound and choice, with all optimizers."""
    if enqueued:
        yield from enqueued
        return
    heads = [name for name in _HEADS if name in space]
    rest = {name: _candidates(one) for name, one in space.items() if name not in heads}
    num = max((len(values) for values in rest.values()), default=1)
    every = product(*(_candidates(space[head]) for head in heads), range(num))
    for *chosen, turn in islice(every, _MAX_SAMPLES):
        values = dict(zip(heads, chosen, strict=True))
        values |= {name: known[turn % len(known)] for name, known in rest.items() if applies(space[name], values)}
        yield values


def _candidates(one: SearchParameter) -> Sequence[Any]:
    match one.kind:
        case "choice":
            return one.choices
        case "fixed":
            return (one.value,)
        case "int" | "float":
            return [int(bound) if one.kind == "int" else bound for bound in (one.low, one.high) if bound is not None]
