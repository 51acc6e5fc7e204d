"""What the Open Inference Protocol says of a server, its models and their work, as JSON values. Pure.

The names of fields are those that `tritonclient` and `perf_analyzer` read.
"""

from typing import Any, Final

from pliant import __version__
from pliant.serve.gateway.endpoint_table import EndpointService
from pliant.serve.gateway.meter import TimeSum, VersionTotals
from pliant.serve.gateway.version_service import VersionService

SERVER: Final = {
    "name": "pliant",
    "version": __version__,
    "extensions": ["binary_tensor_data", "generate", "model_configuration", "model_repository", "statistics"],
}


def describe_model(endpoint: EndpointService, service: VersionService | None) -> dict[str, Any]:
    """Return the metadata of a model."""
    said = {} if service is None else service.metadata
    return {
        "name": endpoint.endpoint.name,
        "versions": [str(number) for number in sorted(endpoint.versions)],
        "platform": said.get("platform", ""),
        "inputs": said.get("inputs", []),
        "outputs": said.get("outputs", []),
    }


def describe_config(endpoint: EndpointService, service: VersionService | None) -> dict[str, Any]:
    """Return the configuration of a model, as Triton has it."""
    said = {} if service is None else service.metadata
    most = said.get("max_batch_size", 0)
    config: dict[str, Any] = {
        "name": endpoint.endpoint.name,
        "platform": said.get("platform", ""),
        "backend": "pliant",
        "version_policy": {"specific": {"versions": sorted(endpoint.versions)}},
        "max_batch_size": most,
        "input": [_config_tensor(one, most) for one in said.get("inputs", [])],
        "output": [_config_tensor(one, most) for one in said.get("outputs", [])],
        "model_transaction_policy": {"decoupled": said.get("decoupled", False)},
    }
    if most > 1:
        config["dynamic_batching"] = {}
    return config


def _config_tensor(tensor: dict[str, Any], most: int) -> dict[str, Any]:
    """The first dimension is the batch where a model takes batches; a configuration leaves it out."""
    kind = "STRING" if tensor["datatype"] == "BYTES" else tensor["datatype"]
    dims = tensor["shape"][1:] if most else tensor["shape"]
    return {"name": tensor["name"], "data_type": f"TYPE_{kind}", "dims": dims}


def describe_ready(endpoint: EndpointService, service: VersionService | None) -> tuple[bool, dict[str, Any]]:
    """Tell whether requests are taken now, and say so.

    An endpoint that gave all its slots back because nobody asked is ready: the next request brings a kernel.
    """
    ready = endpoint.endpoint.started and service is not None
    if ready and service is not None and not service.num_ready:
        ready = endpoint.endpoint.profile.kernel_min == 0 and bool(service.version.metadata)
    return ready, {"name": endpoint.endpoint.name, "ready": ready}


def describe_index(endpoint: EndpointService) -> list[dict[str, str]]:
    """Return what the index of the repository says of a model: an entry per version."""
    name = endpoint.endpoint.name
    entries = []
    for number, service in sorted(endpoint.versions.items()):
        ready, _ = describe_ready(endpoint, service)
        reason = "" if ready else endpoint.endpoint.why_not or service.version.why
        entries.append(
            {"name": name, "version": str(number), "state": "READY" if ready else "UNAVAILABLE", "reason": reason}
        )
    return entries or [{"name": name, "version": "", "state": "UNAVAILABLE", "reason": endpoint.endpoint.why_not}]


def describe_stats(service: VersionService, totals: VersionTotals, unix_ms_of: float) -> dict[str, Any]:
    """Return what a version has done since the gateway began.

    Args:
        service: the version.
        totals: what was counted of it.
        unix_ms_of: milliseconds since 1970 at which the meter's clock showed 0.
    """
    nothing = {"count": 0, "ns": 0}
    num_batches = sum(one.count for one in totals.batches.values())
    return {
        "name": service.endpoint.name,
        "version": str(service.version.number),
        "last_inference": 0 if totals.last_at is None else int(unix_ms_of + totals.last_at * 1000),
        "inference_count": totals.success.count,
        "execution_count": num_batches,
        "inference_stats": {
            "success": _duration(totals.success),
            "fail": _duration(totals.fail),
            "queue": _duration(totals.queue),
            "compute_input": {"count": totals.service.count, "ns": 0},
            "compute_infer": _duration(totals.service),
            "compute_output": {"count": totals.service.count, "ns": 0},
            "cache_hit": nothing,
            "cache_miss": nothing,
        },
        "batch_stats": [
            {
                "batch_size": size,
                "compute_input": {"count": batch.count, "ns": 0},
                "compute_infer": _duration(batch),
                "compute_output": {"count": batch.count, "ns": 0},
            }
            for size, batch in sorted(totals.batches.items())
        ],
    }


def _duration(total: TimeSum) -> dict[str, int]:
    return {"count": total.count, "ns": int(total.seconds * 1e9)}
