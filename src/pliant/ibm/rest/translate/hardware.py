"""The JSON that newer clients send beside, or instead of, a line of arguments: hardware and data sources."""

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pliant.api.faults import problems_of
from pliant.core.errors import InvalidInput, Problem

MAX_CHARACTERS = 200_000


class _Part(BaseModel):
    """What is unknown in it is left alone: clients of every version send fields of their own."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Memory(_Part):
    """Memory of a worker."""

    size: str = ""


class Gpus(_Part):
    """GPUs of a worker."""

    num_gpu: Annotated[float, Field(ge=0, le=1e6)] | None = None


class Cpus(_Part):
    """Processors of a worker."""

    units: Annotated[str, Field(coerce_numbers_to_str=True)] = ""


class Nodes(_Part):
    """The workers."""

    num_nodes: Annotated[int, Field(ge=1, le=10**9)] | None = None
    mem: Memory = Memory()
    gpu: Gpus = Gpus()
    cpu: Cpus = Cpus()


class Hardware(_Part):
    """What a submission asks to run on."""

    nodes: Nodes = Nodes()


class Location(_Part):
    """Where data is."""

    paths: str = ""
    """One or several, with commas between."""


class SubmittedSource(_Part):
    """Where data comes from."""

    type: str
    location: Location = Location()


class Submission(_Part):
    """The form field `data`."""

    args: str | None = None
    hardwareSpec: Hardware = Hardware()
    dataSource: tuple[SubmittedSource, ...] = ()


def read_submission(text: str) -> Submission:
    """Return what the form field `data` says.

    Raises:
        InvalidInput: it is not such JSON.
    """
    return _read(Submission, _load(text, "data"), "data")


def read_sources(text: str) -> tuple[SubmittedSource, ...]:
    """Return what `--data-source` says, a JSON list.

    Raises:
        InvalidInput: it is not such JSON.
    """
    return _read(Submission, {"dataSource": _load(text, "--data-source")}, "--data-source").dataSource


def _load(text: str, field: str) -> Any:
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput.at(field, f"it is longer than {MAX_CHARACTERS} characters")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput.at(field, f"it is not JSON ({error}); send an object") from error


def _read(kind: type[Submission], value: Any, field: str) -> Submission:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        found = (Problem(field=f"{field}.{one.field}".rstrip("."), message=one.message) for one in problems_of(error))
        raise InvalidInput(*found) from error
