"""Why a job loses its workers again and again, and what follows: a pure function of its losses.

Workers are lost all the time (somebody needs the machine, a node reboots), and then the job just goes on. What must
not go on is a loop: a step that kills whoever computes it, a host on which nothing lives, a script that dies before it
trains. `diagnose` tells these apart by three facts: where, at which step, and what was committed in between.

Laws: losses with a committed step between them never make a poison step or a crash loop; a host is blamed only if all
losses of the run were on it and the job can do without it; processes that were lost together are one loss.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from pliant.core.job import NodeId, TaskId

MAX_KEPT = 20
"""Older losses do not matter any more."""
_TOGETHER_S = 1.0
"""Losses of one membership this close are one, also if a step was committed in between."""
_SIGKILL = 9
_CRASHES = frozenset({4, 6, 7, 8, 11})
"""Signals by which a program ends that did something impossible: ILL, ABRT, BUS, FPE, SEGV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFailure:
    """The end of one process."""

    task_id: TaskId
    node_id: NodeId
    how: str
    """In words that follow its name."""
    signal: int | None = None
    """The signal that ended it, unless Pliant sent it."""
    hung: bool = False
    """It showed no sign of life, so Pliant killed it."""
    too_large: bool = False
    """It used more memory than its job allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLoss:
    """Processes of one job that were lost together."""

    at: float
    deaths: tuple[ProcessFailure, ...]
    step: int
    """Most optimizer steps that any of the lost processes had committed."""
    reached: int
    """Most steps that the job has ever committed."""
    generation: int = 0
    """The one that trained last; 0 if none has, or none of its members is left."""
    newest_task: int = 0
    """Number of the job's newest task: whoever came later was not lost together with these."""
    member: bool = True
    """One of them was a member of a generation, not just on its way into one."""
    made_progress: bool = True
    """One of them had committed a step."""

    @property
    def nodes(self) -> frozenset[NodeId]:
        return frozenset(death.node_id for death in self.deaths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How often is too often."""

    poison_losses: int = 3
    """Losses of members at the same step make it a poison step."""
    host_losses: int = 3
    """Losses on one host of tasks that committed nothing make it a bad host."""
    max_losses: int = 5
    """Losses without a committed step make a crash loop; losses of any kind on one host make it a bad one."""
    window_s: float = 600.0
    """Losses on a host count for this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHealth:
    """Where the job could run."""

    spare_nodes: frozenset[NodeId] = field(default_factory=frozenset)
    """Nodes that the job can do without: its minimum fits on the others that it may use."""
    healthy_nodes: frozenset[NodeId] = field(default_factory=frozenset)
    """Nodes on which a member of the job lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonStep:
    """Whoever computes this step dies."""

    step: int
    losses: tuple[WorkerLoss, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashLoop:
    """The job's tasks are lost again and again before they commit anything."""

    losses: tuple[WorkerLoss, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoNewcomer:
    """The job trains, but whoever is to join it dies before it has joined."""

    losses: tuple[WorkerLoss, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadHost:
    """Tasks of the job do not live on this node, and the job can do without it."""

    node_id: NodeId
    losses: tuple[WorkerLoss, ...]


Verdict = PoisonStep | CrashLoop | NoNewcomer | BadHost


def add(losses: Sequence[WorkerLoss], loss: WorkerLoss) -> tuple[WorkerLoss, ...]:
    """Return the losses with one more, oldest first; what was lost together with the last one becomes part of it."""
    if losses and _together(losses[-1], loss):
        last = losses[-1]
        return (
            *losses[:-1],
            replace(
                last,
                deaths=last.deaths + loss.deaths,
                step=max(last.step, loss.step),
                reached=max(last.reached, loss.reached),
                member=last.member or loss.member,
                made_progress=last.made_progress or loss.made_progress,
            ),
        )
    return (*losses, loss)[-MAX_KEPT:]


def _together(last: WorkerLoss, loss: WorkerLoss) -> bool:
    """Tell whether a process was lost with others: from the same membership, and none of those started since."""
    newest = max(_number(death.task_id) for death in loss.deaths)
    same = loss.generation in (last.generation, 0) and newest <= last.newest_task
    return same and (loss.reached == last.reached or loss.at - last.at <= _TOGETHER_S)


def losses_without_progress(losses: Sequence[WorkerLoss]) -> tuple[WorkerLoss, ...]:
    """Return the newest losses between which the job committed no step."""
    return _trailing(losses, lambda loss: loss.reached == losses[-1].reached)


def failed_newcomers(losses: Sequence[WorkerLoss]) -> tuple[WorkerLoss, ...]:
    """Return the newest losses of tasks that never joined, with nobody else joining in between."""
    return _trailing(losses, lambda loss: not loss.member and loss.generation == losses[-1].generation)


def diagnose(losses: Sequence[WorkerLoss], health: NodeHealth, rules: Rules) -> Verdict | None:
    """Return what the newest loss proves, if it proves anything.

    A host is blamed before the script: if all losses of a run were on one node and others are there to try.
    """
    if not losses:
        return None
    suspect = _suspect(losses, health, rules)
    if suspect is not None:
        return suspect
    verdict = _loop(losses, rules)
    if verdict is not None and (nodes := _nodes(verdict.losses)) <= health.spare_nodes and len(nodes) == 1:
        return BadHost(node_id=next(iter(nodes)), losses=verdict.losses)
    return verdict


def _suspect(losses: Sequence[WorkerLoss], health: NodeHealth, rules: Rules) -> BadHost | None:
    """Return the host of the newest loss if tasks die there while others are fine elsewhere."""
    nodes = losses[-1].nodes
    if len(nodes) != 1 or not nodes <= health.spare_nodes or not health.healthy_nodes - nodes:
        return None
    run = _trailing(losses, lambda loss: loss.nodes == nodes and losses[-1].at - loss.at <= rules.window_s)
    in_vain = _trailing(run, lambda loss: not loss.made_progress)
    if len(in_vain) >= rules.host_losses or len(run) >= rules.max_losses:
        return BadHost(node_id=next(iter(nodes)), losses=run)
    return None


def _loop(losses: Sequence[WorkerLoss], rules: Rules) -> PoisonStep | CrashLoop | NoNewcomer | None:
    row = losses_without_progress(losses)
    at_step = _trailing(row, lambda loss: loss.member and loss.step == row[-1].step)
    if len(at_step) >= rules.poison_losses:
        return PoisonStep(step=at_step[-1].step, losses=at_step)
    newcomers = failed_newcomers(losses)
    if len(newcomers) >= rules.max_losses and newcomers[-1].generation:
        return NoNewcomer(losses=newcomers)
    return CrashLoop(losses=row) if len(row) >= rules.max_losses else None


def _trailing(losses: Sequence[WorkerLoss], fits: Callable[[WorkerLoss], bool]) -> tuple[WorkerLoss, ...]:
    return tuple(takewhile(fits, reversed(losses)))[::-1]


def _nodes(losses: Collection[WorkerLoss]) -> frozenset[NodeId]:
    return frozenset().union(*(loss.nodes for loss in losses))


def _number(task_id: TaskId) -> int:
    return int(task_id.rpartition(".")[2])


# -- in words ---------------------------------------------------------------------------------------------------------


def explain(verdict: Verdict) -> str:
    """Return what was found, how each process died, and what to do; the first line is a headline."""
    match verdict:
        case PoisonStep():
            head = (
                f"step {verdict.step} kills whoever computes it: {len(verdict.losses)} times in a row workers were "
                f"lost at it, with no step committed in between"
            )
        case CrashLoop():
            head = f"its tasks were lost {len(verdict.losses)} times without a step committed in between"
        case NoNewcomer():
            head = f"{len(verdict.losses)} times in a row a task was lost before it could join"
        case BadHost():
            head = f"tasks were lost {len(verdict.losses)} times in a row on {verdict.node_id}"
    nodes = _nodes(verdict.losses)
    if len(nodes) == 1 and not isinstance(verdict, BadHost):
        head += f" (each time on {next(iter(nodes))})"
    deaths = [death for loss in verdict.losses for death in loss.deaths]
    lines = [f"  {death.task_id} on {death.node_id} {death.how}" for death in deaths]
    return "\n".join([head, *lines, f"what to do: {advice(verdict)}"])


def advice(verdict: Verdict) -> str:
    """Return what a person can do about it."""
    deaths = [death for loss in verdict.losses for death in loss.deaths]
    samples = (
        f"the samples of step {verdict.step} are the same every time (`pliant submit --audit` records which)"
        if isinstance(verdict, PoisonStep)
        else "run the script alone, with `python -X faulthandler`"
    )
    if isinstance(verdict, BadHost):
        return f"look after {verdict.node_id}; submit the job again to let it use that host"
    if all(death.hung for death in deaths):
        return (
            "if a call in the script holds Python's interpreter lock for longer than the lease, give the server a "
            f"longer one (`pliant up --lease`); {samples}"
        )
    if all(death.too_large for death in deaths):
        return "allow its tasks more memory (`pliant submit --memory`), or make them smaller"
    if any(death.signal in _CRASHES for death in deaths):
        return f"a native library crashed; {samples}"
    if any(death.signal == _SIGKILL for death in deaths):
        return (
            "if the kernel killed them for want of memory, ask for smaller parts (--virtual-workers) or fewer tasks "
            f"(--max); else {samples}"
        )
    return samples
