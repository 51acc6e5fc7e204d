"""What control keeps of an elastic training besides what it keeps of every job; its generations change state here."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from pliant.control.jobs.live import LiveJob, of_tasks, replace_parts
from pliant.core.job import Generation, NodeId, TaskId
from pliant.core.lifecycle import GENERATION_LIFECYCLE, GenerationEvent, GenerationState, advance, is_final
from pliant.policy.elastic.diagnose import WorkerLoss
from pliant.policy.elastic.membership import Membership
from pliant.policy.elastic.paths import BrokenPath
from pliant.policy.elastic.stall import StepWatch, postpone


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLine:
    """Where a task says that it is."""

    at: str
    waits: bool
    """For other tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """A training that does no step, from when that was noticed until it goes on."""

    lines: Mapping[TaskId, TaskLine] = field(default_factory=dict)
    """What its tasks have answered."""
    act_at: float | None = None
    """When something is done about it, if not all have answered before; None if nothing is to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticJob(LiveJob):
    """An elastic training, its generations and its membership, as they stand."""

    membership: Membership
    generations: Mapping[int, Generation] = field(default_factory=dict)
    """Forming and active ones; those that are over are dropped once they are written."""
    trained: bool = False
    """A generation of it has trained, in this life of the server or before."""
    step: int = 0
    """Steps committed, as far as is known."""
    losses: tuple[WorkerLoss, ...] = ()
    """The newest losses of its tasks, oldest first."""
    joined: Mapping[TaskId, int] = field(default_factory=dict)
    """At which step a running task became a member of a generation for the first time."""
    fenced: Mapping[TaskId, WorkerLoss | None] = field(default_factory=dict)
    """Killed tasks that are lost already as far as the training is concerned; only their slots are not free yet. With
    each stands the loss that is counted when its exit says at which step it was; None if nobody is to blame."""
    raised: Mapping[TaskId, str] = field(default_factory=dict)
    """Running tasks whose program raised, which the others survive: the error's last line."""
    recovers_until: float | None = None
    """After a loss: until then, or until its survivors have done a step, nobody starts who only makes it larger."""
    raised_at: int | None = None
    """The step that was being computed when a worker last ended by its own fault; the next one there ends the job."""
    virtual_workers: int | None = None
    """V as the script uses it, once that is known."""
    finished: frozenset[TaskId] = frozenset()
    """Tasks that said that all epochs are trained."""
    watch: StepWatch = field(default_factory=StepWatch)
    """Whether it goes on; begins anew whenever it has lost all its tasks."""
    stall: Stall | None = None
    refused_points: bool = False
    """Points of its series could not be kept, and people were told, once in this life of the server."""
    asked: frozenset[TaskId] = frozenset()
    """Tasks that were asked for their stacks and have not answered."""
    out_of_reach: Mapping[TaskId, Mapping[TaskId, float]] = field(default_factory=dict)
    """Who says that it does not reach whom, and since when it has said so again and again."""
    paths: tuple[BrokenPath, ...] = ()
    """Machines that its tasks have found not to reach each other."""

    @property
    def proven(self) -> bool:
        """A generation of it trains: more tasks can join.

        Before that it gets its minimum only: a script that cannot start fails once and not on every slot, and neither
        the first task nor the survivors of a loss share their cores with the start of others that wait for them.
        """
        return self.membership.current is not None and self.recovers_until is None

    @property
    def open_generations(self) -> Mapping[int, Generation]:
        return self.generations

    def is_out_of_reach(self, silent: Container[NodeId]) -> bool:
        """Tell whether all members of its generation are on silent machines; if there is none, all who hold a state.

        Those may train on without the server. If only some are there, no step is committed without the others.
        """
        holders = [task_id for task_id, standing in self.membership.tasks.items() if standing.holds_state]
        known = [self.tasks[task_id] for task_id in self.membership.active or holders if task_id in self.tasks]
        return bool(known) and all(task.node_id in silent for task in known)

    def is_needed(self, task_id: TaskId) -> bool:
        """Tell whether a task trains, or holds a state, or is about to."""
        standing, forming = self.membership.tasks.get(task_id), self.membership.forming
        return (standing is not None and standing.holds_state) or (forming is not None and task_id in forming.members)

    def ends_by_itself(self, task_id: TaskId) -> bool:
        """Tell whether a task trains: it knows when all epochs are trained."""
        return task_id in self.membership.active

    def describe_end(self) -> str:
        """Return how the training ended well: with all its epochs, or in which one its script ended it."""
        progress = self.job.progress
        if progress is None or progress.step >= progress.num_steps:
            return "all epochs are trained and the model is saved"
        is_whole = progress.step * progress.num_epochs == progress.epoch * progress.num_steps
        when = f"after epoch {progress.epoch}" if is_whole else f"in epoch {progress.epoch + 1}"
        return (
            f"its script ended the training {when} of {progress.num_epochs}, at step {progress.step} of "
            f"{progress.num_steps}; the model is saved"
        )

    def close(self) -> Self:
        """Return the training without open generations, and unwatched."""
        live = replace(self, watch=StepWatch(), stall=None)
        return live.end_generations(GenerationState.ACTIVE, GenerationEvent.RETIRE).end_generations(
            GenerationState.FORMING, GenerationEvent.ABANDON
        )

    def postpone(self, seconds: float) -> Self:
        live = LiveJob.postpone(self, seconds)
        return replace(live, watch=postpone(self.watch, seconds), out_of_reach={})  # what was said is old now

    def keep_tasks(self, task_ids: Container[TaskId]) -> Self:
        open_ones = {n: g for n, g in self.generations.items() if not is_final(GENERATION_LIFECYCLE, g.state)}
        asked = frozenset(task_id for task_id in self.asked if task_id in task_ids)
        return replace_parts(
            LiveJob.keep_tasks(self, task_ids),
            generations=self.generations if len(open_ones) == len(self.generations) else open_ones,
            joined=of_tasks(self.joined, task_ids),
            fenced=of_tasks(self.fenced, task_ids),
            raised=of_tasks(self.raised, task_ids),
            asked=self.asked if len(asked) == len(self.asked) else asked,
            out_of_reach=of_tasks(self.out_of_reach, task_ids),
        )

    def with_generation(self, generation: Generation) -> Self:
        """Return the training with the new value of a generation."""
        return replace(self, generations={**self.generations, generation.number: generation})

    def end_generation(self, generation: Generation, event: GenerationEvent) -> Self:
        """Move a generation along its lifecycle."""
        return self.with_generation(replace(generation, state=advance(GENERATION_LIFECYCLE, generation.state, event)))

    def end_generations(self, state: GenerationState, event: GenerationEvent) -> Self:
        """Move the generations in this state along their lifecycle."""
        live = self
        for generation in self.generations.values():
            if generation.state is state:
                live = live.end_generation(generation, event)
        return live
