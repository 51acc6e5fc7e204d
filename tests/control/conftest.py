"""A world for the control room: the real store and coordinator, a simulated cluster, and simulated tasks."""

import io
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.databases import new_sqlite

from pliant.control.jobs.inputs import JobInputs
from pliant.control.jobs.kind import Kinds
from pliant.control.kinds import KINDS
from pliant.control.kinds.elastic.job import ElasticJob
from pliant.control.loop.tick import Control
from pliant.control.settings import ControlSettings
from pliant.core.event import EventKind
from pliant.core.job import Job, JobId, JobSpec, NodeId, Progress, Task, TaskId
from pliant.core.link import Finished, FromTask, Report
from pliant.core.plan import NodeView, Policy, PolicyName
from pliant.core.ports import Cluster, EventFilter, Links, Store
from pliant.sim.clock import VirtualClock
from pliant.sim.cluster import SimCluster, SimTimes
from pliant.sim.tasks import SimTasks
from pliant.sim.training import SimWork
from pliant.store.sql import SqlStore


def packed(files: Mapping[str, str]) -> bytes:
    """Return a tar.gz of these files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


class World:
    """A server without HTTP, and tasks that do as they are told."""

    inputs: JobInputs | None = None
    kinds: Kinds = KINDS

    def __init__(self, home: Path, num_slots: int, policy: PolicyName = PolicyName.FAIRSHARE) -> None:
        self.home = home
        self.policy = policy
        self.clock = VirtualClock(1000.0)
        self.cluster = SimCluster(
            self.clock, [NodeView(id=NodeId("local"), slots=tuple(range(num_slots)))], SimTimes(drain_s=None)
        )
        self.links = SimTasks(self.clock, self.cluster, lambda _: SimWork(virtual_workers=self.virtual_workers))
        self.store = self.new_store()
        self.virtual_workers = 8
        self.step = 0
        self.encrypt_state = False
        self.control = self._control()
        self.links.connect(self.control)
        self.control.start()

    def new_store(self) -> SqlStore:
        return SqlStore(new_sqlite(self.home))

    def _control(self) -> Control:
        store: Store = self.store
        cluster: Cluster = self.cluster
        links: Links = self.links
        return Control(
            store=store,
            cluster=cluster,
            links=links,
            clock=self.clock,
            settings=ControlSettings(
                home=self.home,
                url="http://127.0.0.1:1",
                secret=b"s" * 32,
                policy=Policy(name=self.policy, cooldown_s=0.0),
                encrypt_state=self.encrypt_state,
            ),
            inputs=self.inputs,
            kinds=self.kinds,
        )

    # the server

    def restart(self) -> None:
        """Let the server die where it stands, and bring up another."""
        self.cluster.forget_listener()
        self.control = self._control()
        self.links.connect(self.control)
        self.control.start()

    def submit(self, **changes: object) -> JobId:
        archive = self.home / "code.tar.gz"
        archive.write_bytes(packed({"train.py": "import pliant.train\n"}))
        spec: dict[str, object] = {"name": "digits", "script": "train.py", "max_tasks": 1, "virtual_workers": 8}
        job = self.control.requests.submit(JobSpec(**(spec | changes)), archive, "admin")  # type: ignore[arg-type]
        self.settle()
        return job.id

    def settle(self, seconds: float = 0.5) -> None:
        """Tick, and let the tasks do what they are told, until this time has passed."""
        until = self.clock.now() + seconds
        while True:
            self.control.tick()
            self.clock.advance(0.0)
            if self.clock.now() >= until:
                break
            self.clock.advance(min(0.05, until - self.clock.now()))
        self.control.tick()

    # the tasks

    def say(self, task_id: str, message: FromTask, number: int = 0) -> None:
        self.control.receive(TaskId(task_id), message, number)

    def exit(self, task_id: str, code: int | None) -> None:
        """Let a task end; its link is closed first, as it is in life."""
        self.links.exit(TaskId(task_id), code)

    def train(self, job_id: JobId, steps: int = 10) -> None:
        """Let the leader of a job report progress."""
        self.step += steps
        self.links.training(job_id).step = self.step
        progress = Progress(epoch=0, num_epochs=1, step=self.step, num_steps=1000, samples=1, samples_per_s=1.0)
        generation = self.job(job_id).generation
        self.say(self.members(job_id)[0], Report(generation=generation, progress=progress))
        self.settle(0.1)

    def finish(self, job_id: JobId) -> None:
        """Let all members of a job finish and exit, the leader first."""
        members = self.members(job_id)
        for member in members:
            self.say(member, Finished(step=self.step))
        for member in members:
            self.exit(member, 0)
        self.settle()

    def leave_behind(self, task_id: str, **facts: Any) -> None:
        """Let the exit of a task tell these facts."""
        self.cluster.leave_behind(TaskId(task_id), **facts)

    # what is to be seen

    def job(self, job_id: JobId) -> Job:
        job = self.store.job(job_id)
        assert job is not None
        return job

    def tasks(self, job_id: JobId) -> tuple[Task, ...]:
        return self.store.tasks(job_id, live=True)

    def members(self, job_id: JobId) -> tuple[TaskId, ...]:
        return self.training(job_id).membership.active

    def training(self, job_id: JobId) -> ElasticJob:
        live = self.control.jobs()[job_id]
        assert isinstance(live, ElasticJob)
        return live

    def said(self, *kinds: EventKind) -> list[str]:
        return [event.message for event in self.store.events(EventFilter(kinds=kinds))]


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    worlds = []

    def make(num_slots: int, policy: PolicyName = PolicyName.FAIRSHARE) -> World:
        world = World(tmp_path, num_slots, policy)
        worlds.append(world)
        return world

    yield make
    for world in worlds:
        world.store.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(8)


def result_names(world: World, job_id: str) -> list[str]:
    """Return the names of the files of a job's results."""
    job = world.control.queries.job(job_id)
    return [file.path for file in world.control.inquiries.files.results(job).files]
