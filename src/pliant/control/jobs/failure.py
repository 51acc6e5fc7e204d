"""Why a job has failed, in words: how its processes ended, and the end of what the first of them wrote to stderr.

Nothing is read here: what a process left behind comes with its exit (`ExitFacts`), since it may have run on another
machine. So a job whose failure is noticed while processes of it live waits for a moment (`fail_after_exits`). Example:
ranks 0 and 1 of a fixed job raise at 10.00 s and 10.01 s, and rank 1 is gone first, at 10.1 s. Rank 1 is blamed and
rank 0 is killed; at 10.2 s its exit shows that its traceback is the older one. Now the job fails and quotes rank 0.

That it fails, and why, is stored at once: a job that starts or runs has a reason only then. A server that dies at
10.15 s leaves that to the next one, which lets the job fail without the quotation (`failing_of`, `go_on_failing`).
"""

import signal
from dataclasses import replace

from pliant.control.jobs.draft import Draft, L
from pliant.control.jobs.live import Failing
from pliant.control.jobs.transitions import KILLED_WITH_JOB, fail, kill_all
from pliant.control.settings import ControlSettings
from pliant.core.job import Job, Task
from pliant.core.lifecycle import JobState
from pliant.core.ports import ExitFacts

EXITS_S = 5.0
"""The exits of killed processes are waited for this long before the reason of their job is final."""
NUM_STDERR_LINES = 10
_TRACEBACK = "Traceback (most recent call last):"


def describe_exit(exit_code: int | None) -> str:
    """Return how a process that Pliant did not kill has ended, in words that follow its name."""
    if exit_code is None:
        return "vanished without anybody seeing how"
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    number = -exit_code
    known = {s.value: s.name for s in signal.Signals}
    hint = " (not by Pliant; often the kernel, out of memory)" if number == signal.SIGKILL else ""
    return f"was killed by {known.get(number, f'signal {number}')}{hint}"


def lines_of(text: str) -> list[str]:
    """Return lines as a terminal shows them: of one that a progress bar has written again and again what came last."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]


def quote_stderr(settings: ControlSettings, task: Task, facts: ExitFacts) -> str:
    """Return the last lines of what a task wrote to stderr, to be put behind a reason."""
    path = settings.folders(task.job_id).log(task.id, task.node_id) / "stderr"
    lines = [line for line in lines_of(facts.stderr) if line.strip()][-NUM_STDERR_LINES:]
    return f"; the end of its stderr ({path}):\n" + "\n".join(lines) if lines else "; its stderr is empty"


def fail_after_exits(
    draft: Draft, live: L, task: Task, reason: str, *, facts: ExitFacts | None, first_raised: bool = False
) -> L:
    """Kill all processes of a job and let it fail when they are gone, so that the reason can quote what they wrote.

    Args:
        draft: of the decision.
        live: the job.
        task: whose fault it is.
        reason: why it fails, without the quotation.
        facts: what the task left behind; None if it has not ended.
        first_raised: quote the process that raised first: one that raises makes its peers raise, and one of these may
            be gone before it is.
    """
    ended = () if facts is None else ((task, facts),)
    failing = Failing(reason=reason, blamed=task, first_raised=first_raised, ended=ended, until=draft.now + EXITS_S)
    return go_on_failing(draft, draft.put(replace(live, failing=failing, job=replace(live.job, reason=reason))))


def failing_of(job: Job, now: float) -> Failing | None:
    """Return the failure that an earlier server had noted and could not conclude; None if there is none."""
    if job.reason and job.state in (JobState.STARTING, JobState.RUNNING):
        return Failing(reason=job.reason, until=now + EXITS_S)
    return None


def go_on_failing(draft: Draft, live: L) -> L:
    """Kill the processes of a job that has failed; conclude if there are none."""
    live = kill_all(draft, live, [task.id for task in live.running], KILLED_WITH_JOB)
    return live if live.running else conclude(draft, live)


def note_facts(draft: Draft, live: L, task: Task, facts: ExitFacts) -> L:
    """Keep what a process left behind if its job fails and its reason is still to be written."""
    if live.failing is None:
        return live
    failing = replace(live.failing, ended=(*live.failing.ended, (task, facts)))
    return draft.put(replace(live, failing=failing))


def conclude(draft: Draft, live: L) -> L:
    """Let a job fail whose processes have had their time to end."""
    failing = live.failing
    assert failing is not None
    live = draft.put(replace(live, failing=None))
    if live.job.ended:
        return live
    return fail(draft, live, failing.reason + _quotation(draft.settings, failing))


def _quotation(settings: ControlSettings, failing: Failing) -> str:
    blamed = failing.blamed
    if blamed is None:
        return ""
    left = {task.id: (task, facts) for task, facts in failing.ended}
    _, own = left.get(blamed.id, (blamed, ExitFacts()))
    if failing.first_raised and _TRACEBACK in own.stderr:
        raised = [(task, facts) for task, facts in failing.ended if _TRACEBACK in facts.stderr]
        first, facts = min(raised, key=lambda each: each[1].stderr_at)  # at the same instant: who ended first
        if first.id != blamed.id:
            return f"; {first.id} had raised before it" + quote_stderr(settings, first, facts)
    return quote_stderr(settings, blamed, own)
