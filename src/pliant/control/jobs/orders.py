"""How a task is started: its token and its environment (listed in docs/task-environment.md)."""

import hashlib
import hmac
import os
from dataclasses import dataclass, replace
from pathlib import Path

from pliant.control.jobs.live import job_of
from pliant.control.settings import ControlSettings
from pliant.core.job import Job, JobId, Task
from pliant.core.ports import Address, Lodging, StartOrder
from pliant.core.task_environment import ElasticTask, FixedTask, TaskData, TaskEnvironment, TaskFolders


def job_token(secret: bytes, job_id: JobId) -> str:
    """Return the token that opens the control link to the tasks of one job."""
    return hmac.new(secret, job_id.encode(), hashlib.sha256).hexdigest()


def verify_task(secret: bytes, task_id: str, token: str) -> bool:
    """Tell whether the token is the one of the task's job; takes the same time whatever is wrong."""
    expected = job_token(secret, job_of(task_id))
    return hmac.compare_digest(expected.encode(), token.encode("utf-8", "surrogateescape"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The place of one process among all of a fixed job; they were ordered together."""

    rank: int
    size: int
    local_rank: int
    """Among those of its node."""
    local_size: int
    node_rank: int
    """Its node's number."""
    num_nodes: int
    meeting: Address
    """Where the process of rank 0 will listen."""
    node_slots: tuple[int, ...]
    """Slots of all of the job's processes on its node, by local rank: scripts choose their device by that."""


def start_order(
    job: Job, task: Task, settings: ControlSettings, seat: Seat | None = None, python: str | None = None
) -> StartOrder:
    """Return the order for one process of a job; one of a fixed job has a seat, one with an environment its Python."""
    return StartOrder(
        task_id=task.id,
        node_id=task.node_id,
        slots=task.slots,
        argv=(job.spec.script, *job.spec.args),
        env=_environment(job, task, settings, seat),
        cwd=str(settings.folders(job.id).code),
        log_dir=str(settings.folders(job.id).log(task.id, task.node_id)),
        python=python or job.spec.python,
        memory_bytes=job.spec.memory_bytes,
        sees=() if seat is None else seat.node_slots,
        read_only=_read_only(job, settings),
    )


def lodged(order: StartOrder, job: Job, settings: ControlSettings, user: str) -> StartOrder:
    """Return the order for a process that runs as another user of the operating system."""
    folders = settings.folders(job.id)
    data = job.spec.data_dir if job.spec.dataset is not None else None
    environment = os.path.dirname(os.path.dirname(order.python)) if job.spec.environment and order.python else None
    files = (data, environment, settings.server_file, settings.trust.certificate)
    lodging = Lodging(
        user=user,
        owns=tuple(map(str, (folders.code, folders.result, folders.state))),
        passes=tuple(map(str, (settings.home, folders.root.parent, folders.root))),
        reads=tuple(str(file) for file in files if file is not None),
    )
    return replace(order, lodging=lodging)


def _read_only(job: Job, settings: ControlSettings) -> tuple[str, ...]:
    """Return the folder of the job's data set, unless the job's own folders lie in it."""
    if job.spec.dataset is None or job.spec.data_dir is None:
        return ()
    own = settings.folders(job.id).root.resolve()
    return () if own.is_relative_to(Path(job.spec.data_dir).resolve()) else (job.spec.data_dir,)


def _environment(job: Job, task: Task, settings: ControlSettings, seat: Seat | None) -> dict[str, str]:
    """Return the variables of a task: the person's own, and before them what Pliant tells it."""
    folders, ibm, parts = settings.folders(job.id), settings.ibm_modules, job.spec.data_parts
    told = TaskEnvironment(
        task_id=task.id,
        job_id=job.id,
        weights=job.spec.weights,
        ibm_modules=None if ibm is None else str(ibm),
        is_elastic="true" if seat is None else "false",
        folders=TaskFolders(
            code=str(folders.code),
            result=str(folders.result),
            log=str(folders.log(task.id, task.node_id)),
            model=str(folders.model),
            state=str(folders.state),
        ),
        data=TaskData(
            folder=job.spec.data_dir,
            dataset=job.spec.dataset,
            train=parts.get("train"),
            validation=parts.get("validation"),
            test=parts.get("test"),
        ),
        elastic=_elastic(job, settings) if seat is None else None,
        fixed=None if seat is None else _fixed(job, seat),
    )
    theirs = job.spec.env.get("PYTHONPATH")
    path = {} if ibm is None else {"PYTHONPATH": f"{ibm}:{theirs}" if theirs else str(ibm)}
    return {**job.spec.env, **told.to_env(), **path}


def _elastic(job: Job, settings: ControlSettings) -> ElasticTask:
    certificate, server_file = settings.trust.certificate, settings.server_file
    return ElasticTask(
        url=settings.url,
        token=job_token(settings.secret, job.id),
        lease_s=settings.timeouts.lease_s,
        virtual_workers=job.spec.virtual_workers,
        max_tasks=job.spec.max_tasks,
        mode=job.spec.mode,
        checkpoint_freq=job.spec.checkpoint_freq,
        checkpoint_every_s=job.spec.checkpoint_every_s,
        certificate=None if certificate is None else str(certificate),
        server_name=settings.trust.server_name,
        server_file=None if server_file is None else str(server_file),
        audit=job.spec.audit,
        resume_from=job.spec.resume_from,
    )


def _fixed(job: Job, seat: Seat) -> FixedTask:
    return FixedTask(
        master_address=seat.meeting.host,
        master_port=seat.meeting.port,
        rank=seat.rank,
        size=seat.size,
        local_rank=seat.local_rank,
        local_size=seat.local_size,
        node_rank=seat.node_rank,
        num_nodes=seat.num_nodes,
        num_restarts=job.num_restarts,
        max_restarts=job.spec.max_restarts,
        run_id=job.id,
    )
