"""The contract of `Store` over jobs that are asked for: by state, owner, queue, tag and search, page by page."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contracts.store import a_job

from pliant.core.access import VisibleJobs
from pliant.core.job import Job, JobId
from pliant.core.job_filter import EVERY_JOB, JobFilter
from pliant.core.lifecycle import JobState
from pliant.core.ports import Store, Writes
from pliant.core.trial_part import TrialPart

STATES = (JobState.RUNNING, JobState.PAUSED, JobState.FAILED)
OWNERS, QUEUES = ("ann", "bob"), ("default", "night", "gpus")
SEARCHES = (None, "digits", "Größe")
TAGS: Sequence[Mapping[str, str]] = ({}, {"lr": "0.1"}, {"lr": "0.01", "best": ""}, {"best": "yes"}, {"lr": "0.1,2"})


def jobs_of_all_sorts() -> tuple[Job, ...]:
    """Return jobs with many combinations of what can be asked for, oldest first."""
    return tuple(
        replace(
            of_search(a_job(f"job-{n}", state=STATES[n % 3]), SEARCHES[n // 4 % 3], n),
            owner=OWNERS[n // 2 % 2],
            queue=QUEUES[n // 3 % 3],
            tags=TAGS[n % 5],
        )
        for n in range(1, 61)
    )


def of_search(job: Job, search: str | None, number: int) -> Job:
    """Return a job as a trial of a search; None: it is of none."""
    trial = None if search is None else TrialPart(search=search, number=number, values={"lr": 0.1})
    return replace(job, spec=replace(job.spec, trial=trial))


def some_of(values: Sequence[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from([*values, "nobody"]), max_size=2, unique=True).map(tuple)


filters = st.builds(
    JobFilter,
    states=st.lists(st.sampled_from(STATES), max_size=2, unique=True).map(tuple),
    owners=some_of(OWNERS),
    queues=some_of(QUEUES),
    searches=some_of(["digits", "Größe"]),
    without_trials=st.booleans(),
    tags=st.dictionaries(st.sampled_from(["lr", "best"]), some_of(["0.1", "0.01", "", "yes"]), max_size=2),
)
sights = st.none() | st.just(VisibleJobs(owner="ann", shared=frozenset({JobId("job-6"), JobId("job-19")})))


class FilterContract:
    """What a caller may rely on who asks for some jobs."""

    def test_pages_hold_every_job_that_fits_and_no_other(self, store: Store) -> None:
        every = jobs_of_all_sorts()
        store.write(Writes(jobs=every))

        @settings(max_examples=60, deadline=None)
        @given(which=filters, visible=sights, limit=st.integers(1, 7))
        def check(which: JobFilter, visible: VisibleJobs | None, limit: int) -> None:
            seen = [job for job in reversed(every) if visible is None or visible.covers(job.id, job.owner)]
            found: list[JobId] = []
            while page := store.jobs(which, before=found[-1] if found else None, limit=limit, visible=visible):
                assert len(page) <= limit
                found += [job.id for job in page]
            assert found == [job.id for job in seen if which.fits(job)]

        check()

    def test_tags_are_found_as_they_are_now(self, store: Store) -> None:
        job = replace(a_job(), tags={"lr": "0.1", "best": ""})
        store.write(Writes(jobs=(job, a_job("job-2"))))
        store.write(Writes(jobs=(replace(job, revision=2, tags={"lr": "0.2", "kept": "x"}),)))
        store.write(Writes(jobs=(replace(job, revision=3, tags={"lr": "0.2", "kept": "x"}, num_slots=2),)))
        assert store.jobs(JobFilter(tags={"lr": ("0.1",)})) == store.jobs(JobFilter(tags={"best": ()})) == ()
        (found,) = store.jobs(JobFilter(tags={"lr": ("0.2", "0.3"), "kept": ()}))
        assert (found.id, found.tags, found.num_slots) == ("job-1", {"lr": "0.2", "kept": "x"}, 2)
        store.write(Writes(jobs=(replace(job, tags={}),)))
        assert store.jobs(JobFilter(tags={"lr": ()})) == ()
        assert store.jobs(EVERY_JOB) == (a_job("job-2"), replace(job, tags={}))

    def test_jobs_are_found_by_a_part_of_id_or_name(self, store: Store) -> None:
        names = ("digits", "Digits-large", "my digits", "100%", "a_b", "job-2", "other", "trial")
        jobs = [replace(a_job(f"job-{n}"), owner=OWNERS[n % 2]) for n in range(1, len(names) + 1)]
        jobs = [replace(job, spec=replace(job.spec, name=name)) for job, name in zip(jobs, names, strict=True)]
        jobs[-1] = of_search(jobs[-1], "digits", 0)
        store.write(Writes(jobs=tuple(jobs)))

        def found(text: str, limit: int = 9, visible: VisibleJobs | None = None) -> list[str]:
            return [job.id for job in store.find_jobs(text, limit=limit, visible=visible)]

        assert found("DIGITS") == ["job-1", "job-2", "job-3"]
        assert found("digits", limit=1) == ["job-1"]
        assert found("job-2") == ["job-6", "job-2"], "both are called so; the newest first"
        assert (found("%"), found("_"), found("/"), found("trial")) == (["job-4"], ["job-5"], [], [])
        assert found("job", visible=VisibleJobs(owner="ann", shared=frozenset({JobId("job-3")}))) == [
            "job-6",
            "job-4",
            "job-3",
            "job-2",
        ]
