"""How many trials of a search train at once, by the slots that there are now."""

from dataclasses import replace

from pliant.core.search import Search
from pliant.policy.tuning.places import Places, places_of
from pliant.tune.searches.ports import TrialJobs


def find_places(search: Search, jobs: TrialJobs) -> Places:
    """Return how many trials of a search may train at once, and why."""
    job = search.job
    num_slots = jobs.num_places(replace(job, min_tasks=1, slots_per_task=1))
    num_filling = -(-num_slots // max(1, job.num_slots_for(job.max_tasks)))
    return places_of(search.settings, num_fitting=jobs.num_places(job), num_filling=num_filling)
