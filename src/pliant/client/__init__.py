"""The Python client of a Pliant server: all that a script or a notebook needs stands here.

>>> from pliant.client import Client
>>> with Client.connect() as client:
...     job = client.submit("train.py", max_tasks=8)
...     print(job.wait().state)
"""

from pliant.api.arrays import ArrayRequest, ArrayView
from pliant.api.datasets import DatasetPatch, DatasetRequest
from pliant.api.environments import EnvironmentRequest
from pliant.api.jobs import JobDetail, JobPatch, JobRequest, NotedJob, Why
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
