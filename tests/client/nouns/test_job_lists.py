"""Lists of jobs, several jobs at once, previews and the overview from Python."""

import pytest
from tests.server.played import Played

from pliant.api.jobs import JobPatch
from pliant.api.previews import GroupPreviewRequest
from pliant.api.queues import QueuePatch
from pliant.client import Client, InvalidInput, JobRequest


def test_jobs_are_listed_sorted_changed_and_stopped_together(own: Client, pool: Played) -> None:
    ids = [pool.add(name=name, max_tasks=2) for name in ("alpha", "beta", "gamma")]
    page = own.rows(text="A", sort="-name", limit=2, kinds=["training"])
    assert ([row.name for row in page.rows], page.total) == (["gamma", "beta"], 3)
    assert [job.id for job in own.jobs(text="beta", sort="name", offset=0).jobs] == [ids[1]]
    changed = own.change_all([*ids, "job-9"], priority=7)
    assert [(one.id, one.ok) for one in changed.outcomes] == [*((one, True) for one in ids), ("job-9", False)]
    with pytest.raises(InvalidInput):
        own.change_all(ids, colour="red")
    assert own.stop_all(ids, now=True).num_refused == 0


def test_previews_and_the_overview_come_as_nouns(own: Client, pool: Played) -> None:
    job_id = pool.add(name="alpha", max_tasks=4)
    assert own.previews.change(job_id, JobPatch(max_tasks=2)).workloads[0].would_get == 2
    assert own.previews.submission(JobRequest(script="a.py", max_tasks=2)).would_get == 2
    assert own.previews.queue("default", QueuePatch.model_validate({"weight": 3})).refused == ""
    group = GroupPreviewRequest.model_validate({"hosts": {"all": True}, "slots_per_host": 3})
    assert own.previews.group(group).num_slots == 3
    seen = own.overview()
    assert (seen.num_slots, seen.last_seq) == (4, pool.store.last_seq())
