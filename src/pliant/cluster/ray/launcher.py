"""The body of the actor that Ray runs on a node. Knows of Ray what it does to the children of an actor."""

import os
from collections.abc import Mapping
from typing import Final

from pliant.cluster.launcher import AgentLauncher, LaunchPlan
from pliant.files.machine_folder import machine_folder

SUBREAPER: Final = "RAY_kill_child_processes_on_worker_exit_with_raylet_subreaper"


class RayLauncher(AgentLauncher):
    """Keeps the agent of a node of Ray's running."""

    def __init__(self, plan: LaunchPlan) -> None:
        """Begin; `plan` is what the agent is started with."""
        super().__init__(plan, machine_folder(f"ray-{plan.pool}-{plan.machine}"))

    def fault(self) -> str:
        return fault_of_ray(os.environ)


def fault_of_ray(env: Mapping[str, str]) -> str:
    """Return why no agent can live below this Ray, in words; empty if one can."""
    if env.get(SUBREAPER, "").lower() in ("1", "true"):
        return (
            f"this Ray ends every process whose parent has ended ({SUBREAPER}), so no agent lives for long; start "
            f"Ray without that setting"
        )
    return ""
