"""How a task is started: its token, and the order for its process. What only its kind needs comes with `TaskStart`."""

import hashlib
import hmac
import os
from collections.abc import Callable
from dataclasses import replace

from pliant.api.jobs import without_secrets
from pliant.control.jobs.kind import TaskStart
from pliant.control.jobs.live import LiveJob
from pliant.control.settings import ControlSettings, JobFolders, log_name
from pliant.core.array import variable_of
from pliant.core.confinement import Confinement, RunAs
from pliant.core.job import Job, JobId, Task, TaskId
from pliant.core.plan import Placement
from pliant.core.ports import StartOrder
from pliant.core.tag import write_tags
from pliant.core.task_environment import TaskArray, TaskData, TaskEnvironment, TaskFolders, TaskTrial
from pliant.core.tunnel import SidecarSettings
from pliant.isolation.interpreter import reads_of_interpreter


def job_token(secret: bytes, job_id: JobId) -> str:
    """Return the token that opens the control link to the tasks of one job."""
    return hmac.new(secret, job_id.encode(), hashlib.sha256).hexdigest()


def order_form(
    job: Job, settings: ControlSettings, *, python: str | None = None, user: RunAs | None = None
) -> Callable[[Task, TaskStart], StartOrder]:
    """Return what makes the order for each process of a job; what is the same for all of them is worked out once.

    Args:
        python: the interpreter of the job's environment; None: it has none.
        user: of the operating system; None: the server's own.
    """
    folders = settings.folders(job.id)
    python = python or job.spec.python
    argv = (job.spec.script, *job.spec.args)
    cwd, logs = str(folders.code), str(folders.logs)
    result, model, checkpoints = str(folders.result), str(folders.weights), str(folders.checkpoints)
    confinement = _confinement(job, folders, settings, python, user)
    environment = _environment_of(job, settings)

    def order(task: Task, start: TaskStart) -> StartOrder:
        log_dir = f"{logs}/{log_name(task.id, task.node_id)}"
        return StartOrder(
            task_id=task.id,
            node_id=task.node_id,
            slots=task.slots,
            argv=argv,
            env={**environment(task, start, log_dir), **start.env},
            cwd=cwd,
            log_dir=log_dir,
            result_dir=result,
            model=model,
            python=python,
            memory_bytes=job.spec.memory_bytes,
            slot_share=job.spec.slot_share,
            sees=start.sees,
            confinement=confinement,
            later=(checkpoints,) if start.is_elastic else (),
        )

    return order


def start_order(
    job: Job,
    task: Task,
    settings: ControlSettings,
    start: TaskStart,
    *,
    python: str | None = None,
    user: RunAs | None = None,
) -> StartOrder:
    """Return the order for one process of a job; see `order_form`."""
    return order_form(job, settings, python=python, user=user)(task, start)


def sidecar_order(
    live: LiveJob,
    task: Task,
    settings: ControlSettings,
    sidecar: SidecarSettings,
    *,
    user: RunAs | None,
    with_secrets: bool,
) -> StartOrder:
    """Return the order for a program of ours beside a task of a job: the same user, walls, folder and variables.

    Not among them are those by which a process is known for the task, or finds the others: a script that somebody
    starts there is not taken for the task, and runs alone.

    Args:
        with_secrets: it gets the job's variables as they are; else those that are called like secrets say nothing.
    """
    job = live.job if with_secrets else without_secrets(live.job)
    start = TaskStart(placement=Placement(node_id=task.node_id, slots=task.slots), is_elastic=not job.spec.fixed)
    order = start_order(job, task, settings, start, python=live.python, user=user)
    return replace(
        order,
        task_id=sidecar_id(task.id, sidecar.tunnel_id),
        argv=(),
        env={**order.env, **sidecar.to_env()},
        log_dir="",
        result_dir=None,
        model=None,
    )


def sidecar_id(task_id: TaskId, tunnel_id: str) -> TaskId:
    """Return what a sidecar is called among the processes of its node."""
    return TaskId(f"{task_id}-{tunnel_id}")


def _confinement(
    job: Job, folders: JobFolders, settings: ControlSettings, python: str | None, user: RunAs | None
) -> Confinement:
    """Return what a process of a job may reach."""
    spec = job.spec
    address = None if settings.server_file is None else str(settings.server_file.parent)
    certificate = settings.trust.certificate
    holds_home = spec.data_dir is not None and settings.home.is_relative_to(os.path.realpath(spec.data_dir))
    data = () if holds_home or spec.data_dir is None else (spec.data_dir,)
    ours = data if spec.dataset is not None else ()
    reads = (*reads_of_interpreter(python), *ours, address, certificate)
    named = (*(data if spec.dataset is None else ()), spec.weights, spec.resume_from)
    return Confinement(
        user=user,
        writes=tuple(map(str, (folders.code, folders.result, folders.state))),
        reads=tuple(dict.fromkeys(str(path) for path in reads if path is not None)),
        named=tuple(path for path in named if path is not None),
        hides=(str(settings.home),),
    )


def _environment_of(job: Job, settings: ControlSettings) -> Callable[[Task, TaskStart, str], dict[str, str]]:
    """Return what makes the variables of each task, whose logs lie in a folder of its own.

    They are the person's own, and before them what Pliant tells the task.
    """
    folders, ibm, parts = settings.folders(job.id), settings.ibm_modules, job.spec.data_parts
    array, trial = job.spec.array, job.spec.trial
    places = TaskFolders(
        code=str(folders.code), result=str(folders.result), model=str(folders.model), state=str(folders.state)
    )
    data = TaskData(
        folder=job.spec.data_dir,
        dataset=job.spec.dataset,
        train=parts.get("train"),
        validation=parts.get("validation"),
        test=parts.get("test"),
    )
    values = {} if array is None else {variable_of(name): value for name, value in array.values.items()}
    if trial is not None:
        values |= trial.variables()
    theirs = job.spec.env.get("PYTHONPATH")
    path = {} if ibm is None else {"PYTHONPATH": f"{ibm}:{theirs}" if theirs else str(ibm)}

    def environment(task: Task, start: TaskStart, log_dir: str) -> dict[str, str]:
        ours = TaskEnvironment(
            task_id=task.id,
            job_id=job.id,
            weights=job.spec.weights,
            is_elastic="true" if start.is_elastic else "false",
            tags=write_tags(job.tags),
            ibm_modules=None if ibm is None else str(ibm),
            folders=replace(places, log=log_dir),
            data=data,
            array=None if array is None else TaskArray(id=array.id, index=str(array.index)),
            trial=None if trial is None else TaskTrial(search=trial.search, number=trial.number),
        )
        pod = {} if job.spec.endpoint is None else {"MSD_POD_NAME": str(task.id)}
        return {**job.spec.env, **values, **pod, **ours.to_env(), **path}

    return environment
