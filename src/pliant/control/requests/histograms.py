"""What people ask of the histograms that a job has logged."""

from pliant.api.histograms import HistogramNames, HistogramPage
from pliant.core.errors import NotFound
from pliant.core.job import Job
from pliant.core.ports import Store


class HistogramQueries:
    """Answers from the store; safe to call from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def names(self, job: Job) -> HistogramNames:
        """Return what a job has histograms of."""
        return HistogramNames(series=self._store.histogram_series(job.id))

    def page(self, job: Job, name: str) -> HistogramPage:
        """Return the histograms that a job has of a name.

        Raises:
            NotFound: it has none of that name.
        """
        found = self._store.histograms(job.id, name)
        if not found:
            raise NotFound(f"{job.id} has no histogram named {name!r:.300}; list them to see which there are")
        return HistogramPage(name=name, histograms=found)
