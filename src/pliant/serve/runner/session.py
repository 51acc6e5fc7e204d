"""A kernel's conversation with the gateways (`KernelSession`): batches in, answers out, until it is told to go.

One thread does everything. It waits for the sockets when there is nothing to do; while a model computes, it looks at
them only when the model asks for one more request. Answers in parts go on in turns between batches (`streams`). The
conversation is that of `serve.protocol.frames`, with every gateway one (`link`).

    HELLO → the model is loaded meanwhile → WELCOME has come → READY → batches … → SIGTERM: DRAIN, RETURN → end

A batch has requests of all gateways, one of each in turn. A gateway that goes away takes its requests with it: what is
computed for them is dropped. The kernel keeps its model, serves the others, and introduces itself again as soon as that
gateway is there (`links`). SIGTERM may come at any moment: DRAIN and RETURN are sent by the signal's handler then, so
that others get the requests that have not been begun, however long the batch takes. What has begun is answered, also in
parts.

Knows no tensor, and does not look into bodies.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from pliant.serve.protocol.frames import KernelFrame, KernelFrameKind
from pliant.serve.runner.batch import BatchCap
from pliant.serve.runner.channel import GatewayChannel
from pliant.serve.runner.connection import GatewayConnection
from pliant.serve.runner.errors import error_line
from pliant.serve.runner.failures import FailuresInRow
from pliant.serve.runner.incoming import BatchSettings
from pliant.serve.runner.leaving import LeaveSignal
from pliant.serve.runner.link import GatewayLink
from pliant.serve.runner.links import GatewayLinks
from pliant.serve.runner.open_batch import AnswerGroup, OpenBatch
from pliant.serve.runner.request import KernelRequest, KernelResult, RequestLink, ServedModel

PATIENCE_S: Final = 600.0
"""So long all gateways may be away."""
FAREWELL_S: Final = 0.5
"""So long a kernel that leaves takes back requests that were on their way, unless the gateways close before."""
_NO_OUTPUT: Final = "the kernel returned no output"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelIdentity:
    """Who this kernel is."""

    task: str
    token: str = field(repr=False)
    """That of its job."""


class KernelSession:
    """The conversation of one kernel.

    Args:
        identity: what it shows.
        connect: returns a new connection to the gateway of a number, or raises OSError: FileNotFoundError if there is
            no such gateway.
        leave: tells when it has to go.
        clock: seconds, never set back.
        patience_s: so long all gateways may be away.
    """

    def __init__(
        self,
        identity: KernelIdentity,
        connect: Callable[[int], GatewayChannel],
        leave: LeaveSignal,
        clock: Callable[[], float],
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._leave = leave
        self._clock = clock
        self._began_at = clock()
        self._failures = FailuresInRow(clock)
        hello = {"task": identity.task, "token": identity.token}
        self._links = GatewayLinks(hello, connect, self._link, leave, clock, patience_s)
        self._cap = BatchCap()
        self.has_served = False
        """A model was ready; what happens after that is no failure to load."""

    @property
    def is_leaving(self) -> bool:
        """It was told to go."""
        return self._leave.is_set

    def begin(self) -> None:
        """Introduce the kernel to the gateways that are there, before its model is loaded."""
        self._links.begin()

    def serve(self, model: ServedModel) -> None:
        """Answer requests with this model until the kernel has to go; all that it has begun is answered then.

        Raises:
            NoGateway: none came for `patience_s`.
            KernelBroken: the model has failed several batches in a row.
        """
        load_s = self._clock() - self._began_at
        self.has_served = True
        self._leave.loaded(self._links.settle_idle)
        self._links.be_ready({"metadata": model.metadata.to_json(), "load_s": round(load_s, 6)})
        self._work(model)
        self._farewell()
        self.close()

    def close(self) -> None:
        """Close the connections; also in a child of this process, which is no kernel."""
        self._links.close()

    def _link(
        self, number: int, connection: GatewayConnection, on_welcome: Callable[[GatewayLink], None]
    ) -> GatewayLink:
        return GatewayLink(number, connection, self._leave, self._failures, self._clock, on_welcome)

    # -- batches --------------------------------------------------------------------------------------------------

    def _work(self, model: ServedModel) -> None:
        """Compute batches, and parts of streams, until the kernel has to go and no stream is left that has begun."""
        while not (is_leaving := self._leave.is_set) or any(len(link.streams) for link in self._links.open):
            look_again_s = self._links.tick()
            if self._is_idle():
                for link in self._links.wait(look_again_s, is_leaving=is_leaving):
                    link.receive()
            else:
                self._links.receive()
            if (request := self._next_waiting()) is not None:
                self._compute(model, request)
                if self._links.are_several:
                    self._links.catch_up()
            self._take_turn()

    def _is_idle(self) -> bool:
        return not self._links.has_waiting and not any(link.streams.turn() for link in self._links.open)

    def _take_turn(self) -> None:
        """Send one part of every stream that may go on, and hear what comes meanwhile."""
        for link in self._links.open:
            for number in link.streams.turn():
                with self._leaving_if_broken():
                    link.streams.step(number)
                self._links.catch_up()

    @contextmanager
    def _leaving_if_broken(self) -> Iterator[None]:
        """Hand back what has not been begun, if the model is broken, or ends the process."""
        try:
            yield
        except BaseException:
            self._hand_back()
            raise

    def _compute(self, model: ServedModel, first: KernelRequest) -> None:
        batch = self._open_batch(model, first)
        try:
            model.serve(batch)
        except Exception as error:  # noqa: BLE001 (a model may raise anything; its callers are told what)
            batch.fail_rest(500, error_line(error))
            with self._leaving_if_broken():
                self._failures.note(error)
        except BaseException as error:
            batch.fail_rest(500, f"the kernel has ended itself: {error_line(error)}")
            self._hand_back()
            raise
        else:
            if batch.fail_rest(500, _NO_OUTPUT):
                print(f"pliant: {_NO_OUTPUT}", file=sys.stderr)
            if batch.has_answered:  # streams that it began have still to show what they do
                self._failures.forget()

    def _open_batch(self, model: ServedModel, first: KernelRequest) -> OpenBatch:
        settings = self._settings()
        limit = min(settings.batch_size, model.metadata.max_batch_size or settings.batch_size)
        ahead = [first]
        return OpenBatch(
            self._cap.limit(limit, settings.latency_objective_s),
            lambda: ahead.pop() if ahead else self._next_now(),
            partial(self._leaves, settings),
            self._clock,
            _stream,
        )

    def _settings(self) -> BatchSettings:
        """Return how the gateways want batches: all say the same, but for the moment in which it changes."""
        said = (link.settings for link in self._links.open if link.settings is not None)
        return next(said, BatchSettings())

    def _next_now(self) -> KernelRequest | None:
        """Return one more request for a batch, if one is there by now."""
        if not self._leave.is_set and not self._links.has_waiting:
            self._links.receive()
        return self._next_waiting()

    def _next_waiting(self) -> KernelRequest | None:
        """Return the oldest request that somebody waits for, of the gateway whose turn it is."""
        while not self._leave.is_set and (taken := self._links.take()) is not None:
            request, result = taken
            if result is None:
                return request
            _answer([(request, _result(request, result.header, result.body))])
        return None

    def _leaves(self, settings: BatchSettings, group: AnswerGroup) -> None:
        """Send the answers of a group; the first says what they cost."""
        num = len(group.answers)
        self._cap.observe(num, group.seconds, objective_s=settings.latency_objective_s, was_cut=self._links.has_waiting)
        cost: dict[str, Any] = {"busy_s": round(group.seconds, 6), "batch": num}
        answers = []
        for request, result in group.answers:
            answers.append((request, _result(request, result.header | cost, result.body)))
            cost = {}
        _answer(answers)

    # -- leaving --------------------------------------------------------------------------------------------------

    def _hand_back(self) -> None:
        """Leave, though nobody has asked for it."""
        self._leave.ask()
        self._links.settle()

    def _farewell(self) -> None:
        """Hand back requests that were on their way, until the gateways close or the time is over."""
        self._links.settle()
        until = self._clock() + FAREWELL_S
        while any(link.is_ready and link.is_open for link in self._links.open):
            if (left_s := until - self._clock()) <= 0:
                break
            for link in self._links.wait(left_s, is_leaving=True):
                link.receive()


def _result(request: KernelRequest, header: Mapping[str, Any], body: bytes) -> KernelFrame:
    return KernelFrame(KernelFrameKind.RESULT, {"id": request.id, **header}, body)


def _answer(answers: list[tuple[KernelRequest, KernelFrame]]) -> None:
    """Send answers to whoever has asked."""
    links: dict[RequestLink | None, list[KernelFrame]] = {}
    for request, frame in answers:
        links.setdefault(request.link, []).append(frame)
    for link, frames in links.items():
        if link is not None:
            link.answer(frames)


def _stream(request: KernelRequest, parts: Iterator[KernelResult]) -> None:
    if request.link is not None:
        request.link.stream(request, parts)
