"""What people have run beside a task of a job: which task is meant, what it is given, and that its owner learns of it.

Nothing of it is written but an event: a sidecar ends with the server that ordered it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.orders import sidecar_id, sidecar_order
from pliant.control.requests import changes
from pliant.control.requests.queries import Queries
from pliant.control.requests.queues import Queues
from pliant.control.settings import ControlSettings
from pliant.core.access import Principal
from pliant.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from pliant.core.event import EventKind
from pliant.core.job import JobId, Task, TaskId
from pliant.core.notebook import SCRIPT
from pliant.core.ports import Cluster
from pliant.core.tunnel import SidecarSettings

_MAX_SHOWN: Final = 8


class SidecarRequests:
    """The use cases about sidecars; callable from any thread."""

    def __init__(
        self, ledger: Ledger, settings: ControlSettings, queries: Queries, queues: Queues, cluster: Cluster
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._queries = queries
        self._queues = queues
        self._cluster = cluster

    def start(
        self, job_id: str, number: int | None, who: Principal, sidecar: SidecarSettings, ended: Callable[[str], None]
    ) -> TaskId:
        """Start a sidecar beside a task of a job; return which task that is.

        Args:
            job_id: the job.
            number: of the task, such as 2 for `job-1.2`; None: the only one that runs.
            who: asks for it. Whom the job does not belong to is not given its secrets.
            sidecar: what it is to do; where the server is is filled in here.
            ended: called once when it has ended, with why if it did not end by itself.

        Raises:
            NotFound: no such job, or no such task of it.
            InvalidInput: several tasks run, and no number is given; or it runs no notebook, and one is meant.
            Conflict: the job has ended, or has no task that runs.
            Unavailable: the server is going down.
        """
        with self._ledger.lock:
            if self._ledger.draining:
                raise Unavailable("the server is shutting down; try again when it is back")
            changes.refuse_ended(self._queries.job(job_id))
            live = self._ledger.get(JobId(job_id))
            if live is None:
                raise NotFound(f"no job is named {job_id!r}; list them to see which there are")
            if sidecar.notebook and live.job.spec.script != SCRIPT:
                said = f"{live.id} runs {live.job.spec.script} and no notebook; open a shell beside it instead"
                raise InvalidInput.at("job", said)
            task = self._choose(live, number)
            user = self._queues.run_as(live)
            trust = self._settings.trust
            certificate = None if trust.certificate is None else str(trust.certificate)
            sidecar = replace(
                sidecar,
                url=self._settings.url,
                certificate=certificate,
                server_name=trust.server_name,
                python=live.python or live.job.spec.python,
            )
            is_owner = who.name == live.job.owner
            order = sidecar_order(live, task, self._settings, sidecar, user=user, with_secrets=is_owner)
            draft = self._ledger.draft()
            draft.say(
                EventKind.TASK_ENTERED,
                f"{who.name} opened {'the notebook of' if sidecar.notebook else 'a shell beside'} {task.id}",
                job_id=live.id,
                task_id=task.id,
                data={"who": who.name},
            )
            self._ledger.commit(draft)
            self._cluster.start_sidecar(order, task.id, ended)
            return task.id

    def end(self, task_id: TaskId, tunnel_id: str) -> None:
        """End a sidecar at once."""
        self._cluster.end_sidecar(sidecar_id(task_id, tunnel_id))

    def _choose(self, live: LiveJob, number: int | None) -> Task:
        pids = {task.task_id: task.pid for task in self._cluster.observe().tasks}
        running = [task for task in live.running if pids.get(task.id) is not None]
        if number is not None:
            wanted = TaskId(f"{live.id}.{number}")
            found = next((task for task in running if task.id == wanted), None)
            if found is not None:
                return found
            raise NotFound(f"{wanted} does not run; {_running_in_words(live, running)}")
        if not running:
            raise Conflict(_running_in_words(live, running))
        if len(running) > 1:
            raise InvalidInput.at("task", f"{_running_in_words(live, running)}; say which one is meant by its number")
        return running[0]


def _running_in_words(live: LiveJob, running: list[Task]) -> str:
    if not running:
        return f"{live.id} is {live.job.state.value} and no task of it runs; `why` says what it waits for"
    shown = ", ".join(task.id for task in running[:_MAX_SHOWN]) + (", …" if len(running) > _MAX_SHOWN else "")
    return f"{live.id} has {shown}"
