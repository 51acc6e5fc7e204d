"""The control link on the wire: one JSON object per WebSocket text frame, told apart by `kind`.

The messages are the dataclasses of `pliant.core.link`. A message of a task also has a `number`, counted from 1 over the
life of the task; `Hello` and `Pulse` have none.
"""

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from pliant.api.faults import problems_of
from pliant.core.errors import InvalidInput
from pliant.core.link import MAX_NUMBER, FromTask, Stored, ToTask

LINK_PATH: Final = "/v1/link"
"""Where the server accepts links; `?task=TASK_ID`, proof of the job's token in the Authorization header."""
MAX_FRAME_BYTES: Final = 1 << 20
"""A frame longer than this is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbered:
    number: Annotated[int, Field(ge=0, le=MAX_NUMBER, strict=True)] = 0


_CONFIG: Final = ConfigDict(ser_json_inf_nan="constants")
"""A loss may be NaN; then the frame says `NaN`, as Python's JSON does."""
_FROM_TASK: Final[TypeAdapter[FromTask]] = TypeAdapter(Annotated[FromTask, Field(discriminator="kind")], config=_CONFIG)
_TO_TASK: Final[TypeAdapter[ToTask | Stored]] = TypeAdapter(
    Annotated[ToTask | Stored, Field(discriminator="kind")], config=_CONFIG
)
_NUMBER: Final[TypeAdapter[_Numbered]] = TypeAdapter(_Numbered)


def encode(message: FromTask | ToTask | Stored, number: int = 0) -> str:
    """Return the frame of a message; with its number, if it has one."""
    if isinstance(message, ToTask | Stored):
        return _TO_TASK.dump_json(message).decode()
    frame = _FROM_TASK.dump_json(message).decode()
    return f'{{"number":{number},{frame[1:]}' if number else frame


def decode_from_task(frame: str | bytes) -> FromTask:
    """Return the message in a frame that a task sent.

    Raises:
        InvalidInput: the frame is not such a message.
    """
    try:
        return _FROM_TASK.validate_json(frame)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from error


def number_of(frame: str | bytes) -> int:
    """Return the number of what a task sent; 0 if it has none.

    Raises:
        InvalidInput: it is no number.
    """
    try:
        return _NUMBER.validate_json(frame).number
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from error


def decode_to_task(frame: str | bytes) -> ToTask | Stored:
    """Return the message in a frame that the server sent.

    Raises:
        InvalidInput: the frame is not such a message.
    """
    try:
        return _TO_TASK.validate_json(frame)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from error
