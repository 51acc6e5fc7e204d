"""A kernel's conversation with the gateway (`KernelSession`): batches in, answers out, until it is told to go.

One thread does everything. It waits for the socket when there is nothing to do; while a model computes, it looks at the
socket only when the model asks for one more request. Answers in parts go on in turns between batches (`streams`). The
conversation is that of `serve.protocol.frames`.

    HELLO → the model is loaded meanwhile → WELCOME has come → READY → batches … → SIGTERM: DRAIN, RETURN → end

A gateway that goes away takes its requests with it: what is computed for them is dropped. The kernel keeps its model,
and introduces itself again as soon as a gateway is there. SIGTERM may come at any moment: DRAIN and RETURN are sent by
the signal's handler then, so that others get the requests that have not been begun, however long the batch takes. What
has begun is answered, also in parts.

Knows no tensor, and does not look into bodies.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from socket import socket
from typing import Any, Final

from pliant.serve.protocol.frames import KernelFrame, KernelFrameKind
from pliant.serve.runner.backlog import Backlog
from pliant.serve.runner.batch import BatchCap
from pliant.serve.runner.connection import GatewayConnection
from pliant.serve.runner.errors import GatewayLost, NoGateway, error_line
from pliant.serve.runner.failures import FailuresInRow
from pliant.serve.runner.incoming import BatchSettings, read_ids, read_request, read_settings
from pliant.serve.runner.leaving import LeaveSignal
from pliant.serve.runner.open_batch import AnswerGroup, OpenBatch
from pliant.serve.runner.request import KernelRequest, ServedModel
from pliant.serve.runner.streams import PartStreams

PATIENCE_S: Final = 600.0
"""So long a gateway may be away."""
FAREWELL_S: Final = 0.5
"""So long a kernel that leaves takes back requests that were on their way, unless the gateway closes before."""
_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 1.0
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
        connect: returns a new connection to the gateway, or raises OSError.
        leave: tells when it has to go.
        clock: seconds, never set back.
        patience_s: so long a gateway may be away.
    """

    def __init__(
        self,
        identity: KernelIdentity,
        connect: Callable[[], socket],
        leave: LeaveSignal,
        clock: Callable[[], float],
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._identity = identity
        self._connect = connect
        self._leave = leave
        self._clock = clock
        self._patience_s = patience_s
        self._began_at = clock()
        self._connection: GatewayConnection | None = None
        self._num_connections = 0
        self._settings: BatchSettings | None = None
        self._has_drained = False
        self._backlog = Backlog()
        self._failures = FailuresInRow(clock)
        self._streams = PartStreams(self._answer, self._failures, clock)
        self._cap = BatchCap()
        self.has_served = False
        """A model was ready; what happens after that is no failure to load."""

    @property
    def is_leaving(self) -> bool:
        """It was told to go."""
        return self._leave.is_set

    def begin(self) -> None:
        """Introduce the kernel, if a gateway is there, before its model is loaded."""
        try:
            self._introduce()
        except (OSError, GatewayLost):
            self._drop()  # `serve` tries again

    def serve(self, model: ServedModel) -> None:
        """Answer requests with this model until the kernel has to go; all that it has begun is answered then.

        Raises:
            NoGateway: none came for `patience_s`.
            KernelBroken: the model has failed several batches in a row.
        """
        load_s = self._clock() - self._began_at
        self.has_served = True
        self._leave.loaded(self._settle_if_idle)
        while not self._leave.is_set:
            try:
                self._establish(model, load_s)
                self._work(model)
            except GatewayLost as lost:
                self._drop()
                if self.is_leaving:
                    break  # it was told, and has closed before the kernel has
                print(f"pliant: {lost}", file=sys.stderr)
                self._leave.wait(None, _FIRST_PAUSE_S)  # a gateway that closes at once is not asked without a break
        with suppress(GatewayLost):
            self._farewell()
        self.close()

    def close(self) -> None:
        """Close the connection; also in a child of this process, which is no kernel."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- connections ----------------------------------------------------------------------------------------------

    def _introduce(self) -> None:
        connection = GatewayConnection(self._connect())
        self._connection, self._settings, self._has_drained = connection, None, False
        self._num_connections += 1
        connection.introduce({"task": self._identity.task, "token": self._identity.token})

    def _establish(self, model: ServedModel, load_s: float) -> None:
        """Be connected, welcomed and ready, or told to go.

        Raises:
            NoGateway: that did not come about in time.
        """
        give_up_at, pause_s, why = self._clock() + self._patience_s, _FIRST_PAUSE_S, ""
        while not self._leave.is_set:
            try:
                self._try_to_establish(model, load_s, give_up_at)
            except (OSError, GatewayLost) as error:
                self._drop()
                why = error_line(error)
            else:
                break
            if self._clock() >= give_up_at:
                raise NoGateway(f"no gateway has taken this kernel for {self._patience_s:g} s; the last attempt: {why}")
            self._leave.wait(None, pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _try_to_establish(self, model: ServedModel, load_s: float, give_up_at: float) -> None:
        if self._connection is None:
            self._introduce()
        self._await_welcome(give_up_at)
        if not self._leave.is_set:
            header = {"metadata": model.metadata.to_json(), "load_s": round(load_s, 6)}
            self._send(KernelFrameKind.READY, header)

    def _await_welcome(self, give_up_at: float) -> None:
        while self._settings is None and not self._leave.is_set:
            left_s = give_up_at - self._clock()
            if left_s <= 0:
                raise GatewayLost("the gateway does not answer")
            self._leave.wait(self._open().fileno(), left_s)
            self._receive()

    def _drop(self) -> None:
        """Forget the connection and all that came by it."""
        self.close()
        self._backlog.give_back()
        self._streams.drop()

    def _open(self) -> GatewayConnection:
        if self._connection is None:
            raise GatewayLost("the connection to the gateway is gone")
        return self._connection

    def _send(self, kind: KernelFrameKind, header: dict[str, Any], body: bytes = b"") -> None:
        self._open().send(kind, header, body)

    # -- what comes -----------------------------------------------------------------------------------------------

    def _receive(self) -> None:
        """Take in what has come by now."""
        for frame in self._open().receive():
            self._take_in(frame)
        self._settle()

    def _take_in(self, frame: KernelFrame) -> None:
        header = frame.header
        match frame.kind:
            case KernelFrameKind.WELCOME:
                self._settings = read_settings(header, self._settings or BatchSettings())
                self._open().share(is_taken=header.get("shared") is True)
            case KernelFrameKind.REQUEST:
                self._backlog.add(read_request(frame, self._clock(), self._num_connections))
            case KernelFrameKind.CANCEL:
                self._backlog.cancel(read_ids(header))
                self._streams.cancel(read_ids(header))
            case KernelFrameKind.TAKEN:
                self._streams.take_note(header.get("id"), header.get("num"))
            case KernelFrameKind.PING:
                self._send(KernelFrameKind.PONG, {})
            case _:
                raise GatewayLost(f"the gateway has sent {frame.kind.name}, which only kernels send")

    # -- batches --------------------------------------------------------------------------------------------------

    def _work(self, model: ServedModel) -> None:
        """Compute batches, and parts of streams, until the kernel has to go and no stream is left that has begun."""
        while not self._leave.is_set or len(self._streams):
            look_again_s = self._open().rest(self._clock())
            if not len(self._backlog) and not self._streams.turn():
                self._leave.wait(self._open().fileno(), look_again_s)
            self._receive()
            if (request := self._next_waiting()) is not None:
                self._compute(model, request)
            self._take_turn()

    def _take_turn(self) -> None:
        """Send one part of every stream that may go on, and hear what comes meanwhile."""
        for number in self._streams.turn():
            with self._leaving_if_broken():
                self._streams.step(number)
            self._receive()

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
        settings = self._settings or BatchSettings()
        limit = min(settings.batch_size, model.metadata.max_batch_size or settings.batch_size)
        ahead = [first]
        return OpenBatch(
            self._cap.limit(limit, settings.latency_objective_s),
            lambda: ahead.pop() if ahead else self._next_now(),
            partial(self._leaves, settings),
            self._clock,
            self._streams.add,
        )

    def _next_now(self) -> KernelRequest | None:
        """Return one more request for a batch, if one is there by now."""
        if not len(self._backlog) and not self._leave.is_set:
            try:
                self._receive()
            except GatewayLost:
                return None  # `_work` finds out again
        return self._next_waiting()

    def _next_waiting(self) -> KernelRequest | None:
        """Return the oldest request that somebody waits for."""
        while not self._leave.is_set and (taken := self._backlog.take(self._clock())) is not None:
            request, result = taken
            if result is None:
                return request
            self._answer(request, result.header, result.body, KernelFrameKind.RESULT)
        return None

    def _leaves(self, settings: BatchSettings, group: AnswerGroup) -> None:
        """Send the answers of a group; the first says what they cost."""
        num = len(group.answers)
        was_cut = len(self._backlog) > 0
        self._cap.observe(num, group.seconds, objective_s=settings.latency_objective_s, was_cut=was_cut)
        cost: dict[str, Any] = {"busy_s": round(group.seconds, 6), "batch": num}
        answers = []
        for request, result in group.answers:
            answers.append((request, _frame_of(request, result.header | cost, result.body)))
            cost = {}
        self._send_all(answers)

    def _answer(self, request: KernelRequest, header: dict[str, Any], body: bytes, kind: KernelFrameKind) -> None:
        """Send an answer, or a part of one."""
        self._send_all([(request, _frame_of(request, header, body, kind))])

    def _send_all(self, answers: Iterable[tuple[KernelRequest, KernelFrame]]) -> None:
        """Send answers, as far as the gateway that asked is still there."""
        frames = [frame for request, frame in answers if request.connection == self._num_connections]
        if self._connection is None or not frames:
            return
        try:
            self._connection.send_all(frames)
            self._settle()
        except GatewayLost:
            self._drop()  # the gateway knows, or is gone

    # -- leaving --------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """If the kernel has to go: say so, once, and hand back what has not been begun."""
        if not self._leave.is_set or self._connection is None:
            return
        if not self._has_drained:
            self._has_drained = True
            self._send(KernelFrameKind.DRAIN, {})
        if ids := self._backlog.give_back() + self._streams.give_back():
            self._send(KernelFrameKind.RETURN, {"ids": ids})

    def _hand_back(self) -> None:
        """Leave, though nobody has asked for it."""
        self._leave.ask()
        with suppress(GatewayLost):
            self._settle()

    def _settle_if_idle(self) -> None:
        """Do that from the signal's handler, unless it has come in the middle of a frame: the sender does it then."""
        if self._connection is not None and not self._connection.is_sending:
            with suppress(GatewayLost):
                self._settle()

    def _farewell(self) -> None:
        """Hand back requests that were on their way, until the gateway closes or the time is over."""
        self._settle()
        until = self._clock() + FAREWELL_S
        while self._connection is not None and (left_s := until - self._clock()) > 0:
            self._leave.wait(self._connection.fileno(), left_s)
            self._receive()


def _frame_of(
    request: KernelRequest, header: Mapping[str, Any], body: bytes, kind: KernelFrameKind = KernelFrameKind.RESULT
) -> KernelFrame:
    return KernelFrame(kind, {"id": request.id, **header}, body)
