"""An array: one script, run once for every combination of some values, each time as a job of its own.

Example: lr 0.1 and 0.01, batch 32 and 64 make 4 jobs. The last value changes fastest, as in nested loops:

    index 0   lr=0.1  batch=32        index 2   lr=0.01 batch=32
    index 1   lr=0.1  batch=64        index 3   lr=0.01 batch=64
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Le, Len, MaxLen

from pliant.core.errors import InvalidInput, Problem
from pliant.core.input import FINITE, NUMBER, ONE_LINE, Input, Pattern

MAX_ARRAY_JOBS: Final = 1000
MAX_ARRAY_NAMES: Final = 20

ValueName = Annotated[
    str,
    Input(
        Len(1, 60),
        Pattern(
            r"^[A-Za-z_][A-Za-z0-9_.-]*$",
            "a name of letters, digits, '_', '-' and '.', which begins with a letter or '_'",
        ),
    ),
]
Value = (
    Annotated[str, Input(MaxLen(1000), ONE_LINE)] | int | Annotated[float, Input(FINITE, NUMBER)]
)  # an int before a float: 32 stays 32


@dataclass(frozen=True, kw_only=True)
class ArraySettings:
    """What is said of an array besides what its jobs have in common."""

    array: Annotated[Mapping[ValueName, tuple[Value, ...]], Input(Len(1, MAX_ARRAY_NAMES))]
    """The values of every name; one job is made for each combination, 1,000 at most."""
    array_max: Annotated[int, Input(Ge(1), Le(MAX_ARRAY_JOBS))] | None = None
    """So many jobs of the array run at once at most; if left out, as many as the pool has room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobArray:
    """Which job of an array a job is."""

    id: str
    name: str
    """What its jobs were called before each had its values in its name."""
    index: int
    """0, 1, 2, …"""
    num_jobs: int
    """As many were made."""
    values: Mapping[str, str]
    """Its own values by name; its script's arguments end with them."""
    max_running: int | None = None
    """So many of them run at once at most."""


def faults_of(array: Mapping[str, Sequence[object]]) -> Iterator[str]:
    """Yield what is wrong with the values of an array as a whole, in sentences."""
    variables: dict[str, str] = {}
    for name, values in array.items():
        texts = Counter(map(text_of, values))
        if not values:
            yield f"{name!r} has no value; give one or more"
        if twice := [text for text, number in texts.items() if number > 1]:
            yield f"{name!r} has the value {twice[0]!r:.100} twice; give every value once"
        if (other := variables.setdefault(variable_of(name), name)) != name:
            yield f"{other!r} and {name!r} would have the same variable {variable_of(name)}; call one of them otherwise"
    num_jobs = math.prod(len(values) for values in array.values())
    if num_jobs > MAX_ARRAY_JOBS:
        sizes = " × ".join(f"{len(values):,}" for values in array.values())
        yield f"{sizes} combinations are {num_jobs:,} jobs; an array has {MAX_ARRAY_JOBS:,} at most: give fewer values"


def combinations(array: Mapping[str, Sequence[object]]) -> tuple[Mapping[str, str], ...]:
    """Return the values of every job of an array, in order.

    Raises:
        InvalidInput: with everything that is wrong with them.
    """
    if faults := tuple(faults_of(array)):
        raise InvalidInput(*(Problem(field="array", message=fault) for fault in faults))
    texts = (tuple(map(text_of, values)) for values in array.values())
    return tuple(dict(zip(array, chosen, strict=True)) for chosen in itertools.product(*texts))


def text_of(value: object) -> str:
    """Return a value as a script gets it."""
    return value if isinstance(value, str) else repr(value)


def arguments_of(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the arguments that tell a script its values.

    Each is one argument with `=`: parsers of all kinds take it, also for values that begin with a minus.
    """
    return tuple(f"--{name}={value}" for name, value in values.items())


def words_of(values: Mapping[str, str]) -> str:
    """Return values for people: `lr=0.1 batch=32`."""
    return " ".join(f"{name}={value}" for name, value in values.items())


def variable_of(name: str) -> str:
    """Return the environment variable that tells a task one of its values."""
    return f"PLIANT_ARRAY_{name.upper().replace('-', '_').replace('.', '_')}"
