"""The contract of `Store` over jobs that are asked for: by state, owner, queue, tag and search, page by page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contracts.store import a_job

from pliant.core.access import VisibleJobs
from pliant.core.job import DeletedJob, Job, JobId
from pliant.core.job_filter import EVERY_JOB, SORT_FIELDS, JobFilter, JobOrder, SortField
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
            priority=n * 37 % 11 + 1,
            num_slots=n % 4,
            ended_at=None if n % 3 else float(n * 7 % 5),
        )
        for n in range(1, 61)
    )


def of_search(job: Job, search: str | None, number: int) -> Job:
    """Return a job as a trial of a search; None: it is of none, and of a fixed size or not."""
    trial = None if search is None else TrialPart(search=search, number=number, values={"lr": 0.1})
    name = ("Straße 100%", "digits_v2", "Zoo", "alpha")[number % 4]
    return replace(job, spec=replace(job.spec, trial=trial, fixed=number % 6 == 0, name=name))


def some_of(values: Sequence[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from([*values, "nobody"]), max_size=2, unique=True).map(tuple)


filters = st.builds(
    JobFilter,
    states=st.lists(st.sampled_from(STATES), max_size=2, unique=True).map(tuple),
    owners=some_of(OWNERS),
    queues=some_of(QUEUES),
    searches=some_of(["digits", "Größe"]),
    without_trials=st.booleans(),
    kinds=st.lists(st.sampled_from(["training", "fixed", "trial", "endpoint"]), max_size=2, unique=True).map(tuple),
    text=st.sampled_from(["", "", "STRASSE", "0%", "s_v", "job-1", "ANN", "lr=0.01", "best=", "ZOO\nann", "*"]),
    tags=st.dictionaries(st.sampled_from(["lr", "best"]), some_of(["0.1", "0.01", "", "yes"]), max_size=2),
)
orders = st.builds(JobOrder, by=st.sampled_from(SORT_FIELDS), descending=st.booleans())
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

    def test_jobs_come_in_every_order_a_part_at_a_time_and_are_counted(self, store: Store) -> None:
        every = jobs_of_all_sorts()
        store.write(Writes(jobs=every))

        @settings(max_examples=60, deadline=None)
        @given(which=filters, order=orders, visible=sights, limit=st.integers(5, 70), offset=st.integers(0, 20))
        def check(which: JobFilter, order: JobOrder, visible: VisibleJobs | None, limit: int, offset: int) -> None:
            seen = [job for job in reversed(every) if visible is None or visible.covers(job.id, job.owner)]
            wanted = [job.id for job in order.sort([job for job in seen if which.fits(job)])]
            assert store.num_jobs(which, visible=visible) == len(wanted)
            states = Counter(job.state for job in seen if which.fits(job))
            assert store.num_by_state(which, visible=visible) == states
            found = store.jobs(which, order=order, offset=offset, limit=limit, visible=visible)
            assert [job.id for job in found] == wanted[offset : offset + limit]

        check()

    def test_a_text_is_found_in_the_tags_of_now_and_in_no_job_that_is_gone(self, store: Store) -> None:
        store.write(Writes(jobs=(replace(a_job(), tags={"lr": "0.1"}), a_job("job-2"))))
        store.write(Writes(jobs=(replace(a_job(), tags={}, revision=2),)))
        assert store.num_jobs(JobFilter(text="lr")) == 0
        store.write(Writes(jobs=(replace(a_job(), tags={"batch": "32"}, revision=3),)))
        assert [job.id for job in store.jobs(JobFilter(text="BATCH=3"))] == ["job-1"]
        store.write(Writes(deleted=(DeletedJob(id=JobId("job-1"), owner="admin", deleted_at=1.0, deleted_by="ann"),)))
        assert [job.id for job in store.jobs(JobFilter(text="job"), order=JobOrder(by="name"))] == ["job-2"]

    def test_the_first_in_an_order_are_the_last_in_the_other_but_for_equals_and_missing(self, store: Store) -> None:
        named = tuple(
            replace(a_job(f"job-{n}"), spec=replace(a_job().spec, name=name), ended_at=ended)
            for n, (name, ended) in enumerate([("b", None), ("A", 2.0), ("ü", 1.0), ("a", None), ("b", 3.0)], start=1)
        )
        store.write(Writes(jobs=named))

        def ids(by: SortField, *, descending: bool) -> list[int]:
            return [int(job.id[4:]) for job in store.jobs(order=JobOrder(by=by, descending=descending))]

        assert ids("name", descending=False) == [2, 4, 5, 1, 3]
        assert ids("name", descending=True) == [3, 5, 1, 4, 2]
        assert ids("ended", descending=False) == [3, 2, 5, 4, 1]
        assert ids("ended", descending=True) == [5, 2, 3, 4, 1]
        assert ids("submitted", descending=False) == [1, 2, 3, 4, 5]

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
