"""Algorithms that choose the values of searches, in IBM's words: those that are built in, and those of people's own.

One's own is installed from a tar of its folder, and runs as who has installed it, within walls. Paths of the server
are not read: what somebody may read there is not for a route to find out.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from pliant.api.algorithms import AlgorithmRequest
from pliant.catalog.algorithms.use_cases import AlgorithmRequests
from pliant.core.access import Permission, Principal
from pliant.core.algorithm import Algorithm
from pliant.core.errors import InvalidInput, NotFound, Problem
from pliant.core.registry import Kept
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.errors import DEEP_LEARNING, JSON, name_fields
from pliant.ibm.rest.lookup import read_pages
from pliant.ibm.rest.routes.models import validate_body
from pliant.ibm.rest.routing import ibm_routes
from pliant.ibm.rest.translate.hpo.algorithm import ALGORITHMS
from pliant.ibm.rest.translate.hpo.request import FIELD, PluginRequest, read_plugin
from pliant.ibm.rest.translate.hpo.shapes import time_text
from pliant.ibm.rest.translate.shapes import notes_text
from pliant.server.body import read_small, upload_file
from pliant.server.context import Context, InContext
from pliant.server.routes.algorithms import algorithms_of
from pliant.server.upload import UploadForm, receive_form

routes = ibm_routes(DEEP_LEARNING)

FORM: Final = UploadForm(file="file", fields=(FIELD,), required=(FIELD,), only_first=True)
BUILT_IN: Final = "BUILD_IN"
PLUGIN: Final = "USER_PLUGIN"
_BASE: Final = "/hypersearch/algorithm"
_LEVELS: Final = {"debug": "debug", "info": "info", "warn": "warning", "warning": "warning", "error": "error"}
_NAMES: Final = {"environment": "condaEnv", "log_level": "logLevel", "code": "file", "": "file"}


def plugin_names(context: Context, caller: Principal) -> Collection[str]:
    """Return the names of the installed algorithms that searches of somebody may use."""
    return () if context.algorithms is None else context.algorithms.names(caller.name)


@routes.get(_BASE, Permission.JOBS_READ)
def algorithms(context: InContext, caller: Caller, type: str | None = None) -> list[dict[str, Any]]:
    """List algorithms; `type` is BUILD_IN or USER_PLUGIN."""
    wanted = (type or "").strip().upper()
    if wanted not in ("", BUILT_IN, PLUGIN):
        raise InvalidInput.at("type", f"{type!r:.60} is neither BUILD_IN nor USER_PLUGIN; give one, or leave it out")
    built_in = [] if wanted == PLUGIN else [_built_in_json(name) for name in ALGORITHMS]
    found = [] if wanted == BUILT_IN else _installed(context, caller)
    return [*built_in, *(_plugin_json(kept.noun) for kept in found)]


def _installed(context: Context, caller: Principal) -> Sequence[Kept[Algorithm]]:
    requests = context.algorithms
    if requests is None:
        return ()
    return list(read_pages(lambda after, limit: requests.page(caller, after, limit)))


@routes.get(f"{_BASE}/{{algorithm}}", Permission.JOBS_READ)
def show(context: InContext, caller: Caller, algorithm: str) -> dict[str, Any]:
    """Show an algorithm."""
    found = next((name for name in ALGORITHMS if name.lower() == algorithm.lower()), None)
    if found is not None:
        return _built_in_json(found)
    installed = _installed(context, caller)
    own = next((kept.noun for kept in installed if kept.noun.name == algorithm), None)
    if own is None:
        there = ", ".join([*ALGORITHMS, *(kept.noun.name for kept in installed[:20])])
        raise NotFound(f"there is no algorithm {algorithm!r:.60}; there are {there}")
    return _plugin_json(own)


@routes.post(_BASE, Permission.JOBS_WRITE)
async def install_older(request: Request, context: InContext, caller: Caller) -> dict[str, Any]:
    """Install an algorithm, as clients of the first generation do."""
    return await install(request, context, caller)


@routes.post(f"{_BASE}/install", Permission.JOBS_WRITE)
async def install(request: Request, context: InContext, caller: Caller) -> dict[str, Any]:
    """Install an algorithm from a tar of its folder, if it can be loaded; what has no effect is told in `notes`."""
    requests, content_type = algorithms_of(context), request.headers.get("content-type", "")
    with upload_file(context.uploads) as file:
        if content_type.partition(";")[0].strip().lower() == JSON:
            text, was_sent = await read_small(request.stream()), False
        else:
            fields = dict(await receive_form(content_type, request.stream(), file, FORM))
            text, was_sent = fields[FIELD], FORM.file in fields
        asked = read_plugin(text.decode("utf-8", "replace"))
        kept = await run_in_threadpool(_install, requests, caller, asked, file if was_sent else None)
    href = f"{DEEP_LEARNING}{_BASE}/{kept.noun.name}"
    return {"uid": kept.noun.name, "href": href} | _plugin_json(kept.noun) | {"notes": notes_text(_notes(asked))}


def _install(
    requests: AlgorithmRequests, caller: Principal, asked: PluginRequest, file: Path | None
) -> Kept[Algorithm]:
    problems = []
    if file is None:
        where = "path" if asked.path else "file"
        said = f"the server does not read {asked.path!r:.200} for anybody" if asked.path else "it is missing"
        problems.append(Problem(field=where, message=f"{said}; send a tar of the folder as `file`"))
    level = _LEVELS.get(asked.logLevel.strip().lower() or "info")
    if level is None:
        message = f"{asked.logLevel!r:.60} is none of DEBUG, INFO, WARN and ERROR; give one of them"
        problems.append(Problem(field="logLevel", message=message))
    given = {"name": asked.name, "log_level": level, "environment": asked.condaEnv.strip() or None}
    try:
        with name_fields(_NAMES):
            read: AlgorithmRequest = validate_body(AlgorithmRequest, given)
    except InvalidInput as error:
        raise InvalidInput(*problems, *error.problems) from error
    if file is None or problems:
        raise InvalidInput(*problems)
    with name_fields(_NAMES):
        return requests.install(caller, read.name, read.settings(), file)


def _notes(asked: PluginRequest) -> Sequence[str]:
    """Return what of an installation has no effect."""
    notes = []
    if asked.path:
        notes.append("path has no effect: the code is what was sent as `file`")
    if asked.condaHome:
        notes.append("condaHome has no effect: condaEnv names an environment of this server")
    if asked.remoteExec:
        notes.append("remoteExec has no effect: it runs beside the server, in a process of its own within walls")
    return notes


@routes.delete(f"{_BASE}/{{algorithm}}", Permission.JOBS_WRITE)
def delete(context: InContext, caller: Caller, algorithm: str) -> dict[str, Any]:
    """Forget an installed algorithm; refused while a search uses it that runs or may be restarted."""
    found = next((name for name in ALGORITHMS if name.lower() == algorithm.lower()), None)
    if found is not None:
        raise InvalidInput.at("algorithm", f"{found} is built in, and stays; name one that is installed")
    algorithms_of(context).remove(caller, algorithm)
    return {"message": f"{algorithm} is deleted", "name": algorithm}


def _plugin_json(noun: Algorithm) -> dict[str, Any]:
    return _built_in_json(noun.name) | {
        "type": PLUGIN,
        "condaEnv": noun.environment,
        "creator": noun.owner,
        "createtime": time_text(noun.created_at),
        "logLevel": noun.log_level.upper(),
    }


def _built_in_json(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": BUILT_IN,
        "path": None,
        "condaHome": None,
        "condaEnv": None,
        "creator": None,
        "createtime": None,
        "remoteExec": False,
        "logLevel": None,
    }
