"""What a job's results are worth is kept, shown, and never gets better."""

from typing import Any

import pytest

from pliant.core.event import EventKind
from pliant.core.job import JobId, Progress
from pliant.core.link import Claimed, Finished
from pliant.core.ports import EventFilter

World = Any


def claim(world: World, job_id: JobId, claim: Any, **more: Any) -> None:
    world.say(world.members(job_id)[0], Claimed(claim=claim, fingerprint=f"torch on {claim}", **more))
    world.settle(0.1)


def kept(world: World, job_id: JobId) -> tuple[object, ...]:
    job = world.job(job_id)
    return job.claim, job.claim_step, job.claim_reason, job.fingerprint


def test_there_is_no_claim_before_the_leader_made_one(world: World) -> None:
    assert kept(world, world.submit()) == (None, 0, "", "")


def test_a_first_exact_claim_is_kept_without_a_fuss(world: World) -> None:
    job_id = world.submit()
    claim(world, job_id, "exact")
    assert kept(world, job_id) == ("exact", 0, "", "torch on exact")
    assert world.said(EventKind.CLAIM_WEAKENED) == []


def test_a_weaker_claim_is_told_once_and_stays(world: World) -> None:
    job_id = world.submit()
    claim(world, job_id, "exact")
    for _ in range(2):
        claim(world, job_id, "statistical", reason="job-1.2 has another processor", step=812)
    claim(world, job_id, "exact")
    world.restart()
    world.settle(0.1)

    assert kept(world, job_id) == ("statistical", 812, "job-1.2 has another processor", "torch on statistical")
    (event,) = world.store.events(EventFilter(kinds=(EventKind.CLAIM_WEAKENED,)))
    assert event.message == (
        "job-1 (digits): results are statistical, no longer exact, since step 812: job-1.2 has another processor"
    )
    assert (event.data["from"], event.data["to"], event.data["step"]) == ("exact", "statistical", 812)


def test_a_job_that_never_was_exact_is_told_too(world: World) -> None:
    job_id = world.submit()
    claim(world, job_id, "statistical", reason="an operation has no deterministic implementation")
    assert len(world.said(EventKind.CLAIM_WEAKENED)) == 1


def test_fast_was_asked_for(world: World) -> None:
    job_id = world.submit(mode="fast")
    claim(world, job_id, "fast")
    assert kept(world, job_id) == ("fast", 0, "", "torch on fast")
    assert world.said(EventKind.CLAIM_WEAKENED) == []


def test_the_digest_of_the_final_state_is_kept_with_the_job_and_its_last_event(world: World) -> None:
    job_id = world.submit()
    world.say(world.members(job_id)[0], Finished(step=10, digest="ab" * 32))
    world.settle()
    assert world.job(job_id).digest == "ab" * 32
    last = world.store.events(EventFilter(kinds=(EventKind.JOB_STATE,)))[-1]
    assert (last.data["to"], last.data["digest"]) == ("completed", "ab" * 32)


def test_a_member_tells_how_far_the_training_came_if_the_leader_could_not(world: World) -> None:
    job_id = world.submit()
    member = world.members(job_id)[0]
    progress = Progress(epoch=2, num_epochs=2, step=10, num_steps=10, samples=100, samples_per_s=5.0, loss=0.5)
    world.say(member, Finished(step=10, progress=progress))
    world.settle()
    assert world.job(job_id).progress == progress


@pytest.mark.parametrize(
    ("epoch", "step", "how"),
    [
        (4, 20, "all epochs are trained and the model is saved"),
        (3, 15, "its script ended the training after epoch 3 of 4, at step 15 of 20; the model is saved"),
        (2, 12, "its script ended the training in epoch 3 of 4, at step 12 of 20; the model is saved"),
    ],
)
def test_a_training_that_its_script_ended_early_says_at_which_epoch(
    world: World, epoch: int, step: int, how: str
) -> None:
    job_id = world.submit()
    progress = Progress(epoch=epoch, num_epochs=4, step=step, num_steps=20, samples=100, samples_per_s=5.0)
    world.say(world.members(job_id)[0], Finished(step=step, progress=progress))
    world.settle()
    assert world.job(job_id).reason == how
    assert world.store.events(EventFilter(kinds=(EventKind.JOB_STATE,)))[-1].message.endswith(how)
