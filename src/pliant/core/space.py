"""What a search may choose from (`Space`): a kind and bounds for every parameter of a script.

    {"lr": {"kind": "float", "low": 1e-5, "high": 0.1, "log": true},
     "momentum": {"kind": "float", "low": 0, "high": 0.99, "step": 0.01, "when": {"opt": ["sgd"]}},
     "opt": {"kind": "choice", "choices": ["sgd", "adam"]}}

Both ends are inclusive. The order matters: a sampler chooses in it, and a condition (`when`) names earlier parameters.
"""

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from annotated_types import Ge, Le, Len, MaxLen

from pliant.core.input import FINITE, NUMBER, ONE_LINE, Input, Pattern

MAX_PARAMETERS: Final = 100
MAX_CHOICES: Final = 1000
MAX_TEXT: Final = 1000
PARAM_PREFIX: Final = "PLIANT_PARAM_"
"""The variables begin with this that tell a task of a trial its values."""

ParameterKind = Literal["float", "int", "choice", "fixed"]

ParameterName = Annotated[
    str,
    Input(
        Len(1, 60),
        Pattern(
            r"^[A-Za-z_][A-Za-z0-9_.-]*$",
            "a name of letters, digits, '_', '-' and '.', which begins with a letter or '_'",
        ),
    ),
]
Scalar = (
    bool
    | Annotated[int, Input(Ge(-(2**53)), Le(2**53))]
    | Annotated[float, Input(FINITE, NUMBER)]
    | Annotated[str, Input(MaxLen(MAX_TEXT), ONE_LINE)]
    | None
)
Value = Scalar | tuple[Scalar | tuple[Scalar, ...], ...]
"""What a parameter can be: a scalar of JSON, or a list of such; a script gets a list as JSON."""
Bound = Annotated[float, Input(FINITE, NUMBER)]


@dataclass(frozen=True, kw_only=True)
class SearchParameter:
    """What one parameter may be."""

    kind: ParameterKind
    """`float` and `int` have `low` and `high`, `choice` has `choices`, `fixed` has one value for all trials."""
    low: Bound | None = None
    """The lowest value."""
    high: Bound | None = None
    """The highest value."""
    step: Bound | None = None
    """Only `low` and what is whole steps above it; `high` has to be such a value."""
    log: bool = False
    """Choose evenly by orders of magnitude."""
    choices: Annotated[tuple[Value, ...], Input(MaxLen(MAX_CHOICES))] = ()
    """The values to choose from; they have no order."""
    value: Value = None
    """Of the kind `fixed`."""
    when: Annotated[Mapping[ParameterName, tuple[Scalar, ...]], Input(MaxLen(MAX_PARAMETERS))] = field(
        default_factory=dict
    )
    """The parameter is there only if each of these, which stand before it, has one of the values; else the script is
    not given it."""


Space = Annotated[Mapping[ParameterName, SearchParameter], Input(Len(1, MAX_PARAMETERS))]
"""Parameters by name, in the order in which they are chosen."""
Values = Mapping[str, Value]
"""What a trial was given, by the names of its parameters; those whose condition does not hold are not there."""


def text_of_value(value: Value) -> str:
    """Return a value as a script gets it: a text as it is, all else as JSON would have it."""
    match value:
        case str():
            return value
        case float():
            return repr(value)
        case _:
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def arguments_of(values: Values) -> tuple[str, ...]:
    """Return the arguments that tell a script its values, each in one with `=`: a value may begin with a minus."""
    return tuple(f"--{name}={text_of_value(value)}" for name, value in values.items())


def variable_of(name: str) -> str:
    """Return the environment variable that tells a task one of its values."""
    return f"{PARAM_PREFIX}{name.upper().replace('-', '_').replace('.', '_')}"


def same_as(value: Value) -> Hashable:
    """Return what is equal for values that are the same in JSON: 1 and 1.0 are, 1 and true are not."""
    match value:
        case bool():
            return ("boolean", value)
        case tuple() | list():
            return ("list", *map(same_as, value))
        case _:
            return value


def applies(parameter: SearchParameter, values: Values) -> bool:
    """Tell whether a parameter is there beside the values of those before it."""
    return all(
        name in values and same_as(values[name]) in map(same_as, allowed) for name, allowed in parameter.when.items()
    )
