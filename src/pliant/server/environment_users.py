"""What uses an environment: it is neither removed nor built anew meanwhile."""

from collections.abc import Collection, Sequence

from pliant.core.job import Job
from pliant.server.context import Context


def unended_jobs(context: Context) -> Collection[Job]:
    """Return the jobs that have not ended."""
    return [live.job for live in context.control.jobs().values() if not live.job.ended]


def searches_in(context: Context, name: str) -> Sequence[str]:
    """Return the searches whose values are chosen in an environment: `the search digits`."""
    found = [] if context.algorithms is None else context.algorithms.searches_in(name)
    return [f"the search {one}" for one in found]


def tuning_in(context: Context, name: str) -> Sequence[str]:
    """Return the algorithms and the searches that an environment is for: `the algorithm dice`."""
    found = [] if context.algorithms is None else context.algorithms.algorithms_in(name)
    return [*(f"the algorithm {one}" for one in found), *searches_in(context, name)]
