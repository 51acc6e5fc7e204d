"""Finds what IBM's names stand for, as the caller sees it: an exec with its job, an application, an executor."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pliant.core.access import Principal
from pliant.core.errors import NotFound
from pliant.core.job import Job, Task
from pliant.core.job_filter import JobFilter
from pliant.core.lifecycle import JobState
from pliant.core.registry import iterate_nouns
from pliant.ibm.rest.translate.execution import Execution
from pliant.ibm.rest.translate.ids import is_executor, is_named, job_of_application, job_of_exec, number_of
from pliant.server.context import Context
from pliant.server.visibility import require_owner

T = TypeVar("T")

PAGE = 500


def read_pages(page: Callable[[str, int], tuple[Sequence[T], str | None]]) -> Iterator[T]:
    """Yield all that a list holds; `page` returns what comes after a name, so much at most, and the last name."""
    after: str | None = ""
    while after is not None:
        found, after = page(after, PAGE)
        yield from found


@dataclass(frozen=True, slots=True)
class Exec:
    """An exec and its job."""

    execution: Execution
    job: Job


def find_exec(context: Context, caller: Principal, name: str) -> Exec:
    """Return an exec that the caller sees.

    Raises:
        NotFound: they see none of this id.
    """
    found = _find(context, caller, job_of_exec(name))
    if found is None:
        raise NotFound(f"there is no exec {name!r}; list the execs to see which there are")
    return found


def find_own_exec(context: Context, caller: Principal, name: str) -> Exec:
    """Return an exec that the caller may change.

    Raises:
        NotFound: they see none of this id.
        Forbidden: it is only shared with them.
    """
    found = find_exec(context, caller, name)
    require_owner(found.job, caller)
    return found


def list_execs(context: Context, caller: Principal) -> list[Exec]:
    """Return all execs that the caller sees, newest first."""
    visible = context.sharing.visible_jobs(caller)
    owned = iterate_nouns(context.registry, Execution, owner=visible.owner if visible else None)
    found = {kept.noun.name: kept.noun for kept in owned}
    for job_id in visible.shared if visible else ():
        kept = context.registry.get(Execution, job_id)
        if kept is not None:
            found[job_id] = kept.noun
    queries = context.control.queries
    newest_first = sorted(found, key=number_of, reverse=True)
    return [Exec(found[name], queries.job(name)) for name in newest_first if queries.sees(name, visible)]


def _find(context: Context, caller: Principal, job_id: str) -> Exec | None:
    kept = context.registry.get(Execution, job_id)
    if kept is None:
        return None
    try:
        return Exec(kept.noun, context.control.queries.require_visible(job_id, context.sharing.visible_jobs(caller)))
    except NotFound:
        return None


def find_application(context: Context, caller: Principal, name: str) -> Job:
    """Return the job whose application, driver or exec has this name, if the caller sees it.

    Raises:
        NotFound: they see none of this name.
    """
    job_id = job_of_application(name)
    try:
        job = context.control.queries.require_visible(job_id, context.sharing.visible_jobs(caller))
    except NotFound:
        job = None
    if job is None or not is_named(job, name):
        raise NotFound(f"there is no application {name!r}; list the applications to see which there are")
    return job


def list_jobs(context: Context, caller: Principal, states: tuple[JobState, ...] = ()) -> Iterator[Job]:
    """Yield all jobs that the caller sees, newest first: every one is an application, whatever way it came in."""
    visible, before = context.sharing.visible_jobs(caller), None
    while True:
        page = context.control.queries.page(JobFilter(states=states), before, PAGE, visible)
        yield from page.jobs
        if page.next is None:
            return
        before = page.next


def find_executor(tasks: tuple[Task, ...], name: str) -> Task:
    """Return the task that is an executor.

    Raises:
        NotFound: none is.
    """
    for task in tasks:
        if is_executor(task, name):
            return task
    raise NotFound(f"the application has no executor {name!r}; its description lists them")
