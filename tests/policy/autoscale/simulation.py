"""A version of an endpoint in small: requests, kernels that compute batches, a gateway that reports, the autoscaler.

Time goes in ticks. The same story is played the same way every time.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from pliant.core.job import JobId
from pliant.core.serving import VersionLoad
from pliant.core.serving_profile import ServingProfile
from pliant.policy.autoscale.demand import KernelDemand, decide
from pliant.policy.autoscale.load import ScaleState, take

TICK_S = 0.05
REPORT_TICKS = 5
JOB = JobId("job-1")


@dataclass
class SimulatedKernel:
    """Computes what it holds, a batch at a time."""

    ready_at: float
    held: deque[float] = field(default_factory=deque)
    """When the requests came that it holds, the ones that it computes first."""
    num_computed: int = 0
    done_at: float = 0.0


@dataclass(kw_only=True)
class SimulatedVersion:
    """Plays a version; `history` holds what was decided, `waits` how long requests took."""

    profile: ServingProfile
    rate: Callable[[float], float] = lambda now: 0.0
    """Requests per second that come whatever happens."""
    clients: Callable[[float], int] = lambda now: 0
    """Who ask again as soon as they are answered."""
    batch_s: Callable[[int], float] = lambda size: 0.01 * size
    start_s: float = 1.0
    pool: int = 4096
    seed: int | None = None
    """Of arrivals by chance; None: they come evenly."""
    now: float = 0.0
    reports: bool = True
    kernels: list[SimulatedKernel] = field(default_factory=list)
    state: ScaleState = field(default_factory=ScaleState)
    queue: deque[float] = field(default_factory=deque)
    history: list[tuple[float, KernelDemand]] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)
    most_kernels: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._tick = 0
        self._due = 0.0
        self._next_at = 0.0
        self._load_s = self._busy_s = 0.0
        self._completed = self._batches = 0

    def run(self, seconds: float) -> "SimulatedVersion":
        """Let time pass."""
        for _ in range(round(seconds / TICK_S)):
            self._step()
        return self

    def numbers(self, since: float = 0.0) -> list[int]:
        """Return the numbers that were decided, one after another where they differ."""
        numbers: list[int] = []
        for at, demand in self.history:
            if at >= since and (not numbers or numbers[-1] != demand.num_kernels):
                numbers.append(demand.num_kernels)
        return numbers

    def mean_wait(self, since: float) -> float:
        """Return how long requests took that were answered since then."""
        waits = [wait for at, wait in self.waits if at >= since]
        return sum(waits) / len(waits)

    @property
    def num_requests(self) -> int:
        return len(self.queue) + sum(len(kernel.held) for kernel in self.kernels)

    def _step(self) -> None:
        self._tick += 1
        self.now = self._tick * TICK_S
        self._arrive()
        for kernel in self.kernels:
            self._finish(kernel)
        self._dispatch()
        for kernel in self.kernels:
            self._begin(kernel)
        self._load_s += self.num_requests * TICK_S
        if self._tick % REPORT_TICKS == 0:
            self._report()
        if self.now >= self._next_at:
            self._next_at = self.now + self.profile.schedule_interval_s
            self._decide()

    def _arrive(self) -> None:
        expected = self.rate(self.now) * TICK_S
        if self.seed is None:
            self._due += expected
        else:
            self._due += sum(self._chance.random() < expected / 20 for _ in range(20))
        while self._due >= 1 - 1e-9:
            self._due -= 1
            self.queue.append(self.now)
        for _ in range(self.clients(self.now) - self.num_requests):
            self.queue.append(self.now)

    def _finish(self, kernel: SimulatedKernel) -> None:
        if kernel.num_computed and self.now >= kernel.done_at - 1e-9:
            self._answer(kernel)

    def _answer(self, kernel: SimulatedKernel) -> None:
        for _ in range(kernel.num_computed):
            self.waits.append((self.now, self.now - kernel.held.popleft()))
        self._completed += kernel.num_computed
        self._batches += 1
        self._busy_s += self.batch_s(kernel.num_computed)
        kernel.num_computed = 0

    def _dispatch(self) -> None:
        ready = [kernel for kernel in self.kernels if kernel.ready_at <= self.now]
        room = self.profile.batch_size * self.profile.pipe_size
        while self.queue and ready:
            kernel = min(ready, key=lambda kernel: len(kernel.held))
            if len(kernel.held) >= room:
                return
            kernel.held.append(self.queue.popleft())

    def _begin(self, kernel: SimulatedKernel) -> None:
        while kernel.held and not kernel.num_computed:
            kernel.num_computed = min(len(kernel.held), self.profile.batch_size)
            # One that was busy goes on where it stopped, within a tick: a quick kernel does several batches in it.
            begun_at = kernel.done_at if kernel.done_at > self.now - TICK_S else self.now
            kernel.done_at = begun_at + self.batch_s(kernel.num_computed)
            self._finish(kernel)

    def _report(self) -> None:
        seconds = REPORT_TICKS * TICK_S
        load = VersionLoad(
            job_id=JOB,
            seconds=seconds,
            in_flight=self.num_requests - len(self.queue),
            queued=len(self.queue),
            mean_load=self._load_s / seconds,
            oldest_wait_s=self.now - self.queue[0] if self.queue else 0.0,
            num_ready=sum(kernel.ready_at <= self.now for kernel in self.kernels),
            completed=self._completed,
            num_batches=self._batches,
            busy_s=self._busy_s,
        )
        self._load_s = self._busy_s = 0.0
        self._completed = self._batches = 0
        if self.reports:
            self.state = take(self.state, load, self.now)

    def _decide(self) -> None:
        demand = decide(self.state, self.profile, len(self.kernels), self.now)
        self.state = demand.state
        self.history.append((self.now, demand))
        while len(self.kernels) < min(demand.num_kernels, self.pool):
            self.kernels.append(SimulatedKernel(ready_at=self.now + self.start_s))
        while len(self.kernels) > demand.num_kernels:
            self._leave(self.kernels.pop())
        self.most_kernels = max(self.most_kernels, len(self.kernels))

    def _leave(self, kernel: SimulatedKernel) -> None:
        """Answer what is computed, and hand the rest back."""
        if kernel.num_computed:
            self._answer(kernel)
        self.queue.extendleft(reversed(kernel.held))
