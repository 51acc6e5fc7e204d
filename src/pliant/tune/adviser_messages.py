"""What a server and an adviser's process say to each other: one JSON object per line, told apart by `kind`.

The server says `Begin` once, and then one question after the other, each after the answer to the one before. JSON here
has NaN and infinities, as Python's has: a metric may be one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from pliant.core.search import Pruner, Trial, TrialState
from pliant.core.space import Scalar
from pliant.tune.advice import AdviserInput

_M = TypeVar("_M")
_Values = Mapping[str, Scalar | tuple[Scalar | tuple[Scalar, ...], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Make an adviser ready. Nothing is answered."""

    kind: Literal["begin"] = "begin"
    opening: AdviserInput


@dataclass(frozen=True, slots=True, kw_only=True)
class AskValues:
    """What are the values of the trial of this number?"""

    kind: Literal["ask"] = "ask"
    number: int
    changed: tuple[Trial, ...]
    given: _Values | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskJudgement:
    """Should this trial end?"""

    kind: Literal["judge"] = "judge"
    number: int
    changed: tuple[Trial, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskImportances:
    """How important is each parameter?"""

    kind: Literal["importances"] = "importances"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportancesAnswer:
    """How important parameters are."""

    kind: Literal["important"] = "important"
    importances: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesAnswer:
    """Values for a trial."""

    kind: Literal["values"] = "values"
    values: _Values
    state: str
    attributes: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExhaustedAnswer:
    """There is nothing more to try."""

    kind: Literal["exhausted"] = "exhausted"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgementAnswer:
    """Whether a trial should end."""

    kind: Literal["judgement"] = "judgement"
    prune: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureAnswer:
    """There is no answer, because of the search: another process would have none either."""

    kind: Literal["failure"] = "failure"
    message: str


ToAdviser = Begin | AskValues | AskJudgement | AskImportances
FromAdviser = ValuesAnswer | ExhaustedAnswer | JudgementAnswer | ImportancesAnswer | FailureAnswer

_CONFIG: Final = ConfigDict(ser_json_inf_nan="constants")
_TO: Final[TypeAdapter[ToAdviser]] = TypeAdapter(Annotated[ToAdviser, Field(discriminator="kind")], config=_CONFIG)
_FROM: Final[TypeAdapter[FromAdviser]] = TypeAdapter(
    Annotated[FromAdviser, Field(discriminator="kind")], config=_CONFIG
)


def encode(message: ToAdviser | FromAdviser) -> bytes:
    """Return the line of a message."""
    if isinstance(message, ToAdviser):
        return _TO.dump_json(message) + b"\n"
    return _FROM.dump_json(message) + b"\n"


def decode_question(line: bytes) -> ToAdviser:
    """Return what the server says in a line.

    Raises:
        ValueError: it is no such message.
    """
    return _decode(_TO, line)


def decode_answer(line: bytes) -> FromAdviser:
    """Return what an adviser's process says in a line.

    Raises:
        ValueError: it is no such message.
    """
    return _decode(_FROM, line)


def without_unread(trials: Sequence[Trial], pruner: Pruner | None) -> tuple[Trial, ...]:
    """Return trials without reports that nobody looks at: samplers look at those of pruned trials, pruners at all."""
    if pruner is not None:
        return tuple(trials)
    return tuple(one if one.state is TrialState.PRUNED else replace(one, reports=()) for one in trials)


def _decode(adapter: TypeAdapter[_M], line: bytes) -> _M:
    try:
        return adapter.validate_json(line)
    except ValidationError as error:
        raise ValueError(f"a line holds no message that is known: {error!s:.300}") from error
