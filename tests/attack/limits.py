"""What a script must not take of the machine: its disk, its memory, its processes."""

import json
from typing import Any, Final

from tests.attack.attack import REFUSED, Attack
from tests.attack.target import Target

from pliant.client import Client
from pliant.core.job import Job

ENDED: Final = "ended, not started again"
GOES_ON: Final = "goes on"
MEMORY_BYTES: Final = 1 << 30


def _said(target: Target, job_id: str) -> str:
    """Return what the script saw; nothing if it has not said it."""
    lines = target.lines_of(job_id)
    return str(json.loads(lines[-1])["seen"]) if lines else ""


def _refused(target: Target, how: str) -> str:
    job = target.run("limits.py", {"how": how})
    return _said(target, job.id) or f"{job.state.value}, {job.reason or ''}"[:100]


def _ended(target: Target, how: str, words: str, **options: Any) -> str:
    """Let Bob take too much, with restarts left; say whether he is ended for it, and nobody else is."""
    job_id = target.submit("bob", "limits.py", {"how": how, "num_bytes": MEMORY_BYTES}, fixed=True, **options)
    if not target.becomes(lambda: _job(target.bob, job_id).ended, timeout_s=30.0):
        target.bob.stop(job_id)
        return GOES_ON if _said(target, job_id) else "did not begin"
    job, num_tasks = _job(target.bob, job_id), len(target.bob.job(job_id).tasks)
    if words not in (job.reason or ""):
        return f"{job.state.value}, {job.reason or ''}"[:100]
    if len(target.victims()) != 2:
        return "ended, and others with it"
    return ENDED if num_tasks == 1 else f"ended, {num_tasks} times"


def _bombed(target: Target) -> str:
    """Let Bob fork as often as he can, and say whether the server works meanwhile."""
    job_id = target.submit("bob", "limits.py", {"how": "forks"}, fixed=True, max_restarts=0)
    try:
        target.until(lambda: _said(target, job_id), "the script has forked")
        return "at work" if target.is_at_work() and len(target.victims()) == 2 else "nothing goes on"
    finally:
        target.bob.stop(job_id)


def _job(client: Client, job_id: str) -> Job:
    return client.job(job_id).job


def _fills(name: str, how: str, *, words: str = "its job's files hold", gap: str = "") -> Attack:
    return Attack(group="fill", name=name, expected=ENDED, play=lambda target: _ended(target, how, words), gap=gap)


ATTACKS: Final = (
    Attack(
        group="fill",
        name="one file longer than all that a job may have",
        expected=REFUSED,
        play=lambda target: _refused(target, "one file"),
    ),
    _fills("files, twice as many as a job may have", "many files"),
    _fills("the same in its /tmp", "many temporary files"),
    _fills("the same, removed and kept open", "removed files"),
    _fills("the same, by a process that hides from looks", "hidden removed files", gap=GOES_ON),
    _fills("1,000 folders in each other", "deep folders", words="folders into each other"),
    Attack(
        group="fill",
        name="memory, by a process that hides from looks",
        expected=ENDED,
        play=lambda target: _ended(target, "memory", "more than its limit", memory_bytes=MEMORY_BYTES, max_restarts=0),
    ),
    Attack(group="fill", name="processes, as many as it may have", expected="at work", play=_bombed),
)
