"""Answers in parts over HTTP: which form a client takes, and how they are written.

    text/event-stream       data: {"y": 1}⏎⏎     Server-Sent Events: of /generate_stream, and of who accepts them
    application/x-ndjson    {"y": 1}⏎            a line of JSON for each

An error after the first part is a part, too: an object with `error`. Parts are sent as they come; one that the client
does not take in time ends the request.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pliant.serve.gateway.client_pace import in_time
from pliant.serve.gateway.inference import Body, InferenceRequest, KernelAnswer
from pliant.serve.gateway.kernel_answer import read_failure
from pliant.serve.gateway.refused import Refused
from pliant.serve.gateway.route import Route, RouteKind

Send = Callable[[dict[str, Any]], Awaitable[None]]
HttpHeaders = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class PartForm:
    """How parts are written."""

    type: bytes
    write: Callable[[bytes], bytes]


def _event(body: bytes) -> bytes:
    """Return an event; a line break in the body would end a line of it, so every line is one of the event's."""
    lines = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"".join((b"data: ", b"\ndata: ".join(lines), b"\n\n"))


def _line(body: bytes) -> bytes:
    return body.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


EVENTS: Final = PartForm(b"text/event-stream; charset=utf-8", _event)
LINES: Final = PartForm(b"application/x-ndjson", _line)
_ACCEPTED: Final = {b"text/event-stream": EVENTS, b"application/x-ndjson": LINES}


def find_form(route: Route, headers: Mapping[bytes, bytes]) -> PartForm | None:
    """Return how a client takes an answer in parts; None if it takes one answer alone."""
    if route.kind is RouteKind.GENERATE_STREAM:
        return EVENTS
    if route.kind is RouteKind.GENERATE:
        return None
    named = (one.partition(b";")[0].strip().lower() for one in headers.get(b"accept", b"").split(b","))
    return next((_ACCEPTED[name] for name in named if name in _ACCEPTED), None)


class PartWriter:
    """Writes one answer in parts.

    Args:
        form: how.
        send: takes messages of ASGI.
        headers_of: returns what is said of a kernel's answer, besides its type.
    """

    def __init__(self, form: PartForm, send: Send, headers_of: Callable[[KernelAnswer], HttpHeaders]) -> None:
        self._form = form
        self._send = send
        self._headers_of = headers_of
        self._has_begun = False

    async def relay(self, request: InferenceRequest) -> None:
        """Send all parts as they come.

        Raises:
            Refused: there is no answer, and nothing was sent yet.
            ClientGone: nobody is left to send it to.
        """
        while (part := await request.next()) is not None:
            await self._begin(part)
            await self._write(part.body)
        match request.outcome:
            case KernelAnswer() as answer:
                await self._begin(answer)
                if len(answer.body):
                    await self._write(answer.body)
            case Refused() as refused if self._has_begun:
                await self._write(json.dumps({"error": refused.message}).encode())
            case outcome:
                assert outcome is not None
                raise outcome
        await self._send({"type": "http.response.body", "body": b""})

    async def _begin(self, answer: KernelAnswer) -> None:
        """Send what comes before the first part; an error that comes first is the status."""
        if self._has_begun:
            return
        if (failure := read_failure(answer)) is not None:
            raise failure
        if answer.num_json is not None or answer.type == "application/octet-stream":
            raise Refused(400, "parts over HTTP are JSON, and this answer is bytes; ask for one answer, or over gRPC")
        self._has_begun = True
        about = [(b"content-type", self._form.type), (b"cache-control", b"no-cache"), *self._headers_of(answer)]
        await self._send({"type": "http.response.start", "status": 200, "headers": about})

    async def _write(self, body: Body | memoryview) -> None:
        piece = self._form.write(bytes(body))
        await in_time(self._send({"type": "http.response.body", "body": piece, "more_body": True}))
