"""The queue of one version and its kernels: which request is given to which kernel, and when. Pure.

A kernel has room for so many requests (its credits: batch size times pipe size). A request is given to a kernel only
when that has room, the one that holds fewest first; until then it waits here, so that it goes to whoever is free first.

    credits 2    queue 4 5     a holds 1 2    b holds 3
    assign       queue 5       a holds 1 2    b holds 3 4
    finish a 1   queue 5       a holds 2      b holds 3 4      and request 5 goes to a next
    b is lost    queue 3 4 5   a holds 2                       3 and 4 are asked again, in their old places

Laws: a request is in one state; it ends once. The queue is in the order of arrival, also after requests came back. No
kernel holds more than its credits. Knows no clock, no socket and nothing that is in a request.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, Generic, Protocol, TypeVar

MAX_RETRIES: Final = 2
"""So often a request is given to another kernel after one has died with it."""


class DispatchState(Enum):
    """Where a request is."""

    NEW = "new"
    WAITING = "waiting"
    HELD = "held"
    """By a kernel."""
    OVER = "over"


class KernelRoom:
    """What a kernel holds, and how much it may."""

    __slots__ = ("abandoned", "accepts", "credits", "held", "is_clogged")

    def __init__(self, num_credits: int) -> None:
        self.credits = num_credits
        self.accepts = False
        """It is given requests."""
        self.is_clogged = False
        """It has not read what it was given before."""
        self.held: dict[int, DispatchedRequest] = {}
        """By their numbers, in the order in which they were given."""
        self.abandoned: set[int] = set()
        """Requests that are over, and of which the kernel may not know it yet: they take room."""

    def __len__(self) -> int:
        return len(self.held) + len(self.abandoned)

    @property
    def has_room(self) -> bool:
        """Whether it can be given one more."""
        return self.accepts and not self.is_clogged and len(self) < self.credits


class DispatchedRequest:
    """What a queue knows of a request."""

    __slots__ = ("has_begun", "num_retries", "number", "room", "state")

    def __init__(self, number: int) -> None:
        self.number = number
        """In the order of arrival; once per gateway."""
        self.state = DispatchState.NEW
        self.room: KernelRoom | None = None
        self.num_retries = 0
        self.has_begun = False
        """A part of the answer went out: no other kernel can begin it again."""


R = TypeVar("R", bound=DispatchedRequest)


class WaitingCount(Protocol):
    """How many requests wait for the same version, here and in other processes."""

    @property
    def num_elsewhere(self) -> int:
        """Those that wait in the others."""
        ...

    def add(self, num: int) -> None:
        """Count so many more, or fewer, that wait here."""
        ...


class Dispatch(Generic[R]):
    """The requests and kernels of one version.

    Args:
        max_queue: requests that wait at once, in all processes together.
        count: of all processes; None: there are no others.
    """

    def __init__(self, max_queue: int, count: WaitingCount | None = None) -> None:
        self.max_queue = max_queue
        self._count = count
        self._num_counted = 0
        self.num_ready = 0
        """Kernels that are given requests."""
        self.num_held = 0
        """Requests that take room in kernels."""
        self._queue: OrderedDict[int, R] = OrderedDict()
        self._open: dict[KernelRoom, None] = {}
        """Kernels with room."""

    @property
    def num_queued(self) -> int:
        """Requests that wait."""
        return len(self._queue)

    def waiting(self) -> Iterator[R]:
        """Yield those that wait, the oldest first; change nothing meanwhile."""
        return iter(self._queue.values())

    def queue(self, request: R) -> bool:
        """Let a new request wait; tell whether there was room in the queue."""
        assert request.state is DispatchState.NEW
        num_waiting = len(self._queue)
        if self._count is not None and not self._open:  # else it does not wait, however many do elsewhere
            num_waiting += self._count.num_elsewhere
        if num_waiting >= self.max_queue:
            return False
        self._wait(request)
        self._queue[request.number] = request
        return True

    def count_waiting(self) -> None:
        """Let the other processes know how many wait here by now."""
        if self._count is not None and self._num_counted != len(self._queue):
            self._count.add(len(self._queue) - self._num_counted)
            self._num_counted = len(self._queue)

    def adopt(self, requests: Iterable[R]) -> None:
        """Let requests wait here that waited at another version, even if the queue is longer than it may be then."""
        self._put_back(requests)

    def release(self) -> list[R]:
        """Return all requests that wait, which wait no longer; somebody has to adopt or to end them."""
        requests = list(self._queue.values())
        self._queue.clear()
        for request in requests:
            request.state = DispatchState.NEW
        return requests

    def assign(self) -> Iterator[tuple[KernelRoom, R]]:
        """Give requests to kernels as long as there are both; yield who was given what, which may clog a kernel."""
        while self._queue and self._open:
            room = next(iter(self._open)) if len(self._open) == 1 else min(self._open, key=len)
            number, request = self._queue.popitem(last=False)
            request.state, request.room = DispatchState.HELD, room
            room.held[number] = request
            self.num_held += 1
            if len(room) >= room.credits:
                del self._open[room]
            yield room, request
            if room.is_clogged:
                self.review(room)

    def open(self, room: KernelRoom) -> None:
        """Give requests to a kernel from now on."""
        if not room.accepts:
            room.accepts = True
            self.num_ready += 1
        self.review(room)

    def close(self, room: KernelRoom) -> None:
        """Give a kernel nothing more; what it holds it keeps."""
        if room.accepts:
            room.accepts = False
            self.num_ready -= 1
        self.review(room)

    def set_credits(self, room: KernelRoom, num_credits: int) -> None:
        """Let a kernel hold so many from now on; if it holds more, it is given nothing until it holds fewer."""
        room.credits = num_credits
        self.review(room)

    def find(self, room: KernelRoom, number: int) -> R | None:
        """Return a request that a kernel holds and somebody waits for."""
        return room.held.get(number)  # type: ignore[return-value]

    def finish(self, room: KernelRoom, number: int) -> R | None:
        """Take note that a kernel has answered; return the request, which is over, if anybody waits for it."""
        request: R | None = room.held.pop(number, None)  # type: ignore[assignment]
        if request is not None:
            self._end(request)
        elif number in room.abandoned:
            room.abandoned.discard(number)
        else:
            return None
        self._freed(room, 1)
        return request

    def give_back(self, room: KernelRoom, numbers: Iterable[int]) -> list[R]:
        """Let requests wait again that a kernel did not begin; return those that it had begun, which are over."""
        back: list[R] = []
        failed: list[R] = []
        for number in numbers:
            request: R | None = room.held.pop(number, None)  # type: ignore[assignment]
            if request is None:
                self.forget(room, (number,))
                continue
            self._freed(room, 1)
            (failed if request.has_begun else back).append(request)
        self._put_back(back)
        for request in failed:
            self._end(request)
        return failed

    def forget(self, room: KernelRoom, numbers: Iterable[int]) -> None:
        """Take note that a kernel holds these requests no longer, which are over."""
        gone = room.abandoned.intersection(numbers)
        room.abandoned -= gone
        self._freed(room, len(gone))

    def lose(self, room: KernelRoom, *, retry: bool) -> list[R]:
        """Take a kernel away. What it held waits again; return what cannot, which is over.

        Args:
            room: the kernel.
            retry: another kernel may be asked what this one was.
        """
        self.close(room)
        held: list[R] = list(room.held.values())  # type: ignore[arg-type]
        self.num_held -= len(room)
        room.held.clear()
        room.abandoned.clear()
        failed, back = [], []
        for request in held:
            if retry and not request.has_begun and request.num_retries < MAX_RETRIES:
                request.num_retries += 1
                back.append(request)
            else:
                self._end(request)
                failed.append(request)
        self._put_back(back)
        return failed

    def cancel(self, request: R) -> KernelRoom | None:
        """End a request that nobody waits for; return the kernel that holds it and has to hear of it."""
        room = request.room
        if request.state is DispatchState.WAITING:
            del self._queue[request.number]
        elif request.state is DispatchState.HELD and room is not None:
            del room.held[request.number]
            room.abandoned.add(request.number)
        self._end(request)
        return room

    def _wait(self, request: R) -> None:
        assert request.state in (DispatchState.NEW, DispatchState.HELD)
        request.state, request.room = DispatchState.WAITING, None

    def _end(self, request: R) -> None:
        assert request.state is not DispatchState.OVER
        request.state, request.room = DispatchState.OVER, None

    def _put_back(self, requests: Iterable[R]) -> None:
        """Let requests wait in the order of arrival; they are older than most that wait."""
        front = list(requests)
        if not front:
            return
        for request in front:
            self._wait(request)
        newest = max(request.number for request in front)
        while self._queue and next(iter(self._queue)) < newest:
            front.append(self._queue.popitem(last=False)[1])
        for request in sorted(front, key=lambda request: request.number, reverse=True):
            self._queue[request.number] = request
            self._queue.move_to_end(request.number, last=False)

    def _freed(self, room: KernelRoom, num: int) -> None:
        self.num_held -= num
        if num:
            self.review(room)

    def review(self, room: KernelRoom) -> None:
        """Take note of a room that has changed."""
        if room.has_room:
            self._open.setdefault(room)
        else:
            self._open.pop(room, None)
