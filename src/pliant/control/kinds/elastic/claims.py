"""What a job's results are worth, as its leader says; within a job that only gets less."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pliant.control.jobs.draft import Draft
from pliant.control.kinds.elastic.job import ElasticJob
from pliant.core.event import EventKind
from pliant.core.job import Claim, Task
from pliant.core.link import Claimed

_WEAKNESS: Final[Mapping[Claim, int]] = {"exact": 0, "statistical": 1, "fast": 2}


def take_claim(draft: Draft, live: ElasticJob, task: Task, message: Claimed) -> ElasticJob:
    """Keep a claim with the job, unless it is stronger than an earlier one; one that is weaker is an event too."""
    job = live.job
    before = job.claim or job.spec.mode
    if _WEAKNESS[message.claim] < _WEAKNESS[before]:
        return live
    if message.claim == job.claim:
        return draft.put(replace(live, job=replace(job, fingerprint=message.fingerprint)))
    if message.claim != before:
        draft.say(
            EventKind.CLAIM_WEAKENED,
            f"{live.label}: results are {message.claim}, no longer {before}, since step {message.step}: "
            f"{message.reason or 'no reason was given'}",
            job_id=live.id,
            task_id=task.id,
            data={
                "from": before,
                "to": message.claim,
                "step": message.step,
                "fingerprint": message.fingerprint,
                "reason": message.reason,
            },
        )
    job = replace(
        job,
        claim=message.claim,
        claim_step=message.step,
        claim_reason=message.reason,
        fingerprint=message.fingerprint,
    )
    return draft.put(replace(live, job=job))
