"""The scenario: five stages, each a condition that the server must report within its deadline.

Everything goes through the public client; the only other thing done to the machine is one SIGKILL.
"""

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from examples.demo.director import Director, has_ended, share_done
from examples.demo.recording import DemoFailed, Recording, Seen
from pliant.api.jobs import JobPatch, JobRequest
from pliant.client import Client
from pliant.core.event import EventKind
from pliant.core.job import JobId, TaskId

NUM_SLOTS = 8
HIGH_PRIORITY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is trained, and how far A has come when each stage ends."""

    code: Path
    script: str = "elastic.py"
    num_epochs: int
    batch_size: int = 64
    deadline_s: float = 45.0
    """For every change of size."""
    end_deadline_s: float = 120.0
    """For a training to end."""
    held_until: Mapping[int, float] = field(default_factory=lambda: {1: 0.2, 2: 0.45, 3: 0.65, 4: 0.8})
    """Share of A's steps that are done when a stage ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Whom the scenario was about."""

    a: JobId
    b: JobId
    killed: TaskId


def play(client: Client, director: Director, recording: Recording, settings: Settings) -> Outcome:
    """Play all five stages.

    Raises:
        DemoFailed: something that must happen did not.
    """
    with director.stage(1, "A starts on one slot and grows to 8"):
        a = _submit(client, recording, "A", settings)
        director.wait(
            "A holds its first slot", lambda s: any(p.num_slots for p in s.usage), within_s=settings.deadline_s
        )
        _settle(director, settings, {a: NUM_SLOTS}, share=settings.held_until[1])
    with director.stage(2, "B arrives: 4 and 4"):
        b = _submit(client, recording, "B", settings)
        _settle(director, settings, {a: 4, b: 4}, share=settings.held_until[2])
    with director.stage(3, "B's priority goes from 5000 to 10000: 3 and 5"):
        client.change(b, JobPatch(priority=HIGH_PRIORITY))
        _settle(director, settings, {a: 3, b: 5}, share=settings.held_until[3])
    with director.stage(4, "B's leading worker dies by SIGKILL and is replaced"):
        killed = _kill_leader(recording.at(time.time()), b)
        director.wait("B trains without it", lambda s: _trains_without(s, b, killed), within_s=settings.deadline_s)
        _settle(director, settings, {a: 3, b: 5}, share=settings.held_until[4])
        director.wait("A has ended", lambda s: has_ended(s, a), within_s=settings.end_deadline_s)
    with director.stage(5, "A ends: B grows to 8 and ends"):
        director.wait("B trains on 8", lambda s: s.size(b) == NUM_SLOTS, within_s=settings.deadline_s)
        director.wait("B has ended", lambda s: has_ended(s, b), within_s=settings.end_deadline_s)
    return Outcome(a=a, b=b, killed=killed)


def _settle(director: Director, settings: Settings, sizes: Mapping[JobId, int], *, share: float) -> None:
    """Wait until the jobs train with these sizes, then until the first of them has done this share of its steps."""
    first, *_ = sizes

    def settled(seen: Seen) -> bool:
        if ended := [seen.labels[job_id] for job_id in sizes if job_id in seen.details and has_ended(seen, job_id)]:
            raise DemoFailed(f"training {ended[0]} ended before the scenario was over; give more with --epochs")
        return all(seen.size(job_id) == size for job_id, size in sizes.items())

    shared = " and ".join(map(str, sizes.values()))
    director.wait(f"the trainings run on {shared}", settled, within_s=settings.deadline_s)
    director.hold(shared, settled, until=lambda s: share_done(s, first) >= share, within_s=settings.end_deadline_s)


def _submit(client: Client, recording: Recording, label: str, settings: Settings) -> JobId:
    args = ("--epochs", str(settings.num_epochs), "--batch-size", str(settings.batch_size))
    request = JobRequest(
        name=f"digits-{label.lower()}", script=settings.script, args=args, max_tasks=NUM_SLOTS,
        virtual_workers=NUM_SLOTS, checkpoint_freq=0, audit=True,
    )  # fmt: skip
    job = client.submit(settings.code, request)
    recording.add_job(job.id, label)
    return job.id


def _kill_leader(seen: Seen, job_id: JobId) -> TaskId:
    """SIGKILL the task that leads the job's training: the hardest one to lose."""
    leader = next(task for task in seen.details[job_id].tasks if task.id == seen.members(job_id)[0])
    if leader.pid is None:
        raise DemoFailed(f"the server does not know the process of {leader.id}, which trains")
    os.kill(leader.pid, signal.SIGKILL)
    return leader.id


def _trains_without(seen: Seen, job_id: JobId, task_id: TaskId) -> bool:
    """Tell whether the server has seen the loss and the others train again."""
    lost = any(event.task_id == task_id for event in seen.events_of(EventKind.TASK_LOST))
    return lost and seen.size(job_id) > 0 and task_id not in seen.members(job_id)
