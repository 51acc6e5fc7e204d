"""How long a client may take to read a part of an answer: one that does not read holds a kernel's room no longer."""

import asyncio
from collections.abc import Awaitable
from typing import Final

from pliant.serve.gateway.refused import ClientGone

READ_WITHIN_S: Final = 60.0


async def in_time(writing: Awaitable[None]) -> None:
    """Write a part.

    Raises:
        ClientGone: the client has not read what was written before; it counts as gone.
    """
    try:
        async with asyncio.timeout(READ_WITHIN_S):
            await writing
    except TimeoutError:
        raise ClientGone from None
