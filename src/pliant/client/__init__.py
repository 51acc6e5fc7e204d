"""The Python client of a Pliant server: all that a script or a notebook needs stands here.

>>> from pliant.client import Client
>>> with Client.connect() as client:
...     job = client.submit("train.py", max_tasks=8)
...     print(job.wait().state)

A name is imported when it is asked for first: who submits a job does not wait for searches, endpoints and data sets.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pliant.api.arrays import ArrayRequest, ArrayView
    from pliant.api.datasets import DatasetPatch, DatasetRequest
    from pliant.api.environments import EnvironmentRequest
    from pliant.api.job_views import JobDetail, Why
    from pliant.api.jobs import JobPatch, JobRequest, NotedJob
    from pliant.api.models import ModelPatch, ModelRequest, TemplateRequest, TrainingRequest
    from pliant.api.people import TokenRequest, UserPatch, UserRequest
    from pliant.api.queues import GroupPatch, GroupRequest, QueuePatch, QueueRequest
    from pliant.api.rerun import Difference, RerunRequest
    from pliant.api.searches import SearchPatch, SearchRequest, SearchView
    from pliant.api.trust import Trust
    from pliant.api.upkeep import RetentionRequest
    from pliant.client.api import Client
    from pliant.client.nouns.jobs import JobHandle
    from pliant.client.nouns.searches import SearchHandle
    from pliant.client.nouns.stacks import TaskStacks
    from pliant.core.access import Permission, Role
    from pliant.core.dataset import Dataset, DatasetState
    from pliant.core.errors import (
        Conflict,
        Forbidden,
        InternalError,
        InvalidInput,
        NoSpace,
        NotFound,
        PliantError,
        Problem,
        Stale,
        TooLarge,
        TooMany,
        Unauthorized,
        Unavailable,
        UserError,
    )
    from pliant.core.event import Event, EventKind, Usage
    from pliant.core.job import Generation, Job, JobSpec, Metric, Progress, Task
    from pliant.core.lifecycle import JobState
    from pliant.core.search import (
        Decision,
        Halving,
        Objective,
        Pruner,
        Sampler,
        SearchSettings,
        SearchState,
        Trial,
        TrialState,
    )
    from pliant.core.space import SearchParameter

_PLACES: Final = {
    "api.arrays": ("ArrayRequest", "ArrayView"),
    "api.datasets": ("DatasetPatch", "DatasetRequest"),
    "api.environments": ("EnvironmentRequest",),
    "api.job_views": ("JobDetail", "Why"),
    "api.jobs": ("JobPatch", "JobRequest", "NotedJob"),
    "api.models": ("ModelPatch", "ModelRequest", "TemplateRequest", "TrainingRequest"),
    "api.people": ("TokenRequest", "UserPatch", "UserRequest"),
    "api.queues": ("GroupPatch", "GroupRequest", "QueuePatch", "QueueRequest"),
    "api.rerun": ("Difference", "RerunRequest"),
    "api.searches": ("SearchPatch", "SearchRequest", "SearchView"),
    "api.trust": ("Trust",),
    "api.upkeep": ("RetentionRequest",),
    "client.api": ("Client",),
    "client.nouns.jobs": ("JobHandle",),
    "client.nouns.searches": ("SearchHandle",),
    "client.nouns.stacks": ("TaskStacks",),
    "core.access": ("Permission", "Role"),
    "core.dataset": ("Dataset", "DatasetState"),
    "core.errors": (
        "Conflict",
        "Forbidden",
        "InternalError",
        "InvalidInput",
        "NoSpace",
        "NotFound",
        "PliantError",
        "Problem",
        "Stale",
        "TooLarge",
        "TooMany",
        "Unauthorized",
        "Unavailable",
        "UserError",
    ),
    "core.event": ("Event", "EventKind", "Usage"),
    "core.job": ("Generation", "Job", "JobSpec", "Metric", "Progress", "Task"),
    "core.lifecycle": ("JobState",),
    "core.search": (
        "Decision",
        "Halving",
        "Objective",
        "Pruner",
        "Sampler",
        "SearchSettings",
        "SearchState",
        "Trial",
        "TrialState",
    ),
    "core.space": ("SearchParameter",),
}
"""Where each name of `__all__` stands."""
_PLACE_OF: Final = {name: f"pliant.{place}" for place, names in _PLACES.items() for name in names}

__all__ = [
    "ArrayRequest",
    "ArrayView",
    "Client",
    "Conflict",
    "Dataset",
    "DatasetPatch",
    "DatasetRequest",
    "DatasetState",
    "Decision",
    "Difference",
    "EnvironmentRequest",
    "Event",
    "EventKind",
    "Forbidden",
    "Generation",
    "GroupPatch",
    "GroupRequest",
    "Halving",
    "InternalError",
    "InvalidInput",
    "Job",
    "JobDetail",
    "JobHandle",
    "JobPatch",
    "JobRequest",
    "JobSpec",
    "JobState",
    "Metric",
    "ModelPatch",
    "ModelRequest",
    "NoSpace",
    "NotFound",
    "NotedJob",
    "Objective",
    "Permission",
    "PliantError",
    "Problem",
    "Progress",
    "Pruner",
    "QueuePatch",
    "QueueRequest",
    "RerunRequest",
    "RetentionRequest",
    "Role",
    "Sampler",
    "SearchHandle",
    "SearchParameter",
    "SearchPatch",
    "SearchRequest",
    "SearchSettings",
    "SearchState",
    "SearchView",
    "Stale",
    "Task",
    "TaskStacks",
    "TemplateRequest",
    "TokenRequest",
    "TooLarge",
    "TooMany",
    "TrainingRequest",
    "Trial",
    "TrialState",
    "Trust",
    "Unauthorized",
    "Unavailable",
    "Usage",
    "UserError",
    "UserPatch",
    "UserRequest",
    "Why",
]


def __getattr__(name: str) -> Any:
    """Import a name that is asked for first."""
    if (place := _PLACE_OF.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(place), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
