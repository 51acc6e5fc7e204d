"""Which jobs somebody asks for. Whom it lets see which is not its business."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from pliant.core.job import Job
from pliant.core.lifecycle import JOB_LIFECYCLE, JobState, is_final

ENDED_STATES: Final = tuple(state for state in JobState if is_final(JOB_LIFECYCLE, state))
UNENDED_STATES: Final = tuple(state for state in JobState if not is_final(JOB_LIFECYCLE, state))
STATE_WORDS: Final[Mapping[str, tuple[JobState, ...]]] = MappingProxyType(
    {
        **{state.value: (state,) for state in JobState},
        "waiting": (JobState.PENDING, JobState.PAUSED),
        "ended": ENDED_STATES,
    }
)
"""What people call states: each by its name, and some together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Jobs in one of some states, of one of some owners, in one of some queues, with all of some tags.

    Or of a search, or of an endpoint. What is empty asks for nothing.
    """

    states: tuple[JobState, ...] = ()
    owners: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    """Those that jobs are in now, or were at their end."""
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By name: the tag has one of these values, or any if there are none."""
    searches: tuple[str, ...] = ()
    """Trials of one of these."""
    endpoints: tuple[str, ...] = ()
    """Versions of one of these."""
    without_trials: bool = False
    """No trials of any search."""

    def fits(self, job: Job) -> bool:
        """Tell whether a job is one of them."""
        return (
            (not self.states or job.state in self.states)
            and (not self.owners or job.owner in self.owners)
            and (not self.queues or job.queue in self.queues)
            and (not self.searches or (job.spec.trial is not None and job.spec.trial.search in self.searches))
            and (not self.endpoints or (job.spec.endpoint is not None and job.spec.endpoint.name in self.endpoints))
            and not (self.without_trials and job.spec.trial is not None)
            and all(name in job.tags and (not of or job.tags[name] in of) for name, of in self.tags.items())
        )


EVERY_JOB: Final = JobFilter()
