"""The group of a generation: who is in it, and what carries its collectives.

Two groups can live at once, which is what makes a change of members possible without stopping. CPU tensors travel over
gloo; CUDA tensors over NCCL where every member has a GPU of its own, else through the host's memory over gloo. Knows
nothing of generations' meaning, jobs or models.

Dropping a group waits for its operations, so it is done in a thread of its own. Everything of a lost group is dropped
at once: a dead peer is seen by its neighbours only, and the others see it when those close their connections.
"""

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import torch

from pliant.train.errors import GenerationLost
from pliant.train.group.gloo import Carrier, Gloo, Operation
from pliant.train.group.nccl import Nccl, is_usable
from pliant.train.group.rendezvous import Meeting, Rendezvous
from pliant.train.group.staged import Staged
from pliant.train.group.transfer import Channels

__all__ = ["Group", "Operation", "Rendezvous", "Seat", "connect", "stuck_groups"]

CONNECT_TIMEOUT_S: Final = 20.0
"""A group whose members did not all come by then has failed."""
_MESH_TIMEOUT_S: Final = 1.5
"""Once all are there, connecting takes milliseconds; gloo waits five times as long for a peer that has to connect."""

_NO_NCCL: Final = "none"

_graves: set[int] = set()
_graves_lock = threading.Lock()


def stuck_groups() -> int:
    """Return how many dropped groups still hold threads or connections; none, a moment after the last was dropped."""
    with _graves_lock:
        return len(_graves)


@dataclass(slots=True)
class Group:
    """The process group of one generation. A group of one needs no connections and does nothing."""

    number: int
    rank: int
    size: int
    backend: Gloo | None
    """Carries collectives of CPU tensors; None if alone or dropped."""
    channels: Channels | None = None
    """Carry tensors from one member to another."""
    device_backend: Carrier | None = None
    """Carries tensors on a device; made when the first one comes, unless `connect` did."""
    note: str = ""
    """What the job's owner should know about this group."""
    works: list[Operation] = field(default_factory=list)
    """Operations that were started and not waited for; all members start the same ones in the same order."""
    num_started: int = 0
    """Collectives started in this group's life; a test counts them."""

    def start_all_reduce(self, tensor: torch.Tensor) -> Operation | None:
        """Begin to sum a tensor over the members, in place; return the operation, for `wait_for`."""
        return self._start(tensor, lambda carrier: carrier.all_reduce(tensor))

    def start_all_to_all(
        self, output: torch.Tensor, source: torch.Tensor, *, received: Sequence[int], sent: Sequence[int]
    ) -> Operation | None:
        """Begin to exchange pieces of flat tensors.

        Piece r of `source` (of `sent[r]` elements) goes to member r, and what member r sends lands as piece r of
        `output` (of `received[r]` elements).
        """
        return self._start(source, lambda carrier: carrier.all_to_all(output, source, received=received, sent=sent))

    def start_broadcast(self, tensor: torch.Tensor, source: int) -> Operation | None:
        """Begin to copy a contiguous tensor from one member to all others, in place."""
        return self._start(tensor, lambda carrier: carrier.broadcast(tensor, source))

    def _start(self, tensor: torch.Tensor, begin: Callable[[Carrier], Operation]) -> Operation | None:
        backend = self.backend
        if backend is None:
            if self.size > 1:
                raise GenerationLost("the generation was dropped")
            return None
        carrier: Carrier = backend
        if tensor.device.type != "cpu":
            if self.device_backend is None:
                self.device_backend = Staged(backend, rank=self.rank, number=self.number)
            carrier = self.device_backend
        self.num_started += 1
        operation = begin(carrier)
        self.works.append(operation)
        return operation

    def wait_for(self, work: Operation | None, *, lost: Callable[[], bool]) -> None:
        """Wait for one operation that was started, until what comes next on its device may use its tensors.

        Raises:
            GenerationLost: as `wait`.
        """
        if work is not None:
            work.wait(lost)

    def wait(self, *, lost: Callable[[], bool]) -> None:
        """Wait for everything that was started, until it is over: values may be read on the host.

        Raises:
            GenerationLost: a peer is gone or `lost()` became true; the tensors must not be used again.
        """
        if self.backend is None and (self.size > 1 or lost()):  # alone: others may go on without me
            raise GenerationLost("the coordinator gave this generation up")
        for work in self.works:
            work.finish(lost)
        self.works = []

    def all_reduce(self, tensors: Sequence[torch.Tensor], *, lost: Callable[[], bool]) -> None:
        """Sum every tensor over the members, in place.

        Raises:
            GenerationLost: a peer is gone or `lost()` became true; the tensors must not be used again.
        """
        for tensor in tensors:
            self.start_all_reduce(tensor)
        self.wait(lost=lost)

    def send(self, tensor: torch.Tensor, to: int) -> None:
        """Send a contiguous CPU tensor; returns when the peer took it.

        Raises:
            GenerationLost: the peer is gone, or another thread aborted the group.
        """
        if self.channels is None:
            raise GenerationLost("the generation was dropped")
        self.channels.send(tensor, to)

    def receive(self, tensor: torch.Tensor, source: int) -> None:
        """Fill a contiguous CPU tensor with what `source` sends; raises as `send`."""
        if self.channels is None:
            raise GenerationLost("the generation was dropped")
        self.channels.receive(tensor, source)

    def abort(self) -> None:
        """End everything that is under way in this group with `GenerationLost`, at once and from any thread."""
        for carrier in (self.channels, self.device_backend, self.backend):
            if carrier is not None:
                carrier.abort()

    def drop(self) -> None:
        """Close all connections, in the background: peers that wait in this group notice at once."""
        if self.backend is None:
            return
        if self.works:
            self.abort()
        grave = [carrier for carrier in (self.channels, self.device_backend, self.backend) if carrier is not None]
        self.backend, self.channels, self.device_backend, self.works = None, None, None, []
        with _graves_lock:
            _graves.add(id(grave))
        threading.Thread(target=_bury, args=(grave,), name=f"pliant-bury-{self.number}", daemon=True).start()


def _bury(grave: Sequence[Gloo | Channels | Carrier]) -> None:
    try:
        for carrier in grave:
            carrier.close()
    finally:
        with _graves_lock:
            _graves.discard(id(grave))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """My place in a generation."""

    number: int
    rank: int
    size: int
    host: str
    """My own address, at which the others reach me."""
    device: torch.device | None = None
    """Where the gradients live."""


def connect(
    seat: Seat, *, address: tuple[str, int], prefix: str, given_up: Callable[[], bool] = lambda: False
) -> Group:
    """Connect with all other members; `address` is the rendezvous of the first, `prefix` names the generation.

    `given_up` is asked a few times a second; when it says True nothing is waited for any more.

    Raises:
        GenerationLost: somebody did not come within `CONNECT_TIMEOUT_S`, the rendezvous is gone, or it was given up.
    """
    number, rank, size = seat.number, seat.rank, seat.size
    if size == 1:
        return Group(number=number, rank=0, size=1, backend=None)
    channels: Channels | None = None
    gloo: Gloo | None = None
    try:
        channels = Channels(rank=rank, host=seat.host)
        with Meeting(address, prefix=prefix, timeout_s=CONNECT_TIMEOUT_S, given_up=given_up) as meeting:
            meeting.set(f"member/{rank}", json.dumps([_gpu(seat.device), channels.address]).encode())
            members = [json.loads(told) for told in meeting.get(*(f"member/{other}" for other in range(size)))]
            channels.meet([address for _, address in members])
            gpus = [gpu for gpu, _ in members]
            gloo = Gloo(meeting, rank=rank, size=size, host=seat.host, timeout_s=_MESH_TIMEOUT_S)
            group = Group(number=number, rank=rank, size=size, backend=gloo, channels=channels)
            group.note = _why_staged(gpus)
            if seat.device is not None and all(gpus) and not group.note:
                group.device_backend = Nccl(meeting, rank=rank, size=size, device=seat.device, given_up=given_up)
    except GenerationLost as error:
        if channels is not None:
            channels.close()
        if gloo is not None:
            gloo.abort()  # the others need not wait for me
        raise GenerationLost(f"generation {number} did not connect: {error}") from None
    return group


def _gpu(device: torch.device | None) -> str:
    """Return what names the GPU of the gradients among all machines; nothing if NCCL cannot be used on it."""
    if device is None or device.type != "cuda":
        return ""
    if not is_usable():
        return _NO_NCCL
    return str(torch.cuda.get_device_properties(device).uuid)


def _why_staged(gpus: Sequence[str]) -> str:
    """Say why gradients on GPUs go through the host's memory; nothing if they do not, or there are no GPUs."""
    if not any(gpus):
        return ""
    if not all(gpus):
        why = f"task {gpus.index('') + 1} of {len(gpus)} has no GPU"
    elif _NO_NCCL in gpus:
        why = f"task {gpus.index(_NO_NCCL) + 1} of {len(gpus)} has no NCCL, or PLIANT_NCCL=0 there"
    elif len(set(gpus)) < len(gpus):
        num = len(set(gpus))
        why = f"{len(gpus)} tasks share {num} GPU{'s' * (num > 1)}, and NCCL wants one for each task"
    else:
        return ""
    return f"gradients travel through the host's memory (gloo), not from GPU to GPU (NCCL): {why}"
