"""Reads the live event stream (server-sent events, WHATWG HTML §9.2) and takes it up again where it broke off."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from pliant.client.http.connection import Connection, Idle, Params
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.http.lines import lines_of, text_of
from pliant.client.http.patience import Patience
from pliant.core.errors import InternalError, Unavailable

if TYPE_CHECKING:
    from pliant.core.event import Event

IDLE_S: Final = 60.0
"""A stream that is silent for so long is asked again; a dead connection would never tell."""

_EVENT: "Final[LazyAdapter[Event]]" = LazyAdapter("pliant.core.event:Event")


def stream_events(
    connection: Connection, *, after: int, job_id: str | None, patience: Patience | None = None
) -> "Iterator[Event]":
    """Yield events as they happen, each once, until the caller closes the generator.

    Raises:
        Unavailable: the server stayed away for longer than our patience.
        PliantError: it refused.
    """
    patience = patience or Patience()
    last = after
    while True:
        try:
            for event in _connect_once(connection, last, job_id, patience):
                if event.seq > last:
                    last = event.seq
                    yield event
            patience.wait_after(Unavailable(f"the server at {connection.url} closed the event stream; try again"))
        except Idle:
            continue
        except Unavailable as error:
            patience.wait_after(error)


def _connect_once(connection: Connection, last: int, job_id: str | None, patience: Patience) -> "Iterator[Event]":
    params: Params = {"after": last, "job_id": job_id}
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(last)}
    with connection.stream("/events/stream", params, timeout_s=IDLE_S, headers=headers) as chunks:
        for data in data_of(lines_of(_alive(chunks, patience))):
            yield _parse(data)


def _alive(chunks: Iterable[bytes], patience: Patience) -> Iterator[bytes]:
    for chunk in chunks:
        patience.reset()
        yield chunk


def data_of(lines: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of every whole message; one that the stream's end cut off is dropped, as the standard says."""
    data: list[str] = []
    for line in map(text_of, lines):
        if not line:
            if data:
                yield "\n".join(data)
                data = []
            continue
        name, _, value = line.partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))


def _parse(data: str) -> "Event":
    try:
        return _EVENT.validate_json(data)
    except ValidationError as error:
        raise InternalError(
            f"the event stream holds what this client does not understand ({data[:200]}); "
            f"see that client and server have the same version"
        ) from error
