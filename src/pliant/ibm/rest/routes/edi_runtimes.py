"""Runtimes of IBM's inference API: Pliant's environments, and those that are always there."""

from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pliant.api.environments import EnvironmentRequest
from pliant.core.access import Permission, Principal
from pliant.core.environment import EnvironmentKind, EnvironmentView
from pliant.core.errors import Forbidden, InvalidInput, NotFound, Problem
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.errors import DLIM, name_fields
from pliant.ibm.rest.lookup import read_pages
from pliant.ibm.rest.routes.models import validate_body
from pliant.ibm.rest.routing import ibm_routes
from pliant.ibm.rest.translate.edi_model import BUILT_IN
from pliant.server.context import Context, InContext
from pliant.server.environment_users import tuning_in, unended_jobs

routes = ibm_routes(DLIM)

_SCHEMA = "1"
_NOT_HERE = {
    "docker_img": "kernels are processes, not containers; name a conda environment",
    "pre_exec": "nothing runs before a kernel; do it in on_kernel_start",
    "envs": "an environment has no variables; give them in model.json or in the model's profile",
}


class RuntimeBody(BaseModel):
    """What IBM's clients send of a runtime; times and the version of its form are left alone."""

    model_config = ConfigDict(extra="ignore")

    type: Annotated[str, Field(max_length=200)] | None = None
    launcher: Annotated[str, Field(max_length=200)] | None = None
    conda_home: Annotated[str, Field(max_length=2000)] | None = None
    conda_env_name: Annotated[str, Field(max_length=200)] | None = None
    docker_img: str | None = None
    pre_exec: str | None = None
    envs: list[Any] | None = None


def _built_in(name: str) -> dict[str, Any]:
    return {
        "schema_version": _SCHEMA,
        "type": name,
        "launcher": "python",
        "description": BUILT_IN[name],
        "conda_home": "",
        "conda_env_name": "",
        "envs": [],
    }


def _runtime_json(view: EnvironmentView) -> dict[str, Any]:
    is_conda = view.kind == EnvironmentKind.CONDA
    home, _, name = view.source.rpartition("/envs/") if is_conda else ("", "", "")
    return {
        "schema_version": _SCHEMA,
        "type": view.name,
        "launcher": "python",
        "description": f"environment of {view.owner}: {view.state}",
        "conda_home": home,
        "conda_env_name": name,
        "envs": [],
        "epoch_created": round(view.created_at),
        "epoch_updated": round(view.built_at or view.created_at),
    }


@routes.get("/deployment/runtime", Permission.MODELS_READ)
def index(context: InContext, caller: Caller) -> dict[str, Any]:
    """List runtimes."""
    views = list(read_pages(partial(context.environments.page, caller)))
    own = {view.name for view in views}
    built_in = [_built_in(name) for name in BUILT_IN if name not in own]
    return {"schema_version": _SCHEMA, "runtimes": [*built_in, *map(_runtime_json, views)]}


@routes.get("/deployment/runtime/{runtime}", Permission.MODELS_READ)
def show(context: InContext, caller: Caller, runtime: str) -> dict[str, Any]:
    """Show a runtime."""
    try:
        return _runtime_json(context.environments.show(runtime, caller))
    except NotFound:
        if runtime in BUILT_IN:
            return _built_in(runtime)
        raise


@routes.post("/deployment/runtime", Permission.MODELS_WRITE)
def add(context: InContext, caller: Caller, body: RuntimeBody) -> dict[str, str]:
    """Make a runtime of a conda environment of the server's machine."""
    _refuse_built_in(body.type or "")
    _add(context, caller, body, body.type)
    return {"status": "success"}


@routes.put("/deployment/runtime/{runtime}", Permission.MODELS_WRITE)
def change(context: InContext, caller: Caller, runtime: str, body: RuntimeBody) -> dict[str, str]:
    """Let a runtime be another conda environment; models that are deployed from now on have it."""
    if body.type not in (None, runtime):
        raise InvalidInput.at("type", f"{body.type!r:.80} is not this runtime; send {runtime!r:.80}, or leave it out")
    before = _find(context, caller, runtime)
    asked = _asked(body, runtime)
    if (before.kind, before.source) != (EnvironmentKind.CONDA, asked.conda):
        context.environments.remove(runtime, None, caller, unended_jobs(context), tuning_in(context, runtime))
        try:
            context.environments.add(asked.noun(caller.name), caller)
        except BaseException:
            old = {"name": runtime, "shared_with": before.shared_with, before.kind: before.source}
            context.environments.add(EnvironmentRequest.model_validate(old).noun(before.owner), caller)
            raise
    return {"status": "success"}


@routes.delete("/deployment/runtime/{runtime}", Permission.MODELS_WRITE)
def remove(context: InContext, caller: Caller, runtime: str) -> dict[str, str]:
    """Remove a runtime that no job uses."""
    _find(context, caller, runtime)
    context.environments.remove(runtime, None, caller, unended_jobs(context), tuning_in(context, runtime))
    return {"status": "success"}


def _add(context: Context, caller: Principal, body: RuntimeBody, name: str | None) -> None:
    with name_fields({"name": "type", "conda": "conda_env_name"}):
        context.environments.add(_asked(body, name).noun(caller.name), caller)


def _asked(body: RuntimeBody, name: str | None) -> EnvironmentRequest:
    """Return the environment that a body asks for.

    Raises:
        InvalidInput: with everything that is wrong with it.
    """
    problems = [Problem(field=one, message=why) for one, why in _NOT_HERE.items() if getattr(body, one)]
    if body.launcher not in (None, "") and "python" not in str(body.launcher).lower():
        problems.append(Problem(field="launcher", message=f"{body.launcher!r:.80} runs no kernel; send 'python'"))
    if not body.conda_env_name:
        problems.append(Problem(field="conda_env_name", message="it is missing; name a conda environment"))
    if not name:
        problems.append(Problem(field="type", message="it is missing; it is the name of the runtime"))
    if problems:
        raise InvalidInput(*problems)
    home = (body.conda_home or "").rstrip("/")
    source = f"{home}/envs/{body.conda_env_name}" if home else body.conda_env_name
    with name_fields({"name": "type", "conda": "conda_env_name"}):
        found: EnvironmentRequest = validate_body(EnvironmentRequest, {"name": name, "conda": source})
    return found


def _find(context: Context, caller: Principal, runtime: str) -> EnvironmentView:
    try:
        view = context.environments.show(runtime, caller)
    except NotFound:
        _refuse_built_in(runtime)
        raise
    if not caller.owns(view.owner):
        raise Forbidden(f"the runtime {runtime!r:.80} is {view.owner}'s; ask them to change it")
    return view


def _refuse_built_in(runtime: str) -> None:
    if runtime == "python":
        raise Forbidden(f"the runtime {runtime!r} is the server's own, and stays as it is; make one of another name")
