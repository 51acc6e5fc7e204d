"""Takes connections of a listening socket for as long as there is one, whatever the system says meanwhile."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Any, Final

_NO_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_NO_FILES_S: Final = 0.2
"""Until connections are taken again when no more files can be opened."""
_OF_ONE: Final = (
    errno.ECONNABORTED,
    errno.ENETDOWN,
    errno.EPROTO,
    errno.ENOPROTOOPT,
    errno.EHOSTDOWN,
    errno.ENONET,
    errno.EHOSTUNREACH,
    errno.EOPNOTSUPP,
    errno.ENETUNREACH,
    errno.ETIMEDOUT,
)
"""Faults of the connection that would have been next (accept(2)); the one after it is another matter."""
_log = logging.getLogger(__name__)


async def accept_for_ever(sock: socket.socket, take: Callable[[socket.socket, Any], None], what: str) -> None:
    """Hand over every connection, with its address, until it is cancelled.

    Args:
        sock: listens.
        take: takes a connection.
        what: where they come, in words of the log.

    Raises:
        OSError: it listens no more.
    """
    loop = asyncio.get_running_loop()
    sock.setblocking(False)
    while True:
        try:
            channel, address = await loop.sock_accept(sock)
        except OSError as error:
            if error.errno in _OF_ONE:
                continue
            if error.errno not in _NO_FILES:
                raise
            _log.warning("no connection can be taken at %s: %s", what, error)
            await asyncio.sleep(_NO_FILES_S)
            continue
        take(channel, address)
        await asyncio.sleep(0)  # however many come, others have their turn
