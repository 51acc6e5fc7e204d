"""How a task is started: its token and its environment (the contract is in docs/architecture.md)."""

import hashlib
import hmac

from pliant.control.live import job_of
from pliant.control.settings import ControlSettings
from pliant.core.job import Job, JobId, Task
from pliant.core.ports import StartOrder


def job_token(secret: bytes, job_id: JobId) -> str:
    """Return the token that opens the control link to the tasks of one job."""
    return hmac.new(secret, job_id.encode(), hashlib.sha256).hexdigest()


def verify_task(secret: bytes, task_id: str, token: str) -> bool:
    """Tell whether the token is the one of the task's job; takes the same time whatever is wrong."""
    expected = job_token(secret, job_of(task_id))
    return hmac.compare_digest(expected.encode(), token.encode("utf-8", "surrogateescape"))


def start_order(job: Job, task: Task, settings: ControlSettings) -> StartOrder:
    """Return the order for one process of a job."""
    return StartOrder(
        task_id=task.id,
        node_id=task.node_id,
        slots=task.slots,
        argv=(job.spec.script, *job.spec.args),
        env=_environment(job, task, settings),
        cwd=str(settings.folders(job.id).code),
        log_dir=str(settings.folders(job.id).log(task.id, task.node_id)),
        python=job.spec.python,
    )


def _environment(job: Job, task: Task, settings: ControlSettings) -> dict[str, str]:
    folders = settings.folders(job.id)
    env = {
        **job.spec.env,
        "PLIANT_URL": settings.url,
        "PLIANT_TASK_TOKEN": job_token(settings.secret, job.id),
        "PLIANT_TASK_ID": task.id,
        "PLIANT_JOB_ID": job.id,
        "PLIANT_VIRTUAL_WORKERS": str(job.spec.virtual_workers),
        "PLIANT_MAX_TASKS": str(job.spec.max_tasks),
        "PLIANT_CHECKPOINT_FREQ": str(job.spec.checkpoint_freq),
        "RESULT_DIR": str(folders.result),
        "LOG_DIR": str(folders.log(task.id, task.node_id)),
        "SAVED_MODEL_DIR": str(folders.model),
        "JOB_STATE_DIR": str(folders.state),
        "TRAINING_ID": job.id,
        "DLI_EXECID": job.id,
        "DLI_WORK_DIR": str(folders.code),
        "FABRIC_BACKEND": "pytorch",
        "DLI_IS_ELASTIC": "true",
        "TASK_JOB_ID": job.id,
    }
    if job.spec.audit:
        env["PLIANT_AUDIT"] = "1"
    if job.spec.data_dir is not None:
        env["DATA_DIR"] = job.spec.data_dir
    if settings.compat is not None:
        theirs = job.spec.env.get("PYTHONPATH")
        env["FABRIC_HOME"] = str(settings.compat)
        env["PYTHONPATH"] = f"{settings.compat}:{theirs}" if theirs else str(settings.compat)
    return env
