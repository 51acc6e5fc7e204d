"""A pool of slots in which the versions of an endpoint run: kernels load, drain and fail as a test says."""

from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from pliant.catalog.endpoints.capacity import Standstill
from pliant.catalog.endpoints.exchange import put_version, running, settle, statuses_of, weights_of
from pliant.catalog.endpoints.traffic import aim
from pliant.core.endpoint import Endpoint, EndpointVersion, VersionState, VersionStatus
from pliant.core.job import Job, JobId, JobSpec, NodeId, Task, TaskId
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.serving_profile import KernelBounds

_ENDPOINT = TypeAdapter(Endpoint)
LOAD_TICKS = 2
DRAIN_TICKS = 2


def version(number: int, state: VersionState, job: str | None = None) -> EndpointVersion:
    return EndpointVersion(
        number=number,
        runner="python",
        file="serve.py",
        checksum="0" * 64,
        num_bytes=1,
        state=state,
        job_id=None if job is None else JobId(job),
        created_at=0.0,
        created_by="ann",
    )


def status(
    job: str, *, has_served: bool = True, ready: int = 0, loading: int = 0, leaving: int = 0, **values: object
) -> VersionStatus:
    states = [TaskState.TRAINING] * ready + [TaskState.STARTING] * loading + [TaskState.LEAVING] * leaving
    kernels = tuple(
        Task(id=TaskId(f"{job}.{n}"), job_id=JobId(job), node_id=NodeId("n"), slots=(n,), state=state, started_at=0.0)
        for n, state in enumerate(states, start=1)
    )
    return replace(
        VersionStatus(
            job_id=JobId(job),
            state=JobState.RUNNING,
            token="t",
            has_served=has_served,
            wanted=1,
            demand="",
            why="",
            kernels=kernels,
            load=None,
            metadata={"platform": job},
        ),
        **values,  # type: ignore[arg-type]
    )


@dataclass(slots=True)
class PlayedVersion:
    """The kernels of one job, by the ticks that they have left in their state."""

    ready: int = 0
    loading: list[int] = field(default_factory=list)
    leaving: list[int] = field(default_factory=list)
    has_served: bool = False
    needed: int = 0
    bounds: KernelBounds = field(default_factory=lambda: KernelBounds(promised=0, at_most=1, at_least=1))

    @property
    def staying(self) -> int:
        return self.ready + len(self.loading)

    @property
    def held(self) -> int:
        return self.staying + len(self.leaving)

    @property
    def wanted(self) -> int:
        by_load = max(min(self.needed, self.bounds.at_most), self.bounds.promised)
        return max(by_load, self.bounds.at_least, 0 if self.has_served else 1)


@dataclass(slots=True)
class PlayedPool:
    """An endpoint whose load needs `need` kernels, on so many slots.

    A kernel that leaves first gives its slot back after `DRAIN_TICKS`; others may take slots between two ticks.
    """

    endpoint: Endpoint
    slots: int
    need: int
    jobs: dict[JobId, PlayedVersion] = field(default_factory=dict)
    failed: dict[JobId, Job] = field(default_factory=dict)
    standstill: Standstill = field(default_factory=Standstill)
    now: float = 0.0
    num_jobs: int = 0
    load_ticks: int = LOAD_TICKS

    def by_number(self, number: int) -> PlayedVersion:
        found = self.endpoint.version(number)
        assert found is not None
        assert found.job_id is not None
        return self.jobs[found.job_id]

    def statuses(self) -> dict[JobId, VersionStatus]:
        return {
            job_id: status(
                job_id,
                has_served=one.has_served,
                ready=one.ready,
                loading=len(one.loading),
                leaving=len(one.leaving),
                wanted=one.wanted,
                needed=min(one.needed, one.bounds.at_most),
            )
            for job_id, one in self.jobs.items()
        }

    @property
    def held(self) -> int:
        return sum(one.held for one in self.jobs.values())

    @property
    def ready(self) -> int:
        return sum(one.ready for one in self.jobs.values())

    @property
    def weights(self) -> dict[int, int]:
        return weights_of(self.endpoint, self.statuses())

    def tick(self, *, loads: bool = True) -> None:
        """Let a second pass: the keeper looks, the scheduler gives and takes, kernels load and end."""
        self.look()
        self._schedule()
        for job_id, one in list(self.jobs.items()):
            one.leaving = [left - 1 for left in one.leaving if left > 1]
            if done := [left for left in one.loading if left <= 1]:
                if loads or one.has_served:
                    one.ready += len(done)
                    one.has_served = True
                else:
                    self.fail(job_id)
            one.loading = [left - 1 for left in one.loading if left > 1]
        self.now += 1

    def look(self) -> None:
        statuses = self.statuses()
        still_s = self.standstill.observe("digits", statuses_of(self.endpoint, statuses), self.now)
        found = settle(self.endpoint, statuses, set(self.jobs), self.failed.get, still_s)
        self.endpoint = found.endpoint
        for job_id in found.stop:
            stopped = self.jobs[job_id]
            stopped.bounds, stopped.has_served = KernelBounds(promised=0, at_most=0), True
        for job_id, bounds in found.bounds.items():
            if job_id in self.jobs:
                self.jobs[job_id].bounds = bounds
        for new in found.start:
            self.num_jobs += 1
            job_id = JobId(f"job-{100 + self.num_jobs}")
            self.jobs[job_id] = PlayedVersion()
            self.endpoint = put_version(self.endpoint, replace(new, job_id=job_id))
        weights = self.weights
        for one in running(self.endpoint):
            if one.job_id in self.jobs:
                self.by_number(one.number).needed = -(-self.need * weights.get(one.number, 0) // 100)

    def restart(self) -> None:
        """Let the server die, and the next one find what is kept, and the kernels that there are."""
        self.endpoint = _ENDPOINT.validate_json(_ENDPOINT.dump_json(self.endpoint))
        self.standstill = Standstill()
        for one in self.jobs.values():
            if one.bounds.at_most:
                one.bounds = KernelBounds(promised=0, at_least=one.staying, at_most=self.endpoint.kernel_max)

    def fail(self, job_id: JobId) -> None:
        """Let the job of a version fail: its model does not load."""
        del self.jobs[job_id]
        spec = JobSpec(name="digits-v1", script="serve.py", virtual_workers=1)
        self.failed[job_id] = Job(
            id=job_id,
            spec=spec,
            owner="ann",
            state=JobState.FAILED,
            priority=1,
            min_tasks=1,
            max_tasks=1,
            submitted_at=0.0,
            reason="its model did not load",
        )

    def _schedule(self) -> None:
        for one in self.jobs.values():
            self._let_go(one, one.staying - one.wanted)
        for one in self.jobs.values():
            if one.wanted and not one.staying and self.held >= self.slots:  # its minimum comes before surpluses
                rich = max(self.jobs.values(), key=lambda other: other.staying - max(1, other.bounds.promised))
                if rich.staying > max(1, rich.bounds.promised) and not any(j.leaving for j in self.jobs.values()):
                    self._let_go(rich, 1)
        for one in sorted(self.jobs.values(), key=lambda other: other.staying):
            while one.staying < one.wanted and self.held < self.slots:
                one.loading.append(self.load_ticks)
        for job_id in [job_id for job_id, one in self.jobs.items() if not one.held and not one.wanted]:
            if job_id not in {one.job_id for one in running(self.endpoint)}:
                del self.jobs[job_id]

    def _let_go(self, one: PlayedVersion, num: int) -> None:
        for _ in range(num):
            if one.loading:
                one.loading.pop()
            else:
                one.ready -= 1
                one.leaving.append(DRAIN_TICKS)


def serving(need: int, *, slots: int, kernel_min: int = 0, kernel_max: int = 100) -> PlayedPool:
    """Return an endpoint whose first version serves with as many kernels as its load needs."""
    kept = Endpoint(
        name="digits",
        owner="ann",
        versions=(version(1, VersionState.SERVING, "job-1"),),
        current=1,
        next_number=2,
        kernel_min=kernel_min,
        kernel_max=kernel_max,
    )
    pool = PlayedPool(endpoint=kept, slots=slots, need=need)
    held = min(slots, max(kernel_min, min(need, kernel_max)))
    pool.jobs[JobId("job-1")] = PlayedVersion(
        ready=held, has_served=True, needed=need, bounds=KernelBounds(promised=kernel_min, at_most=kernel_max)
    )
    return pool


def deploy(pool: PlayedPool, number: int, goal: dict[int, int]) -> None:
    """Add a version that is to have some of the traffic."""
    versions = (*pool.endpoint.versions, version(number, VersionState.STARTING))
    pool.endpoint = aim(replace(pool.endpoint, versions=versions, next_number=number + 1), goal)
