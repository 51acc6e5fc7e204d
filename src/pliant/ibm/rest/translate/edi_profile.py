"""The application profile of a model in IBM's inference API, and the settings of an endpoint. Pure.

policy.kernel_min …                     settings of the endpoint; -1 is the most that there can be
resource_allocation.kernel.consumer     the queue, if it names one; so does resource_plan
kernel.envs                             variables of the next version's kernels
everything else                         kept, given back, and told to have no effect
kernel.gpu "shared"                     refused: a slot belongs to one kernel
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pliant.api.endpoints import EndpointView
from pliant.core.errors import InvalidInput, Problem
from pliant.core.secret_names import HIDDEN, hide_secrets
from pliant.core.serving_profile import MAX_KERNELS
from pliant.ibm.rest.translate.plain_json import require_plain

POLICY: Final[Mapping[str, str]] = {
    "kernel_min": "kernel_min",
    "kernel_max": "kernel_max",
    "task_batch_size": "batch_size",
    "task_pipe_size": "pipe_size",
    "task_execution_timeout": "execution_timeout_s",
    "kernel_delay_release_time": "release_delay_s",
    "schedule_interval": "schedule_interval_s",
}
"""IBM's names of settings, and Pliant's."""
FIELDS: Final[Mapping[str, str]] = {ours: f"policy.{theirs}" for theirs, ours in POLICY.items()}
UNLIMITED: Final[Mapping[str, int]] = {"kernel_max": MAX_KERNELS, "execution_timeout_s": 86_400}
"""What IBM writes as -1."""
FIRST_SETTINGS: Final[Mapping[str, object]] = {
    "kernel_min": 1,
    "kernel_max": 100,
    "batch_size": 1,
    "pipe_size": 1,
    "schedule_interval_s": 3.0,
}
"""Of a model that is deployed through IBM's API for the first time: what IBM's servers begin with."""
_REST: Final[Mapping[str, Any]] = {
    "schema_version": "1.2",
    "type": "inference",
    "replica": 1,
    "kernel": {
        "connection_timeout": 90,
        "envs": [],
        "gpu": "exclusive",
        "log_directory": "",
        "run_as": "",
        "umask": "022",
        "working_directory": "",
    },
    "policy": {"name": "capacity", "stream_discard_slow_tasks": True, "stream_number_per_group": 0},
    "resource_allocation": {
        "kernel": {"consumer": "", "resource_group": "", "resreq": "", "type": ""},
        "service": {"consumer": "", "resource_group": "", "resreq": "", "type": ""},
    },
}
"""What a profile says of everything else unless somebody has said otherwise."""
_COMPUTED: Final = frozenset({"name", "create_time", "last_update_time"})
_QUEUE_FIELDS: Final = ("consumer", "resource_plan")
MAX_PROFILE_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChange:
    """What a profile that was sent changes."""

    settings: Mapping[str, Any]
    """Of the endpoint."""
    kept: Mapping[str, Any]
    """What is kept beside them from now on."""
    notes: tuple[str, ...]
    """What of it has no effect, or not yet."""


def show_profile(view: EndpointView, kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the application profile of a model; values of variables that are called like secrets are hidden."""
    shown = _merged(_REST, kept)
    shown["kernel"]["envs"] = _as_list(hide_secrets(environment_of(kept)))
    for theirs, ours in POLICY.items():
        value = getattr(view, ours)
        shown["policy"][theirs] = -1 if UNLIMITED.get(ours) == value else _number(value)
    shown["resource_allocation"]["kernel"]["consumer"] = f"/pliant/{view.queue}"
    return {
        **shown,
        "name": view.name,
        "create_time": str(round(view.created_at)),
        "last_update_time": str(round(view.changed_at)),
    }


def read_profile(
    given: Mapping[str, Any], name: str, kept: Mapping[str, Any], queues: Collection[str]
) -> ProfileChange:
    """Return what a profile changes of the model `name`.

    Raises:
        InvalidInput: with everything that is wrong with its form, or asks for what there is not.
    """
    require_plain(given, "profile")
    problems = [*_faults(given, name)]
    if problems:
        raise InvalidInput(*problems)
    policy = given.get("policy", {})
    settings = {ours: _limit(ours, policy[theirs]) for theirs, ours in POLICY.items() if policy.get(theirs) is not None}
    rest: dict[str, Any] = {one: value for one, value in given.items() if one not in _COMPUTED}
    if policy:
        rest["policy"] = {one: value for one, value in policy.items() if one not in POLICY}
    notes = []
    if "envs" in rest.get("kernel", {}):
        envs = _as_variables(rest["kernel"]["envs"])
        before = environment_of(kept)
        envs = {one: before.get(one, value) if value == HIDDEN else value for one, value in envs.items()}
        rest["kernel"] = {**rest["kernel"], "envs": _as_list(envs)}
        if envs != before:
            notes.append("kernel.envs: kernels have them when the model is deployed again")
    if (queue := _queue_of(rest, queues)) is not None:
        settings["queue"] = queue
        allocation = rest["resource_allocation"]
        asked = {one: value for one, value in allocation["kernel"].items() if one not in _QUEUE_FIELDS}
        rest["resource_allocation"] = {**allocation, "kernel": asked}
    merged = _merged(kept, rest)
    if len(json.dumps(merged)) > MAX_PROFILE_BYTES:
        raise InvalidInput.at(
            "", f"the profile is longer than {MAX_PROFILE_BYTES >> 10} KiB; leave out what is not used"
        )
    return ProfileChange(settings=settings, kept=merged, notes=(*notes, *_ineffective(rest)))


def environment_of(kept: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that a profile gives to kernels."""
    return _as_variables(kept.get("kernel", {}).get("envs", []))


def _faults(given: Mapping[str, Any], name: str) -> Iterator[Problem]:
    for one in ("policy", "kernel", "resource_allocation"):
        if not isinstance(given.get(one, {}), dict):
            yield Problem(field=one, message="it is no object; send one")
            return
    allocation = given.get("resource_allocation", {})
    for one in ("kernel", "service"):
        if not isinstance(allocation.get(one, {}), dict):
            yield Problem(field=f"resource_allocation.{one}", message="it is no object; send one")
    if given.get("name", name) != name:
        yield Problem(field="name", message=f"{given['name']!r:.80} is not this model; send {name!r}, or leave it out")
    kernel = given.get("kernel", {})
    if kernel.get("gpu") == "shared":
        message = "a slot belongs to one kernel, so that GPUs are not shared by several; send 'exclusive' or 'no'"
        yield Problem(field="kernel.gpu", message=message)
    envs = kernel.get("envs", [])
    if not isinstance(envs, list) or not all(_is_variable(one) for one in envs):
        yield Problem(field="kernel.envs", message='it is no list of {"name": …, "value": …}; send one')


def _is_variable(one: object) -> bool:
    return (
        isinstance(one, dict) and isinstance(one.get("name"), str) and bool(one["name"]) and "\0" not in str(one)
    ) and isinstance(one.get("value", ""), str)


def _ineffective(rest: Mapping[str, Any]) -> Iterator[str]:
    """Yield what has no effect here of the fields that were given."""
    for path, value in _leaves(rest):
        if path[:2] == ("kernel", "envs") or _default(path) == value or value in ("", None):
            continue
        yield f"{'.'.join(path)}: there is no equal of it here; it is kept, and has no effect"


def _leaves(value: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, one in value.items():
        if isinstance(one, dict):
            yield from _leaves(one, (*above, name))
        else:
            yield (*above, name), one


def _default(path: tuple[str, ...]) -> object:
    found: Any = _REST
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _queue_of(rest: Mapping[str, Any], queues: Collection[str]) -> str | None:
    asked = rest.get("resource_allocation", {}).get("kernel", {})
    parts = (str(asked[one]).rstrip("/").rpartition("/")[2] for one in _QUEUE_FIELDS if asked.get(one))
    return next((part for part in parts if part in queues), None)


def _limit(setting: str, value: object) -> object:
    return UNLIMITED[setting] if value == -1 and setting in UNLIMITED else value


def _number(value: float) -> float:
    return int(value) if value == int(value) else value


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return one tree over another one."""
    found = {name: _merged(value, {}) if isinstance(value, Mapping) else value for name, value in below.items()}
    for name, value in above.items():
        present = found.get(name)
        both = isinstance(value, Mapping) and isinstance(present, Mapping)
        found[name] = _merged(present or {}, value) if both else value
    return found


def _as_variables(envs: Any) -> dict[str, str]:
    return {str(one["name"]): str(one.get("value", "")) for one in envs}


def _as_list(env: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in env.items()]
