"""Code that is stuck is noticed, shown with its line, and replaced or ended, over real processes."""

from pathlib import Path

import pytest
from tests.e2e.pool import Pool

from pliant.api.jobs import JobRequest
from pliant.client import Client
from pliant.client.nouns.stacks import TaskStacks
from pliant.core.errors import Conflict
from pliant.core.event import EventKind
from pliant.core.job import JobId
from pliant.core.lifecycle import JobState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
HERE = Path(__file__).parent


def events(client: Client, job_id: JobId, kind: EventKind) -> list[str]:
    return [event.message for event in client.events(job_id=job_id).events if event.kind is kind]


def test_a_worker_that_is_stuck_is_replaced_and_its_line_is_known(pool: Pool, client: Client) -> None:
    request = JobRequest(script="stuck.py", min_tasks=2, max_tasks=2, stall_after_s=4.0, on_stall="replace")
    job_id = client.submit(HERE / "stuck.py", request).id
    job = client.wait(job_id, timeout_s=120.0)
    assert job.state is JobState.COMPLETED, job.reason
    assert job.progress is not None
    assert job.progress.step == job.progress.num_steps == 160
    line = next(n for n, text in enumerate((HERE / "stuck.py").read_text().splitlines(), 1) if "here it is" in text)
    (stalled,) = events(client, job_id, EventKind.JOB_STALLED)
    assert "has done no step for 4 s" in stalled
    (lost,) = events(client, job_id, EventKind.TASK_LOST)
    assert lost.startswith(f"{job_id}.2 of {job_id} (stuck.py) did no step for ")
    assert f"at stuck.py:{line} in __getitem__ and was killed by Pliant" in lost
    shown = {stacks.task_id: stacks for stacks in client.recorded_stacks(job_id)}
    assert (shown[f"{job_id}.1"].waits, shown[f"{job_id}.2"].waits) == (True, False)
    assert "here it is stuck" in shown[f"{job_id}.2"].text
    assert "Thread pliant-link" in shown[f"{job_id}.1"].text


def test_processes_without_a_link_show_their_stacks_in_stderr_and_end_at_once_if_asked(
    pool: Pool, client: Client
) -> None:
    job_id = client.submit(HERE / "waits.py", JobRequest(script="waits.py", min_tasks=2, max_tasks=2, fixed=True)).id
    pool.until(lambda: client.job(job_id).job.state is JobState.RUNNING, "it runs")

    def shown() -> tuple[TaskStacks, ...] | None:
        """Return the stacks, once the script waits; Python may still be starting, and nobody is asked too often."""
        try:
            found = client.stacks(job_id, timeout_s=10.0)
        except Conflict:
            return None
        return found if all("wait_here" in stacks.text for stacks in found) else None

    found = pool.until(shown, "both show where they wait")
    assert [stacks.task_id for stacks in found] == [f"{job_id}.1", f"{job_id}.2"]
    client.stop(job_id, now=True)
    assert client.wait(job_id, timeout_s=20.0).state is JobState.STOPPED
