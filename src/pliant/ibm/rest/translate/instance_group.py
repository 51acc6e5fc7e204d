"""What Conductor's description of an instance group says of a queue. Pure.

Of the many parameters of Spark those count that a queue has: the resource group of the executors, the policy and
preemption. The others have no meaning here.
"""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from pliant.core.errors import InvalidInput, Problem
from pliant.core.queue import DEFAULT_GROUP

NAME: Final = "conductorinstancename"
RESOURCE_GROUPS: Final = ("executor_gpu_rg_param", "executor_rg_param")
"""The first one that is given counts."""
COMPUTE_HOSTS: Final = "ComputeHosts"
"""IBM's resource group of all hosts that compute; here all slots, unless there is a group of this name."""
POLICY: Final = "SPARK_EGO_APP_SCHEDULE_POLICY"
POLICIES: Final = {"fairshare": "fairshare", "fifo": "fifo", "priority": "priority", "hierarchy": "priority"}
PREEMPTION: Final = "SPARK_EGO_ENABLE_PREEMPTION"


class InstanceGroupBody(BaseModel):
    """What IBM's clients send; what says nothing of a queue is left alone."""

    model_config = ConfigDict(extra="ignore")

    conductorinstancename: Annotated[str, Field(max_length=200)] | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    sparkparameters: dict[str, Any] = Field(default_factory=dict)


def queue_fields(body: InstanceGroupBody, groups: Collection[str]) -> Mapping[str, Any]:
    """Return what a description says of a queue, by Pliant's names.

    Args:
        groups: the resource groups there are.

    Raises:
        InvalidInput: with every value that means nothing here.
    """
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    field = next((name for name in RESOURCE_GROUPS if body.parameters.get(name)), None)
    if field is not None:
        group = str(body.parameters[field])
        found["resource_group"] = DEFAULT_GROUP if group == COMPUTE_HOSTS and group not in groups else group
        if found["resource_group"] not in groups:
            message = f"there is no resource group {group!r:.60}; there are {', '.join(sorted(groups)[:20])}"
            problems.append(Problem(field=field, message=f"{message}; name one, or make it with `pliant groups add`"))
    if POLICY in body.sparkparameters:
        policy = str(body.sparkparameters[POLICY])
        found["policy"] = POLICIES.get(policy.lower())
        if found["policy"] is None:
            message = f"{policy!r:.60} is none of {', '.join(POLICIES)}; give one of them"
            problems.append(Problem(field=POLICY, message=message))
    if PREEMPTION in body.sparkparameters:
        preemption = str(body.sparkparameters[PREEMPTION])
        found["preemption"] = {"true": True, "false": False}.get(preemption.lower())
        if found["preemption"] is None:
            problems.append(
                Problem(field=PREEMPTION, message=f"{preemption!r:.60} is neither true nor false; give one")
            )
    if problems:
        raise InvalidInput(*problems)
    return found
