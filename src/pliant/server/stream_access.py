"""Access to an answer that goes on for long, checked again while it is sent.

Meanwhile a session can end, an account can be disabled, and a share can be taken back.
"""

import asyncio
from collections.abc import Callable
from typing import Annotated, Final

from fastapi import Depends, Request

from pliant.control.requests.sharing import Sharing
from pliant.core.access import Principal, VisibleJobs
from pliant.core.errors import Forbidden, NotFound, Unauthorized
from pliant.core.job import Job
from pliant.people.authenticator import Identity
from pliant.people.people import People
from pliant.server.context import InContext
from pliant.server.middleware.authentication import (
    InIdentity,
    PasswordCredentials,
    TokenCredentials,
    credentials_of,
)
from pliant.server.middleware.authorisation import authorise
from pliant.server.middleware.session_cookie import cookie_of

RECHECK_S: Final = 2.0
"""So often the caller is authenticated anew; what they see is looked up every time."""

ACCESS_LOST: Final = (Unauthorized, Forbidden, NotFound)
"""What ends an answer that has begun: the caller lost their access, or does not see the job any more."""


class StreamAccess:
    """The access of a caller to an answer that goes on.

    Args:
        recheck: returns the caller as they are now; raises Unauthorized or Forbidden if they lost their access.
    """

    def __init__(self, caller: Principal, sharing: Sharing, recheck: Callable[[], Principal]) -> None:
        self._caller = caller
        self._sharing = sharing
        self._recheck = recheck
        self._checked_at = asyncio.get_running_loop().time()

    async def require_job(self, job: Job) -> None:
        """Refuse a caller who may not change a job any more.

        Raises:
            Unauthorized, Forbidden: they lost their access.
        """
        await self.visible_jobs()
        if not self._caller.owns(job.owner):
            raise Forbidden(f"{job.id} is {job.owner}'s, and yours to change no more")

    async def visible_jobs(self) -> VisibleJobs | None:
        """Return which jobs the caller sees now; None: all.

        Raises:
            Unauthorized, Forbidden: they lost their access.
        """
        now = asyncio.get_running_loop().time()
        if now - self._checked_at >= RECHECK_S:
            self._caller = await asyncio.to_thread(self._recheck)
            self._checked_at = now
        return self._sharing.visible_jobs(self._caller)

    @property
    def caller(self) -> Principal:
        """The caller as they were when they were authenticated last."""
        return self._caller


async def stream_access_of(request: Request, context: InContext, identity: InIdentity) -> StreamAccess:
    """Return the caller's access, to be checked again."""
    cookie = cookie_of(request)
    given = credentials_of(request.headers) if cookie is None else TokenCredentials(text=cookie)
    look_up = _look_up_again(context.people, identity, given)

    def recheck() -> Principal:
        caller = look_up()
        authorise(request, caller)
        return caller

    return StreamAccess(identity.principal, context.sharing, recheck)


InStreamAccess = Annotated[StreamAccess, Depends(stream_access_of)]


def _look_up_again(
    people: People, identity: Identity, given: PasswordCredentials | TokenCredentials
) -> Callable[[], Principal]:
    """Return what looks up who the caller is now.

    It never compares a password again: that takes long, and would count as an attempt to log on.
    """
    if identity.by != "password":
        token = given.text if isinstance(given, TokenCredentials) else given.password
        return lambda: people.authenticator.authenticate_token(token).principal
    name = identity.principal.name

    def look_up() -> Principal:
        user = people.accounts.get(name).noun
        if not user.active or user.password_changed_at != identity.password_changed_at:
            raise Unauthorized(f"the account {name} is disabled, or has another password by now")
        return user.principal()

    return look_up
