"""Finds what IBM's names stand for, for who asks: an exec with its job, an application, one of its executors."""

from collections.abc import Iterator
from dataclasses import dataclass

from pliant.core.access import Principal
from pliant.core.errors import NotFound
from pliant.core.job import Job, Task
from pliant.core.lifecycle import JobState
from pliant.ibm.rest.translate.execution import Execution, executions
from pliant.ibm.rest.translate.ids import is_executor, is_named, job_of_application, job_of_exec, number_of
from pliant.server.context import Context
from pliant.server.visibility import require_owner

PAGE = 500


@dataclass(frozen=True, slots=True)
class Seen:
    """An exec and its job."""

    execution: Execution
    job: Job


def exec_of(context: Context, caller: Principal, name: str) -> Seen:
    """Return an exec that the caller sees.

    Raises:
        NotFound: there is none of this id, for them.
    """
    found = _seen(context, caller, job_of_exec(name))
    if found is None:
        raise NotFound(f"there is no exec {name!r}; list the execs to see which there are")
    return found


def own_exec_of(context: Context, caller: Principal, name: str) -> Seen:
    """Return an exec that the caller may change.

    Raises:
        NotFound: there is none of this id, for them.
        Forbidden: it is only shared with them.
    """
    seen = exec_of(context, caller, name)
    require_owner(seen.job, caller)
    return seen


def execs_of(context: Context, caller: Principal) -> list[Seen]:
    """Return all execs that the caller sees, newest first."""
    sight = context.sharing.sight(caller)
    found = {execution.name: execution for execution in executions(context.registry, sight.owner if sight else None)}
    for job_id in sight.shared if sight else ():
        kept = context.registry.get(Execution, job_id)
        if kept is not None:
            found[job_id] = kept.noun
    queries = context.control.queries
    newest_first = sorted(found, key=number_of, reverse=True)
    return [Seen(found[name], queries.job(name)) for name in newest_first if queries.sees(name, sight)]


def _seen(context: Context, caller: Principal, job_id: str) -> Seen | None:
    kept = context.registry.get(Execution, job_id)
    if kept is None:
        return None
    try:
        return Seen(kept.noun, context.control.queries.seen(job_id, context.sharing.sight(caller)))
    except NotFound:
        return None


def application_of(context: Context, caller: Principal, name: str) -> Job:
    """Return the job whose application, driver or exec has this name, if the caller sees it.

    Raises:
        NotFound: there is none, for them.
    """
    try:
        job = context.control.queries.seen(job_of_application(name), context.sharing.sight(caller))
    except NotFound:
        job = None
    if job is None or not is_named(job, name):
        raise NotFound(f"there is no application {name!r}; list the applications to see which there are")
    return job


def jobs_of(context: Context, caller: Principal, states: tuple[JobState, ...] = ()) -> Iterator[Job]:
    """Yield all jobs that the caller sees, newest first: every one is an application, whatever way it came in."""
    sight, before = context.sharing.sight(caller), None
    while True:
        page = context.control.queries.page(states, before, PAGE, sight)
        yield from page.jobs
        if page.next is None:
            return
        before = page.next


def executor_of(tasks: tuple[Task, ...], name: str) -> Task:
    """Return the task that is an executor.

    Raises:
        NotFound: none is.
    """
    for task in tasks:
        if is_executor(task, name):
            return task
    raise NotFound(f"the application has no executor {name!r}; its description lists them")
