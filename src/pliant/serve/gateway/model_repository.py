"""Models that clients load and unload: the repository of the Open Inference Protocol, as Triton extends it.

A model is an endpoint. To load it is to start it, to unload it is to stop it, as `pliant endpoints start` and `stop`
do: the server decides whether the token may, and writes it down. Here a caller waits until it is so:

    load      its model is ready, as the protocol says it: a kernel takes requests, or none has to, since the first
              request brings one; or it has failed. A caller waits as long as a request would for the first kernel
    unload    requests are refused

Models come by deployments, so nothing that a load brings along for one is taken. Belongs to one event loop.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from pliant.core.serving import SwitchOutcome
from pliant.serve.gateway.access import EndpointAccess, Headers, read_token
from pliant.serve.gateway.callers import CallerRights
from pliant.serve.gateway.description import describe_ready
from pliant.serve.gateway.endpoint_table import EndpointTable, unknown
from pliant.serve.gateway.refused import TRY_AGAIN_S, Refused

MAX_BODY: Final = 64 << 10
"""Of a request to load or to unload: it says nothing but a name."""
MAX_AT_ONCE: Final = 64
MAX_OF_CALLER: Final = 8
"""Of these at once."""
MOST_S: Final = 600.0
"""Nobody waits longer for a model."""
_UNLOAD_S: Final = 10.0


class EndpointSwitch(Protocol):
    """Starts and stops endpoints: the server."""

    async def switch(self, token: str, endpoint: str, *, start: bool, address: str) -> SwitchOutcome:
        """Do it for whoever holds a token, and return what became of it.

        Raises:
            Unavailable: no answer came in time.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange:
    """What somebody wants of a model."""

    name: str
    is_load: bool
    address: str = ""
    """From where they ask."""
    patience_s: float | None = None
    """So long they wait; None: they do not say."""


@dataclass(slots=True, kw_only=True)
class _Wait:
    change: ModelChange
    revision: int
    deadline: float
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class ModelRepository:
    """Loads and unloads models.

    Args:
        table: what is served.
        access: who may see which endpoints.
        switch: starts and stops them.
        clock: seconds that only grow.
    """

    def __init__(
        self, table: EndpointTable, access: EndpointAccess, switch: EndpointSwitch, clock: Callable[[], float]
    ) -> None:
        self._table = table
        self._access = access
        self._switch = switch
        self._clock = clock
        self._by_caller: Counter[str] = Counter()
        self._waits: list[_Wait] = []
        self._has_ended = False

    async def change(self, change: ModelChange, headers: Headers, rights: CallerRights) -> None:
        """Load or unload a model, and return when it is so.

        Args:
            change: what is wanted.
            headers: show the token.
            rights: of who asks.

        Raises:
            Refused: they may not, it is not there, it does not load, or not in time.
            Unavailable: the server, which would do it, does not answer.
        """
        endpoint = self._access.find(change.name, rights)
        patience_s = min(endpoint.endpoint.profile.cold_start_timeout_s, MOST_S) if change.is_load else _UNLOAD_S
        with self._counted(rights.name):
            token = read_token(headers)
            outcome = await self._switch.switch(token, change.name, start=change.is_load, address=change.address)
            if outcome.status != 200:
                raise Refused(outcome.status, outcome.message, retry_after_s=outcome.retry_after_s)
            if change.patience_s is not None:
                patience_s = min(patience_s, change.patience_s)
            wait = _Wait(change=change, revision=outcome.revision, deadline=self._clock() + patience_s)
            self._waits.append(wait)
            try:
                self._look(wait, self._clock())
                await wait.done
            finally:
                self._waits.remove(wait)

    def tick(self, now: float) -> None:
        """End the waits that are over."""
        for wait in self._waits:
            self._look(wait, now)

    def end(self) -> None:
        """Let nobody wait any more: the gateway ends."""
        self._has_ended = True
        self.tick(self._clock())

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        if self._by_caller[name] >= MAX_OF_CALLER or self._by_caller.total() >= MAX_AT_ONCE:
            message = "many models are being loaded and unloaded already; wait until one of them is"
            raise Refused(429, message, retry_after_s=TRY_AGAIN_S)
        self._by_caller[name] += 1
        try:
            yield
        finally:
            self._by_caller[name] -= 1
            if not self._by_caller[name]:
                del self._by_caller[name]

    def _look(self, wait: _Wait, now: float) -> None:
        if wait.done.done():
            return
        try:
            if self._is_over(wait, now):
                wait.done.set_result(None)
        except Refused as refused:
            wait.done.set_exception(refused)

    def _is_over(self, wait: _Wait, now: float) -> bool:
        """Tell whether a model is as it was to be.

        Raises:
            Refused: it will not be, or the time is over.
        """
        name, is_load = wait.change.name, wait.change.is_load
        if self._has_ended:
            raise Refused(503, "this gateway ends; it is done all the same, so ask the next one", retry_after_s=5)
        endpoint = self._table.find(name)
        if endpoint is None:
            if is_load:
                raise unknown(name)
            return True
        service = endpoint.show(None)
        if endpoint.endpoint.revision >= wait.revision:
            if not is_load:
                return True
            if not endpoint.endpoint.started or endpoint.endpoint.why_not:
                raise endpoint.why_not()
            if describe_ready(endpoint, service)[0]:
                return True
        if now < wait.deadline:
            return False
        if not is_load:
            return True  # it is kept so, and the gateway hears of it late
        why = service.version.why if service is not None and service.version.why else "its model is still being loaded"
        raise Refused(503, f"{name!r} is started, and not ready yet: {why}; ask whether it is", retry_after_s=5)


def read_parameters(body: bytes | bytearray) -> frozenset[str]:
    """Return the names of the parameters in the JSON of a request to load or to unload.

    Raises:
        Refused: it is none.
    """
    try:
        said = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is no JSON ({error}); send {{}} or nothing") from error
    parameters = said.get("parameters") if isinstance(said, dict) else said
    if parameters is not None and not isinstance(parameters, dict):
        raise Refused(400, "the body is no object whose `parameters` are one; send {} or nothing")
    return frozenset(parameters or ())


def refuse_overrides(names: frozenset[str]) -> None:
    """Refuse a load that brings something for the model.

    Raises:
        Refused: it does.
    """
    if names:
        shown = ", ".join(sorted(names))
        raise Refused(400, f"a load takes no parameters here ({shown:.200} was sent); {DEPLOY}")


DEPLOY: Final = "another model, or other settings of it, are a version of their own: `pliant deploy WHAT --name NAME`"
