"""The server itself, as IBM's clients ask for it: settings, status, frameworks, instance groups, resource plans."""

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from pliant import __version__
from pliant.core.access import Permission
from pliant.core.errors import NotFound
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.errors import DEEP_LEARNING
from pliant.ibm.rest.groups import list_groups, plan_tree, remove_group
from pliant.ibm.rest.routing import ibm_routes
from pliant.ibm.rest.translate.frameworks import Framework, FrameworkKind, load
from pliant.ibm.rest.translate.states import STATES, state_of
from pliant.server.context import InContext

routes = ibm_routes(DEEP_LEARNING)

_ACCELERATORS: Final = {FrameworkKind.SINGLE: "Single", FrameworkKind.FIXED: "Native", FrameworkKind.ELASTIC: "Elastic"}


@routes.get("/conf", Permission.POOL_READ)
def conf(context: InContext) -> dict[str, Any]:
    """Return how the server is set up, in the words of IBM's settings."""
    settings = context.control.settings
    return {
        "DLI_RESULT_FS": str(settings.home / "jobs"),
        "DLI_SHARED_FS": str(context.frameworks),
        "DLI_DATA_FS": str(context.datasets.data_root),
        "MSD_ENABLED": "true",
        "CwS_REST_URL": settings.url,
        "version": __version__,
        "pythonVersion": python_version(),
    }


@routes.get("/status", Permission.POOL_READ)
def status(context: InContext) -> dict[str, Any]:
    """Return how the server is, and how many applications are in which state, of all users."""
    queries = context.control.queries
    view = queries.cluster()
    counts = dict.fromkeys(STATES.values(), 0)
    for live in context.control.jobs().values():
        counts[state_of(live.job)] += 1
    return {
        "status": "ok" if context.control.is_healthy() else "unwell",
        "version": __version__,
        "slots": len(view.slots),
        "freeSlots": sum(slot.job_id is None for slot in view.slots),
        "applications": {state: number for state, number in counts.items() if number},
    }


def python_version() -> str:
    """Return the version of the Python that runs programs which name no environment."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


@routes.get("/execs/frameworks", Permission.POOL_READ)
def exec_frameworks(context: InContext) -> list[dict[str, Any]]:
    """List the frameworks that programs can be started with; a plug-in that is broken says so."""
    frameworks = load(context.frameworks)
    broken = [{"name": name, "desc": [f"cannot be used: {why}"]} for name, why in frameworks.broken.items()]
    return [*(_describe(framework) for framework in frameworks.found.values()), *broken]


def _describe(framework: Framework) -> dict[str, Any]:
    return {
        "name": framework.name,
        "description": framework.desc[0] if framework.desc else "",
        "desc": list(framework.desc),
        "deployMode": framework.deploy_mode,
        "hasTask0": False,
        "execMode": "single" if framework.kind is FrameworkKind.SINGLE else "distributed",
        "elastic": framework.kind is FrameworkKind.ELASTIC,
        "appName": framework.app_name,
        "numWorkers": framework.num_workers,
        "maxWorkers": framework.max_workers,
        "maxGPUPerWorker": framework.max_gpu_per_worker,
        "workerMemory": framework.worker_memory,
        "frameworkCmdGenerator": framework.generator.name if framework.generator else "",
        "backend": framework.backend,
        "numPs": 0,
        "frameworkVersion": "" if framework.plugged_in else _version_of(framework),
    }


def _version_of(framework: Framework) -> str:
    """Return the version of torch or Keras on the server's machine; empty if it is not installed there."""
    try:
        return version("torch" if framework.backend == "PyTorch" else "keras")
    except PackageNotFoundError:
        return ""


@routes.get("/frameworks", Permission.POOL_READ)
def frameworks(context: InContext, backend: str | None = None) -> list[dict[str, Any]]:
    """List frameworks as training engines."""
    found = load(context.frameworks).found.values()
    return [
        {
            "name": framework.name,
            "home": str(context.frameworks) if framework.plugged_in else "",
            "backend": framework.backend,
            "accelerator": _ACCELERATORS[framework.kind],
            "psNum": "0",
            "commIpNetwork": "",
        }
        for framework in found
        if backend is None or framework.backend.lower() == backend.lower()
    ]


@routes.get("/frameworks/all", Permission.POOL_READ)
def framework_names(context: InContext) -> list[str]:
    """List the names of all frameworks."""
    return list(load(context.frameworks).found)


@routes.get("/scheduler/instances", Permission.POOL_READ)
def instances(context: InContext, caller: Caller) -> list[dict[str, Any]]:
    """List instance groups."""
    return list_groups(context, caller)


@routes.get("/resplans/resplantree", Permission.POOL_READ)
def plans(context: InContext) -> dict[str, Any]:
    """Return the tree of resource plans."""
    return plan_tree(context)


@routes.get("/resplans/resplan/{name}", Permission.POOL_READ)
def plan(context: InContext, name: str) -> dict[str, Any]:
    """Show one resource plan."""
    tree = plan_tree(context)
    for node in (tree, *tree["childTreeDto"]):
        if node["id"] == name:
            return dict(node)
    raise NotFound(f"there is no resource plan {name!r}")


@routes.delete("/resplans/resplan/{name}", Permission.POOL_WRITE)
def remove_plan(context: InContext, caller: Caller, name: str) -> dict[str, Any]:
    """Remove a resource plan, which is a queue whose jobs have all ended."""
    remove_group(context, caller, name)
    return {"message": f"{name} is deleted", "id": name}
