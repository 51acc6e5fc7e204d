"""Tunnels into jobs: a shell beside a task, or its notebook server. Both ends connect to `pliant.server.tunnels`."""

import json
from functools import partial
from typing import Final

from starlette.concurrency import run_in_threadpool

from pliant.api.tunnel import ShellRequest, TunnelView
from pliant.core.access import Permission, Principal
from pliant.core.job import Job
from pliant.core.tunnel import SidecarSettings
from pliant.server.context import InContext
from pliant.server.middleware.authorisation import Caller
from pliant.server.routing import Routes
from pliant.server.stream_access import InStreamAccess
from pliant.server.tunnels import TunnelSecrets
from pliant.server.visibility import OwnJob

routes = Routes(tags=["jobs"])

_AT_CONTROL: Final = ""
"""Control knows where the server is."""


@routes.post(
    "/jobs/{job_id}/shells", Permission.JOBS_WRITE, "Open a shell beside a task", 403, 404, 409, 503, status_code=201
)
async def open_shell(
    context: InContext, job: OwnJob, caller: Caller, access: InStreamAccess, body: ShellRequest
) -> TunnelView:
    """Start a shell, or a command, beside a task that runs: as its user, within its walls and limits.

    What it writes, and what it is to read, goes through a WebSocket at `/v1/tunnels/{id}` with the ticket as bearer
    token, in the frames of `pliant.core.tunnel`. It ends when that is closed.
    """
    made = context.tunnels.open(job.id, caller.name, partial(access.require_job, job))
    terminal = body.terminal
    sidecar = SidecarSettings(
        tunnel_id=made.id,
        key=made.key,
        url=_AT_CONTROL,
        command=json.dumps(body.command) if body.command else None,
        terminal=None if terminal is None else terminal.term,
        rows=24 if terminal is None else terminal.rows,
        columns=80 if terminal is None else terminal.columns,
    )
    return await _start(context, job, body.task, caller, made, sidecar)


@routes.post(
    "/jobs/{job_id}/notebook",
    Permission.JOBS_WRITE,
    "Open a tunnel to the notebook server that a job runs",
    403,
    404,
    409,
    503,
    status_code=201,
)
async def open_notebook(context: InContext, job: OwnJob, caller: Caller, access: InStreamAccess) -> TunnelView:
    """Open a tunnel with a channel for every connection to the job's notebook server, as `pliant notebook` starts one.

    The WebSocket is that of a shell; its messages are the number of a channel, and a frame of it. On channel 0 comes
    the token of the notebook server as soon as that answers.
    """
    made = context.tunnels.open(job.id, caller.name, partial(access.require_job, job))
    sidecar = SidecarSettings(tunnel_id=made.id, key=made.key, url=_AT_CONTROL, notebook=True)
    return await _start(context, job, None, caller, made, sidecar)


async def _start(
    context: InContext, job: Job, number: int | None, who: Principal, made: TunnelSecrets, sidecar: SidecarSettings
) -> TunnelView:
    """Have the sidecar of a tunnel started beside a task; a tunnel without one is forgotten."""
    ended = partial(context.tunnels.note_end, made.id)
    try:
        task_id = await run_in_threadpool(context.control.sidecars.start, job.id, number, who, sidecar, ended)
    except BaseException:
        context.tunnels.discard(made.id)
        raise
    context.tunnels.attend(made.id, partial(context.control.sidecars.end, task_id, made.id))
    return TunnelView(id=made.id, task_id=task_id, ticket=made.ticket)
