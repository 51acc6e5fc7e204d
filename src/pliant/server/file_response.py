"""Sends a file that somebody else's program wrote: the one that was opened, as long as it was then."""

from collections.abc import Iterator
from urllib.parse import quote

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from pliant.files.untrusted.opening import OpenFile

_CHUNK = 1 << 18


class OpenFileResponse(StreamingResponse):
    """The content of an open file, which it closes. If the file gets shorter meanwhile, the answer breaks off."""

    def __init__(self, file: OpenFile, *, media_type: str, file_name: str) -> None:
        self._file = file
        headers = {
            "Content-Length": str(file.num_bytes),
            "Content-Disposition": f"attachment; filename*=utf-8''{quote(file_name, safe='')}",
        }
        super().__init__(_read(file), media_type=media_type, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


def _read(file: OpenFile) -> Iterator[bytes]:
    offset = 0
    while offset < file.num_bytes and (chunk := file.read_at(offset, min(_CHUNK, file.num_bytes - offset))):
        offset += len(chunk)
        yield chunk
