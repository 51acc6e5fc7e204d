"""Whatever happens to trials, and whenever the server dies: who is held leaves and starts nothing, all others run."""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.control.conftest import World, packed

from pliant.core.event import Event
from pliant.core.job import JobId, JobSpec
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.ports import Writes
from pliant.core.trial_part import TrialPart
from pliant.sim.store import MemoryStore

NUM_SLOTS = 4
TRIALS = (JobId("job-1"), JobId("job-2"), JobId("job-3"))
AT_REST = (JobState.PENDING, JobState.PAUSED)
trials = st.sampled_from(TRIALS)


class DiedError(Exception):
    """The server was killed here."""


class MortalStore(MemoryStore):
    """A store whose server dies just before, or just after, it writes."""

    dies = ""

    def write(self, writes: Writes) -> tuple[Event, ...]:
        dies, self.dies = self.dies, ""
        if dies == "before":
            raise DiedError
        events = super().write(writes)
        if dies == "after":
            raise DiedError
        return events


class MortalWorld(World):
    """A world whose server may die at a write."""

    mortal: MortalStore

    def new_store(self) -> Any:
        self.mortal = MortalStore()
        return self.mortal


class TrialMachine(RuleBasedStateMachine):
    """Three trials of one to three tasks on four slots, beside nobody."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.world = MortalWorld(Path(self.folder.name), NUM_SLOTS)
        self.held: dict[JobId, int] = {}
        """How many tasks each ever had when it was held."""
        archive = self.world.home / "code.tar.gz"
        archive.write_bytes(packed({"train.py": "import pliant.train\n"}))
        for number, job_id in enumerate(TRIALS):
            part = TrialPart(search="s", number=number, values={"lr": 0.1})
            spec = JobSpec(name=f"s#{number}", script="train.py", max_tasks=3, virtual_workers=8, trial=part)
            assert self.world.control.trials.reserve() == job_id
            self.world.control.trials.submit(job_id, spec, archive, "ann", None)

    def ask(self, dies: str, what: Callable[[], object]) -> None:
        """Ask for something; if the server dies over it, another one comes up, and is asked again."""
        self.world.mortal.dies = dies
        with suppress(DiedError):
            what()
        if dies:
            self.world.mortal.dies = ""
            self.world.restart()
            what()

    @rule(job_id=trials, dies=st.sampled_from(("", "", "before", "after")))
    def hold(self, job_id: JobId, dies: str) -> None:
        self.ask(dies, lambda: self.world.control.trials.hold(job_id, "it waits"))
        job = self.world.job(job_id)
        if not job.ended and job.state is not JobState.STOPPING:  # who leaves for good is not held any more
            self.held.setdefault(job_id, len(self.world.store.tasks(job_id)))

    @rule(job_id=trials, dies=st.sampled_from(("", "", "before", "after")))
    def release(self, job_id: JobId, dies: str) -> None:
        self.ask(dies, lambda: self.world.control.trials.release(job_id, "it goes on"))
        self.held.pop(job_id, None)

    @rule(dies=st.sampled_from(("before", "after")))
    def die_at_the_next_write(self, dies: str) -> None:
        self.ask(dies, lambda: self.world.control.tick())  # of the server that is up then

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @rule(seconds=st.sampled_from((0.0, 0.05, 0.1, 0.5, 3.0)))
    def settle(self, seconds: float) -> None:
        self.world.settle(seconds)

    @rule(job_id=trials, code=st.sampled_from((-9, None)))
    def lose_a_task(self, job_id: JobId, code: int | None) -> None:
        for task in self.world.tasks(job_id)[-1:]:
            self.world.exit(task.id, code)

    @precondition(lambda self: any(self.trained(job_id) for job_id in TRIALS))
    @rule()
    def train(self) -> None:
        for job_id in TRIALS:
            if self.trained(job_id):
                self.world.train(job_id)

    @rule(job_id=trials)
    def stop(self, job_id: JobId) -> None:
        if len(self.held) > 1:
            self.world.control.trials.stop(job_id, "ann")
            if self.world.job(job_id).state is not JobState.STOPPING:
                self.held.pop(job_id, None)

    def trained(self, job_id: JobId) -> bool:
        return job_id in self.world.control.jobs() and bool(self.world.members(job_id))

    @invariant()
    def who_is_held_leaves_and_starts_nothing(self) -> None:
        for job_id, num_tasks in list(self.held.items()):
            job = self.world.job(job_id)
            if job.ended:
                assert job.hold == ""
                del self.held[job_id]
                continue
            assert job.hold == "it waits"
            assert {task.state for task in self.world.tasks(job_id)} <= {TaskState.LEAVING}
            assert len(self.world.store.tasks(job_id)) == num_tasks

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            self.world.settle(80.0)
            for job_id in TRIALS:
                self.check_rest(job_id)
        finally:
            self.world.store.close()
            self.folder.cleanup()

    def check_rest(self, job_id: JobId) -> None:
        """Check that a job is where it comes to rest."""
        job = self.world.job(job_id)
        if job.hold:
            assert (job.state in AT_REST, job.num_slots, job.why) == (True, 0, "is held: it waits")
        elif not job.ended:
            assert (job.state, job.num_slots > 0) == (JobState.RUNNING, True)


TestTrialMachine = TrialMachine.TestCase
TestTrialMachine.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
