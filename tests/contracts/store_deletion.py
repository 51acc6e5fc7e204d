"""The contract of `Store` over jobs that are deleted: nothing is left of them but that they were there."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from tests.contracts.store import a_job, a_metric, a_task, an_event, messages

from pliant.core.errors import NotFound
from pliant.core.event import EventKind, Usage
from pliant.core.job import DeletedJob, Generation, JobId
from pliant.core.job_filter import JobFilter
from pliant.core.lifecycle import GenerationState, JobState
from pliant.core.ports import EventFilter, Store, Writes


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """A noun that is about a job; see `pliant.core.registry.OF_JOBS`."""

    KIND: ClassVar[str] = "notice"

    name: str
    owner: str = "ann"


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A noun that only happens to be called like a job."""

    KIND: ClassVar[str] = "queue"

    name: str
    owner: str = "ann"


def a_deleted(job_id: str = "job-1") -> DeletedJob:
    """Return what is left of a job."""
    return DeletedJob(id=JobId(job_id), owner="ann", deleted_at=7.5, deleted_by="bob")


def fill(store: Store, job_id: str) -> None:
    """Write everything that there can be of a job."""
    job = replace(a_job(job_id, state=JobState.COMPLETED), owner="ann", tags={"lr": "0.1"})
    generation = Generation(job_id=job.id, number=1, members=(), state=GenerationState.ACTIVE, announced_at=1.0)
    store.write(
        Writes(
            jobs=(job,),
            tasks=(a_task(f"{job_id}.1", job_id=job_id),),
            generations=(generation,),
            events=(an_event(f"of {job_id}", job_id=job_id),),
            metrics=tuple(a_metric(step, job_id=job_id) for step in range(40)),
            usage=(Usage(at=2.0, job_id=job.id, num_slots=3),),
        )
    )
    for name in (job_id, f"{job_id}.mail"):
        store.registry.add(About(name=name), at=1.0)
        store.registry.add(Other(name=name), at=1.0)


class DeletionContract:
    """What a caller may rely on who deletes jobs."""

    def test_nothing_is_left_of_a_deleted_job_and_all_of_the_others(self, store: Store) -> None:
        for job_id in ("job-1", "job-10", "job-2"):
            fill(store, job_id)
        said = an_event("job-1 was deleted", job_id="job-1", kind=EventKind.JOB_DELETED)
        (event,) = store.write(Writes(deleted=(a_deleted(),), events=(said,)))
        gone = JobId("job-1")
        assert store.job(gone) is None
        left = (store.tasks(gone), store.generations(gone), store.metrics(gone), store.chart(gone))
        assert (*left, store.usage(job_id=gone)) == ((), (), (), (), ())
        assert [job.id for job in store.jobs(JobFilter(tags={"lr": ()}))] == ["job-2", "job-10"]
        assert messages(store.events(EventFilter())) == ["of job-10", "of job-2", "job-1 was deleted"]
        assert (store.last_seq(), event.seq) == (4, 4)
        assert [store.registry.get(About, name) for name in ("job-1", "job-1.mail")] == [None, None]
        for job_id in ("job-10", "job-2"):
            assert store.job(JobId(job_id)) is not None
            assert len(store.metrics(JobId(job_id))) == 40
            assert len(store.tasks(JobId(job_id))) == len(store.usage(job_id=JobId(job_id))) == 1
            assert store.registry.get(About, f"{job_id}.mail") is not None
        assert len(store.registry.list(Other)) == 6

    def test_it_is_remembered_that_it_was_there_and_whether_files_are(self, store: Store) -> None:
        for job_id in ("job-1", "job-2", "job-3"):
            store.write(Writes(jobs=(a_job(job_id),)))
        store.write(Writes(deleted=(a_deleted("job-3"), a_deleted("job-1"))))
        assert store.deleted_job(JobId("job-2")) is None
        assert store.deleted_job(JobId("job-3")) == a_deleted("job-3")
        assert store.deleted_jobs() == (a_deleted("job-1"), a_deleted("job-3"))
        without = replace(a_deleted("job-3"), has_files=False)
        store.write(Writes(events=(an_event("it was deleted", job_id="job-3"),)))
        store.write(Writes(deleted=(without,)))
        assert messages(store.events(EventFilter())) == ["it was deleted"]
        assert store.deleted_jobs() == (a_deleted("job-1"),)
        assert store.deleted_job(JobId("job-3")) == without

    def test_a_page_goes_on_behind_a_job_that_was_deleted_meanwhile(self, store: Store) -> None:
        store.write(Writes(jobs=tuple(a_job(f"job-{n}") for n in range(1, 6))))
        store.write(Writes(deleted=(a_deleted("job-3"),)))
        assert [job.id for job in store.jobs(before=JobId("job-3"))] == ["job-2", "job-1"]
        assert [job.id for job in store.jobs()] == ["job-5", "job-4", "job-2", "job-1"]

    def test_many_are_deleted_at_once_or_none(self, store: Store) -> None:
        store.write(Writes(jobs=tuple(a_job(f"job-{n}") for n in range(1, 251))))
        many = tuple(a_deleted(f"job-{n}") for n in range(1, 250))
        with pytest.raises(NotFound, match="job-999"):
            store.write(Writes(deleted=(*many, a_deleted("job-999"))))
        assert len(store.jobs()) == 250
        store.write(Writes(deleted=many))
        assert [job.id for job in store.jobs()] == ["job-250"]
