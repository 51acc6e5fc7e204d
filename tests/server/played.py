"""The real application over a simulated cluster whose tasks are played, for tests of the client and the command line.

Nothing moves by itself. A test submits jobs and lets them run, report, print and end; control decides as always.
"""

from pathlib import Path
from typing import Final

from tests.server.conftest import TOKEN, Served
from tests.server.kept_endpoints import KeptEndpoints

from pliant.core.job import Job, JobId, Metric, NodeId, Progress
from pliant.core.link import Finished, Point, Pulse, Report
from pliant.core.ports import Writes
from pliant.server.endpoint_requests import EndpointRequests
from pliant.sim.tasks import SimTasks
from pliant.sim.training import SimWork

NODE: Final = NodeId("local")
PROGRESS: Final = Progress(
    epoch=3, num_epochs=20, step=30, num_steps=200, samples=1920, samples_per_s=640.0, loss=0.25, eta_s=125.0
)


class Played(Served):
    """A server with four slots, and what its jobs do."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, links_of=self._make_tasks)
        self.tasks.connect(self.control)
        self.url = f"http://{self.address}"
        self.port = int(self.address.rpartition(":")[2])
        self.token = TOKEN

    def _make_tasks(self) -> SimTasks:
        self.tasks = SimTasks(self.clock, self.cluster, lambda _: SimWork(pause_s=0.0421))
        return self.tasks

    def shown_endpoints(self) -> EndpointRequests:
        """Return endpoints whose models load, or do not, when a test says so; the real ones have tests of their own."""
        self.endpoints = KeptEndpoints(self.store.registry, self.clock)
        return self.endpoints

    def job(self, job_id: str) -> Job:
        """Return a job as it is stored."""
        return self.control.queries.job(job_id)

    def add(self, **job: object) -> JobId:
        """Submit a job and let it run as far as its tasks get by themselves."""
        made = self.submit(None, **job)
        assert made.status_code == 201, made.text
        self.tick(1.0)
        return JobId(made.json()["id"])

    def report(self, job_id: str, progress: Progress = PROGRESS, **metrics: float) -> None:
        """Let the leader of a job say how far it is, and what metrics came to there."""
        generation = self.store.generations(JobId(job_id))[-1]
        at = {"step": progress.step, "epoch": progress.epoch, "at": self.clock.now()}
        points = tuple(Point(name=name, value=value, **at) for name, value in metrics.items())  # type: ignore[arg-type]
        report = Report(generation=generation.number, progress=progress, points=points)
        self.control.receive(generation.members[0], report)
        self.tick()

    def complete(self, job_id: str) -> None:
        """Let a job finish its last step."""
        members = self.store.generations(JobId(job_id))[-1].members
        for member in members:
            self.control.receive(member, Finished(step=PROGRESS.num_steps))
        self.end_tasks(job_id, 0)
        self.until_ended(job_id)

    def fail(self, job_id: str) -> None:
        """Let a job's script raise wherever it runs."""
        while not self.job(job_id).ended:
            self.end_tasks(job_id, 1)
            self.tick(1.0)

    def end_tasks(self, job_id: str, exit_code: int) -> None:
        """Let all processes of a job end."""
        for task in self.store.tasks(JobId(job_id), live=True):
            self.tasks.exit(task.id, exit_code)
        self.tick()

    def until_ended(self, job_id: str) -> None:
        """Let time pass until a job has ended."""
        for _ in range(100):
            if self.job(job_id).ended:
                return
            self.tick(1.0)
        raise AssertionError(f"it has not ended: {self.job(job_id)}")

    def tick(self, seconds: float = 0.01) -> None:
        """Let time pass; every task gives signs of life."""
        until = self.clock.now() + seconds
        while (left := until - self.clock.now()) > 0:
            for task in self.store.tasks(live=True):
                self.control.receive(task.id, Pulse())
            super().tick(min(left, 0.5))

    def print(self, task_id: str, stream: str, text: bytes) -> None:
        """Write what a task prints."""
        folder = self._result(task_id.rpartition(".")[0]) / "log" / f"{task_id}.{NODE}"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / stream).open("ab") as out:
            out.write(text)

    def save(self, job_id: str, path: str, content: bytes) -> None:
        """Write a file of a job's results."""
        file = self._result(job_id) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def code(self, job_id: str) -> dict[str, str]:
        """Return the files that a job was submitted with."""
        folder = self.home / "jobs" / job_id / "code"
        return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}

    def measure(self, job_id: str, *values: float, name: str = "loss") -> None:
        """Store points of a job's series."""
        points = [
            Metric(job_id=JobId(job_id), name=name, step=step, epoch=0, at=float(step), value=value)
            for step, value in enumerate(values, start=1)
        ]
        self.store.write(Writes(metrics=tuple(points)))

    def _result(self, job_id: str) -> Path:
        return self.home / "jobs" / job_id / "result"


def set_scene(pool: Played) -> Played:
    """Let `job-1` train on two slots, after one at first; `job-2`, of the same name, has failed."""
    first = pool.add(name="digits", args=["--lr", "0.1"], max_tasks=1)
    assert pool.http.patch(f"/jobs/{first}", json={"max_tasks": 2}).is_success
    pool.tick(1.0)
    pool.report(first)
    pool.print("job-1.1", "stdout", b"epoch 1\nepoch 2\n")
    pool.print("job-1.1", "stderr", b"careful\n")
    pool.print("job-1.2", "stdout", b"one\ntwo\n")
    pool.save(first, "model/model.pt", b"weights")
    pool.fail(pool.add(name="digits"))
    return pool
