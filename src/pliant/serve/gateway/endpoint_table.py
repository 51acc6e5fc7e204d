"""The endpoints that a gateway serves, as the server last said; what that changes for requests that wait.

    it has no traffic       and no kernel: requests that wait for no version in particular go to another one
    a version is gone       its kernels are cut off; requests that wait for no version in particular go to another one
    an endpoint is stopped  requests that wait are answered 503
    an endpoint is gone     requests that wait are answered 404

Knows no HTTP and no socket.
"""

import hmac
from collections.abc import Callable, Iterator
from typing import Final

from pliant.core.job import JobId, TaskId
from pliant.core.serving import RequestLimits, Serve, ServedEndpoint
from pliant.serve.gateway.inference import InferenceRequest
from pliant.serve.gateway.refused import Refused
from pliant.serve.gateway.request_limiter import RequestLimiter
from pliant.serve.gateway.traffic import WeightedTurns
from pliant.serve.gateway.version_service import ServiceOwner, VersionService

_TRY_STOPPED_AGAIN_S = 30
_MORE_LINKS: Final = 16
"""Kernels that leave are there besides those that take their places."""
MAX_LINKS: Final = 8192
"""Connections of all kernels; each is an open file, which connections of clients need as well."""
MAX_OWNER_LINKS: Final = 2048
"""Of these so many of one owner's kernels."""
_SURE_LINKS: Final = 64
"""An owner may have so many however many others have."""


class EndpointService:
    """Serves one endpoint."""

    limiter: RequestLimiter
    """Counts its requests, whatever token they show."""

    def __init__(self, endpoint: ServedEndpoint, owner: ServiceOwner) -> None:
        self.endpoint = endpoint
        self.versions: dict[int, VersionService] = {}
        self._owner = owner
        self._turns = WeightedTurns()
        use = owner.share.use_of("endpoint", endpoint.name.encode())
        self.limiter = RequestLimiter(RequestLimits(), owner.clock, f"to {endpoint.name!r}", use)
        self.update(endpoint)

    def choose(self, number: int | None) -> VersionService:
        """Return the version that a request goes to.

        Args:
            number: that it names.

        Raises:
            Refused: there is none.
        """
        if number is not None and number not in self.versions:
            there = ", ".join(map(str, self.versions)) or "none"
            raise Refused(404, f"no version {number} of {self.endpoint.name!r} serves; those that do: {there}")
        if not self.endpoint.started:
            raise self.why_not()
        number = self._turns.next() if number is None else number
        if number is None:
            raise self.why_not()
        return self.versions[number]

    def show(self, number: int | None) -> VersionService | None:
        """Return the version that a question is about; None if none is there and none was named.

        Raises:
            Refused: there is no such version.
        """
        if number is None:
            return max(self.versions.values(), key=lambda one: (one.version.weight, one.version.number), default=None)
        if number in self.versions:
            return self.versions[number]
        raise Refused(404, f"no version {number} of {self.endpoint.name!r} serves; ask without one to see which do")

    def why_not(self) -> Refused:
        """Return why nothing is served."""
        name = self.endpoint.name
        default = "none of its versions serves" if self.endpoint.started else "it is stopped; start it first"
        message = f"endpoint {name!r} takes no requests: {self.endpoint.why_not or default}"
        return Refused(503, message, retry_after_s=_TRY_STOPPED_AGAIN_S)

    def update(self, endpoint: ServedEndpoint) -> None:
        """Serve it as it is now."""
        self.endpoint = endpoint
        profile = endpoint.profile
        self.limiter.change(RequestLimits(max_rate=profile.max_rate, max_concurrent=profile.max_concurrent))
        wanted = {version.number: version for version in endpoint.versions}
        gone = [self.versions.pop(number) for number in list(self.versions) if number not in wanted]
        for number, version in wanted.items():
            if number in self.versions:
                self.versions[number].update(endpoint, version)
            else:
                self.versions[number] = VersionService(endpoint, version, self._owner)
        self._turns.set({version.number: version.weight for version in endpoint.versions})
        for service in gone:
            self._move(service)
        for service in self.versions.values():
            if self._turns.has_any and not service.version.weight and not service.num_ready:
                self._move_waiting(service)
        if not endpoint.started:
            for service in self.versions.values():
                service.refuse_waiting(self.why_not)

    def remove(self) -> None:
        """Serve it no longer."""
        for service in self.versions.values():
            service.refuse(service.release(), lambda: unknown(self.endpoint.name))
        self.versions = {}

    def _move_waiting(self, service: VersionService) -> None:
        """Let requests not wait for the kernels of a version that has no traffic any more, but those that name it."""
        waiting = service.take_waiting()
        service.adopt([request for request in waiting if request.names_version])
        for request in (one for one in waiting if not one.names_version):
            turn = self._turns.next()
            assert turn is not None, "the caller has looked whether another one has traffic"
            self.versions[turn].adopt((request,))

    def _move(self, service: VersionService) -> None:
        """Give the requests of a version that is gone to the others, but those that want no other."""
        number = service.version.number
        bound: list[InferenceRequest] = []
        for request in service.release():
            turn = None if request.names_version or not self.endpoint.started else self._turns.next()
            if turn is None:
                bound.append(request)
            else:
                self.versions[turn].adopt((request,))
        message = f"version {number} of {self.endpoint.name!r} serves no longer"
        service.refuse(
            [one for one in bound if one.names_version and self.endpoint.started], lambda: Refused(404, message)
        )
        service.refuse([one for one in bound if one.outcome is None], self.why_not)


class EndpointTable:
    """All endpoints.

    Args:
        owner: of all services.
    """

    def __init__(self, owner: ServiceOwner) -> None:
        self.is_known = False
        """The server has said what there is."""
        self._owner = owner
        self._endpoints: dict[str, EndpointService] = {}
        self._jobs: dict[JobId, VersionService] = {}

    def __iter__(self) -> Iterator[EndpointService]:
        return iter(self._endpoints.values())

    def find(self, name: str) -> EndpointService | None:
        """Return an endpoint by its name."""
        return self._endpoints.get(name)

    def services(self) -> Iterator[VersionService]:
        """Yield all versions of all endpoints."""
        for endpoint in self._endpoints.values():
            yield from endpoint.versions.values()

    def each_service(self, do: Callable[[VersionService], None]) -> None:
        """Do something with all versions; it may change what there is."""
        for service in list(self.services()):
            do(service)

    def apply(self, serve: Serve) -> None:
        """Serve what there is now."""
        self.is_known = True
        wanted = {endpoint.name: endpoint for endpoint in serve.endpoints}
        for name in [name for name in self._endpoints if name not in wanted]:
            self._endpoints.pop(name).remove()
        for name, endpoint in wanted.items():
            if name in self._endpoints:
                self._endpoints[name].update(endpoint)
            else:
                self._endpoints[name] = EndpointService(endpoint, self._owner)
        self._jobs = {service.version.job_id: service for service in self.services()}

    def find_job(self, task_id: TaskId, token: str) -> VersionService | None:
        """Return what a kernel serves that shows this token; None if it is no known job's, or too many show it."""
        service = self._jobs.get(JobId(task_id.rpartition(".")[0]))
        if service is None or not hmac.compare_digest(service.version.token.encode(), token.encode(errors="replace")):
            return None
        return service if task_id in service.links or self._has_room(service) else None

    def _has_room(self, service: VersionService) -> bool:
        """Tell whether one more may connect; whoever has a job's token can speak for kernels that there are not."""
        num_all = num_own = 0
        for one in self.services():
            num_all += len(one.links)
            num_own += len(one.links) if one.endpoint.owner == service.endpoint.owner else 0
        is_crowded = num_own >= MAX_OWNER_LINKS or (num_all >= MAX_LINKS and num_own >= _SURE_LINKS)
        return not is_crowded and len(service.links) < 2 * service.endpoint.profile.kernel_max + _MORE_LINKS


def unknown(name: str) -> Refused:
    """Return the answer for an endpoint that is not there, or that the caller may not see: the same for both."""
    return Refused(404, f"no endpoint is called {name[:60]!r}, or it is not shared with you")
