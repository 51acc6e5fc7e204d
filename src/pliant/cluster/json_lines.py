"""Messages between processes of one machine: dataclasses as lines of JSON over a stream socket.

A message says what it is by its field `kind`, a `Literal`. What arrives is checked against the types of its fields, and
a line has a greatest length, so that neither end believes or remembers whatever it is sent. Knows no message.
"""

import json
import socket
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    NewType,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

MAX_LINE_BYTES: Final = 16 << 20
"""Linux takes environments of up to 2 MiB; they fit however their characters are escaped."""
_CHUNK_BYTES: Final = 1 << 16


class Message(Protocol):
    """A dataclass with a field `kind`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def kind(self) -> str: ...


M = TypeVar("M", bound=Message)


def encode(message: Message) -> bytes:
    """Return the line of a message.

    Raises:
        ValueError: it is longer than any line may be.
    """
    line = json.dumps(message, default=_fields).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"a message ({message.kind}) of {len(line)} bytes is longer than {MAX_LINE_BYTES}")
    return line


def by_kind(messages: Iterable[type[M]]) -> Mapping[str, type[M]]:
    """Return the message classes by what their field `kind` says."""
    return {get_args(_types_of(message)["kind"])[0]: message for message in messages}


def decode(line: bytes, kinds: Mapping[str, type[M]]) -> M:
    """Return the message in a line.

    Raises:
        ValueError: the line holds none of these messages.
    """
    try:
        given = json.loads(line)
    except RecursionError as error:
        raise ValueError("a line holds no message: it is nested too deeply") from error
    kind = given.get("kind") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError("a line holds no message that is known")
    message: M = _value(kinds[kind], given)
    return message


class LineSocket:
    """One end of a stream socket, line by line. It waits for nothing unless the socket does."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._unsent = b""
        self._rest = b""

    def fileno(self) -> int:
        return self._channel.fileno()

    def put(self, line: bytes) -> None:
        """Queue a line; `flush` sends it."""
        self._unsent += line

    def flush(self) -> bool:
        """Send what the socket takes; return whether something is left."""
        while self._unsent:
            try:
                sent = self._channel.send(self._unsent)
            except BlockingIOError:
                return True
            except (BrokenPipeError, ConnectionResetError):
                self._unsent = b""  # `receive` finds the end of the stream
                return False
            self._unsent = self._unsent[sent:]
        return False

    def receive(self) -> list[bytes] | None:
        """Return the lines that one read completes; None at the end of the stream.

        Raises:
            ValueError: a line is longer than any may be.
        """
        try:
            chunk = self._channel.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return []
        except ConnectionResetError:
            return None
        if not chunk:
            return None
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            raise ValueError(f"a line is longer than {MAX_LINE_BYTES} bytes")
        return lines

    def close(self) -> None:
        self._channel.close()


def _fields(value: Any) -> dict[str, Any]:
    """Return what JSON has instead of a dataclass or a mapping."""
    return {field.name: getattr(value, field.name) for field in fields(value)} if is_dataclass(value) else dict(value)


@cache
def _types_of(message: type) -> Mapping[str, Any]:
    return get_type_hints(message)


def _value(kind: Any, given: Any) -> Any:
    """Return the value of this type that a piece of JSON stands for.

    Raises:
        ValueError: it stands for none.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, NewType):
        return _value(kind.__supertype__, given)
    if is_dataclass(kind) and isinstance(given, dict):
        return _dataclass(kind, given)
    if origin in (Union, UnionType):  # of one type and None
        return None if given is None else _value(next(one for one in arguments if one is not NoneType), given)
    if origin is tuple and isinstance(given, list):
        return tuple(_value(arguments[0], one) for one in given)
    if origin is Mapping and isinstance(given, dict):
        return {_value(arguments[0], name): _value(arguments[1], one) for name, one in given.items()}
    if (origin is Literal and given in arguments) or type(given) is kind:
        return given
    if kind is float and type(given) is int:
        return float(given)
    raise ValueError(f"a message has a {type(given).__name__} where a {kind} belongs")


def _dataclass(kind: Any, given: Mapping[str, Any]) -> Any:
    types = _types_of(kind)
    if unknown := given.keys() - types.keys():
        raise ValueError(f"a message has fields that {kind.__name__} has not: {sorted(unknown)}")
    try:
        return kind(**{name: _value(types[name], one) for name, one in given.items()})
    except TypeError as error:
        raise ValueError(f"a message lacks fields: {error}") from error
