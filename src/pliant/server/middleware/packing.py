"""Packs long answers: JSON of some kilobytes goes out as gzip to a client that takes it.

A chart of slots is a tenth as long then. What comes in pieces is left alone: events and logs would be held back, and
files of results are packed, or would not get shorter. So is what answers a change: those answers hold secrets that are
shown once, and the length of what is packed tells something of it to who can choose a part of it (BREACH).
"""

import gzip
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pliant.server.accept import encodings_of

MIN_BYTES: Final = 4096
"""Shorter answers fit into a few packets anyway."""
_LONG: Final = 1 << 16
"""What is longer is packed in a thread beside those that serve others: a megabyte takes some milliseconds."""
_LEVEL: Final = 1


class PackedAnswers:
    """ASGI middleware, for whole answers of JSON to GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        takes_it = "gzip" in encodings_of(",".join(Headers(scope=scope).getlist("accept-encoding")))
        start: Message | None = None

        async def send_packed(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_long(message):
                start = message  # it waits for its body
                return
            if start is not None and message["type"] == "http.response.body":
                begun, start = start, None
                headers = MutableHeaders(raw=list(begun["headers"]))
                headers.add_vary_header("Accept-Encoding")
                if takes_it and not message.get("more_body", False):
                    message = {**message, "body": await _pack(message["body"])}
                    headers["content-encoding"] = "gzip"
                    headers["content-length"] = str(len(message["body"]))
                await send({**begun, "headers": headers.raw})
            await send(message)

        await self._app(scope, receive, send_packed)


def _is_long(start: Message) -> bool:
    headers = Headers(raw=start.get("headers", []))
    return (
        start["status"] == 200
        and headers.get("content-type", "").startswith("application/json")
        and "content-encoding" not in headers
        and "content-disposition" not in headers
        and int(headers.get("content-length", "0")) >= MIN_BYTES
    )


async def _pack(body: bytes) -> bytes:
    if len(body) > _LONG:
        return await run_in_threadpool(gzip.compress, body, _LEVEL, mtime=0)
    return gzip.compress(body, _LEVEL, mtime=0)
