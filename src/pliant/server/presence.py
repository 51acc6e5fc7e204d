"""Who a long answer is sent to, looked at again while it is sent: a session can end, a share can be taken back."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Final

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from pliant.control.requests.sharing import Sharing
from pliant.core.access import Principal, Sight
from pliant.core.errors import Forbidden, NotFound, Unauthorized
from pliant.people.gate import Admitted
from pliant.people.people import People
from pliant.server.context import InContext
from pliant.server.middleware.access import Caller, let_in
from pliant.server.middleware.auth import InAdmitted, Login, SentToken, credentials_of

RECHECK_S: Final = 2.0
"""So often it is asked anew whether they are let in; what they see is asked every time."""

GONE: Final = (Unauthorized, Forbidden, NotFound)
"""What ends an answer that has begun: they are not let in any more, or do not see the job any more."""


class Presence:
    """Somebody who was let in, for as long as they are.

    Args:
        again: returns who asks, as they are now; raises Unauthorized or Forbidden if they are not let in any more.
    """

    def __init__(self, caller: Principal, sharing: Sharing, again: Callable[[], Principal]) -> None:
        self._caller = caller
        self._sharing = sharing
        self._again = again
        self._asked_at = asyncio.get_running_loop().time()

    async def sight(self) -> Sight | None:
        """Return which jobs they see now; None: all.

        Raises:
            Unauthorized, Forbidden: they are not let in any more.
        """
        now = asyncio.get_running_loop().time()
        if now - self._asked_at >= RECHECK_S:
            self._caller = await asyncio.to_thread(self._again)
            self._asked_at = now
        return self._sharing.sight(self._caller)


async def presence_of(request: Request, context: InContext, found: InAdmitted, caller: Caller) -> Presence:
    """Return who asks, to be looked at again."""
    again = await run_in_threadpool(_again, context.people, found, credentials_of(request.headers))
    return Presence(caller, context.sharing, lambda: let_in(request, again()))


InPresence = Annotated[Presence, Depends(presence_of)]


def _again(people: People, found: Admitted, given: Login | SentToken) -> Callable[[], Principal]:
    """Return what tells who somebody is now. No password is compared again: it costs much, and counts as an attempt."""
    if found.by != "password":
        token = given.text if isinstance(given, SentToken) else given.password
        return lambda: people.gate.by_token(token).principal
    name = found.principal.name
    first = people.accounts.get(name).noun

    def look() -> Principal:
        user = people.accounts.get(name).noun
        if not user.active or user.password_changed_at != first.password_changed_at:
            raise Unauthorized(f"the account {name} is disabled, or has another password by now")
        return user.principal()

    return look
