"""What a client and the process that opens Optuna's storages say to each other: a request, and one answer, as JSON.

JSON here has NaN and infinities, as Python's has. A storage is a URL that may hold a password, so it travels here and
not among the arguments of the process.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from pliant.core.search import Direction, SearchSettings, Trial, TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStudy:
    """Write a search's trials as a new study."""

    kind: Literal["write"] = "write"
    storage: str
    study: str
    settings: SearchSettings
    trials: tuple[Trial, ...]
    """All that there are, by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStudy:
    """Read the trials of a study that have ended."""

    kind: Literal["read"] = "read"
    storage: str
    study: str | None
    """None: the only one there is."""
    max_trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyWritten:
    """It is written."""

    kind: Literal["written"] = "written"
    num_trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTrial:
    """A trial of a study that has ended, with whatever values it had."""

    values: Mapping[str, Any]
    state: TrialState
    results: tuple[float, ...] | None = None
    reports: tuple[tuple[int, float], ...] = ()
    constraints: Mapping[str, float] = field(default_factory=dict)
    """How far it violates constraints, by the names that these have there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFound:
    """What is in a study."""

    kind: Literal["found"] = "found"
    study: str
    directions: tuple[Direction, ...]
    trials: tuple[FoundTrial, ...] = field(default=())
    """Those that have ended, by number; of too many the newest."""
    num_ended: int
    num_unended: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRefusal:
    """It cannot be done, because of what was asked for or of what is there."""

    kind: Literal["refusal"] = "refusal"
    field: Literal["storage", "study"]
    """What of the request it is about."""
    message: str


_CONFIG: Final = ConfigDict(ser_json_inf_nan="constants")
StudyRequest = WriteStudy | ReadStudy
StudyAnswer = StudyWritten | StudyFound | StudyRefusal


@cache
def _requests() -> TypeAdapter[StudyRequest]:
    return TypeAdapter(Annotated[StudyRequest, Field(discriminator="kind")], config=_CONFIG)


@cache
def _answers() -> TypeAdapter[StudyAnswer]:
    return TypeAdapter(Annotated[StudyAnswer, Field(discriminator="kind")], config=_CONFIG)


def encode_request(request: StudyRequest) -> bytes:
    """Return a request as JSON."""
    return _requests().dump_json(request)


def decode_request(text: bytes) -> StudyRequest:
    """Return what is asked for.

    Raises:
        ValueError: it is no request.
    """
    return _requests().validate_json(text)


def encode_answer(answer: StudyAnswer) -> bytes:
    """Return an answer as JSON."""
    return _answers().dump_json(answer)


def decode_answer(text: bytes) -> StudyAnswer:
    """Return what is answered.

    Raises:
        ValueError: it is no answer.
    """
    try:
        return _answers().validate_json(text)
    except ValidationError as error:
        raise ValueError(f"{text[:100]!r} is no answer: {error!s:.300}") from error
