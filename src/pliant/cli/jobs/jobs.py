"""Commands about jobs that exist: `ps`, `show`, `set`, `stop`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from pliant.api.job_views import JobDetail, JobPage
from pliant.api.jobs import JobPatch
from pliant.cli import formatting
from pliant.cli.completion import complete
from pliant.cli.jobs.arrays import how_it_is, names_of, show_array, wait_for_array
from pliant.cli.jobs.plan import advice, parts_of
from pliant.cli.jobs.preview import DryRunOption, show_preview
from pliant.cli.options import (
    AfterAnyOption,
    AfterOption,
    JobArgument,
    JobOrArrayArgument,
    JsonOption,
    OwnerFilter,
    QueueFilter,
    StateFilter,
    TagFilter,
    TagOption,
    UntagOption,
    given_tags,
    leave_out_none,
)
from pliant.cli.problems import validate
from pliant.cli.screen import (
    TableColumn,
    print_json,
    print_outcome,
    say,
    say_notes,
    show,
    show_facts,
    show_list,
    state_text,
    table,
)
from pliant.cli.session import all_jobs, is_array, job_id_of, open_client
from pliant.cli.wait import wait_for_end
from pliant.core.array import words_of
from pliant.core.errors import InvalidInput
from pliant.core.job import Generation, Job, JobSpec, NodeId, Task
from pliant.core.job_params import ParamValue
from pliant.core.lifecycle import JobState
from pliant.core.plan import NodeView
from pliant.core.slot import WHOLE_SLOT
from pliant.core.space import text_of_value
from pliant.core.tag import words_of_tags

_JOB_COLUMNS = (
    TableColumn(title="JOB"),
    TableColumn(title="NAME", cut=True),
    TableColumn(title="STATE"),
    TableColumn(title="SLOTS", right=True),
    TableColumn(title="TASKS", right=True, optional=True),
    TableColumn(title="PRIO", right=True),
    TableColumn(title="QUEUE", optional=True),
    TableColumn(title="EPOCH", right=True),
    TableColumn(title="DONE", right=True, optional=True),
    TableColumn(title="LOSS", right=True),
    TableColumn(title="LEFT", right=True),
)
_NUM_GENERATIONS = 10


def ps(  # noqa: PLR0913 (one parameter per option)
    context: typer.Context,
    show_all: Annotated[bool, typer.Option("--all", "-a", help="Ended jobs too.")] = False,
    state: StateFilter = None,
    owner: OwnerFilter = None,
    queue: QueueFilter = None,
    tag: TagFilter = None,
    array: Annotated[
        str | None,
        typer.Option(
            metavar="ARRAY",
            help="Only jobs of this array (array-1).",
            autocompletion=complete("array"),
            show_default=False,
        ),
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only trials of this search, or of several.",
            autocompletion=complete("search"),
            show_default=False,
        ),
    ] = None,
    no_trials: Annotated[bool, typer.Option("--no-trials", help="No trials of searches.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List jobs that wait or run, newest first.

    TASKS is the minimum and maximum. LEFT is the time left; for an ended job how long it took.
    Options narrow the list together. With --state, jobs that ended are among them if their state is.

    \b
    pliant ps --state running,waiting --queue gpus
    pliant ps --all --owner ann --tag baseline --tag lr=0.1,lr=0.01
    pliant ps --no-trials
    """
    if search and no_trials:
        message = f"--search asks for trials of {', '.join(search)}; leave one or the other out"
        raise InvalidInput.at("--no-trials", message)
    asked = {"owners": owner or (), "queues": queue or (), "tags": tag or ()}
    with open_client(context) as client:
        members = None if array is None else {job.id for job in client.arrays.get(array).jobs}
        searches = None if no_trials else search or ()
        found = all_jobs(client, ended=show_all, searches=searches, states=state or (), **asked)
    jobs = tuple(job for job in found if members is None or job.id in members)
    nothing = "No job waits or runs; `pliant ps --all` lists those that ended."
    is_narrowed = any(asked.values()) or search or no_trials
    if state or (show_all and is_narrowed):
        nothing = "There is no such job."
    elif is_narrowed:
        nothing = "No such job waits or runs; with --all those that ended are listed, too."
    elif show_all:
        nothing = "There are no jobs yet; `pliant submit train.py` submits one."
    more = [(column, cell) for column, cell, is_shown in _MORE_COLUMNS if any(map(is_shown, jobs))]
    rows = ([*_job_row(job), *(cell(job) for _, cell in more)] for job in jobs)
    columns = (*_JOB_COLUMNS, *(column for column, _ in more))
    show_list(JobPage(jobs=jobs, next=None, total=len(jobs)), columns, rows, as_json=as_json, nothing=nothing)


def _tags_of(job: Job) -> str:
    return words_of_tags(job.tags) or formatting.NOTHING


def _array_of(job: Job) -> str:
    return formatting.NOTHING if job.spec.array is None else job.spec.array.id


_MORE_COLUMNS: Final[Sequence[tuple[TableColumn, Callable[[Job], str], Callable[[Job], object]]]] = (
    (TableColumn(title="ARRAY"), _array_of, lambda job: job.spec.array),
    (TableColumn(title="TAGS", cut=True, optional=True), _tags_of, lambda job: job.tags),
)
"""Columns that are there if a job has something to say in them."""


def show_job(context: typer.Context, job: JobOrArrayArgument, as_json: JsonOption = False) -> None:
    """Show a job, its tasks and how it grew and shrank.

    Of an array, its jobs side by side with their values.
    """
    with open_client(context) as client:
        if is_array(job):
            show_array(client.arrays.get(job), as_json=as_json)
            return
        detail = client.job(job_id_of(client, job))
        nodes = {} if as_json else {node.id: node for node in client.cluster().nodes}
    if as_json:
        print_json(detail)
        return
    show_facts([*_facts(detail.job, detail.remark), *_isolation_of(detail, nodes)])
    if detail.tasks:
        say("\nTasks" if detail.job.spec.endpoint is None else "\nKernels", style="bold")
        show(_task_table(detail))
    if detail.generations:
        older = len(detail.generations) - _NUM_GENERATIONS
        say("\nGenerations" + (f" (the newest {_NUM_GENERATIONS}, {older} older)" if older > 0 else ""), style="bold")
        show(_generation_table(detail.generations[-_NUM_GENERATIONS:]))


def _isolation_of(detail: JobDetail, nodes: Mapping[NodeId, NodeView]) -> Iterator[tuple[str, str]]:
    """Yield what keeps the tasks apart from others where they run, and what does not."""
    for node_id in dict.fromkeys(task.node_id for task in detail.tasks if task.node_id in nodes):
        node = nodes[node_id]
        lacks = f"missing: {'; '.join(node.missing_walls)}" if node.missing_walls else ""
        yield "isolation", "; ".join(filter(None, (*node.walls, lacks)))


def set_job(  # noqa: PLR0913 (one parameter per option)
    context: typer.Context,
    job: JobArgument,
    priority: Annotated[
        int | None, typer.Option(metavar="N", help="1 to 10000; twice the priority gets twice the slots.")
    ] = None,
    max_tasks: Annotated[int | None, typer.Option("--max", metavar="N", help="Grow up to this many tasks.")] = None,
    min_tasks: Annotated[
        int | None, typer.Option("--min", metavar="N", help="Pause rather than run with fewer.")
    ] = None,
    queue: Annotated[
        str | None, typer.Option(metavar="NAME", help="Move it to this queue.", autocompletion=complete("queue"))
    ] = None,
    tags: TagOption = None,
    untag: UntagOption = None,
    after: AfterOption = None,
    after_any: AfterAnyOption = None,
    no_after: Annotated[bool, typer.Option("--no-after", help="Let it wait for no other job.")] = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Change priority, minimum, maximum, queue or tags of a job.

    It may wait or run; the scheduler decides anew at once. What it waits for can
    be changed until it starts, its tags also when it has ended.

    \b
    pliant set digits --priority 10000 --dry-run
    pliant set digits --priority 10000
    pliant set 7 --tag best --tag accuracy=0.97 --untag candidate
    pliant set 3 --min 2 --max 4
    pliant set 9 --no-after
    """
    given = {"priority": priority, "max_tasks": max_tasks, "min_tasks": min_tasks, "queue": queue}
    waits = _awaited(after, after_any, nothing=no_after)
    tagged = {"tags": _tag_changes(tags or (), untag or ())} if tags or untag else {}
    patch = validate(JobPatch, leave_out_none(given) | tagged | dict.fromkeys(waits, ()))
    with open_client(context) as client:
        patch = patch.model_copy(update=names_of(client, waits))
        if dry_run:
            show_preview(client.previews.change(job_id_of(client, job), patch), as_json=as_json)
            return
        changed = client.change(job_id_of(client, job), patch)
    moved = "" if queue is None else f", queue {changed.queue}"
    moved += f", {changed.why}" if waits and changed.why else ""
    moved += f", tags {words_of_tags(changed.tags) or formatting.NOTHING}" if tagged else ""
    said = f"{changed.id} ({changed.spec.name}): priority {changed.priority}, {formatting.num_tasks(changed)}{moved}"
    print_outcome(changed, said, as_json=as_json)
    say_notes(changed.notes)


def _tag_changes(tags: Sequence[str], untag: Sequence[str]) -> dict[str, str | None]:
    """Return which tags a job is given, and which are taken away: these are None.

    Raises:
        InvalidInput: a tag is given and taken away.
    """
    given = given_tags(tags)
    if both := [name for name in untag if name in given]:
        raise InvalidInput.at("--untag", f"--tag gives it {both[0]!r}; leave one or the other out")
    return {**given, **dict.fromkeys(untag)}


def _awaited(
    after: Sequence[str] | None, after_any: Sequence[str] | None, *, nothing: bool
) -> dict[str, Sequence[str]]:
    """Return what a job is to wait for, by the names of the fields that change.

    Raises:
        InvalidInput: something and nothing at once.
    """
    if nothing and (after or after_any):
        raise InvalidInput.at("--no-after", "--after and --after-any say what it waits for; leave one or the other out")
    given = {"after": [] if nothing else after, "after_any": [] if nothing else after_any}
    return {name: names for name, names in given.items() if names is not None}


def stop(
    context: typer.Context,
    job: JobOrArrayArgument,
    now: Annotated[bool, typer.Option("--now", help="At once; what it has not saved is lost.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the job has ended.")] = False,
    as_json: JsonOption = False,
) -> None:
    """End a job at its next step boundary, with its state saved.

    One that does not come to a boundary is ended after a minute. Of an array all
    jobs are ended.
    """
    with open_client(context) as client:
        if is_array(job):
            array = client.arrays.stop(job, now=now)
            if wait:
                array = wait_for_array(client, array.id)
            print_outcome(array, f"{array.id} ({array.name}): {how_it_is(array)}", as_json=as_json)
            return
        stopped = client.stop(job_id_of(client, job), now=now)
        if wait:
            stopped = wait_for_end(client, stopped.id)
    print_outcome(stopped, f"{stopped.id} ({stopped.spec.name}) is {stopped.state.value}", as_json=as_json)


def _job_row(job: Job) -> list[str | Text]:
    return [
        job.id,
        job.spec.name,
        state_text(job.state),
        str(job.num_slots),
        formatting.bounds(job),
        str(job.priority),
        job.queue,
        formatting.epochs(job.progress),
        formatting.percent(job.progress),
        formatting.loss(job.progress),
        formatting.time_left(job, formatting.short_duration),
    ]


def _facts(job: Job, remark: str = "") -> Iterator[tuple[str, str | Text]]:
    spec = job.spec
    yield "job", f"{job.id} ({spec.name})"
    yield "state", state_text(job.state)
    if job.reason:
        yield "reason", Text(job.reason, style="red" if job.state is JobState.FAILED else "")
    if job.why and not job.ended:
        yield "why", job.why
    if remark:
        yield "now", remark
    if job.rerun_of is not None:
        yield "runs again", job.rerun_of
    yield from _relations_of(spec)
    yield "slots", f"{job.num_slots} now; {_num_tasks(job)} of {_slots_of_each(spec)}"
    yield "priority", str(job.priority)
    yield "queue", job.queue
    yield from _labels_of(job)
    if spec.environment is not None:
        yield "environment", spec.environment
    yield _of_kind(job)
    yield from _results_of(job)
    yield "submitted", f"{formatting.date_time(job.submitted_at)} by {job.owner}"
    if job.started_at is not None:
        yield "started", formatting.date_time(job.started_at)
    if job.ended_at is not None:
        took = "" if job.started_at is None else f" after {formatting.duration(job.ended_at - job.started_at)}"
        yield "ended", f"{formatting.date_time(job.ended_at)}{took}"
    if spec.time_limit_s is not None:
        yield "time limit", f"{formatting.duration(spec.time_limit_s)} on slots"
    yield from _progress_of(job)


def _of_kind(job: Job) -> tuple[str, str]:
    """Return what only jobs of its kind have."""
    spec = job.spec
    if spec.endpoint is not None:
        return "endpoint", f"{spec.endpoint.name}, version {spec.endpoint.version}"
    if spec.fixed:
        return "restarts", f"{job.num_restarts} of {spec.max_restarts}"
    return "virtual workers", "; ".join(filter(None, (parts_of(job), _shares(job), advice(job))))


def _shares(job: Job) -> str:
    """Return how many virtual workers each task has, if that is not even; the leader's first."""
    shares = () if job.progress is None or job.num_slots == 0 else job.progress.shares
    return f"by speed {', '.join(map(str, shares))}" if shares else ""


def _slots_of_each(spec: JobSpec) -> str:
    if spec.slot_share < WHOLE_SLOT:
        return f"{spec.slot_share / WHOLE_SLOT:g} of a slot"
    return formatting.count_of(spec.slots_per_task, "slot")


def _num_tasks(job: Job) -> str:
    """Return how many processes it may have; an endpoint's may be changed while it serves, which its job knows not."""
    return formatting.num_tasks(job) if job.spec.endpoint is None else "as many kernels as the load needs,"


def _labels_of(job: Job) -> Iterator[tuple[str, str]]:
    """Yield by what people tell a job from others: tags, script and hyperparameters."""
    if job.tags:
        yield "tags", words_of_tags(job.tags)
    yield "script", " ".join((job.spec.script, *job.spec.args))
    if job.params:
        yield "params", ", ".join(f"{name} {_param(value)}" for name, value in job.params.items())


def _param(value: ParamValue) -> str:
    return formatting.NOTHING if value is None else str(value)


def _relations_of(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield what a job was submitted to run after, and which job of its array, or trial of its search, it is."""
    order = [f"{', '.join(spec.after)} completed"] * bool(spec.after)
    order += [f"{', '.join(spec.after_any)} ended"] * bool(spec.after_any)
    if order:
        yield "after", "; ".join(order)
    if spec.array is not None:
        yield "array", f"{spec.array.id}, number {spec.array.index} of 0 to {spec.array.num_jobs - 1}"
        yield "values", words_of(spec.array.values)
    if spec.trial is not None:
        yield "trial", f"{spec.trial.search}, number {spec.trial.number}"
        yield "values", words_of({name: text_of_value(value) for name, value in spec.trial.values.items()})


def _results_of(job: Job) -> Iterator[tuple[str, str]]:
    """Yield what the results start from and what they are worth."""
    if job.spec.weights is not None:
        yield "weights", job.spec.weights
    if job.spec.resume_from is not None:
        yield "resumes from", job.spec.resume_from
    if job.claim is not None:
        yield "results", formatting.claim(job)
        yield "computed with", job.fingerprint
    if job.digest:
        yield "digest", job.digest


def _progress_of(job: Job) -> Iterator[tuple[str, str]]:
    progress = job.progress
    if progress is None:
        return
    yield (
        "progress",
        f"{formatting.percent(progress)}: epoch {formatting.epochs(progress)}, "
        f"step {progress.step}/{progress.num_steps}",
    )
    yield "samples", f"{progress.samples}, {formatting.number(progress.samples_per_s)} per second"
    if progress.loss is not None:
        yield "loss", formatting.number(progress.loss)
    for name, value in sorted(progress.metrics.items()):
        if name != "loss":
            yield name, formatting.number(value)
    if job.num_redone_steps:
        yield "redone", f"{formatting.count_of(job.num_redone_steps, 'step')} after losses"
    if not job.ended and formatting.time_left(job) != formatting.NOTHING:
        yield "left", formatting.time_left(job)


def _task_table(detail: JobDetail) -> Table:
    columns = (
        TableColumn(title="TASK"),
        TableColumn(title="STATE"),
        TableColumn(title="NODE", cut=True),
        TableColumn(title="SLOTS"),
        TableColumn(title="PID", right=True),
        TableColumn(title="STARTED"),
        TableColumn(title="EXIT", right=True),
        TableColumn(title="REASON", wrap=True),
    )
    serves = detail.job.spec.endpoint is not None
    return table(columns, (_task_row(task, serves=serves) for task in detail.tasks))


def _task_row(task: Task, *, serves: bool) -> list[str | Text]:
    return [
        task.id,
        state_text(task.state, serves=serves),
        task.node_id,
        ",".join(map(str, task.slots)),
        formatting.NOTHING if task.pid is None else str(task.pid),
        formatting.clock_time(task.started_at),
        formatting.NOTHING if task.exit_code is None else str(task.exit_code),
        task.reason,
    ]


def _generation_table(generations: Sequence[Generation]) -> Table:
    columns = (
        TableColumn(title="NO", right=True),
        TableColumn(title="STATE"),
        TableColumn(title="SIZE", right=True),
        TableColumn(title="STEP", right=True),
        TableColumn(title="PAUSE", right=True),
        TableColumn(title="REDONE", right=True),
        TableColumn(title="CAUSE", wrap=True),
    )
    return table(columns, (_generation_row(generation) for generation in generations))


def _generation_row(generation: Generation) -> list[str]:
    return [
        str(generation.number),
        generation.state.value,
        str(len(generation.members)),
        formatting.NOTHING if generation.step is None else str(generation.step),
        formatting.NOTHING if generation.pause_s is None else formatting.milliseconds(generation.pause_s),
        str(generation.redone_steps),
        generation.cause,
    ]
