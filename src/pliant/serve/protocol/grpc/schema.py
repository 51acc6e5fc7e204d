"""The messages and calls of `inference.proto`, read from that file once.

Protobuf's own library is not used: it keeps the messages of a package once in a process, so that a client of Triton
in the same process would clash with ours, and a kernel would need it for nothing else.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_MESSAGE: Final = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD: Final = re.compile(r"^ +(repeated )?(?:map<string, (\w+)>|(\w+)) (\w+) = (\d+);", re.MULTILINE)
_CALL: Final = re.compile(r"^ +rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\)", re.MULTILINE)
_PACKAGE: Final = re.compile(r"^package ([\w.]+);", re.MULTILINE)
_SERVICE: Final = re.compile(r"^service (\w+) ", re.MULTILINE)
_NUMBERS: Final = frozenset({"bool", "int32", "int64", "uint32", "uint64", "float", "double"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WireField:
    """One field of a message."""

    number: int
    name: str
    kind: str
    """A scalar type of the language, or the name of a message."""
    is_repeated: bool = False
    is_map: bool = False
    """Repeated messages of a `key`, which is a text, and a `value`."""

    @property
    def is_number(self) -> bool:
        """Whether it is a number or a truth value, which are packed where they are repeated."""
        return self.kind in _NUMBERS


@dataclass(frozen=True, slots=True, kw_only=True)
class WireMessage:
    """One message: its fields by number and by name."""

    name: str
    by_number: Mapping[int, WireField]
    by_name: Mapping[str, WireField]


@dataclass(frozen=True, slots=True, kw_only=True)
class WireCall:
    """One call of the service."""

    path: str
    """As HTTP/2 names it, such as `/inference.GRPCInferenceService/ModelInfer`."""
    request: str
    response: str
    is_stream: bool
    """Requests and answers are streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """All that a `.proto` file says: messages by name, and calls by path."""

    messages: Mapping[str, WireMessage]
    calls: Mapping[str, WireCall]


@cache
def inference_schema() -> Schema:
    """Return the schema of the Open Inference Protocol."""
    return read_schema(Path(__file__).with_name("inference.proto").read_text())


def read_schema(text: str) -> Schema:
    """Return the messages and calls of a `.proto` file of the subset that `inference.proto` keeps to."""
    service = f"/{_first(_PACKAGE, text)}.{_first(_SERVICE, text)}/"
    calls = [
        WireCall(path=service + name, request=request, response=response, is_stream=bool(takes or gives))
        for name, takes, request, gives, response in _CALL.findall(text)
    ]
    messages = [made for name, body in _MESSAGE.findall(text) for made in _messages(name, body)]
    return Schema(messages={one.name: one for one in messages}, calls={call.path: call for call in calls})


def _messages(name: str, body: str) -> Iterator[WireMessage]:
    fields = []
    for repeated, mapped, kind, field, number in _FIELD.findall(body):
        if mapped:
            kind = f"{name}.{field}"
            key, value = WireField(number=1, name="key", kind="string"), WireField(number=2, name="value", kind=mapped)
            yield _message(kind, [key, value])
        is_repeated = bool(repeated or mapped)
        fields.append(
            WireField(number=int(number), name=field, kind=kind, is_repeated=is_repeated, is_map=bool(mapped))
        )
    yield _message(name, fields)


def _message(name: str, fields: list[WireField]) -> WireMessage:
    by_number = {field.number: field for field in fields}
    return WireMessage(name=name, by_number=by_number, by_name={field.name: field for field in fields})


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    assert found is not None, f"the file has no {pattern.pattern}"
    return found[1]
