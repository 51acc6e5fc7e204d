"""The contract of `Store`: what every implementation does, whatever lies under it.

Subclass `StoreContract` and give it a fixture `store`; for a store that outlives its process also
`StoreDurabilityContract`, with the fixture `open_store_source`. Knows no SQL.
"""

import math
import subprocess
import sys
import threading
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Final

import pytest

from pliant.core.access import Sight
from pliant.core.errors import NotFound
from pliant.core.event import Event, EventKind, Usage
from pliant.core.job import Generation, Job, JobId, JobSpec, Metric, NodeId, Progress, Task, TaskId
from pliant.core.lifecycle import GenerationState, JobState, TaskState
from pliant.core.ports import EventFilter, Store, Writes

_DEADLINE_S: Final = 30.0


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
    )


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
    """What a caller may rely on."""

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
        )
        bare, full = a_job(), replace(a_job("job-2"), progress=progress, started_at=101.0, ended_at=102.5)
        full = replace(full, num_slots=4, generation=3, reason="größer", why="it is", num_redone_steps=1, revision=9)
        full = replace(full, spec=replace(full.spec, fixed=True), claim_step=812, claim_reason="moved to a GPU")
        full = replace(full, claim="statistical", num_restarts=2)
        full = replace(full, fingerprint="torch 2.13.0 cpu", digest="ab" * 32)
        store.write(Writes(jobs=(bare, full)))
        assert store.job(bare.id) == bare
        assert store.job(full.id) == full

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
        some = store.jobs(states=[JobState.PAUSED, JobState.FAILED], before=JobId("job-6"))
        assert [job.id for job in some] == ["job-5", "job-4", "job-2", "job-1"]

    def test_jobs_of_one_sight_are_paged_and_filtered_without_the_others(self, store: Store) -> None:
        owners, states = ["ann", "bob", "cem"], [JobState.RUNNING, JobState.FAILED]
        jobs = [replace(a_job(f"job-{n}", state=states[n % 2]), owner=owners[n % 3]) for n in range(1, 13)]
        store.write(Writes(jobs=tuple(jobs)))
        sight = Sight(owner="bob", shared=frozenset({JobId("job-2"), JobId("job-4"), JobId("job-99")}))
        assert [job.id for job in store.jobs(sight=sight)] == ["job-10", "job-7", "job-4", "job-2", "job-1"]
        found: list[JobId] = []
        while page := store.jobs(sight=sight, before=found[-1] if found else None, limit=2):
            found += [job.id for job in page]
        assert found == ["job-10", "job-7", "job-4", "job-2", "job-1"]
        failed = store.jobs(sight=sight, states=[JobState.FAILED])
        assert [job.id for job in failed] == ["job-7", "job-1"]
        assert [job.id for job in store.jobs(sight=Sight(owner="cem"), before=JobId("job-9"), limit=1)] == ["job-8"]
        assert store.jobs(sight=Sight(owner="eve")) == ()

    def test_a_sight_takes_any_number_of_shared_jobs(self, store: Store) -> None:
        store.write(Writes(jobs=(a_job(),), events=(an_event("a", job_id="job-1"), an_event("b", job_id="job-0"))))
        many = Sight(owner="eve", shared=frozenset(JobId(f"job-{n}") for n in range(1, 100_000)))
        assert [job.id for job in store.jobs(sight=many)] == ["job-1"]
        assert messages(store.events(EventFilter(sight=many))) == ["a"]

    def test_events_and_usage_of_one_sight_leave_out_other_peoples_jobs(self, store: Store) -> None:
        jobs = [replace(a_job(f"job-{n}"), owner=owner) for n, owner in enumerate(["ann", "bob", "cem"], start=1)]
        events = [an_event(f"{part} of {job.id}", job_id=job.id) for part in ("start", "end") for job in jobs]
        usage = [Usage(at=float(n), job_id=job.id, num_slots=n) for n in (1, 5) for job in jobs]
        store.write(Writes(jobs=tuple(jobs), events=(an_event("the server"), *events), usage=tuple(usage)))
        own, shared = Sight(owner="ann"), Sight(owner="ann", shared=frozenset({JobId("job-3")}))
        assert messages(store.events(EventFilter(sight=own))) == ["the server", "start of job-1", "end of job-1"]
        after = EventFilter(sight=shared, after=2, limit=2)
        assert messages(store.events(after)) == ["start of job-3", "end of job-1"]
        assert store.usage(sight=own) == (usage[0], usage[3])
        assert store.usage(sight=shared, since=4.0) == (usage[0], usage[2], usage[3], usage[5])
        assert store.usage(sight=Sight(owner="eve")) == ()

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

    def test_points_come_in_order_of_step_and_name(self, store: Store) -> None:
        points = (a_metric(2, "loss"), a_metric(1, "loss"), a_metric(2, "accuracy"), a_metric(10, "accuracy"))
        store.write(Writes(jobs=(a_job(), a_job("job-2")), metrics=(*points, a_metric(1, job_id="job-2"))))
        job_id = JobId("job-1")
        assert store.metrics(job_id) == (points[1], points[2], points[0], points[3])
        assert store.metrics(job_id, names=["loss"]) == (points[1], points[0])
        assert store.metrics(job_id, names=["loss", "accuracy"], after_step=1) == (points[2], points[0], points[3])
        assert store.metrics(job_id, limit=1) == (points[1],)

    def test_a_point_of_the_same_step_replaces_the_one_before(self, store: Store) -> None:
        store.write(Writes(jobs=(a_job(),), metrics=(a_metric(1, value=0.9), a_metric(2))))
        store.write(Writes(metrics=(a_metric(1, value=0.1),)))
        assert store.metrics(JobId("job-1")) == (a_metric(1, value=0.1), a_metric(2))

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

    def test_a_chart_of_few_points_has_them_all(self, store: Store) -> None:
        points = [a_metric(step, value=float(step % 7)) for step in (1, 2, 5)]
        store.write(Writes(jobs=(a_job(),), metrics=(*points, a_metric(2, "accuracy", math.nan))))
        accuracy, loss = store.chart(JobId("job-1"))
        assert (accuracy.name, loss.name) == ("accuracy", "loss")
        assert [(b.first_step, b.last_step, b.mean, b.num_points) for b in loss.buckets] == [
            (1, 1, 1.0, 1),
            (2, 2, 2.0, 1),
            (5, 5, 5.0, 1),
        ]
        assert [(b.num_points, b.num_values, b.mean, b.lowest) for b in accuracy.buckets] == [(1, 0, None, None)]
        assert store.chart(JobId("job-1"), names=["loss"], first_step=2, last_step=4) == (
            replace(loss, buckets=loss.buckets[1:2]),
        )
        assert store.chart(JobId("job-1"), names=["unknown"]) == ()
        assert store.chart(JobId("job-2")) == ()

    @pytest.mark.parametrize("max_buckets", [1, 7, 100])
    def test_a_chart_of_many_points_loses_no_count_and_no_extreme(self, store: Store, max_buckets: int) -> None:
        values = [math.sin(step / 50) + (step == 1234) * 9 - (step == 3999) * 9 for step in range(4000)]
        points = tuple(a_metric(step, value=value) for step, value in enumerate(values))
        store.write(Writes(jobs=(a_job(), a_job("job-2"))))
        for start in range(0, 4000, 500):
            store.write(Writes(metrics=(*points[start : start + 500], a_metric(start, job_id="job-2", value=77.0))))
        (series,) = store.chart(JobId("job-1"), max_buckets=max_buckets)
        buckets = series.buckets
        assert max_buckets / 4 < len(buckets) <= max_buckets
        assert sum(b.num_points for b in buckets) == sum(b.num_values for b in buckets) == 4000
        assert max(b.highest for b in buckets if b.highest is not None) == max(values)
        assert min(b.lowest for b in buckets if b.lowest is not None) == min(values)
        assert (buckets[0].first_step, buckets[-1].last_step) == (0, 3999)
        assert all(one.last_step < other.first_step for one, other in pairwise(buckets))
        for bucket in buckets:
            under = values[bucket.first_step : bucket.last_step + 1]
            assert bucket.mean == pytest.approx(sum(under) / len(under))
            assert (bucket.lowest, bucket.highest) == (min(under), max(under))

    def test_a_chart_merges_neighbours_over_equal_numbers_of_steps(self, store: Store) -> None:
        there = (step for step in range(5, 180) if step % 7 not in (2, 3))
        points = [a_metric(step, value=math.nan if step % 5 == 0 else step / 8) for step in there]
        store.write(Writes(jobs=(a_job(),), metrics=tuple(points)))
        (series,) = store.chart(JobId("job-1"), max_buckets=50)
        for number, bucket in enumerate(series.buckets):
            cell = [point for point in points if (point.step - 5) // 4 == number]
            values = [point.value for point in cell if not math.isnan(point.value)]
            assert (bucket.first_step, bucket.last_step, bucket.at) == (cell[0].step, cell[-1].step, cell[-1].at)
            assert (bucket.num_points, bucket.num_values, bucket.total) == (len(cell), len(values), sum(values))
        assert len(series.buckets) == 44

    def test_a_point_that_is_replaced_counts_once_in_a_chart(self, store: Store) -> None:
        store.write(Writes(jobs=(a_job(),), metrics=tuple(a_metric(step, value=1.0) for step in range(200))))
        store.write(Writes(metrics=(a_metric(7, value=-5.0),)))
        store.write(Writes(metrics=(a_metric(7, value=3.0),)))
        (series,) = store.chart(JobId("job-1"), max_buckets=1)
        (bucket,) = series.buckets
        assert (bucket.num_points, bucket.lowest, bucket.highest) == (200, 1.0, 3.0)
        assert bucket.total == pytest.approx(202.0)

    def test_usage_starts_with_each_jobs_last_earlier_point(self, store: Store) -> None:
        def point(at: float, job_id: str, num_slots: int) -> Usage:
            return Usage(at=at, job_id=JobId(job_id), num_slots=num_slots)

        points = [point(1.0, "job-1", 1), point(2.0, "job-1", 2), point(2.0, "job-1", 3), point(2.5, "job-2", 1)]
        points += [point(4.0, "job-2", 0), point(5.0, "job-1", 8)]
        store.write(Writes(jobs=(a_job(), a_job("job-2")), usage=tuple(points)))
        assert store.usage() == tuple(points)
        assert store.usage(since=4.0) == tuple(points[2:])
        assert store.usage(since=2.0) == (points[0], *points[1:])
        assert store.usage(since=4.0, job_id=JobId("job-1")) == (points[2], points[5])
        assert store.usage(since=9.0) == (points[4], points[5])

    def test_ids_count_from_one_for_every_name(self, store: Store) -> None:
        assert [store.next_id("job"), store.next_id("job"), store.next_id("job-1"), store.next_id("job")] == [
            1,
            2,
            1,
            3,
        ]

    def test_a_write_that_fails_leaves_nothing_behind(self, store: Store) -> None:
        stranger = a_task("job-9.1", job_id="job-9")
        with pytest.raises(NotFound):
            store.write(Writes(jobs=(a_job(),), tasks=(a_task(), stranger), events=(an_event("lost"),)))
        assert store.job(JobId("job-1")) is None
        assert store.tasks() == ()
        assert store.last_seq() == 0
        assert [event.seq for event in store.write(Writes(events=(an_event("next"),)))] == [1]

    def test_threads_that_write_at_once_leave_no_gap_and_no_double(self, store: Store) -> None:
        num_threads, num_writes = 6, 20
        acknowledged: dict[int, list[int]] = {thread: [] for thread in range(num_threads)}
        seen: list[list[int]] = []
        done = threading.Event()

        def write(thread: int) -> None:
            for number in range(num_writes):
                events = (an_event(f"{thread}/{number}/0"), an_event(f"{thread}/{number}/1"))
                acknowledged[thread] += [event.seq for event in store.write(Writes(events=events))]
                store.next_id("job")

        def read() -> None:
            while not done.is_set():
                seen.append([event.seq for event in store.events(EventFilter())])

        writers = [threading.Thread(target=write, args=(thread,)) for thread in range(num_threads)]
        reader = threading.Thread(target=read)
        for thread in [*writers, reader]:
            thread.start()
        for thread in writers:
            thread.join(_DEADLINE_S)
        done.set()
        reader.join(_DEADLINE_S)

        total = num_threads * num_writes * 2
        assert sorted(seq for seqs in acknowledged.values() for seq in seqs) == list(range(1, total + 1))
        assert all(seqs == sorted(seqs) for seqs in acknowledged.values())
        assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in seen), "a reader saw a gap"
        assert store.next_id("job") == num_threads * num_writes + 1


_WRITE_AND_WAIT: Final = """
import sys
from pliant.core.event import Event, EventKind
from pliant.core.ports import Writes
from tests.contracts.store import a_job, an_event

{open_store}
number = 0
while True:
    number += 1
    job_number = store.next_id("job")
    store.write(Writes(jobs=(a_job(f"job-{{job_number}}"),), events=(an_event(str(number)),)))
    print(number, flush=True)
"""


class StoreDurabilityContract:
    """What a store that outlives its process adds.

    Fixture `open_store_source`: Python source that assigns an open store to `store`, on the same data as the fixture.
    """

    def test_an_acknowledged_write_survives_sigkill(self, store: Store, open_store_source: str) -> None:
        source = _WRITE_AND_WAIT.format(open_store=open_store_source)
        with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            watchdog = threading.Timer(_DEADLINE_S, child.kill)
            watchdog.start()
            acknowledged = [child.stdout.readline() for _ in range(10)]
            child.kill()
            acknowledged += child.stdout.readlines()
            watchdog.cancel()
        last = len(acknowledged)
        assert last >= 10
        store.write(Writes(events=(an_event("0"),)))  # waits for what a database still commits for the child
        *found, own = [int(message) for message in messages(store.events(EventFilter()))]
        assert own == 0
        assert found == list(range(1, len(found) + 1))
        assert len(found) in (last, last + 1), "written but killed before it said so is the only other case"
        assert len(store.jobs()) == len(found)
        assert store.next_id("job") > last
