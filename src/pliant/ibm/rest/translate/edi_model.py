"""Endpoints as IBM's inference API describes them: models, and the instances that serve them. Pure.

Times are seconds since the epoch. What a field of IBM's has no measure for here is null.
"""

from collections.abc import Mapping
from typing import Any, Final

from pliant.api.endpoints import EndpointView, KernelView, VersionView
from pliant.core.secret_names import hide_secrets
from pliant.ibm.rest.translate.inference_model import InferenceModelRecord

INFERENCE: Final = "/dlim/v1/inference"
DEFAULT_RUNTIME: Final = "dlipy3"
BUILT_IN: Final[Mapping[str, str]] = {
    DEFAULT_RUNTIME: "the server's own Python, unless there is an environment of this name",
    "python": "the server's own Python",
}
"""Runtimes that are always there."""
_STATUSES: Final[Mapping[str, str]] = {"ready": "running", "starting": "starting", "leaving": "stopping"}


def model_json(view: EndpointView, record: InferenceModelRecord) -> dict[str, Any]:
    """Return the description of a model."""
    version = view.versions[-1] if view.versions else None
    said = record.description
    return {
        "schema_version": str(said.get("schema_version") or "1"),
        "uid": view.name,
        "name": view.name,
        "tag": str(said.get("tag") or ""),
        "weight_path": str(said.get("weight_path") or ""),
        "model_path": view.name,
        "size": 0 if version is None else version.num_bytes,
        "create_time": round(view.created_at),
        "last_updated_time": round(view.changed_at),
        "started_at": _started_at(view),
        "creator": view.owner,
        "attributes": said.get("attributes") or [],
        "runtime": str(said.get("runtime") or (version and version.environment) or DEFAULT_RUNTIME),
        "kernel_path": "" if version is None else version.file,
        "mk_environments": _variables(said.get("mk_environments")),
        "service_uri": "" if view.http_url is None else f"{view.http_url}{INFERENCE}/{view.name}",
        "framework": str(said.get("framework") or ""),
        "state": view.state,
        "state_reason": view.reason,
    }


def instance_json(view: EndpointView) -> dict[str, Any]:
    """Return what serves a model now: an instance for every version that runs, a container for every kernel."""
    running = [one for one in view.versions if one.kernels or one.load is not None]
    return {"name": view.name, "state": _state(view), "instances": [_instance(view.name, one) for one in running]}


def plan_json(view: EndpointView) -> dict[str, str]:
    """Return which queue a model takes its slots from, as a resource plan."""
    return {"name": view.name, "resource_plan": f"/pliant/{view.queue}"}


def _state(view: EndpointView) -> str:
    if not view.started:
        return "disabled"
    return "enabled" if view.state in ("serving", "idle") else "not-available"


def _instance(name: str, version: VersionView) -> dict[str, Any]:
    load = version.load
    return {
        "isd_uid": f"{name}-{version.number}",
        "pj_jobid": version.job_id,
        "client_number": 0 if load is None else load.in_flight,
        "pending_tasks": 0 if load is None else load.queued,
        "request_per_sec": load.completed / load.seconds if load is not None and load.seconds > 0 else 0.0,
        "data_size_per_sec": None,
        "isd_container": [_container(one) for one in version.kernels],
    }


def _container(kernel: KernelView) -> dict[str, Any]:
    return {
        "container_uid": kernel.task_id,
        "container_host": kernel.node_id,
        "container_status": _STATUSES[kernel.state],
        "total_task": None,
        "running_task": None,
        "finished_task": None,
        "failed_task": None,
    }


def _started_at(view: EndpointView) -> int:
    """Return since when a kernel runs; 0 if none does."""
    started = [kernel.started_at for version in view.versions for kernel in version.kernels]
    return round(min(started)) if started else 0


def _variables(listed: object) -> list[dict[str, str]]:
    env = {
        str(one.get("name", "")): str(one.get("value", ""))
        for one in (listed if isinstance(listed, list | tuple) else ())
        if isinstance(one, Mapping)
    }
    return [{"name": name, "value": value} for name, value in hide_secrets(env).items()]
