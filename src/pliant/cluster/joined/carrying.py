"""A connection of a machine for files, at the server: it asks, and gets or is taken, one thing after the other.

Runs in the hub's loop, which also answers renewals: all that waits for a disk waits in a thread, and nothing is held in
memory but a piece of a file.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Final, TypeVar

from pliant.cluster.json_lines import decode, encode
from pliant.cluster.mirror.grants import FileGrant
from pliant.cluster.mirror.keeper import FileKeeper
from pliant.cluster.mirror.messages import (
    CHUNK_BYTES,
    MAX_FETCHED,
    MAX_REQUEST_BYTES,
    REQUESTS,
    Append,
    AskIndex,
    Claim,
    Fetch,
    FileContent,
    FilePart,
    Granted,
    Have,
    IndexOptions,
    Listing,
    ListTree,
    NotDone,
    Put,
    Remove,
    Request,
    SendFrom,
    Taken,
)
from pliant.core.errors import NotFound, PliantError
from pliant.core.job import NodeId
from pliant.files.untrusted.opening import OpenFile

_log = logging.getLogger(__name__)

IDLE_S: Final = 120.0
"""A connection that says nothing for so long is closed; the machine makes another one."""
_T = TypeVar("_T")


class FilesConnection:
    """Serves one connection until it ends."""

    def __init__(
        self,
        name: NodeId,
        keeper: FileKeeper,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        executors: tuple[Executor, Executor],
        *,
        may_write: Callable[[], bool],
    ) -> None:
        """Take a connection of a machine that has said who it is.

        Args:
            name: the machine's.
            keeper: hands out and takes in.
            reader: from the machine.
            writer: to it.
            executors: where the disk is waited for, and where all of a tree may have to be read.
            may_write: tells whether this server still leads for sure.
        """
        self._name = name
        self._keeper = keeper
        self._reader = reader
        self._writer = writer
        self._executor, self._listing = executors
        self._may_write = may_write
        self._grant: FileGrant | None = None

    async def serve(self) -> None:
        """Answer until the machine hangs up, or says what is no request."""
        try:
            while line := await asyncio.wait_for(self._reader.readline(), IDLE_S):
                await self._answer(decode(line, REQUESTS))
                await asyncio.wait_for(self._writer.drain(), IDLE_S)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            _log.debug("a connection of %s for files is lost: %s", self._name, error)
        except ValueError as error:
            _log.warning("%s asks for files in words that are not understood: %s", self._name, error)
        finally:
            self._writer.close()

    async def _answer(self, asked: Request) -> None:
        try:
            match asked:
                case Claim():
                    self._grant = await self._wait(lambda: self._keeper.grant(self._name, asked))
                    self._say(Granted())
                case ListTree():
                    await self._list(asked)
                case Fetch():
                    await self._fetch(asked)
                case Put():
                    await self._put(asked)
                case Append():
                    await self._append(asked)
                case Have():
                    self._keeper.holders.note(self._name, asked.digest, asked.address)
                    self._say(Taken())
                case AskIndex():
                    self._say(await self._wait(lambda: self._keeper.index_options(self._grant)))
                case Remove():
                    grant = self._granted()
                    await self._wait(lambda: self._keeper.remove(grant, asked.path, asked.name))
                    self._say(Taken())
        except PliantError as error:
            self._say(NotDone(reason=str(error), is_gone=isinstance(error, NotFound)))

    async def _list(self, asked: ListTree) -> None:
        loop = asyncio.get_running_loop()
        digest, content = await loop.run_in_executor(self._listing, self._keeper.listing, self._grant, asked)
        key = self._keeper.holders.key_of(digest) if content else ""
        neighbours = self._keeper.holders.neighbours_of(self._name, digest) if content else ()
        way = await self._wait(lambda: self._keeper.way_to(asked.path)) if content else ()
        self._say(Listing(digest=digest, num_bytes=len(content), key=key, neighbours=neighbours, way=way))
        for start in range(0, len(content), CHUNK_BYTES):
            self._writer.write(content[start : start + CHUNK_BYTES])
            await self._writer.drain()

    async def _fetch(self, asked: Fetch) -> None:
        if len(asked.files) > MAX_FETCHED:
            raise ValueError(f"it asks for more than {MAX_FETCHED} files at once")
        for part in asked.files:
            await self._send(asked.path, part)

    async def _send(self, path: str, part: FilePart) -> None:
        try:
            file = await self._wait(lambda: self._keeper.read(self._grant, path, part.name))
        except (OSError, PliantError) as error:
            self._say(FileContent(num_bytes=0, why_not=str(error) or type(error).__name__))
            return
        try:
            await self._send_open(file, part.offset)
        finally:
            file.close()

    async def _send_open(self, file: OpenFile, offset: int) -> None:
        left = max(0, file.num_bytes - offset)
        self._say(FileContent(num_bytes=left))
        at = offset
        while left:
            content = await self._wait(_reading(file.descriptor, min(CHUNK_BYTES, left), at))
            if not content:  # it got shorter: the machine sees by the digest that it is another file
                content = b"\0" * min(CHUNK_BYTES, left)
            self._writer.write(content)
            at, left = at + len(content), left - len(content)
            await asyncio.wait_for(self._writer.drain(), IDLE_S)

    async def _put(self, put: Put) -> None:
        grant = self._granted()
        begun = await self._wait(lambda: self._keeper.want(grant, put))
        self._say(SendFrom(offset=begun))
        if begun is None:
            return
        await asyncio.wait_for(self._writer.drain(), IDLE_S)
        failed: PliantError | None = None
        at = begun
        while at < put.num_bytes:
            content = await asyncio.wait_for(self._reader.read(min(CHUNK_BYTES, put.num_bytes - at)), IDLE_S)
            if not content:
                raise OSError("it hung up in the middle of a file")
            if failed is None:
                try:
                    await self._wait(_writing(self._keeper, grant, put, at, content))
                except PliantError as error:
                    failed = error  # the rest is on its way: it is read, and left
            at += len(content)
        if failed is not None:
            raise failed
        await self._wait(lambda: self._keeper.finish(grant, put))
        self._say(Taken(num_bytes=put.num_bytes))

    async def _append(self, append: Append) -> None:
        if not 0 <= append.num_bytes <= CHUNK_BYTES:
            raise ValueError(f"it appends {append.num_bytes} bytes at once")
        content = await asyncio.wait_for(self._reader.readexactly(append.num_bytes), IDLE_S)
        grant = self._granted()
        length = await self._wait(lambda: self._keeper.append(grant, append.path, append.name, append.offset, content))
        self._say(Taken(num_bytes=length))

    def _granted(self) -> FileGrant:
        if not self._may_write():
            raise OSError("this server is not sure to lead its pool; another one may")
        if self._grant is None:
            raise NotFound("it has claimed no task")
        return self._grant

    def _say(self, answer: Granted | Listing | FileContent | SendFrom | IndexOptions | Taken | NotDone) -> None:
        self._writer.write(encode(answer))

    def _wait(self, work: Callable[[], _T]) -> Awaitable[_T]:
        return asyncio.get_running_loop().run_in_executor(self._executor, work)


def stream_of(
    transport: asyncio.Transport, received: bytes, loop: asyncio.AbstractEventLoop
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection as streams from now on, that another protocol has had until now, and what that has read."""
    reader = asyncio.StreamReader(limit=MAX_REQUEST_BYTES, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    with suppress(AssertionError):  # it has ended
        reader.feed_data(received)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def _reading(file: int, num_bytes: int, at: int) -> Callable[[], bytes]:
    return lambda: os.pread(file, num_bytes, at)


def _writing(keeper: FileKeeper, grant: FileGrant, put: Put, at: int, content: bytes) -> Callable[[], None]:
    return lambda: keeper.write(grant, put, at, content)
