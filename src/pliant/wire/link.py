"""The control link on the wire: one JSON object per WebSocket text frame, told apart by `kind`.

The messages themselves are the dataclasses of `pliant.core.link`.
"""

from typing import Annotated, Final

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from pliant.core.errors import InvalidInput, Problem
from pliant.core.link import FromTask, ToTask

LINK_PATH: Final = "/v1/link"
"""Where the server accepts links; `?task=TASK_ID`, token in the Authorization header."""
MAX_FRAME_BYTES: Final = 1 << 20
"""A frame longer than this is refused."""

_CONFIG: Final = ConfigDict(ser_json_inf_nan="constants")
"""A loss may be NaN; then the frame says `NaN`, as Python's JSON does."""
_FROM_TASK: Final[TypeAdapter[FromTask]] = TypeAdapter(Annotated[FromTask, Field(discriminator="kind")], config=_CONFIG)
_TO_TASK: Final[TypeAdapter[ToTask]] = TypeAdapter(Annotated[ToTask, Field(discriminator="kind")], config=_CONFIG)


def encode(message: FromTask | ToTask) -> str:
    """Return the frame of a message."""
    adapter: TypeAdapter[FromTask] | TypeAdapter[ToTask] = _TO_TASK if isinstance(message, ToTask) else _FROM_TASK
    return adapter.dump_json(message).decode()  # type: ignore[arg-type]


def decode_from_task(frame: str | bytes) -> FromTask:
    """Return the message in a frame that a task sent.

    Raises:
        InvalidInput: the frame is not such a message.
    """
    try:
        return _FROM_TASK.validate_json(frame)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from error


def decode_to_task(frame: str | bytes) -> ToTask:
    """Return the message in a frame that the server sent.

    Raises:
        InvalidInput: the frame is not such a message.
    """
    try:
        return _TO_TASK.validate_json(frame)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from error


def problems_of(error: ValidationError) -> tuple[Problem, ...]:
    """Return pydantic's findings as ours: field, then what is wrong and the value that was given."""
    return tuple(
        Problem(
            field=".".join(str(part) for part in found["loc"]),
            message=f"{found['msg']} (got {found['input']!r:.80})",
        )
        for found in error.errors(include_url=False)
    )
