"""What control keeps in memory of a version of an endpoint; what a restart forgets, the gateway reports again."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pliant.control.jobs.live import LiveJob
from pliant.control.kinds.endpoint.history import LoadHistory
from pliant.core.job import Task, TaskId
from pliant.core.lifecycle import TaskState
from pliant.core.serving import VersionLoad
from pliant.core.serving_profile import KernelBounds, ServingProfile
from pliant.policy.autoscale.load import ScaleState


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointJob(LiveJob):
    """The job of one version of an endpoint."""

    profile: ServingProfile = field(default_factory=ServingProfile)
    """The endpoint's, as it is now."""
    bounds: KernelBounds | None = None
    """Its part of what the endpoint may have; None: all of it."""
    wanted: int = 0
    """Kernels that are wanted, by the newest evaluation."""
    needed: int = 0
    """Of these the load needs so many."""
    demand: str = ""
    """Why so many, in a sentence."""
    scale: ScaleState = field(default_factory=ScaleState)
    decide_at: float | None = None
    """When demand is evaluated again though nothing was reported."""
    decided_at: float | None = None
    load: VersionLoad | None = None
    """The newest report of the gateway."""
    metadata: Mapping[str, object] = field(default_factory=dict)
    """What the model said of itself when it was loaded last."""
    has_served: bool = False
    """A kernel of it has been ready; until then it is not known whether the model loads."""
    has_answered: bool = False
    """It has answered a request, or may have before this server began."""
    history: LoadHistory = field(default_factory=LoadHistory)
    num_failures: int = 0
    """Kernels lost in a row, with no request answered in between."""

    @property
    def bounded(self) -> ServingProfile:
        """Return the profile with this version's part of the kernels."""
        if self.bounds is None:
            return self.profile
        return replace(self.profile, kernel_min=self.bounds.promised, kernel_max=self.bounds.at_most)

    @property
    def ready(self) -> tuple[Task, ...]:
        """Kernels that take requests."""
        return tuple(task for task in self.running if task.state is TaskState.TRAINING)

    @property
    def proven(self) -> bool:
        """It may start more kernels than its minimum: the model is known to load."""
        return self.has_served

    def is_needed(self, task_id: TaskId) -> bool:  # noqa: ARG002 - every kernel
        """Tell that a kernel that is asked to leave has requests to answer first; its kind sees to that."""
        return True
