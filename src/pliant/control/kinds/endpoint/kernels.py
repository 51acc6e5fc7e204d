"""What others ask of the jobs that serve endpoints, and what the gateway says of their kernels.

Which versions there are, and which of them runs, is decided elsewhere (`catalog.endpoints`). Here a version is a job:
it is started, adjusted, watched and ended. Callable from any thread; a message about a job or a kernel that is gone is
ignored.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import job_of
from pliant.control.jobs.orders import job_token
from pliant.control.jobs.transitions import job_event, kill, stop, task_event
from pliant.control.kinds.endpoint.drain import drain_leavers
from pliant.control.kinds.endpoint.job import EndpointJob
from pliant.control.kinds.endpoint.scaling import evaluate, take_load
from pliant.control.settings import ControlSettings
from pliant.core.endpoint import VersionStatus
from pliant.core.event import EventKind
from pliant.core.job import JobId, QueueName, Task, TaskId
from pliant.core.lifecycle import JobEvent, JobState, TaskEvent, TaskState
from pliant.core.serving import KernelHung, KernelReady, Load, VersionLoad
from pliant.core.serving_profile import KernelBounds, ServingProfile


class KernelRequests:
    """The use cases about jobs of the kind `endpoint`."""

    def __init__(self, ledger: Ledger, settings: ControlSettings) -> None:
        self._ledger = ledger
        self._settings = settings

    # What the keeper of endpoints asks

    def statuses(self) -> Mapping[JobId, VersionStatus]:
        """Return how all versions stand whose jobs have not ended."""
        with self._ledger.lock:
            lives = [live for live in self._ledger.jobs().values() if isinstance(live, EndpointJob)]
            return {live.id: self._status(live) for live in lives if not live.job.ended}

    def endpoints(self) -> Mapping[JobId, str]:
        """Return which endpoint each job serves that has not ended, also one that is stopping."""
        with self._ledger.lock:
            lives = self._ledger.jobs().values()
            return {
                live.id: live.job.spec.endpoint.name
                for live in lives
                if live.job.spec.endpoint is not None and not live.job.ended
            }

    def adjust(
        self, job_id: JobId, profile: ServingProfile, bounds: KernelBounds, priority: int, queue: QueueName
    ) -> None:
        """Have a version serve by this profile, within these bounds, and with this priority and queue from now on."""
        with self._ledger.lock:
            live = self._find(job_id)
            if live is None:
                return
            job = replace(live.job, priority=priority, queue=queue)
            if (live.profile, live.bounds, live.job) == (profile, bounds, job):
                return
            draft = self._ledger.draft()
            evaluate(draft, draft.put(replace(live, profile=profile, bounds=bounds, job=job)))
            self._ledger.commit(draft)

    def stop(self, job_id: JobId, who: str) -> None:
        """End a version: its kernels answer what they have begun."""
        with self._ledger.lock:
            live = self._find(job_id)
            if live is None or live.job.state is JobState.STOPPING:
                return
            draft = self._ledger.draft()
            stop(draft, self._ledger.kinds.of(live.job), live, f"{who} stopped it")
            self._ledger.commit(draft)

    # What the gateway says

    def kernel_ready(self, message: KernelReady) -> None:
        """Take note that a kernel has loaded its model and takes requests."""
        with self._ledger.lock:
            found = self._find_kernel(message.task_id)
            if found is None:
                return
            live, task = found
            draft = self._ledger.draft()
            if message.metadata:
                live = draft.put(replace(live, metadata=dict(message.metadata)))
            _take_ready(draft, live, task)
            self._ledger.commit(draft)

    def kernel_hung(self, message: KernelHung) -> None:
        """End a kernel that does not answer."""
        with self._ledger.lock:
            found = self._find_kernel(message.task_id)
            if found is None:
                return
            live, task = found
            draft = self._ledger.draft()
            draft.say(EventKind.WARNING, f"{task.id} {message.why}", job_id=live.id, task_id=task.id)
            kill(draft, live, task.id, f"{message.why}, was killed by Pliant")
            self._ledger.commit(draft)

    def take_load(self, message: Load, merge: Callable[[VersionLoad, float], VersionLoad] | None = None) -> None:
        """Take in how much there is to do.

        Args:
            message: what a gateway reports.
            merge: makes its report that of all gateways, and is told the time at which it is taken in; None: it is
                the only one.
        """
        with self._ledger.lock:
            draft = self._ledger.draft()
            for load in message.versions:
                live = draft.job(load.job_id)
                if isinstance(live, EndpointJob) and live.competes:
                    take_load(draft, live, load if merge is None else merge(load, draft.now))
            self._ledger.commit(draft)

    def _find(self, job_id: JobId) -> EndpointJob | None:
        live = self._ledger.get(job_id)
        return live if isinstance(live, EndpointJob) and not live.over else None

    def _find_kernel(self, task_id: TaskId) -> tuple[EndpointJob, Task] | None:
        live = self._find(job_of(task_id))
        task = None if live is None else live.tasks.get(task_id)
        return None if live is None or task is None or task.ended else (live, task)

    def _status(self, live: EndpointJob) -> VersionStatus:
        return VersionStatus(
            job_id=live.id,
            state=live.job.state,
            token=job_token(self._settings.secret, live.id),
            has_served=live.has_served,
            wanted=live.wanted,
            demand=live.demand,
            needed=live.needed,
            num_failures=live.num_failures,
            has_answered=live.has_answered,
            colour=live.job.colour,
            why=live.job.why,
            kernels=live.running,
            load=live.load,
            metadata=live.metadata,
        )


def _take_ready(draft: Draft, live: EndpointJob, task: Task) -> None:
    if task.state in (TaskState.TRAINING, TaskState.LEAVING):
        return
    live = task_event(draft, live, task.id, TaskEvent.READY)
    live = task_event(draft, live, task.id, TaskEvent.JOIN)
    took = draft.now - task.started_at
    message = f"{task.id} has loaded its model in {took:.1f} s and takes requests"
    draft.say(EventKind.TASK_READY, message, job_id=live.id, task_id=task.id)
    live = draft.put(replace(live, has_served=True))
    if live.job.state is JobState.STARTING:
        live = job_event(draft, live, JobEvent.TRAIN, "")
    drain_leavers(draft, live)
