"""The contract of `Store` over jobs and what happens to them: all of it comes back as it was written.

Every implementation does this, whatever lies under it. Subclass `StoreContract` and give it a fixture `store`, and
with it `SeriesContract` (`tests.contracts.store_series`: points, charts, usage) and `WritesContract`
(`tests.contracts.store_writes`: whole or not at all, by many threads); for a store that outlives its process also
`DurabilityContract` there. Knows no SQL.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

from pliant.core.access import VisibleJobs
from pliant.core.array import JobArray
from pliant.core.event import Event, EventKind, Usage
from pliant.core.job import Generation, Job, JobId, JobSpec, Metric, NodeId, Progress, Task, TaskId
from pliant.core.job_filter import JobFilter
from pliant.core.lifecycle import GenerationState, JobState, TaskState
from pliant.core.ports import EventFilter, Store, Writes
from pliant.core.serving_profile import EndpointPart, ServingProfile
from pliant.core.space import Values
from pliant.core.trial_part import TrialPart


def a_spec(name: str = "digits") -> JobSpec:
    """Return a specification that uses every field."""
    return JobSpec(
        name=name,
        script="train.py",
        args=("--lr", "0.1"),
        min_tasks=2,
        max_tasks=8,
        virtual_workers=8,
        python="/opt/python",
        env={"LANG": "C"},
        data_dir="/data",
        checkpoint_every_s=12.5,
        weights="/weights.pt",
        resume_from="/checkpoints",
        mode="fast",
        max_restarts=2,
        audit=True,
        tags={"lr": "0.1", "best": ""},
        after=("job-7", "array-2"),
        after_any=("job-8",),
        array=an_array(),
    )


def an_array(array_id: str = "array-1", index: int = 0) -> JobArray:
    """Return which job of an array a job is."""
    return JobArray(id=array_id, name="digits", index=index, num_jobs=4, values={"lr": "0.1"}, max_running=2)


def a_job(job_id: str = "job-1", *, state: JobState = JobState.RUNNING, at: float = 100.0) -> Job:
    """Return a job; `replace` what matters."""
    return Job(
        id=JobId(job_id),
        spec=a_spec(),
        owner="admin",
        state=state,
        priority=5000,
        min_tasks=2,
        max_tasks=8,
        submitted_at=at,
    )


def a_task(task_id: str = "job-1.1", *, job_id: str = "job-1", state: TaskState = TaskState.TRAINING) -> Task:
    """Return a task; `replace` what matters."""
    return Task(
        id=TaskId(task_id), job_id=JobId(job_id), node_id=NodeId("here"), slots=(0, 3), state=state, started_at=101.0
    )


def an_event(message: str, *, job_id: str | None = None, kind: EventKind = EventKind.DECISION) -> Event:
    """Return an event that is not stored yet."""
    return Event(at=1.5, kind=kind, message=message, job_id=None if job_id is None else JobId(job_id))


def a_metric(step: int, name: str = "loss", value: float = 0.5, *, job_id: str = "job-1") -> Metric:
    """Return a point."""
    return Metric(job_id=JobId(job_id), name=name, step=step, epoch=step // 10, at=float(step), value=value)


def messages(events: Iterable[Event]) -> list[str]:
    """Return what the events say, in order."""
    return [event.message for event in events]


class StoreContract:
    """What a caller may rely on of jobs and of what happens to them."""

    def test_the_jobs_of_an_array_come_in_their_order(self, store: Store) -> None:
        members = [replace(a_job(f"job-{n}"), spec=replace(a_spec(), array=an_array("array-3", n))) for n in range(12)]
        alone = replace(a_job("job-77"), spec=replace(a_spec(), array=None), after=("array-3",), after_any=())
        store.write(Writes(jobs=(a_job("job-99"), *members, alone)))
        store.write(Writes(jobs=(replace(members[0], state=JobState.COMPLETED),)))
        assert [job.id for job in store.array_jobs("array-3")] == [f"job-{n}" for n in range(12)]
        assert store.array_jobs("array-4") == ()
        assert store.job(alone.id) == alone

    def test_numbers_can_be_had_in_a_row(self, store: Store) -> None:
        assert [store.next_id("job"), store.next_id("job", 5), store.next_id("job")] == [1, 2, 7]

    def test_a_new_store_is_empty(self, store: Store) -> None:
        assert store.job(JobId("job-1")) is None
        assert store.jobs() == ()
        assert store.tasks() == ()
        assert store.generations(JobId("job-1")) == ()
        assert store.events(EventFilter()) == ()
        assert store.last_seq() == 0
        assert store.metrics(JobId("job-1")) == ()
        assert store.usage() == ()

    def test_an_empty_write_changes_nothing(self, store: Store) -> None:
        assert store.write(Writes()) == ()
        assert store.last_seq() == 0

    def test_a_job_comes_back_as_it_was_written(self, store: Store) -> None:
        progress = Progress(
            epoch=1,
            num_epochs=5,
            step=10,
            num_steps=50,
            samples=640,
            samples_per_s=99.5,
            loss=0.25,
            metrics={"accuracy": 0.75, "float": 1.0, "metrics": 2.0},
            eta_s=3.5,
            shares=(5, 3),
        )
        bare, full = a_job(), replace(a_job("job-2"), progress=progress, started_at=101.0, ended_at=102.5)
        full = replace(full, num_slots=4, generation=3, reason="größer", why="it is", num_redone_steps=1, revision=9)
        full = replace(full, spec=replace(full.spec, fixed=True, balance="speed"), claim_step=812)
        full = replace(full, claim="statistical", claim_reason="moved to a GPU", num_restarts=2)
        full = replace(full, fingerprint="torch 2.13.0 cpu", digest="ab" * 32, tags={"kept": "so"})
        full = replace(full, rerun_of=JobId("job-99"), colour=23, hold="it waits at epoch 3 for the others")
        store.write(Writes(jobs=(bare, full)))
        assert store.job(bare.id) == bare
        assert store.job(full.id) == full

    def test_what_a_job_knows_of_its_endpoint_and_of_its_trial_comes_back(self, store: Store) -> None:
        values: Values = {"lr": 1.0, "layers": (64, (1.0, None)), "seed": "7", "amp": True, "depth": 1}
        trial = TrialPart(search="one", number=3, values=values, pass_as=("config",))
        profile = ServingProfile(kernel_max=3, max_rate=0.5)
        endpoint = EndpointPart(name="digits", version=2, runner="python", profile=profile)
        job = replace(a_job(), spec=replace(a_spec(), trial=trial, endpoint=endpoint))
        store.write(Writes(jobs=(job,)))
        assert repr(store.job(job.id)) == repr(job)  # which tells 1 from 1.0 and from True

    def test_a_job_written_again_replaces_the_one_before(self, store: Store) -> None:
        store.write(Writes(jobs=(a_job(), a_job("job-2"))))
        changed = replace(a_job(), state=JobState.COMPLETED, priority=7, revision=1)
        store.write(Writes(jobs=(changed,)))
        assert store.jobs() == (a_job("job-2"), changed)

    def test_jobs_come_newest_first_also_when_the_clock_went_back(self, store: Store) -> None:
        store.write(Writes(jobs=(a_job("job-1", at=9.0), a_job("job-2", at=5.0))))
        store.write(Writes(jobs=(a_job("job-10", at=5.0),)))
        assert [job.id for job in store.jobs()] == ["job-10", "job-2", "job-1"]

    def test_jobs_are_paged_and_filtered_by_state(self, store: Store) -> None:
        states = [JobState.RUNNING, JobState.PAUSED, JobState.FAILED]
        store.write(Writes(jobs=tuple(a_job(f"job-{n}", state=states[n % 3]) for n in range(1, 13))))
        first = store.jobs(limit=5)
        assert [job.id for job in first] == ["job-12", "job-11", "job-10", "job-9", "job-8"]
        assert [job.id for job in store.jobs(before=first[-1].id, limit=2)] == ["job-7", "job-6"]
        some = store.jobs(JobFilter(states=(JobState.PAUSED, JobState.FAILED)), before=JobId("job-6"))
        assert [job.id for job in some] == ["job-5", "job-4", "job-2", "job-1"]

    def test_jobs_of_one_sight_are_paged_and_filtered_without_the_others(self, store: Store) -> None:
        owners, states = ["ann", "bob", "cem"], [JobState.RUNNING, JobState.FAILED]
        jobs = [replace(a_job(f"job-{n}", state=states[n % 2]), owner=owners[n % 3]) for n in range(1, 13)]
        store.write(Writes(jobs=tuple(jobs)))
        visible = VisibleJobs(owner="bob", shared=frozenset({JobId("job-2"), JobId("job-4"), JobId("job-99")}))
        assert [job.id for job in store.jobs(visible=visible)] == ["job-10", "job-7", "job-4", "job-2", "job-1"]
        found: list[JobId] = []
        while page := store.jobs(visible=visible, before=found[-1] if found else None, limit=2):
            found += [job.id for job in page]
        assert found == ["job-10", "job-7", "job-4", "job-2", "job-1"]
        failed = store.jobs(JobFilter(states=(JobState.FAILED,)), visible=visible)
        assert [job.id for job in failed] == ["job-7", "job-1"]
        assert [job.id for job in store.jobs(visible=VisibleJobs(owner="cem"), before=JobId("job-9"), limit=1)] == [
            "job-8"
        ]
        assert store.jobs(visible=VisibleJobs(owner="eve")) == ()

    def test_a_sight_takes_any_number_of_shared_jobs(self, store: Store) -> None:
        store.write(Writes(jobs=(a_job(),), events=(an_event("a", job_id="job-1"), an_event("b", job_id="job-0"))))
        many = VisibleJobs(owner="eve", shared=frozenset(JobId(f"job-{n}") for n in range(1, 100_000)))
        assert [job.id for job in store.jobs(visible=many)] == ["job-1"]
        assert messages(store.events(EventFilter(visible=many))) == ["a"]

    def test_events_and_usage_of_one_sight_leave_out_other_peoples_jobs(self, store: Store) -> None:
        jobs = [replace(a_job(f"job-{n}"), owner=owner) for n, owner in enumerate(["ann", "bob", "cem"], start=1)]
        events = [an_event(f"{part} of {job.id}", job_id=job.id) for part in ("start", "end") for job in jobs]
        usage = [Usage(at=float(n), job_id=job.id, num_slots=n) for n in (1, 5) for job in jobs]
        store.write(Writes(jobs=tuple(jobs), events=(an_event("the server"), *events), usage=tuple(usage)))
        own, shared = VisibleJobs(owner="ann"), VisibleJobs(owner="ann", shared=frozenset({JobId("job-3")}))
        assert messages(store.events(EventFilter(visible=own))) == ["the server", "start of job-1", "end of job-1"]
        after = EventFilter(visible=shared, after=2, limit=2)
        assert messages(store.events(after)) == ["start of job-3", "end of job-1"]
        assert store.usage(visible=own) == (usage[0], usage[3])
        assert store.usage(visible=shared, since=4.0) == (usage[0], usage[2], usage[3], usage[5])
        assert store.usage(visible=VisibleJobs(owner="eve")) == ()

    def test_tasks_come_oldest_first_and_live_ones_alone(self, store: Store) -> None:
        ended = replace(
            a_task("job-1.2", state=TaskState.LOST), pid=77, ended_at=5.0, exit_code=-9, reason="killed by signal 9"
        )
        live, other = a_task("job-1.10", state=TaskState.LEAVING), a_task("job-2.1", job_id="job-2")
        store.write(Writes(jobs=(a_job(), a_job("job-2")), tasks=(ended, live, other)))
        assert store.tasks() == (ended, live, other)
        assert store.tasks(JobId("job-1")) == (ended, live)
        assert store.tasks(JobId("job-1"), live=True) == (live,)
        assert store.tasks(live=True) == (live, other)

    def test_a_generation_is_replaced_by_its_number(self, store: Store) -> None:
        first = Generation(
            job_id=JobId("job-1"),
            number=1,
            members=(TaskId("job-1.1"), TaskId("job-1.2")),
            state=GenerationState.FORMING,
            announced_at=3.0,
        )
        second = replace(first, number=2, members=())
        store.write(Writes(jobs=(a_job(),), generations=(second, first)))
        active = replace(first, state=GenerationState.ACTIVE, switched_at=4.0, step=7, pause_s=0.01, cause="grew")
        store.write(Writes(generations=(active,)))
        assert store.generations(JobId("job-1")) == (active, second)

    def test_events_are_numbered_from_one_in_the_order_of_writing(self, store: Store) -> None:
        first = store.write(Writes(events=(an_event("a"), an_event("b"))))
        second = store.write(Writes(events=(an_event("c"),)))
        assert [event.seq for event in first + second] == [1, 2, 3]
        assert store.events(EventFilter()) == first + second
        assert store.last_seq() == 3

    def test_an_event_comes_back_with_its_fields(self, store: Store) -> None:
        data = {"from": 1, "to": None, "ratio": 0.5, "last": True, "note": "ok"}
        event = replace(an_event("x", job_id="job-1"), task_id=TaskId("job-1.1"), data=data)
        assert store.write(Writes(events=(event,))) == (replace(event, seq=1),)
        assert store.events(EventFilter()) == (replace(event, seq=1),)

    def test_events_are_filtered_by_number_job_kind_and_limit(self, store: Store) -> None:
        kinds = [EventKind.DECISION, EventKind.WARNING, EventKind.TASK_LOST]
        store.write(
            Writes(events=tuple(an_event(str(n), job_id=f"job-{n % 2}", kind=kinds[n % 3]) for n in range(1, 13)))
        )
        assert messages(store.events(EventFilter(after=10))) == ["11", "12"]
        assert messages(store.events(EventFilter(limit=2))) == ["1", "2"]
        assert messages(store.events(EventFilter(job_id=JobId("job-1"), after=4))) == ["5", "7", "9", "11"]
        assert messages(store.events(EventFilter(kinds=(EventKind.WARNING,)))) == ["1", "4", "7", "10"]
        both = EventFilter(job_id=JobId("job-0"), kinds=(EventKind.WARNING, EventKind.TASK_LOST), after=2, limit=3)
        assert messages(store.events(both)) == ["4", "8", "10"]

    def test_numbers_that_are_not_finite_are_kept(self, store: Store) -> None:
        progress = Progress(
            epoch=0,
            num_epochs=1,
            step=1,
            num_steps=2,
            samples=1,
            samples_per_s=math.inf,
            loss=math.nan,
            metrics={"perplexity": math.inf, "float": math.nan},
        )
        points = (a_metric(1, value=math.nan), a_metric(2, value=-math.inf))
        event = replace(an_event("diverged"), data={"loss": math.nan})
        store.write(Writes(jobs=(replace(a_job(), progress=progress),), metrics=points, events=(event,)))
        values = [point.value for point in store.metrics(JobId("job-1"))]
        assert math.isnan(values[0])
        assert values[1] == -math.inf
        found = store.job(JobId("job-1"))
        assert found is not None
        assert repr(found.progress) == repr(progress)
        assert repr(store.events(EventFilter())[0].data) == repr(event.data)

    def test_text_that_no_database_holds_does_not_stop_a_write(self, store: Store) -> None:
        store.write(Writes(events=(an_event("nul \x00 and \udc80"),)))
        assert messages(store.events(EventFilter()))[0].startswith("nul ")
