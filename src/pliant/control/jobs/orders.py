"""How a task is started: its token, and the order for its process. What only its kind needs comes with `Start`."""

import hashlib
import hmac
import os
from dataclasses import replace
from pathlib import Path

from pliant.control.jobs.inputs import data_environment
from pliant.control.jobs.kind import TaskStart
from pliant.control.jobs.live import job_of
from pliant.control.settings import ControlSettings
from pliant.core.job import Job, JobId, Task
from pliant.core.ports import RunAs, StartOrder


def job_token(secret: bytes, job_id: JobId) -> str:
    """Return the token that opens the control link to the tasks of one job."""
    return hmac.new(secret, job_id.encode(), hashlib.sha256).hexdigest()


def verify_task(secret: bytes, task_id: str, token: str) -> bool:
    """Tell whether the token is the one of the task's job; takes the same time whatever is wrong."""
    expected = job_token(secret, job_of(task_id))
    return hmac.compare_digest(expected.encode(), token.encode("utf-8", "surrogateescape"))


def start_order(
    job: Job, task: Task, settings: ControlSettings, start: TaskStart, python: str | None = None
) -> StartOrder:
    """Return the order for one process of a job; one with an environment has the interpreter of that."""
    folders = settings.folders(job.id)
    return StartOrder(
        task_id=task.id,
        node_id=task.node_id,
        slots=task.slots,
        argv=(job.spec.script, *job.spec.args),
        env={**_environment(job, task, settings), **start.env},
        cwd=str(folders.code),
        log_dir=str(folders.log(task.id, task.node_id)),
        result_dir=str(folders.result),
        model=str(folders.weights),
        python=python or job.spec.python,
        memory_bytes=job.spec.memory_bytes,
        sees=start.sees,
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
