"""The demo's director waits for what must happen, and says clearly what did not."""

import signal
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest
from tests.examples.demo.conftest import detail

from examples.demo.director import Director
from examples.demo.play import num_epochs_for
from examples.demo.recording import DemoFailed, Recording, Seen
from examples.demo.scenario import Settings, play
from pliant.api.jobs import JobPatch, JobRequest
from pliant.client import Client
from pliant.core.event import Event, EventKind, Usage
from pliant.core.job import Job, JobId, NodeId, Task, TaskId
from pliant.core.lifecycle import JobState, TaskState

A, B = JobId("job-1"), JobId("job-2")


def test_the_size_is_that_of_the_generation_that_trains(seen: Seen) -> None:
    assert [seen.size(A), seen.size(B), seen.size(JobId("job-3"))] == [3, 5, 0]


def test_a_stage_that_does_not_come_true_fails_with_what_is_seen(recording: Recording) -> None:
    director = Director(recording, lambda: None)

    with (
        director.stage(2, "B arrives"),
        pytest.raises(DemoFailed, match=r"stage 2: waited 0 s until pigs fly; A is running, trains on 3"),
    ):
        director.wait("pigs fly", lambda seen: False, within_s=0.0)


def test_what_does_not_last_fails_the_stage(recording: Recording) -> None:
    director = Director(recording, lambda: None)
    until = time.monotonic() + 0.2

    with director.stage(3, "holds"), pytest.raises(DemoFailed, match="stage 3: 3 and 5 did not last"):
        director.hold("3 and 5", lambda seen: time.monotonic() < until, until=lambda seen: False, within_s=5.0)


def test_a_failed_job_fails_the_demo_with_its_reason(recording: Recording) -> None:
    detail = recording.at(0.0).details[B]
    failed = replace(detail, job=replace(detail.job, state=JobState.FAILED, reason="it raised ValueError"))
    recording.set_state([failed], [])
    director = Director(recording, lambda: None)

    with director.stage(1, "begins"), pytest.raises(DemoFailed, match=r"training B \(job-2\) is failed: it raised"):
        director.wait("anything", lambda seen: False, within_s=5.0)


def test_a_finished_stage_is_marked(recording: Recording) -> None:
    director = Director(recording, lambda: None)

    with director.stage(9, "passes"):
        director.wait("nothing", lambda seen: True, within_s=5.0)

    stage = recording.at(0.0).stages[-1]
    assert (stage.number, stage.ended_at is not None, stage.now_text) == (9, True, "")


def test_a_watching_thread_that_ended_fails_the_demo(recording: Recording) -> None:
    recording.fail(ConnectionError("gone"))

    with pytest.raises(DemoFailed, match="lost sight of the server: gone"):
        recording.at(0.0)


@pytest.mark.parametrize(("num_cpus", "num_epochs"), [(1, 60), (2, 60), (4, 120), (64, 240)])
def test_more_processors_get_more_epochs(num_cpus: int, num_epochs: int) -> None:
    assert num_epochs_for(num_cpus) == num_epochs


@dataclass
class Played:
    """A server that does at once what a stage waits for, and the client that asks it."""

    recording: Recording
    leader: int
    """The process that leads B's training."""
    num_jobs: int = 0
    a_ended_at: float | None = None

    def submit(self, _folder: Path, _request: JobRequest) -> Job:
        self.num_jobs += 1
        return detail(JobId(f"job-{self.num_jobs}"), "", 1, 0).job

    def change(self, _job_id: str, _patch: JobPatch) -> None:
        """Say nothing: the sizes are those of the stage."""

    def tick(self) -> None:
        """Let become true what the newest stage waits for."""
        stage = self.recording.at(time.time()).stages[-1]
        a, b = {1: (8, 0), 2: (4, 4), 3: (3, 5), 4: (3, 5), 5: (0, 8)}[stage.number]
        if "A has ended" in stage.now_text and self.a_ended_at is None:
            self.a_ended_at = time.time()
        jobs = [detail(A, "A", a, 600), detail(B, "B", b, 600)]
        if self.a_ended_at is not None:
            jobs[0] = replace(jobs[0], job=replace(jobs[0].job, state=JobState.COMPLETED))
        if "B has ended" in stage.now_text:
            jobs[1] = replace(jobs[1], job=replace(jobs[1].job, state=JobState.COMPLETED))
        if "without it" in stage.now_text:
            lost = Event(
                seq=1, at=time.time(), kind=EventKind.TASK_LOST, message="", job_id=B, task_id=TaskId("job-2.1")
            )
            self.recording.add_event(lost)
            jobs[1] = replace(
                jobs[1], generations=tuple(replace(g, members=g.members[1:]) for g in jobs[1].generations)
            )
        task = Task(id=TaskId("job-2.1"), job_id=B, node_id=NodeId("here"), slots=(0,), state=TaskState.TRAINING,
                    started_at=1.0, pid=self.leader)  # fmt: skip
        jobs[1] = replace(jobs[1], tasks=(task,))
        self.recording.set_state(jobs, [Usage(at=time.time(), job_id=A, num_slots=1)])


def test_the_fifth_stage_begins_when_the_first_training_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.demo.director.MIN_HOLD_S", 0.0)
    monkeypatch.setattr("examples.demo.director.POLL_S", 0.001)
    recording = Recording(began_at=time.time(), num_slots=8)
    with subprocess.Popen(["sleep", "60"]) as leader:
        played = Played(recording, leader.pid)
        settings = Settings(code=Path("nowhere"), num_epochs=1, deadline_s=5.0, end_deadline_s=5.0)
        outcome = play(cast(Client, played), Director(recording, played.tick), recording, settings)
        assert leader.wait(5) == -signal.SIGKILL
    stages = recording.at(time.time()).stages
    assert (outcome.killed, [stage.number for stage in stages]) == ("job-2.1", [1, 2, 3, 4, 5])
    assert played.a_ended_at is not None
    assert stages[3].began_at < played.a_ended_at <= stages[4].began_at


def test_a_training_that_ends_too_early_fails_the_demo_with_what_to_give() -> None:
    recording = Recording(began_at=time.time(), num_slots=8)
    played = Played(recording, leader=0, a_ended_at=time.time())
    settings = Settings(code=Path("nowhere"), num_epochs=1, deadline_s=5.0, end_deadline_s=5.0)
    director = Director(recording, played.tick)

    with pytest.raises(DemoFailed, match="training A ended before the scenario was over; give more with --epochs"):
        play(cast(Client, played), director, recording, settings)
