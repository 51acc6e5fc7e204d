"""How a task is started: its token and its environment (the contract is in docs/architecture.md)."""

import hashlib
import hmac
import os
from dataclasses import dataclass, replace
from pathlib import Path

from pliant.control.jobs.data import data_environment
from pliant.control.jobs.live import job_of
from pliant.control.settings import ControlSettings
from pliant.core.job import Job, JobId, Task
from pliant.core.ports import Address, RunAs, StartOrder


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
        env=_environment(job, task, settings) | (_elastic(job, settings) if seat is None else _fixed(job, seat)),
        cwd=str(settings.folders(job.id).code),
        log_dir=str(settings.folders(job.id).log(task.id, task.node_id)),
        python=python or job.spec.python,
        memory_bytes=job.spec.memory_bytes,
        sees=() if seat is None else seat.node_slots,
        read_only=_read_only(job, settings),
    )


def with_run_as(order: StartOrder, job: Job, settings: ControlSettings, user: str) -> StartOrder:
    """Return the order, changed so that the process runs as another user of the operating system."""
    folders = settings.folders(job.id)
    data = job.spec.data_dir if job.spec.dataset is not None else None
    environment = os.path.dirname(os.path.dirname(order.python)) if job.spec.environment and order.python else None
    files = (data, environment, settings.server_file, settings.trust.certificate)
    run_as = RunAs(
        user=user,
        owns=tuple(map(str, (folders.code, folders.result, folders.state))),
        passes=tuple(map(str, (settings.home, folders.root.parent, folders.root))),
        reads=tuple(str(file) for file in files if file is not None),
    )
    return replace(order, run_as=run_as)


def _read_only(job: Job, settings: ControlSettings) -> tuple[str, ...]:
    """Return the folder of the job's data set, unless the job's own folders lie in it."""
    if job.spec.dataset is None or job.spec.data_dir is None:
        return ()
    own = settings.folders(job.id).root.resolve()
    return () if own.is_relative_to(Path(job.spec.data_dir).resolve()) else (job.spec.data_dir,)


def _environment(job: Job, task: Task, settings: ControlSettings) -> dict[str, str]:
    folders = settings.folders(job.id)
    env = {
        **job.spec.env,
        "PLIANT_TASK_ID": task.id,
        "PLIANT_JOB_ID": job.id,
        "RESULT_DIR": str(folders.result),
        "LOG_DIR": str(folders.log(task.id, task.node_id)),
        "SAVED_MODEL_DIR": str(folders.model),
        "JOB_STATE_DIR": str(folders.state),
        "TRAINING_ID": job.id,
        "DLI_EXECID": job.id,
        "DLI_WORK_DIR": str(folders.code),
        "FABRIC_BACKEND": "pytorch",
        "TASK_JOB_ID": job.id,
    }
    if job.spec.weights is not None:
        env["PLIANT_WEIGHTS"] = job.spec.weights
    env.update(data_environment(job.spec))
    if settings.ibm_modules is not None:
        theirs = job.spec.env.get("PYTHONPATH")
        env["FABRIC_HOME"] = str(settings.ibm_modules)
        env["PYTHONPATH"] = f"{settings.ibm_modules}:{theirs}" if theirs else str(settings.ibm_modules)
    return env


def _elastic(job: Job, settings: ControlSettings) -> dict[str, str]:
    """Return what a task needs that trains under the coordinator."""
    env = {
        "PLIANT_URL": settings.url,
        "PLIANT_TASK_TOKEN": job_token(settings.secret, job.id),
        "PLIANT_LEASE_S": f"{settings.timeouts.lease_s:g}",
        "PLIANT_VIRTUAL_WORKERS": str(job.spec.virtual_workers),
        "PLIANT_MAX_TASKS": str(job.spec.max_tasks),
        "PLIANT_MODE": job.spec.mode,
        "PLIANT_CHECKPOINT_FREQ": str(job.spec.checkpoint_freq),
        "PLIANT_CHECKPOINT_EVERY_S": f"{job.spec.checkpoint_every_s:g}",
        "DLI_IS_ELASTIC": "true",
    }
    if settings.trust.certificate is not None:
        env["PLIANT_CA"] = str(settings.trust.certificate)
    if settings.trust.server_name is not None:
        env["PLIANT_SERVER_NAME"] = settings.trust.server_name
    if settings.server_file is not None:
        env["PLIANT_SERVER_FILE"] = str(settings.server_file)
    if job.spec.audit:
        env["PLIANT_AUDIT"] = "1"
    if job.spec.resume_from is not None:
        env["PLIANT_RESUME_FROM"] = job.spec.resume_from
    return env


def _fixed(job: Job, seat: Seat) -> dict[str, str]:
    """Return what torchrun sets for a process, so that `init_process_group` finds the others by itself.

    The names are those of https://docs.pytorch.org/docs/stable/elastic/run.html.
    """
    return {
        "PLIANT_FIXED": "1",
        "DLI_IS_ELASTIC": "false",
        "MASTER_ADDR": seat.meeting.host,
        "MASTER_PORT": str(seat.meeting.port),
        "RANK": str(seat.rank),
        "WORLD_SIZE": str(seat.size),
        "LOCAL_RANK": str(seat.local_rank),
        "LOCAL_WORLD_SIZE": str(seat.local_size),
        "GROUP_RANK": str(seat.node_rank),
        "GROUP_WORLD_SIZE": str(seat.num_nodes),
        "ROLE_NAME": "default",
        "ROLE_RANK": str(seat.rank),
        "ROLE_WORLD_SIZE": str(seat.size),
        "TORCHELASTIC_RESTART_COUNT": str(job.num_restarts),
        "TORCHELASTIC_MAX_RESTARTS": str(job.spec.max_restarts),
        "TORCHELASTIC_RUN_ID": job.id,
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }
