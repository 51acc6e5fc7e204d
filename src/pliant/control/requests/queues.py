"""Queues and resource groups: kept in the registry, held in memory for the scheduler, changed while jobs run.

Whatever changes is written first and then acted on, under the one lock of control; the next decision sees it. The group
`all` and the queue `default` are always there: before somebody changes them they are in no registry, at revision 0.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob
from pliant.control.requests.changes import close_folders
from pliant.control.requests.out_of_use import OutOfUse
from pliant.control.settings import ControlSettings
from pliant.core.confinement import RunAs
from pliant.core.errors import Conflict, InvalidInput, NotFound, Problem, Stale
from pliant.core.event import EventKind
from pliant.core.job import JobSpec
from pliant.core.plan import NodeView, PolicyName, QueueRules
from pliant.core.ports import Clock, Cluster, Store
from pliant.core.queue import DEFAULT_GROUP, DEFAULT_QUEUE, Queue, ResourceGroup
from pliant.core.registry import Kept, Registry, iterate_nouns
from pliant.policy.schedule.fit import misfit
from pliant.policy.schedule.order import natural

T = TypeVar("T", Queue, ResourceGroup)
_NUM_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How processes of other users of the operating system are let in."""

    refuses_user: Callable[[str], str]
    """Why processes cannot run as this user; empty if they can."""
    user_of: Callable[[str], RunAs | None]
    """Whom the processes of a person run as; None: the server's own user."""
    prepare: Callable[[], None]
    """Closes what is to stay closed."""


class Queues:
    """All queues and resource groups. Safe to call from any thread."""

    def __init__(
        self,
        *,
        registry: Registry,
        ledger: Ledger,
        nodes: Callable[[], tuple[NodeView, ...]],
        now: Callable[[], float],
        policy: PolicyName,
        opening: Opening,
    ) -> None:
        """Begin with the defaults; `load` adds what the registry holds.

        Args:
            registry: keeps what people have made.
            ledger: the memory of jobs, and the lock.
            nodes: the hosts there are, with the slots that count.
            now: the time.
            policy: of the default queue, until somebody changes that.
            opening: lets processes of other users in.
        """
        self._registry = registry
        self._ledger = ledger
        self._nodes = nodes
        self._now = now
        self._opening = opening
        self._groups = {DEFAULT_GROUP: _as_kept(ResourceGroup(name=DEFAULT_GROUP, description="all slots there are"))}
        self._queues = {DEFAULT_QUEUE: _as_kept(Queue(name=DEFAULT_QUEUE, policy=policy))}
        self.deserved: Mapping[str, int] = {}
        """Slots that each queue with jobs deserves, by the newest decision."""

    def load(self) -> None:
        """Take up what the registry holds; call before the first decision."""
        with self._ledger.lock:
            self._groups.update({kept.noun.name: kept for kept in iterate_nouns(self._registry, ResourceGroup)})
            self._queues.update({kept.noun.name: kept for kept in iterate_nouns(self._registry, Queue)})

    # What there is

    def groups(self) -> tuple[Kept[ResourceGroup], ...]:
        """Return the resource groups in natural order."""
        with self._ledger.lock:
            return tuple(self._groups[name] for name in sorted(self._groups, key=natural))

    def queues(self) -> tuple[Kept[Queue], ...]:
        """Return the queues in natural order."""
        with self._ledger.lock:
            return tuple(self._queues[name] for name in sorted(self._queues, key=natural))

    def group(self, name: str) -> Kept[ResourceGroup]:
        """Return a resource group.

        Raises:
            NotFound: there is none of that name.
        """
        return _found(self._groups, name, "resource group")

    def queue(self, name: str) -> Kept[Queue]:
        """Return a queue.

        Raises:
            NotFound: there is none of that name.
        """
        return _found(self._queues, name, "queue")

    def policy(self) -> PolicyName:
        """Return the policy of the default queue."""
        return self._queues[DEFAULT_QUEUE].noun.policy

    def jobs_of(self, name: str) -> tuple[LiveJob, ...]:
        """Return the jobs of a queue that have not ended, or still hold slots, oldest first."""
        return tuple(live for live in self._ledger.jobs().values() if live.job.queue == name)

    def views(self, nodes: Sequence[NodeView], instead: Queue | None = None) -> tuple[QueueRules, ...]:
        """Return the queues as the scheduler sees them on these hosts; with one `instead` of that of its name."""
        groups = {name: kept.noun for name, kept in self._groups.items()}
        nouns = (kept.noun for kept in self._queues.values())
        if instead is not None:
            nouns = (instead if noun.name == instead.name else noun for noun in nouns)
        return rules_of(nouns, groups, nodes)

    def lack(self, group: str) -> tuple[str, ...]:
        """Return a note that a resource group has no slots now, and why; nothing if it has some."""
        why = self.group(group).noun.lack(self._nodes())
        return (f"group {group} has no slots now: {why}. Its jobs wait for hosts that may come",) if why else ()

    # Submissions and moves

    def misfit(self, name: str, min_tasks: int, slots_per_task: int) -> tuple[str, ...]:
        """Return a note that a job of this size cannot run on what its queue has now; nothing if it can."""
        nodes = self._nodes()
        (rules,) = (rules for rules in self.views(nodes) if rules.name == name)
        slots = [len(node.slots) if rules.slots is None else rules.slots.get(node.id, 0) for node in nodes]
        why = misfit(min_tasks, slots_per_task, rules, slots)
        if why and (lack := self.group(rules.group).noun.lack(nodes)):
            why += f" ({lack})"
        return (f"it waits for hosts that may come: {why}",) if why else ()

    def admit(self, spec: JobSpec) -> JobSpec:
        """Return a submission with what its queue adds to it.

        Raises:
            InvalidInput: there is no such queue, it is closed, or the job is larger than it takes.
        """
        queue = self._open_queue(spec.queue)
        _check_size(queue, spec.max_tasks)
        if queue.default_environment is not None and spec.environment is None and spec.python is None:
            return replace(spec, environment=queue.default_environment)
        return spec

    def check_move(self, live: LiveJob, name: str) -> None:
        """Do nothing if a job can be moved to this queue.

        Raises:
            InvalidInput: there is no such queue, it is closed, or the job is larger than it takes.
            Conflict: its processes would have to run as another user, or it is fixed and runs on slots that the queue
                does not have.
        """
        queue = self._open_queue(name)
        _check_size(queue, live.job.max_tasks)
        before = self._queues.get(live.job.queue)
        if before is not None and before.noun.run_as != queue.run_as:
            raise Conflict(
                f"{live.id} runs as {before.noun.run_as or 'the user of the server'}, and jobs of queue {name!r} as "
                f"{queue.run_as or 'the user of the server'}: its files are not the other's; submit it there again"
            )

    def run_as(self, live: LiveJob) -> RunAs | None:
        """Return whom a job's processes run as: the queue's user, or else its owner's id; None: the server's own."""
        return self.user_for(live.job.queue, live.job.owner)

    def user_for(self, queue: str, owner: str) -> RunAs | None:
        """Return whom the jobs of a person in a queue run as; None: the server's own user."""
        kept = self._queues.get(queue)
        if kept is not None and kept.noun.run_as is not None:
            return RunAs(name=kept.noun.run_as)
        return self._opening.user_of(owner)

    def _open_queue(self, name: str) -> Queue:
        kept = self._queues.get(name)
        if kept is None:
            there = ", ".join(other.noun.name for other in self.queues() if other.noun.open)
            raise InvalidInput.at("queue", f"there is no queue {name!r}; there are {there}")
        if not kept.noun.open:
            message = f"queue {name!r} is closed: it takes no new jobs; choose another, or ask who runs the pool"
            raise InvalidInput.at("queue", message)
        return kept.noun

    # Changes

    def add_group(self, group: ResourceGroup, who: str) -> Kept[ResourceGroup]:
        """Make a resource group.

        Raises:
            Conflict: the name is taken.
        """
        with self._ledger.lock:
            _refuse_taken(self._groups, group.name, "resource group")
            kept = self._groups[group.name] = self._registry.add(group, at=self._now())
            self._note_change(f"resource group {group.name} was made by {who}: {self._extent(group)}", group.name, who)
            return kept

    def change_group(
        self, name: str, changes: Mapping[str, object], revision: int | None, who: str
    ) -> Kept[ResourceGroup]:
        """Change a resource group; jobs leave slots that it has no longer at a step boundary.

        Raises:
            NotFound, Stale: as in the registry.
            Conflict: it is the group of all slots.
        """
        with self._ledger.lock:
            kept = self.group(name)
            if name == DEFAULT_GROUP and changes.keys() - {"description"}:
                raise Conflict(f"the group {name!r} is all slots there are, always; make another group for fewer")
            group = replace(kept.noun, **changes)  # type: ignore[arg-type]
            self._groups[name] = kept = self._write(kept, group, revision)
            self._note_change(f"resource group {name} was changed by {who}: {self._extent(group)}", name, who)
            return kept

    def remove_group(self, name: str, revision: int | None, who: str) -> None:
        """Forget a resource group.

        Raises:
            NotFound, Stale: as in the registry.
            Conflict: a queue uses it, or it is the group of all slots.
        """
        with self._ledger.lock:
            self.group(name)
            if name == DEFAULT_GROUP:
                raise Conflict(f"the group {name!r} is always there; remove another one")
            users = [kept.noun.name for kept in self.queues() if kept.noun.resource_group == name]
            if users:
                raise Conflict(
                    f"resource group {name!r} is used by queue{'s' * (len(users) != 1)} {_names(users)}; give them "
                    f"another group first"
                )
            self._registry.remove(ResourceGroup, name, revision=revision)
            del self._groups[name]
            self._note_change(f"resource group {name} was removed by {who}", name, who)

    def add_queue(self, queue: Queue, who: str) -> Kept[Queue]:
        """Make a queue.

        Raises:
            Conflict: the name is taken.
            InvalidInput: its group or its user cannot be.
        """
        with self._ledger.lock:
            _refuse_taken(self._queues, queue.name, "queue")
            self._check(queue)
            self._open(queue)
            kept = self._queues[queue.name] = self._registry.add(queue, at=self._now())
            self._note_change(f"queue {queue.name} was made by {who}: {_words(queue)}", queue.name, who)
            return kept

    def change_queue(self, name: str, changes: Mapping[str, object], revision: int | None, who: str) -> Kept[Queue]:
        """Change a queue; the next decision keeps to it.

        Raises:
            NotFound, Stale: as in the registry.
            InvalidInput: its group or its user cannot be.
            Conflict: its jobs would have to run as another user.
        """
        with self._ledger.lock:
            kept, queue = self.queue(name), self.changed(name, changes)
            self._open(queue)
            self._queues[name] = kept = self._write(kept, queue, revision)
            self._note_change(f"queue {name} was changed by {who}: {_words(queue)}", name, who)
            return kept

    def changed(self, name: str, changes: Mapping[str, object]) -> Queue:
        """Return what a queue would be after a change; under the lock.

        Raises:
            NotFound, InvalidInput, Conflict: as for the change.
        """
        kept = self.queue(name)
        queue: Queue = replace(kept.noun, **changes)  # type: ignore[arg-type]
        if queue.run_as != kept.noun.run_as:
            _refuse_files_of_another(queue, self.jobs_of(name))
        self._check(queue)
        return queue

    def remove_queue(self, name: str, revision: int | None, who: str) -> None:
        """Forget a queue.

        Raises:
            NotFound, Stale: as in the registry.
            Conflict: it has jobs that have not ended, or is the default queue.
        """
        with self._ledger.lock:
            self.queue(name)
            if name == DEFAULT_QUEUE:
                raise Conflict(f"the queue {name!r} is always there; close it, or remove another one")
            if jobs := self.jobs_of(name):
                raise Conflict(
                    f"queue {name!r} has jobs that have not ended: {_names([live.id for live in jobs])}; close it and "
                    f"wait for them, stop them, or move them to another queue"
                )
            self._registry.remove(Queue, name, revision=revision)
            del self._queues[name]
            self._note_change(f"queue {name} was removed by {who}", name, who)

    def _check(self, queue: Queue) -> None:
        problems = []
        if queue.resource_group not in self._groups:
            message = f"there is no resource group {queue.resource_group!r}; there are {_names(list(self._groups))}"
            problems.append(Problem(field="resource_group", message=message))
        if queue.run_as is not None and (why := self._opening.refuses_user(queue.run_as)):
            problems.append(Problem(field="run_as", message=why))
        if problems:
            raise InvalidInput(*problems)

    def _open(self, queue: Queue) -> None:
        if queue.run_as is not None:
            self._opening.prepare()

    def _write(self, kept: Kept[T], noun: T, revision: int | None) -> Kept[T]:
        """Replace a noun in the registry; a default that is not in it yet is added."""
        if kept.revision:
            return self._registry.replace(noun, at=self._now(), revision=revision)
        if revision:
            raise Stale(f"{noun.name!r} is at revision 0, not {revision}; read it again and repeat the change")
        return self._registry.add(noun, at=self._now())

    def _note_change(self, message: str, name: str, who: str) -> None:
        """Note the event of a change that is written already, and let the scheduler decide anew."""
        draft = self._ledger.draft()
        draft.say(EventKind.QUEUE_CHANGED, message, data={"name": name, "who": who})
        self._ledger.dirty = True
        self._ledger.commit(draft)

    def _extent(self, group: ResourceGroup) -> str:
        slots = group.slots_of(self._nodes())
        num = sum(slots.values())
        return f"{num} slot{'s' * (num != 1)} on {len(slots)} host{'s' * (len(slots) != 1)}"


def rules_of(
    queues: Iterable[Queue], groups: Mapping[str, ResourceGroup], nodes: Sequence[NodeView]
) -> tuple[QueueRules, ...]:
    """Return queues over these groups as the scheduler sees them on these hosts."""
    slots = {name: None if group.is_whole_pool else group.slots_of(nodes) for name, group in groups.items()}
    return tuple(
        QueueRules(
            name=queue.name,
            group=queue.resource_group,
            slots=slots[queue.resource_group],
            policy=queue.policy,
            preemption=queue.preemption,
            weight=queue.weight,
        )
        for queue in queues
    )


def queues_of(
    store: Store,
    cluster: Cluster,
    clock: Clock,
    settings: ControlSettings,
    ledger: Ledger,
    user_of: Callable[[str], RunAs | None],
    out_of_use: OutOfUse,
) -> Queues:
    """Return the queues of a control room; nothing is loaded yet."""
    return Queues(
        registry=store.registry,
        ledger=ledger,
        nodes=out_of_use.usable_now,
        now=clock.now,
        policy=settings.policy.name,
        opening=Opening(
            refuses_user=cluster.refuses_user,
            user_of=user_of,
            prepare=lambda: close_folders(settings.home / "jobs"),
        ),
    )


def _as_kept(noun: T) -> Kept[T]:
    return Kept(noun=noun, revision=0, created_at=0.0, changed_at=0.0)


def _found(there: Mapping[str, Kept[T]], name: str, what: str) -> Kept[T]:
    kept = there.get(name)
    if kept is None:
        raise NotFound(f"there is no {what} {name!r}; there are {_names(sorted(there, key=natural))}")
    return kept


def _refuse_taken(there: Mapping[str, object], name: str, what: str) -> None:
    if name in there:
        raise Conflict(f"there is a {what} {name!r} already; choose another name, or change that one")


def _refuse_files_of_another(queue: Queue, jobs: Sequence[LiveJob]) -> None:
    if jobs:
        raise Conflict(
            f"jobs of queue {queue.name!r} have not ended ({_names([live.id for live in jobs])}), and their files "
            f"belong to another user; make another queue for {queue.run_as or 'the user of the server'}"
        )


def _check_size(queue: Queue, max_tasks: int) -> None:
    limit = queue.max_tasks_per_job
    if limit is not None and max_tasks > limit:
        message = f"{max_tasks} is more than queue {queue.name!r} takes ({limit} tasks per job); lower it"
        raise InvalidInput.at("max_tasks", message)


def _words(queue: Queue) -> str:
    facts = [
        f"group {queue.resource_group}",
        f"policy {queue.policy.value}",
        f"preemption {'on' if queue.preemption else 'off'}",
        f"weight {queue.weight}",
    ]
    if queue.default_environment is not None:
        facts.append(f"environment {queue.default_environment}")
    if queue.run_as is not None:
        facts.append(f"runs as {queue.run_as}")
    return ", ".join(facts) + ("" if queue.open else "; closed")


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:_NUM_NAMED]) + (f" and {len(names) - _NUM_NAMED} more" if len(names) > _NUM_NAMED else "")
