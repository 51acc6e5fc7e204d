"""The process group of a generation: its size, this task's rank, and the backends that run its collectives.

Two groups can live at once, which is what makes a change of members possible without stopping. CPU tensors travel over
gloo; CUDA tensors over NCCL where every member has a GPU of its own, else through the host's memory over gloo. Knows
nothing of generations' meaning, jobs or models.

Closing a group waits for its operations, so a thread of its own does it. A lost group is dropped as a whole and at
once: only the neighbours of a dead peer notice it by themselves, and the others see that those close their connections.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from pliant.train.errors import GenerationLost
from pliant.train.group.gloo import CollectiveBackend, GlooBackend, Operation
from pliant.train.group.handshake import PeerName
from pliant.train.group.nccl import NcclBackend, is_usable
from pliant.train.group.rendezvous_client import RendezvousClient
from pliant.train.group.staged import StagedBackend
from pliant.train.group.transfer import Channels

__all__ = ["Group", "GroupSpec", "Operation", "connect", "num_closing_groups"]

CONNECT_TIMEOUT_S: Final = 20.0
"""A group whose members did not all come by then has failed."""
_MESH_TIMEOUT_S: Final = 1.5
"""Once all are there, connecting takes milliseconds; gloo waits five times as long for a peer that has to connect."""

_NO_NCCL: Final = "none"

_closing: set[int] = set()
_closing_lock = threading.Lock()


def num_closing_groups() -> int:
    """Return how many dropped groups still hold threads or connections; 0, a moment after the last was dropped."""
    with _closing_lock:
        return len(_closing)


@dataclass(slots=True)
class Group:
    """The process group of one generation. A group of one needs no connections and does nothing."""

    number: int
    rank: int
    size: int
    backend: GlooBackend | None
    """Runs collectives of CPU tensors; None in a group of one, or if dropped."""
    channels: Channels | None = None
    """Carry tensors from one member to another."""
    device_backend: CollectiveBackend | None = None
    """Runs collectives of tensors on a device; made when the first one comes, unless `connect` made it."""
    note: str = ""
    """What the job's owner should know about this group."""
    works: list[Operation] = field(default_factory=list)
    """Operations that were started and not waited for; all members start the same ones in the same order."""
    num_started: int = 0
    """Collectives started in this group's life; a test counts them."""
    waits: bool = False
    """The training thread waits for other members now; other threads may look at this."""
    num_waits: int = 0
    """Waits that were begun; a number that stays the same while `waits` is true tells of a long one."""
    dropped: GlooBackend | None = None
    """The backend of CPU tensors, once the group is dropped; None where tensors on a device had one of their own."""

    @property
    def has_ended(self) -> bool:
        """The group was dropped, and all its operations are over: nothing writes to their tensors any more."""
        return self.dropped is not None and self.dropped.has_ended

    def start_all_reduce(self, tensor: torch.Tensor) -> Operation | None:
        """Begin to sum a tensor over the members, in place; return the operation, for `wait_for`."""
        return self._start(tensor, lambda backend: backend.all_reduce(tensor))

    def start_all_to_all(
        self, output: torch.Tensor, source: torch.Tensor, *, received: Sequence[int], sent: Sequence[int]
    ) -> Operation | None:
        """Begin to exchange pieces of flat tensors.

        Piece r of `source` (of `sent[r]` elements) goes to member r, and what member r sends lands as piece r of
        `output` (of `received[r]` elements).
        """
        return self._start(source, lambda backend: backend.all_to_all(output, source, received=received, sent=sent))

    def start_broadcast(self, tensor: torch.Tensor, source: int) -> Operation | None:
        """Begin to copy a contiguous tensor from one member to all others, in place."""
        return self._start(tensor, lambda backend: backend.broadcast(tensor, source))

    def _start(self, tensor: torch.Tensor, begin: Callable[[CollectiveBackend], Operation]) -> Operation | None:
        gloo = self.backend
        if gloo is None:
            if self.size > 1:
                raise GenerationLost("the generation was dropped")
            return None
        backend: CollectiveBackend = gloo
        if tensor.device.type != "cpu":
            if self.device_backend is None:
                self.device_backend = StagedBackend(gloo, rank=self.rank, number=self.number)
            backend = self.device_backend
        self.num_started += 1
        operation = begin(backend)
        self.works.append(operation)
        return operation

    def wait_for(self, work: Operation | None, *, is_lost: Callable[[], bool]) -> None:
        """Wait for one operation that was started, until what comes next on its device may use its tensors.

        Raises:
            GenerationLost: as `wait`.
        """
        if work is not None:
            with self._waiting():
                work.wait(is_lost)

    def wait(self, *, is_lost: Callable[[], bool]) -> None:
        """Wait for everything that was started, until it is over: values may be read on the host.

        Raises:
            GenerationLost: a peer is gone or `is_lost()` became true; the tensors must not be used again.
        """
        if self.backend is None and (self.size > 1 or is_lost()):  # alone: others may go on without this task
            raise GenerationLost("the coordinator gave this generation up")
        with self._waiting():
            for work in self.works:
                work.finish(is_lost)
        self.works = []

    def all_reduce(self, tensors: Sequence[torch.Tensor], *, is_lost: Callable[[], bool]) -> None:
        """Sum every tensor over the members, in place.

        Raises:
            GenerationLost: a peer is gone or `is_lost()` became true; the tensors must not be used again.
        """
        for tensor in tensors:
            self.start_all_reduce(tensor)
        self.wait(is_lost=is_lost)

    def tell_all(self, row: Sequence[float], dtype: torch.dtype, *, is_lost: Callable[[], bool]) -> list[list[Any]]:
        """Return the rows of all members, which have the same length.

        Raises:
            GenerationLost: as `wait`.
        """
        table = torch.zeros(self.size, len(row), dtype=dtype)  # the sum of tables in which each has filled its own row
        table[self.rank] = torch.tensor(row, dtype=dtype)
        self.all_reduce([table], is_lost=is_lost)
        rows: list[list[Any]] = table.tolist()
        return rows

    def send(self, tensor: torch.Tensor, to: int) -> None:
        """Send a contiguous CPU tensor; return when the peer has received it.

        Raises:
            GenerationLost: the peer is gone, or another thread aborted the group.
        """
        if self.channels is None:
            raise GenerationLost("the generation was dropped")
        with self._waiting():
            self.channels.send(tensor, to)

    def receive(self, tensor: torch.Tensor, source: int) -> None:
        """Fill a contiguous CPU tensor with what `source` sends; raises as `send`."""
        if self.channels is None:
            raise GenerationLost("the generation was dropped")
        with self._waiting():
            self.channels.receive(tensor, source)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        self.waits = True
        self.num_waits += 1
        try:
            yield
        finally:
            self.waits = False

    def abort(self) -> None:
        """Make everything that is under way in this group raise `GenerationLost`, at once; callable from any thread."""
        for backend in (self.channels, self.device_backend, self.backend):
            if backend is not None:
                backend.abort()

    def drop(self) -> None:
        """Close all connections, in the background: peers that wait in this group notice at once."""
        if self.backend is None:
            return
        if self.works:
            self.abort()
        closing = [backend for backend in (self.channels, self.device_backend, self.backend) if backend is not None]
        self.dropped = self.backend if self.device_backend is None else None
        self.backend, self.channels, self.device_backend, self.works = None, None, None, []
        with _closing_lock:
            _closing.add(id(closing))
        threading.Thread(target=_close, args=(closing,), name=f"pliant-close-{self.number}", daemon=True).start()


def _close(closing: Sequence[GlooBackend | Channels | CollectiveBackend]) -> None:
    try:
        for one in closing:
            one.close()
    finally:
        with _closing_lock:
            _closing.discard(id(closing))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """Which group to connect, and as which of its members."""

    number: int
    rank: int
    size: int
    host: str
    """This task's own address, at which the other members reach it."""
    key: bytes = field(repr=False)
    """The job's; members prove to each other that they hold it."""
    device: torch.device | None = None
    """Where the gradients live."""
    encrypts: bool = False
    """State that members on different hosts send each other is encrypted."""


def connect(
    spec: GroupSpec, *, address: tuple[str, int], prefix: str, is_cancelled: Callable[[], bool] = lambda: False
) -> Group:
    """Connect with all other members; `address` is the rendezvous of the first, `prefix` names the generation.

    `is_cancelled` is called a few times a second; when it returns True every wait ends.

    Raises:
        GenerationLost: somebody did not come within `CONNECT_TIMEOUT_S`, the rendezvous is gone, or it was given up.
    """
    number, rank, size = spec.number, spec.rank, spec.size
    if size == 1:
        return Group(number=number, rank=0, size=1, backend=None)
    channels: Channels | None = None
    gloo: GlooBackend | None = None
    try:
        channels = Channels(rank=rank, host=spec.host, key=spec.key, encrypts=spec.encrypts)
        with RendezvousClient(
            address,
            key=spec.key,
            name=PeerName(group=prefix, member=str(rank)),
            timeout_s=CONNECT_TIMEOUT_S,
            is_cancelled=is_cancelled,
        ) as rendezvous:
            rendezvous.set(f"member/{rank}", json.dumps([_gpu(spec.device), channels.address]).encode())
            members = [json.loads(answer) for answer in rendezvous.get(*(f"member/{other}" for other in range(size)))]
            channels.set_peers([address for _, address in members])
            gpus = [gpu for gpu, _ in members]
            gloo = GlooBackend(rendezvous, rank=rank, size=size, host=spec.host, timeout_s=_MESH_TIMEOUT_S)
            group = Group(number=number, rank=rank, size=size, backend=gloo, channels=channels)
            group.note = _why_staged(gpus)
            if spec.device is not None and all(gpus) and not group.note:
                group.device_backend = NcclBackend(
                    rendezvous, rank=rank, size=size, device=spec.device, is_cancelled=is_cancelled
                )
    except GenerationLost as error:
        if channels is not None:
            channels.close()
        if gloo is not None:
            gloo.abort()  # the others need not wait for this task
        raise GenerationLost(f"generation {number} did not connect: {error}") from None
    return group


def _gpu(device: torch.device | None) -> str:
    """Return an id of the gradients' GPU, unique among all machines; empty if they are not on one."""
    if device is None or device.type != "cuda":
        return ""
    if not is_usable():
        return _NO_NCCL
    return str(torch.cuda.get_device_properties(device).uuid)


def _why_staged(gpus: Sequence[str]) -> str:
    """Say why gradients on GPUs go through the host's memory; empty if they do not, or there are no GPUs."""
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
