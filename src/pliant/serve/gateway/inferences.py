"""All requests that are under way, whatever protocol they came by: their numbers, their patience, and whether anybody
still waits.

Most requests are over within a tick. Only for those that are not does anybody look whether their client is still there,
which takes a task of its own. Belongs to one event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pliant.serve.gateway.admission import AdmittedRequest
from pliant.serve.gateway.inference import Body, InferenceRequest
from pliant.serve.gateway.refused import TRY_AGAIN_S, ClientGone, Refused
from pliant.serve.gateway.version_service import VersionService


class UnderWay:
    """A request at a version, until the end of the context; if it is not over by then, nobody waits for it.

    Args:
        service: the version.
        request: the request.
        gone: returns when the client is gone; None if nobody can know.
    """

    __slots__ = ("gone", "is_limited", "request", "service", "watch")

    def __init__(
        self, service: VersionService, request: InferenceRequest, gone: Callable[[], Awaitable[None]] | None
    ) -> None:
        self.service = service
        self.request = request
        self.gone = gone
        self.is_limited = False
        """Its deadline is the endpoint's, which comes before the client's."""
        self.watch: asyncio.Task[None] | None = None

    def begin_watch(self) -> None:
        """Look for the end of the client from now on."""
        if self.gone is not None and self.watch is None and self.request.outcome is None:
            self.watch = asyncio.get_running_loop().create_task(self._await_end(self.gone))

    async def _await_end(self, gone: Callable[[], Awaitable[None]]) -> None:
        await gone()
        self.service.end(self.request, ClientGone())


class Inferences:
    """Begins and ends requests.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._number = 0
        self._fresh: dict[int, UnderWay] = {}
        """Those that have begun since the last tick."""
        self._impatient: dict[int, UnderWay] = {}

    def begin(
        self,
        service: VersionService,
        header: dict[str, Any],
        body: Body,
        *,
        patience_s: float | None = None,
        names_version: bool = False,
        gone: Callable[[], Awaitable[None]] | None = None,
        admitted: AdmittedRequest | None = None,
    ) -> UnderWay:
        """Queue a request at a version; `finish` has to follow.

        Raises:
            Refused: the queue is full.
        """
        now, most = self._clock(), service.endpoint.profile.max_request_s
        is_limited = most is not None and (patience_s is None or most < patience_s)
        patience_s = most if is_limited else patience_s
        self._number += 1
        request = InferenceRequest(
            self._number,
            header=header,
            body=body,
            arrived_at=now,
            deadline=None if patience_s is None else now + patience_s,
            names_version=names_version,
            admitted=admitted,
        )
        service.submit(request)
        under_way = UnderWay(service, request, gone)
        under_way.is_limited = is_limited
        self._fresh[request.number] = under_way
        if patience_s is not None:
            self._impatient[request.number] = under_way
        return under_way

    def finish(self, under_way: UnderWay) -> None:
        """End a request, if it is not over."""
        if under_way.watch is not None:
            under_way.watch.cancel()
        self._fresh.pop(under_way.request.number, None)
        self._impatient.pop(under_way.request.number, None)
        if under_way.request.outcome is None:
            under_way.service.end(under_way.request, ClientGone())

    def tick(self, now: float) -> None:
        """Look after those that take longer."""
        fresh, self._fresh = self._fresh, {}
        for under_way in fresh.values():
            under_way.begin_watch()
        for under_way in list(self._impatient.values()):
            deadline = under_way.request.deadline
            if deadline is not None and now >= deadline:
                under_way.service.end(under_way.request, _too_late(under_way, deadline))


def _too_late(under_way: UnderWay, deadline: float) -> Refused:
    within = f"no answer within the {deadline - under_way.request.arrived_at:g} s that"
    if not under_way.is_limited:
        return Refused(504, f"{within} the client waits")
    message = f"{within} a request to {under_way.service.endpoint.name!r} may take (max_request_s)"
    return Refused(504, message, retry_after_s=TRY_AGAIN_S)
