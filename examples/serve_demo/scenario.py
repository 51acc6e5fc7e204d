"""The scenario: a model that a training has made answers requests, on slots that two trainings give up and get back.

What is waited for is what the server reports, with a deadline; seconds are held only where people are to see a rate
last. How large the wave is depends on what a request takes on this machine, so that more than one kernel is needed
on any.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

from examples.demo.director import Director, has_ended
from examples.demo.recording import DemoFailed, Recording, Seen
from examples.demo.report import load_data
from examples.serve_demo.load import Target
from examples.serve_demo.sheets import write_sheets
from examples.serve_demo.traffic import Traffic, traffic_to
from pliant.api.endpoints import EndpointView
from pliant.api.jobs import JobRequest
from pliant.client import Client
from pliant.core.job import JobId

NUM_SLOTS: Final = 8
NUM_KERNELS: Final = 4
NUM_WORKERS: Final = 4
"""Of each training: together they can fill all slots."""
ENDPOINT: Final = "digits"
RELEASE_DELAY_S: Final = 3.0
BATCH_SIZE: Final = 1
"""Requests that a kernel computes together; a sheet is many images by itself."""
PRIORITY: Final = 10_000
"""Twice that of a training: of 8 slots the endpoint may have 4 beside two trainings."""
LABELS: Final = ("A", "B")
CALM_RATE: Final = 2.0
CALM_S: Final = 4.0
CALM_ANSWERS: Final = 8
FRONT: Final = 3.0
"""The wave begins with so many times the requests that one kernel answers."""
RISE_S: Final = 12.0
"""It rises by as much again every so many seconds, until there are enough kernels."""
CREST: Final = 0.8
"""Part of the highest rate that lasts for `CREST_S`."""
CREST_S: Final = 7.0
FALL_S: Final = 3.0
SEEN_S: Final = 2.0
PLAY_S: Final = 90.0
"""The trainings are to last so long when they share all slots: twice what the wave and all around it take."""
PACE_EPOCHS: Final = 12
MIN_EPOCHS: Final = 30
"""Fewer do not reach the accuracy that the account asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """What is trained, and how long anything may take."""

    code: Path
    script: str = "elastic.py"
    num_epochs: int | None = None
    """Of each training; None: as many as take `PLAY_S` on this machine."""
    num_alone: int = 1
    """Slots of an undisturbed training; the fewer the cores, the faster it is on one."""
    batch_size: int = 64
    deadline_s: float = 60.0
    """For every change of size."""
    end_deadline_s: float = 180.0
    """For trainings to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOutcome:
    """Whom the scenario was about, and when."""

    alone: tuple[JobId, JobId]
    """The undisturbed trainings."""
    shared: tuple[JobId, JobId]
    """The same ones, that shared the machine with the endpoint."""
    endpoint: JobId
    answer_s: float
    """What a request took before the wave: the median."""
    wave_at: float
    crest_at: float
    """From then on all kernels were there, and the rate was what they can answer."""
    num_sent: int
    num_epochs: int
    """Of each training."""


def play(
    client: Client, token: str, director: Director, recording: Recording, settings: ServeSettings, folder: Path
) -> ServeOutcome:
    """Play all five stages.

    Args:
        folder: gets the results of the undisturbed trainings, and the requests with their answers.

    Raises:
        DemoFailed: something that must happen did not.
    """
    where = "one slot" if settings.num_alone == 1 else f"{settings.num_alone} slots"
    with director.stage(1, f"A and B train for a moment, to be timed; then undisturbed, on {where} each"):
        num_epochs = settings.num_epochs or _measure(client, director, recording, settings)
        settings = replace(settings, num_epochs=num_epochs)
        alone = _submit_both(client, recording, settings, " alone", max_tasks=settings.num_alone)
        director.wait("both have ended", lambda s: _all_ended(s, alone), within_s=settings.end_deadline_s)
        for job_id, label in zip(alone, LABELS, strict=True):
            client.result(job_id, folder / f"{label.lower()}-alone")
        sheets = write_sheets(
            load_data(), folder / f"{LABELS[0].lower()}-alone" / "model" / "model.pt", folder / "sheets.npz"
        )
    with ExitStack() as stack:
        with director.stage(2, "A's model is deployed; A and B train again; few requests: 1 kernel answers"):
            view, endpoint = _deploy(client, recording, alone[0], settings)
            shared = _submit_both(client, recording, settings, "", max_tasks=NUM_WORKERS)
            _settle(director, settings, shared, num_kernels=1)
            assert view.http_url is not None
            target = Target(url=view.http_url, token=token, name=ENDPOINT, sheets=str(sheets))
            traffic = stack.enter_context(traffic_to(target, recording))
            answer_s = _calm(director, traffic, shared, settings)
        with director.stage(3, f"the wave comes: {NUM_KERNELS} kernels answer, A and B shrink"):
            wave_at = time.time()
            front = FRONT / answer_s
            traffic.turn(front)
            traffic.turn(front * (1 + settings.deadline_s / RISE_S), within_s=settings.deadline_s)
            _settle(director, settings, shared, num_kernels=NUM_KERNELS)
            traffic.turn(CREST * traffic.rate, within_s=SEEN_S)
            crest_at = time.time() + SEEN_S
            _hold(director, f"{NUM_KERNELS} kernels have answered for a while", shared, seconds=SEEN_S + CREST_S)
        with director.stage(4, "the wave goes: the slots go back to A and B"):
            traffic.turn(0.0, within_s=FALL_S)
            _hold(director, "nothing more is sent", shared, seconds=FALL_S)
            traffic.end()
            director.wait("all is answered", lambda _: traffic.is_over, within_s=settings.deadline_s)
            _settle(director, settings, shared, num_kernels=1)
            _hold(director, "A and B have trained on them for a while", shared, seconds=SEEN_S)
    assert traffic.num_sent is not None
    with director.stage(5, "A and B train to the end"):
        director.wait("both have ended", lambda s: _all_ended(s, shared), within_s=settings.end_deadline_s)
    return ServeOutcome(
        alone=alone,
        shared=shared,
        endpoint=endpoint,
        answer_s=answer_s,
        wave_at=wave_at,
        crest_at=crest_at,
        num_sent=traffic.num_sent,
        num_epochs=num_epochs,
    )


def _measure(client: Client, director: Director, recording: Recording, settings: ServeSettings) -> int:
    """Train A and B on all slots for a moment; return how many epochs of it take `PLAY_S`."""
    short = replace(settings, num_epochs=PACE_EPOCHS)
    jobs = _submit_both(client, recording, short, " pace", max_tasks=NUM_WORKERS)
    seen = director.wait(
        "it is known how fast they train", lambda s: _all_ended(s, jobs), within_s=settings.end_deadline_s
    )
    took = []
    for job_id in jobs:
        job = seen.details[job_id].job
        assert job.started_at is not None
        assert job.ended_at is not None
        took.append(job.ended_at - job.started_at)
    return max(round(PLAY_S * PACE_EPOCHS / min(took)), MIN_EPOCHS)


def _submit_both(
    client: Client, recording: Recording, settings: ServeSettings, suffix: str, *, max_tasks: int
) -> tuple[JobId, JobId]:
    """Submit A and B, which differ in their seeds: the same two trainings whenever this is called."""
    found = []
    for seed, label in enumerate(LABELS):
        args = ("--epochs", str(settings.num_epochs), "--batch-size", str(settings.batch_size), "--seed", str(seed))
        request = JobRequest(
            name=f"digits-{label.lower()}{suffix.replace(' ', '-')}", script=settings.script, args=args,
            max_tasks=max_tasks, virtual_workers=NUM_WORKERS, checkpoint_freq=0, audit=True,
        )  # fmt: skip
        job = client.submit(settings.code, request)
        recording.add_job(job.id, label + suffix)
        found.append(job.id)
    a, b = found
    return a, b


def _deploy(client: Client, recording: Recording, job_id: JobId, settings: ServeSettings) -> tuple[EndpointView, JobId]:
    """Deploy what a job has trained; return the endpoint once a kernel answers, and the job that its kernels are of.

    Raises:
        DemoFailed: the model was not loaded.
    """
    view = client.endpoints.deploy(
        ENDPOINT, job=job_id, kernel_min=1, kernel_max=NUM_KERNELS, release_delay_s=RELEASE_DELAY_S,
        batch_size=BATCH_SIZE, priority=PRIORITY,
    )  # fmt: skip
    if (endpoint := view.versions[-1].job_id) is not None:
        recording.add_endpoint(endpoint, ENDPOINT)
    view = client.endpoints.wait(ENDPOINT, timeout_s=settings.deadline_s)
    endpoint = view.versions[-1].job_id
    if view.state != "serving" or endpoint is None:
        raise DemoFailed(f"the endpoint is {view.state} after its deployment: {view.reason or 'it gives no reason'}")
    recording.add_endpoint(endpoint, ENDPOINT)
    return view, endpoint


def _settle(director: Director, settings: ServeSettings, shared: tuple[JobId, JobId], *, num_kernels: int) -> None:
    """Wait until so many kernels hold slots and answer, and the trainings train on all others."""
    left = NUM_SLOTS - num_kernels

    def settled(seen: Seen) -> bool:
        _require_training(seen, shared)
        assert seen.endpoint_id is not None
        held, working = seen.slots_at(seen.endpoint_id, seen.now), seen.working_at(seen.endpoint_id, seen.now)
        return held == working == num_kernels and sum(seen.size(job_id) for job_id in shared) == left

    kernels = "1 kernel answers" if num_kernels == 1 else f"{num_kernels} kernels answer"
    director.wait(f"{kernels} and A and B train on {left} slots", settled, within_s=settings.deadline_s)


def _calm(director: Director, traffic: Traffic, shared: tuple[JobId, JobId], settings: ServeSettings) -> float:
    """Ask now and then; return what a request takes, in seconds: the median."""
    traffic.turn(CALM_RATE)

    def enough(seen: Seen) -> bool:
        _require_training(seen, shared)
        return len(seen.answers) >= CALM_ANSWERS and seen.now - seen.answers[0].done_at >= CALM_S

    seen = director.wait("it is known what a request takes", enough, within_s=settings.deadline_s)
    return median(answer.latency_s for answer in seen.answers)


def _hold(director: Director, what: str, shared: tuple[JobId, JobId], *, seconds: float) -> None:
    """Let things be as they are for so long."""
    until = time.time() + seconds

    def over(seen: Seen) -> bool:
        _require_training(seen, shared)
        return seen.now >= until

    director.wait(what, over, within_s=seconds + 5.0)


def _all_ended(seen: Seen, job_ids: tuple[JobId, JobId]) -> bool:
    return all(job_id in seen.details and has_ended(seen, job_id) for job_id in job_ids)


def _require_training(seen: Seen, job_ids: tuple[JobId, JobId]) -> None:
    """Refuse to go on once a training is over: there is nobody left to share with."""
    if ended := [seen.labels[job_id] for job_id in job_ids if job_id in seen.details and has_ended(seen, job_id)]:
        raise DemoFailed(f"training {ended[0]} ended before the scenario was over; give more with --epochs")
