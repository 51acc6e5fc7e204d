"""How the work of one server grows with its pool, up to 10,000 nodes, 100,000 slots and 20,000 jobs; what breaks first.

Each part is measured by itself, in processor time: decisions of the scheduler, ticks of control in the simulator, what
is written for a job, and what each message on the links costs. From these follows at which size of a pool each part
alone fills one core, or takes longer than it may. A pool has ten slots and two jobs to a node throughout. No part of it
is a claim; `python -m bench.nodes` measures a whole server with 1,000 machines.
"""

import argparse
import gc
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from bench._report import finish, head, table
from bench.growth import ends, links, plans, renewals, ticks, writes
from bench.growth.fit import exponent, reaches
from bench.growth.pools import JOBS_PER_NODE, SLOTS_PER_NODE
from pliant.core.slot import WHOLE_SLOT

T = TypeVar("T")
_SINCE: Final = 100
"""Exponents are those of pools of so many nodes and more."""
_DECISION_MS: Final = 1000.0
_TICK_MS: Final = 100.0
_PULSES_PER_S: Final = 2.0
"""Of a task: one for each quarter of a lease of two seconds."""
_REPORTS_PER_S: Final = 4.0
"""Of a training with steps shorter than a quarter of a second; others report once a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Where one part reaches what it may need."""

    what: str
    budget: str
    nodes: float | None
    """None: it does not grow, or was measured on one pool only."""
    others: str = ""
    """The same in what it depends on, in words."""


def by_size(found: Sequence[tuple[int, float]]) -> Mapping[int, float]:
    """Return figures by the number of nodes."""
    return dict(found)


def plan_table(found: Sequence[plans.PlanTimes]) -> str:
    """Return what decisions took, and how that grows."""
    names = list(found[0].times)
    rows = [
        (
            f"{one.num_nodes:,}",
            f"{one.num_nodes * SLOTS_PER_NODE:,}",
            f"{one.num_jobs:,}",
            f"{one.num_tasks:,}",
            *(f"{least:.1f} ({median:.1f})" for least, median in one.times.values()),
        )
        for one in found
    ]
    fitted = (growth(by_size([(one.num_nodes, one.times[name][0]) for one in found])) for name in names)
    return table(("nodes", "slots", "jobs", "tasks at rest", *names), *rows, ("grows with", "", "", "", *fitted))


def tick_table(found: Sequence[ticks.TickTimes]) -> str:
    """Return what ticks took, and how that grows."""
    names = list(found[0].changes)
    rows = [
        (
            f"{one.num_nodes:,}",
            f"{one.num_jobs:,}",
            f"{one.num_tasks:,}",
            f"{sum(one.starting) / one.num_tasks:.2f}",
            f"{max(one.starting):.0f}",
            *(f"{min(taken):.1f} ({sorted(taken)[len(taken) // 2]:.1f})" for taken in one.changes.values()),
        )
        for one in found
    ]
    figures: list[Callable[[ticks.TickTimes], float]] = [
        lambda one: sum(one.starting) / one.num_tasks,
        lambda one: max(one.starting),
        *(lambda one, name=name: min(one.changes[name]) for name in names),
    ]
    fitted = (growth(by_size([(one.num_nodes, figure(one)) for one in found])) for figure in figures)
    columns = (
        "nodes",
        "jobs",
        "tasks",
        "each start",
        "longest tick then",
        *(f"then: {name}" for name in names),
    )
    return table(columns, *rows, ("grows with", "", "", *fitted))


def growth(points: Mapping[int, float]) -> str:
    """Return the exponent in words."""
    found = exponent(points, _SINCE)
    return "" if found is None else f"n^{found:.2f}"


def written_table(found: Sequence[writes.Written]) -> str:
    """Return what is written for a job."""
    rows = ((one.what, str(one.transactions), str(one.rows), f"{1000 * one.seconds:.1f}") for one in found)
    return table(("", "transactions", "rows", "ms of processor time"), *rows)


def message_table(renewal: renewals.RenewalCost, pulse: links.PulseCost, report_s: float) -> str:
    """Return what messages cost a server."""
    report_bytes = writes.report_bytes() + links.TLS_BYTES
    rows = (
        ("renewal of a machine, answered", f"{renewals.PER_S:g}", renewal.num_bytes, renewal.seconds),
        ("pulse of an elastic task", f"{_PULSES_PER_S:g}", pulse.num_bytes, pulse.seconds),
        ("report of a training, taken in and written", f"at most {_REPORTS_PER_S:g}", report_bytes, report_s),
    )
    shown = ((what, often, str(num_bytes), f"{1e6 * cost_s:.0f}") for what, often, num_bytes, cost_s in rows)
    return table(("", "a second", "bytes with TLS", "µs of processor time"), *shown)


def end_table(found: Sequence[ends.EndCost]) -> str:
    """Return what machines are told when a job ends, and how that grows."""
    rows = ((f"{one.num_nodes:,}", f"{one.num_jobs:,}", f"{one.milliseconds:.2f}") for one in found)
    fitted = growth(by_size([(one.num_nodes, one.milliseconds) for one in found]))
    return table(("nodes", "jobs", "ms"), *rows, ("grows with", "", fitted))


def limits(
    whole: Sequence[plans.PlanTimes],
    parts: Sequence[plans.PlanTimes],
    ticked: Sequence[ticks.TickTimes],
    ended: Sequence[ends.EndCost],
    costs: Mapping[str, float],
) -> list[Limit]:
    """Return where each part reaches its budget, the first one first."""
    found = []
    for words, times in (("", whole), (", kernels hold half a slot", parts)):
        for name in times[0].times:
            points = by_size([(one.num_nodes, one.times[name][0]) for one in times])
            at = reaches(points, _DECISION_MS, _SINCE)
            found.append(Limit(what=f"a decision, {name}{words}", budget="1 s", nodes=at))
    for name in ticked[0].changes:
        points = by_size([(one.num_nodes, min(one.changes[name])) for one in ticked])
        found.append(Limit(what=f"a tick after: {name}", budget="100 ms", nodes=reaches(points, _TICK_MS, _SINCE)))
    others = {
        "a tick when all jobs start at once": [(one.num_nodes, max(one.starting)) for one in ticked],
        "the end of a job, told to machines": [(one.num_nodes, one.milliseconds) for one in ended],
    }
    for what, figures in others.items():
        at = reaches(by_size(figures), _TICK_MS, _SINCE)
        found.append(Limit(what=what, budget="100 ms", nodes=at))
    num_nodes, num_tasks, num_jobs = (1 / costs[name] for name in ("renewals", "pulses", "reports"))
    found += [
        Limit(what="renewals of machines", budget="a core", nodes=num_nodes),
        Limit(
            what="pulses of elastic tasks, on all slots",
            budget="a core",
            nodes=num_tasks / SLOTS_PER_NODE,
            others=f"{num_tasks:,.0f} tasks",
        ),
        Limit(
            what="reports of trainings with short steps, all jobs",
            budget="a core",
            nodes=num_jobs / JOBS_PER_NODE,
            others=f"{num_jobs:,.0f} trainings",
        ),
    ]
    return sorted(found, key=lambda limit: limit.nodes or float("inf"))


def limit_table(found: Sequence[Limit]) -> str:
    """Return where each part breaks."""
    rows = (
        (one.what, one.budget, "not known" if one.nodes is None else f"{float(f'{one.nodes:.2g}'):,.0f}", one.others)
        for one in found
    )
    return table(("what", "may need", "is reached at nodes", ""), *rows)


def in_folder(work: Callable[[Path], T]) -> T:
    """Return what is measured in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="plb-") as name:
        return say(work(Path(name)))


def say(found: T) -> T:
    """Print what was measured, so that one sees how far it is."""
    print(found, file=sys.stderr, flush=True)
    return found


def spare_collections() -> None:
    """Look for garbage as seldom as a server does (`pliant.entry.server.process`)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 2**31 - 1)


def measure(given: argparse.Namespace) -> str:
    """Return the report, without its head."""
    spare_collections()
    whole = [say(plans.measure(size, given.runs)) for size in given.nodes]
    parts = [say(plans.measure(size, given.runs, WHOLE_SLOT // 2)) for size in given.nodes]
    ticked = [in_folder(partial(ticks.measure, size, given.runs)) for size in given.nodes]
    ended = [say(ends.measure(size, given.runs)) for size in given.nodes]
    written = in_folder(writes.measure)
    report_s = in_folder(partial(writes.report_seconds, num_jobs=100, num_each=10))
    pulse = in_folder(partial(links.measure, num_tasks=given.tasks, seconds=given.seconds))
    renewal = in_folder(partial(renewals.measure, num_machines=given.machines, seconds=given.seconds))
    costs = {
        "renewals": renewal.seconds * renewals.PER_S,
        "pulses": pulse.seconds * _PULSES_PER_S,
        "reports": report_s * _REPORTS_PER_S,
    }
    return "\n".join(
        (
            (__doc__ or "").partition("\n")[2],
            "## What breaks first\n\nEach part alone; a size beyond those measured follows from the exponent.\n",
            limit_table(limits(whole, parts, ticked, ended, costs)),
            f"## Decisions of the scheduler\n\nMilliseconds, the least (and the median) of {given.runs}. With kernels "
            "that hold a whole slot:\n",
            plan_table(whole),
            "With kernels that hold half a slot:\n",
            plan_table(parts),
            "## Ticks of control in the simulator\n\nMilliseconds. All jobs are there when the server starts. After a "
            f"change the longest tick, the least (and the median) of {given.runs}.\n",
            tick_table(ticked),
            "## The end of a job, told to machines\n\nMilliseconds, with the adapters of all machines.\n",
            end_table(ended),
            "## What is written for a job\n\nInto SQLite; a number for the next task is a transaction, too.\n",
            written_table(written),
            f"## Messages\n\nRenewals of {given.machines} machines over TLS, with all else that a server at rest does; "
            f"pulses of {given.tasks} tasks over a Unix socket, without TLS.\n",
            message_table(renewal, pulse, report_s),
        )
    )


def sizes(text: str) -> list[int]:
    """Return the numbers in a text like `10,100`."""
    return [int(one) for one in text.split(",")]


def main() -> int:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--nodes", type=sizes, default=[10, 100, 1000, 10_000], help="sizes of pools")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--machines", type=int, default=300, help="whose renewals are counted (default 300)")
    parser.add_argument("--tasks", type=int, default=100, help="whose pulses are counted (default 100)")
    parser.add_argument("--seconds", type=float, default=8.0, help="for how long (default 8)")
    given = parser.parse_args()
    command = f"python -m bench.growth --runs {given.runs} --nodes {','.join(map(str, given.nodes))}"
    text = measure(given)
    return finish(head("How the work of a server grows", command) + text, (), given.out)


if __name__ == "__main__":
    sys.exit(main())
