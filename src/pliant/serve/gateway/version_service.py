"""One version of an endpoint as it is served: its queue, the links of its kernels, its meter, and what is overdue.

Knows no HTTP. Belongs to one event loop.
"""

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from pliant.core.job import TaskId
from pliant.core.serving import KernelHung, KernelReady, ServedEndpoint, ServedVersion, VersionLoad
from pliant.serve.gateway.dispatch import Dispatch, DispatchState, KernelRoom
from pliant.serve.gateway.gateway_share import ALONE, GatewayShare
from pliant.serve.gateway.inference import InferenceRequest
from pliant.serve.gateway.kernel_answer import answer_for_lost, read_answer, read_batch, read_ids, read_number
from pliant.serve.gateway.kernel_health import find_hang, needs_ping, waits_for_clients
from pliant.serve.gateway.kernel_link import KernelLink
from pliant.serve.gateway.meter import LoadMeter, QueueLevel
from pliant.serve.gateway.refused import TRY_AGAIN_S, ClientGone, Refused
from pliant.serve.gateway.running_streams import RunningStreams
from pliant.serve.gateway.tensors_said import clean_metadata
from pliant.serve.protocol.frames import BadKernelFrame, KernelFrame, KernelFrameKind

_SAID_TO_KERNELS: Final = ("batch_size", "pipe_size", "latency_objective_s", "execution_timeout_s")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOwner:
    """Whom a service speaks to."""

    clock: Callable[[], float]
    notify: Callable[[KernelReady | KernelHung], None]
    forget: Callable[[TaskId], None]
    """A kernel is gone; nobody needs to hear any more what it said."""
    urge: Callable[[], None]
    """Something waits, and no kernel is there."""
    share: GatewayShare = ALONE
    """Which of several gateway processes this is."""


class VersionService:
    """Serves one version.

    Args:
        endpoint: the endpoint.
        version: the version.
        owner: gives time, and hears what others should know.
    """

    def __init__(self, endpoint: ServedEndpoint, version: ServedVersion, owner: ServiceOwner) -> None:
        self.endpoint = endpoint
        self.version = version
        self.meter = LoadMeter(owner.clock())
        self.links: dict[TaskId, KernelLink] = {}
        self._owner = owner
        self._dispatch = Dispatch[InferenceRequest](endpoint.profile.max_queue, owner.share.waiting_for(version.job_id))
        self._by_room: dict[KernelRoom, KernelLink] = {}
        self._streams = RunningStreams()
        self._said: dict[str, Any] = {}
        self._no_kernel_since = owner.clock()

    @property
    def num_ready(self) -> int:
        """Kernels that take requests."""
        return self._dispatch.num_ready

    @property
    def metadata(self) -> dict[str, Any]:
        """What its model says of itself: the newest kernel, or what the server remembers."""
        return self._said or clean_metadata(self.version.metadata)

    def ready(self) -> list[TaskId]:
        """Return the kernels that have loaded the model and do not leave."""
        return [link.task_id for link in self.links.values() if link.room.accepts]

    def load(self, now: float) -> VersionLoad:
        """Return what happened since the last call."""
        return self.meter.report(now, self.version.job_id, _level_of(self._dispatch, now))

    def update(self, endpoint: ServedEndpoint, version: ServedVersion) -> None:
        """Serve it as it is now. If another job realises it, the kernels of the one before are cut off."""
        profile, before = endpoint.profile, self.endpoint.profile
        is_other_job = version.job_id != self.version.job_id
        self.endpoint, self.version = endpoint, version
        self._dispatch.max_queue = profile.max_queue
        if is_other_job:
            self.cut_kernels()
        elif profile != before:
            for link in self.links.values():
                self._welcome(link)
        self._pump(self._owner.clock())

    # requests

    def submit(self, request: InferenceRequest) -> None:
        """Queue a request.

        Raises:
            Refused: the queue is full.
        """
        if not self._dispatch.queue(request):
            self.meter.refuse()
            most, name = self.endpoint.profile.max_queue, self.endpoint.name
            raise Refused(429, f"{most} requests wait for {name!r} already; try again later", retry_after_s=TRY_AGAIN_S)
        self._pump(self._owner.clock())
        if not self._dispatch.num_ready and self._dispatch.num_queued == 1:
            self._owner.urge()

    def adopt(self, requests: Iterable[InferenceRequest]) -> None:
        """Take requests over that waited at another version."""
        self._dispatch.adopt(requests)
        self._pump(self._owner.clock())
        if self._dispatch.num_queued and not self._dispatch.num_ready:
            self._owner.urge()

    def end(self, request: InferenceRequest, outcome: Refused | ClientGone) -> None:
        """End a request that is not over: it is overdue, or nobody waits for it. One that is over is left alone."""
        if request.state not in (DispatchState.WAITING, DispatchState.HELD):
            return
        room = self._dispatch.cancel(request)
        now = self._owner.clock()
        self._settle(request, outcome, now)
        if room is not None:
            link = self._by_room[room]
            link.send(KernelFrameKind.CANCEL, {"ids": [request.number]})
            link.ping(now)
        self._pump(now)

    def release(self) -> list[InferenceRequest]:
        """Cut all kernels off, and return the requests that are left, for somebody else to adopt or to refuse."""
        self.cut_kernels()
        requests = self._dispatch.release()
        self._pump(self._owner.clock())
        return requests

    def take_waiting(self) -> list[InferenceRequest]:
        """Return the requests that wait, for somebody to adopt; they wait here no longer."""
        return self._dispatch.release()

    def refuse_waiting(self, refusal: Callable[[], Refused]) -> None:
        """End all requests that wait."""
        self.refuse(self._dispatch.release(), refusal)
        self._pump(self._owner.clock())

    def refuse(self, requests: Iterable[InferenceRequest], refusal: Callable[[], Refused]) -> None:
        """End requests that were released."""
        now = self._owner.clock()
        for request in requests:
            request.state = DispatchState.OVER
            self._settle(request, refusal(), now)

    # kernels

    def attach(self, link: KernelLink) -> None:
        """Take a kernel that has shown its job's token; an older link of the same kernel is cut."""
        if (older := self.links.get(link.task_id)) is not None:
            older.cut()
        link.events = self
        link.accept(self.endpoint.owner)
        self.links[link.task_id] = link
        self._by_room[link.room] = link
        self._welcome(link)

    def cut_kernels(self) -> None:
        """Close the links of all kernels."""
        for link in list(self.links.values()):
            link.cut()

    def take_frame(self, link: KernelLink, frame: KernelFrame) -> None:
        """Do what a kernel says.

        Raises:
            BadKernelFrame: it makes no sense.
        """
        now = self._owner.clock()
        link.received_at = now
        match frame.kind:
            case KernelFrameKind.RESULT:
                self._take_result(link, frame, now)
            case KernelFrameKind.PART:
                self._take_part(link, frame, now)
            case KernelFrameKind.RETURN:
                self._take_return(link, frame, now)
            case KernelFrameKind.READY:
                self._take_ready(link, frame)
            case KernelFrameKind.DRAIN:
                link.is_draining = True
                self._close(link, now)
            case KernelFrameKind.PONG:
                self._take_pong(link, now)
            case KernelFrameKind.PROGRESS:
                link.take_progress(now, is_expected=self._owner.share.of > 1)
            case _:
                raise BadKernelFrame(f"{frame.kind.name} is nothing that a kernel says after HELLO")
        self._pump(now)
        if link.is_draining and not len(link.room):
            link.cut()  # it waits for that, so that nothing can cross its leaving on the way

    def take_loss(self, link: KernelLink) -> None:
        """Give the requests of a kernel that is gone to others, or end them."""
        now = self._owner.clock()
        if self.links.get(link.task_id) is link:
            del self.links[link.task_id]
            self._owner.forget(link.task_id)
        del self._by_room[link.room]
        if link.room.accepts:
            self._close(link, now)
        profile = self.endpoint.profile
        for request in self._dispatch.lose(link.room, retry=profile.idempotent):
            self._settle(request, answer_for_lost(request, link.task_id, is_idempotent=profile.idempotent), now)
        self._pump(now)

    def take_unread(self, link: KernelLink) -> None:
        """Give nothing more to a kernel that does not read, and go on with one that does."""
        self._dispatch.review(link.room)
        self._pump(self._owner.clock())

    def tick(self, now: float) -> None:
        """End what is overdue."""
        self._end_cold_starts(now)
        profile = self.endpoint.profile
        for request in self._streams.overdue(now, most_s := profile.stream_timeout_s):
            message = f"the answer was not whole after {most_s:g} s; its owner can raise stream_timeout_s"
            self.end(request, Refused(504, message))
        for link in list(self.links.values()):
            if waits_for_clients(link):
                link.forgive(now)
            if (why := find_hang(link, now, profile.execution_timeout_s, self._owner.share.of)) is not None:
                self._end_hung(link, why)
            elif needs_ping(link, now):
                link.ping(now)
            link.rest(now)

    def forgive(self, now: float) -> None:
        """Let all clocks of kernels begin anew: it was this process that stood still."""
        for link in self.links.values():
            link.forgive(now)

    def _take_result(self, link: KernelLink, frame: KernelFrame, now: float) -> None:
        number = read_number(frame.header, "id")
        if (batch := read_batch(frame.header)) is not None:
            self.meter.batch(*batch)
        num_held = len(link.room)
        request = self._dispatch.finish(link.room, number)
        link.note_progress(now)
        if request is None:
            if len(link.room) == num_held:  # nobody has ever asked, or it has answered before
                link.note_unasked("an answer")
            return
        answer = read_answer(frame, request, link.task_id, self.version.number)
        self.meter.answer(now, answer.status, now - request.arrived_at, now - request.given_at)
        request.settle(answer)

    def _take_part(self, link: KernelLink, frame: KernelFrame, now: float) -> None:
        number = read_number(frame.header, "id")
        request = self._dispatch.find(link.room, number)
        if request is None:  # that is no progress: a kernel that goes on with what was cancelled may do it for ever
            if number not in link.room.abandoned:
                link.note_unasked("a part of an answer")
            return
        link.note_progress(now)
        self._streams.begin(request, link)
        part = read_answer(frame, request, link.task_id, self.version.number)
        if isinstance(part, Refused):
            self.end(request, part)
        elif not request.add_part(part):
            self.end(request, Refused(502, f"kernel {link.task_id} sends parts that the client has not read yet"))

    def _take_return(self, link: KernelLink, frame: KernelFrame, now: float) -> None:
        if not link.is_draining:
            raise BadKernelFrame("RETURN before DRAIN: it would be given the same requests again, for ever")
        for request in self._dispatch.give_back(link.room, read_ids(frame.header)):
            self._settle(request, Refused(502, f"kernel {link.task_id} gave a request back in the middle of it"), now)
        link.note_progress(now)

    def _take_ready(self, link: KernelLink, frame: KernelFrame) -> None:
        if link.is_ready:
            link.note_unasked("READY")
            return
        self._said = clean_metadata(frame.header.get("metadata"))
        link.is_ready = True
        self._dispatch.open(link.room)
        self._owner.notify(KernelReady(task_id=link.task_id, metadata=self._said))

    def _take_pong(self, link: KernelLink, now: float) -> None:
        self._dispatch.forget(link.room, link.take_pong())
        link.note_progress(now, is_answer=False)
        if link.room.abandoned:
            link.ping(now)

    def _close(self, link: KernelLink, now: float) -> None:
        self._dispatch.close(link.room)
        if not self._dispatch.num_ready:
            self._no_kernel_since = now

    def _welcome(self, link: KernelLink) -> None:
        profile, num = self.endpoint.profile, self._owner.share.of
        self._dispatch.set_credits(link.room, profile.batch_size * math.ceil(profile.pipe_size / num))
        said = {name: getattr(profile, name) for name in _SAID_TO_KERNELS}
        link.send(KernelFrameKind.WELCOME, said | {"shared": link.shares_memory, "num_gateways": num})

    # inside

    def _pump(self, now: float) -> None:
        """Give what can be given; then the load is as it is from now on."""
        for room, request in self._dispatch.assign():
            link = self._by_room[room]
            if link.busy_since is None:
                link.busy_since = now
            request.given_at = now
            header = {"id": request.number, **request.header}
            if request.deadline is not None:
                header["timeout_s"] = max(0.0, request.deadline - now)
            link.send(KernelFrameKind.REQUEST, header, request.body)
        self._dispatch.count_waiting()
        self.meter.level(now, self._dispatch.num_queued + self._dispatch.num_held)

    def _settle(self, request: InferenceRequest, outcome: Refused | ClientGone, now: float) -> None:
        if isinstance(outcome, Refused) and outcome.status >= 500:
            self.meter.fail(now - request.arrived_at)
        request.settle(outcome)

    def _end_cold_starts(self, now: float) -> None:
        if self._dispatch.num_ready or not self._dispatch.num_queued:
            return
        patience = self.endpoint.profile.cold_start_timeout_s
        since, waiting = self._no_kernel_since, self._dispatch.waiting()
        overdue = list(takewhile(lambda one: now - max(one.arrived_at, since) > patience, waiting))
        for request in overdue:
            why = self.version.why or self.endpoint.why_not or "its model is still being loaded"
            message = f"no kernel of {self.endpoint.name!r} was there within {patience:g} s: {why}"
            self.end(request, Refused(503, message, retry_after_s=max(1, round(patience / 10))))

    def _end_hung(self, link: KernelLink, why: str) -> None:
        _log.warning("kernel %s %s; it is given up", link.task_id, why)
        for request in list(link.room.held.values()):
            assert isinstance(request, InferenceRequest)
            self.end(request, Refused(504, f"kernel {link.task_id} {why}; it is replaced"))
        link.cut()
        self._owner.notify(KernelHung(task_id=link.task_id, why=why))


def _level_of(dispatch: Dispatch[InferenceRequest], now: float) -> QueueLevel:
    first = next(dispatch.waiting(), None)
    return QueueLevel(
        in_flight=dispatch.num_held,
        queued=dispatch.num_queued,
        num_ready=dispatch.num_ready,
        oldest_wait_s=0.0 if first is None else max(0.0, now - first.arrived_at),
    )
