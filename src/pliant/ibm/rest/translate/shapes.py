"""IBM's descriptions of execs and applications, field by field. Pure.

Times of execs are texts in UTC; those of applications milliseconds since the epoch; those of the engine seconds. What
is not measured (memory, processors, how busy a GPU is) is null.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pliant.api.job_views import JobDetail
from pliant.control.kinds import KINDS
from pliant.control.kinds.elastic.kind import Elastic
from pliant.core.job import Job, Task
from pliant.ibm.rest.logs import leaders
from pliant.ibm.rest.translate.execution import Execution
from pliant.ibm.rest.translate.ids import app_id, driver_id, exec_id, executor_id, executor_number
from pliant.ibm.rest.translate.states import executor_state, state_of
from pliant.ibm.rest.wording import reword

ROOT: Final = "pliant"
"""Of the tree of consumers; the queues are below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What a description says of the server."""

    url: str
    code: str
    """The folder that a job's code lies in."""


def consumer_of(job: Job) -> str:
    """Return the consumer that a job's queue is."""
    return f"/{ROOT}/{job.queue}"


def notes_text(notes: Sequence[str]) -> str:
    """Return what had no effect as one text, a note a line: notebooks make tables of records that hold no lists."""
    return reword("\n".join(notes))


def exec_json(execution: Execution, job: Job, server: ServerInfo) -> dict[str, Any]:
    """Return the description of an exec, for clients of both generations."""
    created = datetime.fromtimestamp(job.submitted_at, UTC)
    return {
        "id": exec_id(job.id),
        "execId": exec_id(job.id),
        "args": execution.args,
        "submissionId": driver_id(job),
        "appId": app_id(job),
        "appName": execution.app_name,
        "creator": job.owner,
        "userName": job.owner,
        "executionUserName": job.owner,
        "modelFileOwnerName": job.owner,
        "state": state_of(job),
        "stateReason": _reason(job),
        "schedulerUrl": server.url,
        "masterURL": server.url,
        "workDir": server.code,
        "createTime": f"{created:%Y-%m-%dT%H:%M:%SZ}",
        "elastic": _is_elastic(job),
        "nameSpace": ROOT,
        "numWorker": execution.num_workers,
        "framework": execution.framework,
        "sigId": job.queue,
        "sigName": job.queue,
        "notes": notes_text(execution.notes),
    }


def application_json(detail: JobDetail, now: float, server: ServerInfo) -> dict[str, Any]:
    """Return the description of an application: the fields of the first generation, and the tasks as the second has."""
    job = detail.job
    led = leaders(detail)
    running = [task for task in detail.tasks if not task.ended]
    return {
        "sparkinstancegroupid": job.queue,
        "sigName": job.queue,
        "applicationid": app_id(job),
        "id": app_id(job),
        "applicationname": job.spec.name,
        "name": job.spec.name,
        "type": _type(job),
        "state": state_of(job),
        "driver": _driver(job, led),
        "executors": [_executor(task) for task in detail.tasks],
        "task0": _driver(job, led) if led else None,
        "task12n": [_executor(task) for task in detail.tasks],
        "slots": job.num_slots,
        "gpuslots": job.num_slots,
        "demandslots": 0 if job.ended else max(0, job.spec.num_slots_for(job.max_tasks) - job.num_slots),
        "hosts": len({task.node_id for task in running}),
        "coresused": None,
        "memused": None,
        "gpumemused": {"total": None},
        "gpudevutil": {"total": None},
        "username": job.owner,
        "driverexecutionuser": job.owner,
        "executorexecutionuser": job.owner,
        "timestamp": _ms(now),
        "submittedtime": _ms(job.submitted_at),
        "endtime": _ms(job.ended_at),
        "apprunduration": _minutes(job, now),
        "masterURL": server.url,
        "priority": job.priority,
        "dltype": _type(job),
    }


def _driver(job: Job, led: Sequence[Task]) -> dict[str, Any]:
    newest = led[-1] if led else None
    return {
        "id": driver_id(job),
        "state": state_of(job),
        "host": newest.node_id if newest else None,
        "timestamp": _ms(newest.started_at if newest else None),
    }


def _executor(task: Task) -> dict[str, Any]:
    return {
        "id": executor_id(task),
        "number": executor_number(task),
        "state": executor_state(task),
        "host": task.node_id,
        "gpuslots": len(task.slots),
        "timestamp": _ms(task.started_at),
        "endtime": _ms(task.ended_at),
        "exitcode": task.exit_code,
    }


def engine_json(detail: JobDetail) -> dict[str, Any]:
    """Return the record of an application as the second generation's scheduler gives it."""
    job = detail.job
    running = [task for task in detail.tasks if not task.ended]
    return {
        "id": app_id(job),
        "consumer": consumer_of(job),
        "submit_user": job.owner,
        "tag": f"{consumer_of(job)}/{job.owner}",
        "name": job.spec.name,
        "priority": job.priority,
        "type": _type(job),
        "state": state_of(job),
        "task12n_resreq": f"ngpus={job.spec.slots_per_task}",
        "task12n_num": job.max_tasks,
        "task12n": [{"id": executor_id(task), "state": executor_state(task)} for task in detail.tasks],
        "used_gpu": job.num_slots,
        "used_mem": None,
        "used_cpu": None,
        "submit_time": int(job.submitted_at),
        "start_time": None if job.started_at is None else int(job.started_at),
        "end_time": None if job.ended_at is None else int(job.ended_at),
        "kernels": [{"id": executor_id(task), "ip": task.node_id} for task in running],
        "is_packing": False,
        "pack_id": "",
        "reason": _reason(job),
    }


def _reason(job: Job) -> str:
    return reword(job.reason or job.why)


def _type(job: Job) -> str:
    return "ELASTIC" if _is_elastic(job) else "PARALLEL"


def _is_elastic(job: Job) -> bool:
    return KINDS.of(job).name == Elastic.name


def _minutes(job: Job, now: float) -> float:
    if job.started_at is None:
        return 0.0
    return round(((job.ended_at if job.ended_at is not None else now) - job.started_at) / 60, 3)


def _ms(at: float | None) -> int | None:
    return None if at is None else round(at * 1000)
