"""Searches of hyperparameters: begin, list, show, stop, restart, delete, as IBM's clients call them."""

import importlib.util
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastapi import Request
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool

from pliant.api.searches import require_search_name
from pliant.core.access import Permission, Principal
from pliant.core.errors import Conflict, InvalidInput, NotFound, Problem
from pliant.core.search import Search, SearchState
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.errors import DEEP_LEARNING, JSON, name_fields
from pliant.ibm.rest.hpo_records import (
    forget_record,
    jobs_under_way,
    keep_record,
    list_hpo,
    own_hpo,
    searches_of,
    show_hpo,
)
from pliant.ibm.rest.routes.hpo_algorithms import plugin_names
from pliant.ibm.rest.routes.submission import AskedJob, SubmissionForm, packed_code, read_job
from pliant.ibm.rest.routing import ibm_routes
from pliant.ibm.rest.translate.frameworks import FrameworkKind
from pliant.ibm.rest.translate.hardware import Submission
from pliant.ibm.rest.translate.hpo.record import HpoRecord
from pliant.ibm.rest.translate.hpo.request import HpoRequest, read_hpo
from pliant.ibm.rest.translate.hpo.search import AskedSearch, name_fields_of_search, to_search
from pliant.ibm.rest.translate.shapes import notes_text
from pliant.server import upload
from pliant.server.body import upload_file
from pliant.server.context import Context, InContext
from pliant.server.visibility import require_owner
from pliant.tune.searches.new_search import FirstTrials

routes = ibm_routes(DEEP_LEARNING)

FORM: Final = upload.UploadForm(file="file", fields=("data",), required=("data",), only_first=True)
_RESERVED: Final = "algorithm"
"""A path of its own here."""
_OWN_CLIENT: Final = "wmla-python-sdk"
"""IBM's package says of itself that it is this."""
MAX_SEED: Final = 2**32
"""Seeds are below it."""


@routes.post("/hypersearch", Permission.JOBS_WRITE)
async def create(request: Request, context: InContext, caller: Caller) -> Any:
    """Begin a search; newer clients get `uid` and `href`, those of instance groups its name alone."""
    with upload_file(context.uploads) as file:
        content_type = request.headers.get("content-type", "")
        fields = dict(await upload.receive_form(content_type, request.stream(), file, FORM))
        text = fields["data"].decode("utf-8", "replace")
        search, record = await run_in_threadpool(_begin, context, caller, text, file if FORM.file in fields else None)
    if record.instance_group and _OWN_CLIENT not in request.headers.get("user-agent", ""):
        as_json = JSON in request.headers.get("accept", "")
        return search.name if as_json else PlainTextResponse(search.name)
    href = f"{DEEP_LEARNING}/hypersearch/{search.name}"
    return {"uid": search.name, "href": href, "hpoName": search.name, "notes": notes_text(record.notes)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What was sent, read."""

    request: HpoRequest
    given: Mapping[str, Any]
    job: AskedJob
    search: AskedSearch


def _begin(context: Context, caller: Principal, text: str, file: Path | None) -> tuple[Search, HpoRecord]:
    """Check all that was sent, begin the search, and keep what was sent."""
    uploads = () if file is None else (file,)
    asked = _read(context, caller, text)
    requests, name = searches_of(context), asked.request.hpoName or None
    with packed_code(context, asked.job, uploads) as archive:
        visible = context.sharing.visible_jobs(caller)
        try:
            first = FirstTrials(enqueued=asked.search.enqueued)
            search, remarks = requests.create(
                caller, name, asked.search.settings, asked.job.spec, archive, visible, first
            )
        except InvalidInput as error:
            raise InvalidInput(*name_fields_of_search(error.problems)) from error
    record = _record(asked, search, (*asked.job.notes, *asked.search.notes, *remarks))
    keep_record(context, record)
    return search, record


def _read(context: Context, caller: Principal, text: str) -> _Asked:
    """Return what was sent.

    Raises:
        InvalidInput: with everything that is wrong with it.
    """
    request, given = read_hpo(text)
    problems: list[Problem] = []
    job: AskedJob | None = None
    search: AskedSearch | None = None
    try:
        check_name(request.hpoName)
    except InvalidInput as error:
        problems += error.problems
    try:
        job = _read_job(context, caller, request)
    except InvalidInput as error:
        problems += error.problems
    try:
        can_pause = job is None or job.framework.kind is FrameworkKind.ELASTIC
        has_scipy = importlib.util.find_spec("scipy") is not None
        seed = int(context.clock.now() * 1000) % MAX_SEED
        plugins = plugin_names(context, caller)
        search = to_search(request, can_pause=can_pause, has_scipy=has_scipy, seed=seed, plugins=plugins)
    except InvalidInput as error:
        problems += error.problems
    if job is None or search is None or problems:
        raise InvalidInput(*problems)
    return _Asked(request=request, given=given, job=job, search=search)


def _read_job(context: Context, caller: Principal, request: HpoRequest) -> AskedJob:
    spec = request.modelSpec
    if not spec.args.strip():
        raise InvalidInput.at("modelSpec.args", "it is missing; send --exec-start FRAMEWORK and the rest")
    form = SubmissionForm(
        args=spec.args,
        instance_group=spec.sigName.strip() or None,
        submission=Submission(),
        uploads=(),
    )
    return read_job(context, caller, form)


def check_name(name: str) -> None:
    """Refuse what no search can be called; empty is fine.

    Raises:
        InvalidInput: why.
    """
    if not name:
        return
    with name_fields({"name": "hpoName"}):
        require_search_name(name)
    if name.lower() == _RESERVED:
        raise InvalidInput.at("hpoName", f"{name!r} is the path of the algorithms; choose another name")


def _record(asked: _Asked, search: Search, notes: tuple[str, ...]) -> HpoRecord:
    ids = tuple(one.id for one in asked.request.experiments if one.id is not None)
    algorithm, hyper_params = asked.given.get("algoDef") or {}, asked.given.get("hyperParams") or ()
    return HpoRecord(
        name=search.name,
        owner=search.owner,
        made_at=search.created_at,
        args=asked.job.arguments.shown,
        instance_group=asked.request.modelSpec.sigName.strip(),
        algorithm=algorithm,
        hyper_params=tuple(hyper_params),
        experiment_ids=ids if len(set(ids)) == len(asked.request.experiments) else (),
        notes=notes,
    )


@routes.get("/hypersearch", Permission.JOBS_READ)
def index(context: InContext, caller: Caller) -> list[dict[str, Any]]:
    """List searches with their experiments: one's own, and those that are shared with one."""
    return list_hpo(context, caller)


@routes.delete("/hypersearch", Permission.JOBS_WRITE)
def delete_all(context: InContext, caller: Caller) -> dict[str, Any]:
    """Delete the searches that who asks has begun here; their jobs stay."""
    names = own_hpo(context, caller)
    for name in names:
        with suppress(NotFound):  # somebody else has deleted it meanwhile
            forget(context, caller, name)
    return {"message": f"{len(names)} searches are deleted", "deleted": len(names)}


@routes.get("/hypersearch/{search}", Permission.JOBS_READ)
def show(context: InContext, caller: Caller, search: str) -> dict[str, Any]:
    """Show a search, its experiments and the best of them."""
    return show_hpo(context, caller, search)


@routes.delete("/hypersearch/{search}", Permission.JOBS_WRITE)
def delete(context: InContext, caller: Caller, search: str) -> dict[str, Any]:
    """Delete a search; jobs of it that have not ended are stopped, and all of them stay as jobs."""
    forget(context, caller, search)
    return {"message": f"{search} is deleted", "hpoName": search}


def forget(context: Context, caller: Principal, name: str) -> None:
    """Remove a search and what was sent for it."""
    searches_of(context).remove(caller, name)
    forget_record(context, name)


@routes.put("/hypersearch/{search}", Permission.JOBS_WRITE)
def stop(context: InContext, caller: Caller, search: str) -> dict[str, Any]:
    """Stop a search: elastic experiments pause, others train on to their end, and no further one begins."""
    stop_search(context, caller, search)
    return show_hpo(context, caller, search)


def stop_search(context: Context, caller: Principal, name: str) -> None:
    """Stop a search.

    Raises:
        NotFound, Forbidden, Conflict: there is none that they see, it is somebody else's, or it does not run.
    """
    found = searches_of(context).get(caller, name)
    if found.state is not SearchState.RUNNING:
        raise Conflict(f"{name} is already stopped: it is {found.state.value}")
    searches_of(context).stop(caller, name)


@routes.put("/hypersearch/{search}/force", Permission.JOBS_WRITE)
def force(context: InContext, caller: Caller, search: str) -> dict[str, Any]:
    """Stop a search, and end those of its experiments that cannot pause."""
    force_search(context, caller, search)
    return show_hpo(context, caller, search)


def force_search(context: Context, caller: Principal, name: str) -> None:
    """Stop a search, also one that was stopped, and end those of its trials that cannot pause.

    Raises:
        NotFound, Forbidden, Conflict: there is none that they see, it is somebody else's, or it is over.
    """
    requests = searches_of(context)
    found = requests.get(caller, name)
    if found.state not in (SearchState.RUNNING, SearchState.STOPPED):
        raise Conflict(f"{name} is already stopped: it is {found.state.value}")
    if found.state is SearchState.RUNNING:
        requests.stop(caller, name)
    for job in jobs_under_way(context, caller, name):
        require_owner(job, caller)
        if job.spec.fixed and job.started_at is not None:
            with suppress(Conflict):  # it has ended meanwhile
                context.control.requests.stop(job.id, caller.name)


@routes.put("/hypersearch/{search}/restart", Permission.JOBS_WRITE)
def restart(context: InContext, caller: Caller, search: str) -> dict[str, Any]:
    """Let a search that was stopped go on where it was."""
    searches_of(context).resume(caller, search)
    return show_hpo(context, caller, search)
