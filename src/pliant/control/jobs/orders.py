"""How a task is started: its token, and the order for its process. What only its kind needs comes with `TaskStart`."""

import hashlib
import hmac
import os
from dataclasses import replace
from pathlib import Path

from pliant.control.jobs.kind import TaskStart
from pliant.control.jobs.live import job_of
from pliant.control.settings import ControlSettings
from pliant.core.job import Job, JobId, Task
from pliant.core.ports import RunAs, StartOrder
from pliant.core.task_environment import TaskData, TaskEnvironment, TaskFolders


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
        env={**_environment(job, task, settings, start), **start.env},
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


def _environment(job: Job, task: Task, settings: ControlSettings, start: TaskStart) -> dict[str, str]:
    """Return the variables of a task of any kind: the person's own, and before them what Pliant tells it."""
    folders, ibm, parts = settings.folders(job.id), settings.ibm_modules, job.spec.data_parts
    ours = TaskEnvironment(
        task_id=task.id,
        job_id=job.id,
        weights=job.spec.weights,
        is_elastic="true" if start.is_elastic else "false",
        ibm_modules=None if ibm is None else str(ibm),
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
    )
    theirs = job.spec.env.get("PYTHONPATH")
    path = {} if ibm is None else {"PYTHONPATH": f"{ibm}:{theirs}" if theirs else str(ibm)}
    return {**job.spec.env, **ours.to_env(), **path}
