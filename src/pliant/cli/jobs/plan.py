"""The command `plan`: how V virtual workers divide over the sizes that a job may have. Asks no server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pliant.cli import formatting
from pliant.cli.options import JsonOption
from pliant.cli.screen import TableColumn, print_json, say, show, table
from pliant.core.errors import InvalidInput, Problem
from pliant.core.job import MAX_VIRTUAL_WORKERS, Job
from pliant.core.virtual_workers import choose
from pliant.policy.elastic.virtual_workers import GOOD, WORTH, Advice, Division, advise, divide, worst

if TYPE_CHECKING:
    from rich.table import Table

_LARGE: Final = 64
"""Beyond this many sizes only those that divide badly are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What `plan` answers."""

    virtual_workers: int
    """V: as asked, or what a job has that asks for none; without a batch size the least that it can be then."""
    batch_size: int | None
    sizes: tuple[Division, ...]
    advised: Advice | None
    """A V that is faster with this batch size; None if there is none, or the batch size is not known."""


def plan(
    max_tasks: Annotated[
        int, typer.Option("--max", metavar="N", help="The job grows up to this many tasks.", show_default=False)
    ],
    min_tasks: Annotated[int, typer.Option("--min", metavar="N", help="It starts with this many.")] = 1,
    virtual_workers: Annotated[
        int | None,
        typer.Option(metavar="V", help="Parts of the global batch; default: as a job has.", show_default=False),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(metavar="B", help="Samples of the global batch, to count in.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell how virtual workers divide over tasks.

    A step takes as long as the task with most PARTS. EFFICIENCY is how much of
    all tasks' time is used. WIRE is what an exact sum sends, by what a stock
    all-reduce sends: more than 1.0x where ranges of parts are not whole nodes of
    the tree in which they are added (SUMS: partial sums of the busiest task).
    With a batch size it says how many virtual workers a job has that asks for no
    number, or whether another number than yours is faster: every part takes the
    time of some samples besides its own, so small parts are slow.

    \b
    pliant plan --max 8 --batch-size 256
    pliant plan --max 8 --virtual-workers 24 --batch-size 256
    """
    parts = _default(max_tasks, batch_size) if virtual_workers is None else virtual_workers
    _check(min_tasks, max_tasks, parts, batch_size)
    sizes = range(min_tasks, max_tasks + 1)
    planned = Planned(
        virtual_workers=parts,
        batch_size=batch_size,
        sizes=tuple(divide(parts, size, batch_size) for size in sizes),
        advised=None if batch_size is None else advise(parts, sizes, batch_size),
    )
    if as_json:
        print_json(planned)
        return
    show(_table(planned.sizes))
    say("")
    if virtual_workers is None:
        say(_chosen(parts, max_tasks, batch_size))
    say(_verdict(parts, sizes, batch_size))


def bad_division(virtual_workers: int, min_tasks: int, max_tasks: int) -> str | None:
    """Return what to say of a V that was asked for and divides badly over these sizes; None if it does not."""
    sizes = range(min_tasks, max_tasks + 1)
    if worst(virtual_workers, sizes)[0] >= GOOD:
        return None
    command = f"pliant plan --min {min_tasks} --max {max_tasks} --virtual-workers {virtual_workers} --batch-size B"
    return f"{_division(virtual_workers, sizes, None)}; `{command}` tells whether another number suits a batch of B"


def parts_of(job: Job) -> str:
    """Return how many parts the global batch of a job is cut into, as far as it is known, and who says so."""
    asked, progress = job.spec.virtual_workers, job.progress
    used = None if progress is None else progress.virtual_workers
    if used is None or used == asked:
        return "chosen when the script says its batch size" if asked is None else str(asked)
    if asked is not None:
        return f"{used} as its script has it ({asked} were asked for)"
    if job.claim == "fast":
        return "none in fast mode"
    batch_size = progress.batch_size if progress is not None else None
    if batch_size is None or used != choose(job.spec.max_tasks, batch_size):
        return f"{used} (the script's own number)"
    return f"{used} (chosen for {_batch(batch_size)} and --max {job.spec.max_tasks})"


def advice(job: Job) -> str | None:
    """Return which V is faster with the batches that a job was seen to have; None if there is none worth it."""
    spec, progress = job.spec, job.progress
    if spec.fixed or "fast" in (spec.mode, job.claim) or progress is None or not progress.step:
        return None
    parts = progress.virtual_workers or spec.virtual_workers
    batch_size = progress.batch_size or round(progress.samples / progress.step)
    sizes = range(job.min_tasks, job.max_tasks + 1)
    if parts is None or not max(sizes) <= min(parts, batch_size):
        return None
    better = advise(parts, sizes, batch_size)
    return None if better is None else _faster(better, batch_size)


def _default(max_tasks: int, batch_size: int | None) -> int:
    """Return V for a job that asks for none; without a batch size the least that it can be."""
    return max_tasks if batch_size is None else max(max_tasks, choose(max_tasks, batch_size))


def _chosen(parts: int, max_tasks: int, batch_size: int | None) -> str:
    if batch_size is None:
        return (
            f"Without --virtual-workers V depends on the batch size, which --batch-size says; shown is the least, "
            f"{_count(parts)}."
        )
    return f"Without --virtual-workers {_batch(batch_size)} and --max {max_tasks} make {_count(parts)}."


def _count(virtual_workers: int) -> str:
    return formatting.count_of(virtual_workers, "virtual worker")


def _verdict(virtual_workers: int, sizes: range, batch_size: int | None) -> str:
    head = _division(virtual_workers, sizes, batch_size)
    good = worst(virtual_workers, sizes, batch_size)[0] >= GOOD
    if batch_size is None:
        return f"{head}." if good else f"{head}; --batch-size tells whether another number is faster."
    better = advise(virtual_workers, sizes, batch_size)
    if better is not None:
        return f"{head}; {_faster(better, batch_size)}."
    return f"{head}." if good else f"{head}; with {_batch(batch_size)} no other number saves {WORTH:.0%} of the time."


def _division(virtual_workers: int, sizes: Sequence[int], batch_size: int | None) -> str:
    low, at = worst(virtual_workers, sizes, batch_size)
    many = _count(virtual_workers)
    if low >= GOOD:
        at_least = "" if low == 1.0 else " or more"
        return f"{many} divide well over {_range(sizes)}: {low:.0%}{at_least} of the tasks' time is used"
    return f"{many} divide badly over {_range(sizes)}: on {at} only {low:.0%} of the tasks' time is used"


def _faster(better: Advice, batch_size: int) -> str:
    least, more = divmod(batch_size, better.virtual_workers)
    parts = f"parts of {least} to {least + 1} samples" if more else f"parts of {formatting.count_of(least, 'sample')}"
    number = f"--virtual-workers {better.virtual_workers}"
    return f"{number} ({parts} of {_batch(batch_size)}) takes about {better.saved:.0%} less time"


def _batch(batch_size: int) -> str:
    return f"a batch of {batch_size}"


def _range(sizes: Sequence[int]) -> str:
    return formatting.count_of(sizes[0], "task") if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} tasks"


def _table(sizes: Sequence[Division]) -> "Table":
    columns = (
        TableColumn(title="TASKS", right=True),
        TableColumn(title="PARTS", right=True),
        TableColumn(title="EFFICIENCY", right=True),
        TableColumn(title="SUMS", right=True),
        TableColumn(title="WIRE", right=True),
    )
    shown = sizes if len(sizes) <= _LARGE else [size for size in sizes if size.efficiency < GOOD or size is sizes[-1]]
    return table(columns, (_row(size) for size in shown))


def _row(size: Division) -> list[str]:
    most, least = max(size.parts), min(size.parts)
    alone = size.num_tasks == 1
    return [
        str(size.num_tasks),
        str(most) if most == least else f"{least}-{most}",
        f"{size.efficiency:.0%}",
        formatting.NOTHING if alone else str(max(size.partials)),
        formatting.NOTHING if alone else f"{size.wire:.1f}x",
    ]


def _check(min_tasks: int, max_tasks: int, virtual_workers: int, batch_size: int | None) -> None:
    problems = []
    if not 1 <= min_tasks <= max_tasks:
        problems.append(Problem(field="--min", message=f"{min_tasks} is not between 1 and --max {max_tasks}"))
    if not 1 <= virtual_workers <= MAX_VIRTUAL_WORKERS:
        message = f"{virtual_workers} is not between 1 and {MAX_VIRTUAL_WORKERS}"
        problems.append(Problem(field="--virtual-workers", message=message))
    if max_tasks > virtual_workers:
        message = f"{max_tasks} is above --virtual-workers {virtual_workers}: a task needs one part at least"
        problems.append(Problem(field="--max", message=f"{message}; lower the one or raise the other"))
    if batch_size is not None and batch_size < max_tasks:
        message = f"{batch_size} samples cannot be given to {max_tasks} tasks; raise it or lower --max"
        problems.append(Problem(field="--batch-size", message=message))
    if problems:
        raise InvalidInput(*problems)
