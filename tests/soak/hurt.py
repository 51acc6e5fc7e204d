"""Carries out the moves of a soak on jobs that train; each returns when the harm was done. Judges nothing."""

import os
import resource
import signal
import time
from collections.abc import Callable

from tests.contracts.faults import Act, Fault, Place
from tests.e2e.pool import Pool
from tests.e2e.trial import Trial
from tests.soak.script import Move

from pliant.core.errors import Conflict
from pliant.core.job import Task

Did = tuple[str, float | None]
"""What was done, in words, and the instant from which the job has to train again; None if it need not stop."""

UNHURT = {"resize", "cut links"}


def hurt(move: Move, pool: Pool, trial: Trial) -> Did:
    """Do one thing to one job, or to the server."""
    if move.kind in TO_SERVER:
        return TO_SERVER[move.kind](move, pool), None
    if move.kind in _BY_PLAN:
        return _BY_PLAN[move.kind](move, trial), None
    if move.kind == "resize":
        return _resize(move, trial), None
    tasks = sorted(trial.training(), key=lambda task: int(task.id.rpartition(".")[2]))
    victims = _victims(move, trial, tasks)
    if not victims:
        return "nobody trains", None
    number = signal.SIGSTOP if move.kind == "stop one" else signal.SIGKILL
    at = time.time()
    for victim in victims:
        _signal(victim, number)
    return ", ".join(victim.id for victim in victims), at


def _resize(move: Move, trial: Trial) -> str:
    try:
        trial.resize(move.size)
    except Conflict:
        return "it has ended meanwhile"
    return f"at most {move.size} tasks"


def _victims(move: Move, trial: Trial, tasks: list[Task]) -> list[Task]:
    if not tasks:
        return []
    match move.kind:
        case "kill all":
            return tasks
        case "kill leader":
            leader = trial.client.job(trial.job_id).generations[-1].members[:1]
            return [task for task in tasks if task.id in leader]
        case "kill two":
            return [tasks[move.task % len(tasks)], tasks[(move.task + 1) % len(tasks)]][: max(1, len(tasks) - 1)]
        case _:
            return [tasks[move.task % len(tasks)]]


def _signal(task: Task, number: signal.Signals) -> None:
    assert task.pid is not None
    try:
        os.kill(task.pid, number)
    except ProcessLookupError:
        return  # it has left on its own


def _kill_at(move: Move, trial: Trial) -> str:
    trial.hurt(Fault(id=f"move-{move.number}", place=move.place, act=Act.KILL))
    return f"the next that passes `{move.place}`"


def _oom(move: Move, trial: Trial) -> str:
    trial.hurt(Fault(id=f"move-{move.number}", place=Place.STEP, act=Act.OOM, value=30))
    return "the next that begins a step"


def _cut(move: Move, trial: Trial) -> str:
    times = 1 + move.task % 3
    trial.hurt(Fault(id=f"move-{move.number}", place=Place.STEP, act=Act.CUT, value=move.seconds, times=times))
    return f"{times} links for {move.seconds} s"


def _kill_server(move: Move, pool: Pool) -> str:
    pool.signal(signal.SIGKILL)
    time.sleep(move.seconds - 0.2)
    pool.up()
    return f"another is up {move.seconds - 0.2:.1f} s later"


def _stop_server(move: Move, pool: Pool) -> str:
    assert pool.process is not None
    pool.process.send_signal(signal.SIGSTOP)
    time.sleep(move.seconds)
    pool.process.send_signal(signal.SIGCONT)
    return f"for {move.seconds} s"


def _fill_disk(move: Move, pool: Pool) -> str:
    """The server cannot make any file longer for a while: the kernel refuses it, as on a full disk."""
    assert pool.process is not None
    soft, hard = resource.prlimit(pool.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pool.process.pid, resource.RLIMIT_FSIZE, (0, hard))
    time.sleep(move.seconds)
    resource.prlimit(pool.process.pid, resource.RLIMIT_FSIZE, (soft, hard))
    return f"the server's, for {move.seconds} s"


TO_SERVER: dict[str, Callable[[Move, Pool], str]] = {
    "kill server": _kill_server,
    "stop server": _stop_server,
    "full disk": _fill_disk,
}
_BY_PLAN: dict[str, Callable[[Move, Trial], str]] = {"kill at": _kill_at, "oom": _oom, "cut links": _cut}
