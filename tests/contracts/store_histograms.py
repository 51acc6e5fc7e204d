"""The contract of `Store` over histograms: they come back as they were written, bounded, and go with their job."""

from dataclasses import replace
from itertools import pairwise

import pytest
from tests.contracts.store import a_job

from pliant.core.errors import NotFound
from pliant.core.job import DeletedJob, JobId
from pliant.core.ports import Store, Writes
from pliant.core.tensor_histogram import MAX_HISTOGRAMS, MAX_NAMES, HistogramSeries, JobHistograms, TensorHistogram

JOB = JobId("job-1")
FC1 = "weights/fc1.weight"


def a_histogram(step: int, name: str = FC1, *, counts: tuple[int, ...] = (1, 5, 2)) -> TensorHistogram:
    """Return the histogram of a few values."""
    return TensorHistogram(
        name=name, step=step, epoch=step // 10, at=float(step), lowest=-0.25, highest=1.5e300, counts=counts, num_nan=2
    )


def written(store: Store, *histograms: TensorHistogram, job_id: JobId = JOB) -> None:
    """Write histograms of a job."""
    store.write(Writes(histograms=(JobHistograms(job_id=job_id, histograms=histograms),)))


class HistogramContract:
    """What a caller may rely on of histograms; the fixture is `store`."""

    def test_histograms_come_in_the_order_of_their_steps(self, store: Store) -> None:
        store.write(Writes(jobs=(a_job(), a_job("job-2"))))
        first, second, empty = a_histogram(3), a_histogram(20), replace(a_histogram(5, "größe"), counts=())
        written(store, second, empty, first)
        written(store, a_histogram(9), job_id=JobId("job-2"))
        assert store.histograms(JOB, FC1) == (first, second)
        assert store.histograms(JOB, "größe") == (empty,)
        assert store.histogram_series(JOB) == (
            HistogramSeries(name="größe", num_histograms=1, first_step=5, last_step=5),
            HistogramSeries(name=FC1, num_histograms=2, first_step=3, last_step=20),
        )
        assert store.histograms(JOB, "unknown") == store.histograms(JobId("job-3"), FC1) == ()
        assert store.histogram_series(JobId("job-3")) == ()

    def test_one_of_the_same_step_takes_the_place_of_the_one_before(self, store: Store) -> None:
        store.write(Writes(jobs=(a_job(),)))
        written(store, a_histogram(1), a_histogram(2))
        written(store, a_histogram(1, counts=(7,)))
        assert store.histograms(JOB, FC1) == (a_histogram(1, counts=(7,)), a_histogram(2))

    def test_of_many_of_one_name_some_stay_evenly_over_the_steps(self, store: Store) -> None:
        store.write(Writes(jobs=(a_job(),)))
        for start in range(0, 300, 50):
            written(store, *(a_histogram(step) for step in range(start, start + 50)), a_histogram(start, "other"))
        steps = [one.step for one in store.histograms(JOB, FC1)]
        assert (steps[0], steps[-1], len(steps)) == (0, 299, MAX_HISTOGRAMS)
        assert max(later - earlier for earlier, later in pairwise(steps)) <= 20
        assert len(store.histograms(JOB, "other")) == 6

    def test_there_are_no_more_names_than_so_many(self, store: Store) -> None:
        store.write(Writes(jobs=(a_job(),)))
        names = [f"name {number:04}" for number in range(MAX_NAMES + 5)]
        for start in range(0, len(names), 90):
            written(store, *(a_histogram(1, name) for name in names[start : start + 90]))
        written(store, a_histogram(2, names[-1]), a_histogram(2, names[0]))
        found = store.histogram_series(JOB)
        assert [one.name for one in found] == names[:MAX_NAMES]
        assert [one.num_histograms for one in found[:2]] == [2, 1]

    def test_those_of_no_job_are_refused_with_all_that_is_written_with_them(self, store: Store) -> None:
        histograms = (JobHistograms(job_id=JobId("job-9"), histograms=(a_histogram(1),)),)
        with pytest.raises(NotFound):
            store.write(Writes(jobs=(a_job(),), histograms=histograms))
        assert store.job(JOB) is None

    def test_they_are_deleted_with_their_job(self, store: Store) -> None:
        store.write(Writes(jobs=(a_job(), a_job("job-2"))))
        for job_id in (JOB, JobId("job-2")):
            written(store, a_histogram(1), job_id=job_id)
        store.write(Writes(deleted=(DeletedJob(id=JOB, owner="ann", deleted_at=1.0, deleted_by="ann"),)))
        assert store.histogram_series(JOB) == ()
        assert store.histograms(JOB, FC1) == ()
        assert store.histograms(JobId("job-2"), FC1) == (a_histogram(1),)
