"""Scripted faults: a training script that hurts itself where and when a plan says.

The plan is a file of JSON lines, one `Fault` each, that may grow while the script runs. A script names the places it
passes (`faults.at(Place.STEP, …)`); the places inside Pliant are reached by public means only: hooks of the optimizer,
state that travels (`Run(state={"faults": faults})`), Python's audit events. Whoever acts first leaves a claim beside
the plan, with the time, so that a fault happens as often as it should and a test knows when it did. Knows no server, no
membership and no torch.
"""

import json
import os
import resource
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

_EVER: Final = threading.Event()
"""Never set: who waits for it hangs."""
_CUT_EVERY_S: Final = 0.01


class Place(StrEnum):
    """Where a script can be hurt."""

    START = "start"
    """The first line of the script: nothing is built."""
    BUILT = "built"
    """The model is built; the server does not know yet that this task can join."""
    FORMING = "forming"
    """A generation was announced and this task is about to connect, in a thread of its own."""
    STEP = "step"
    """Inside a step, before its gradients are computed."""
    REDUCED = "reduced"
    """The gradients are summed over all workers; the optimizer has not stepped here."""
    STEPPED = "stepped"
    """The optimizer has stepped here, perhaps not elsewhere."""
    GIVING = "giving"
    """The state is about to be given to another task, or copied for a checkpoint."""
    TAKING = "taking"
    """The state of another task, or of a checkpoint, is being taken over."""
    SAVING = "saving"
    """A file of a checkpoint or of the model was opened; nothing is in it."""
    NAMING = "naming"
    """That file is written whole and has not got its name."""
    EVALUATING = "evaluating"
    """Inside the evaluation, between two steps."""


class Act(StrEnum):
    """What can happen there; `value` says how much."""

    KILL = "kill"
    """SIGKILL of the own process."""
    STOP = "stop"
    """SIGSTOP of the own process: it hangs with all its threads, its connections stay open."""
    HANG = "hang"
    """This thread waits for ever; the others go on."""
    PAUSE = "pause"
    """This thread waits `value` seconds."""
    RAISE = "raise"
    """An exception of the script."""
    EXIT = "exit"
    """The process ends with exit code `value` and says nothing."""
    OOM = "oom"
    """`value` MB of memory are taken, then SIGKILL: what the kernel does to a process that is too large."""
    MEMORY = "memory"
    """Memory is taken until an address space limit `value` MB above the present size refuses it."""
    CUT = "cut"
    """All connections to the server are shut for `value` seconds, whenever one is made again."""
    FULL = "full"
    """No file can be written beyond `value` bytes from now on; -1 lifts that again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that shall happen at the first occasion that fits."""

    id: str
    place: Place
    act: Act
    value: float = 0.0
    task: int | None = None
    """Only in this task (the number at the end of its id)."""
    rank: int | None = None
    """Only in the task that last trained with this rank."""
    step: int | None = None
    """Not before so many steps are committed."""
    exactly: bool = False
    """At `step` only, not after it."""
    times: int = 1
    """In so many tasks altogether, once in each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A fault that happened."""

    id: str
    task: int
    pid: int
    step: int | None
    rank: int | None
    at: float
    """Seconds since the epoch, just before."""


class FaultError(Exception):
    """What `Act.RAISE` raises."""


def add(plan: Path, *faults: Fault) -> None:
    """Put faults into a plan; a running script sees all of them or none."""
    old = plan.read_text() if plan.exists() else ""
    draft = plan.with_name(f".{plan.name}.draft")
    draft.write_text(old + "".join(json.dumps(asdict(fault)) + "\n" for fault in faults))
    draft.replace(plan)


def claims(plan: Path) -> tuple[Claim, ...]:
    """Return what happened so far, in order of time."""
    folder = _claims_of(plan)
    told = [os.readlink(path) for path in folder.iterdir()] if folder.exists() else []
    return tuple(sorted((Claim(**json.loads(text)) for text in told), key=lambda claim: claim.at))


def _claims_of(plan: Path) -> Path:
    return plan.with_name(f"{plan.name}.claims")


class Faults:
    """The faults of one task.

    Args:
        plan: the file; it need not exist.
        task_id: this task's; its number is what `Fault.task` names.
        watched: files under this folder count for `SAVING` and `NAMING`.
    """

    def __init__(self, plan: Path, *, task_id: str, watched: Path | None = None) -> None:
        self._plan = plan
        self._task = int(task_id.rpartition(".")[2])
        self._watched = str(watched) if watched is not None else None
        self._rank: int | None = None
        self._step: int | None = None
        self._read_size = 0
        self._known: tuple[Fault, ...] = ()
        self._done: set[str] = set()

    def at(self, place: Place, *, rank: int | None = None, step: int | None = None) -> None:
        """Pass a place; what the plan has for it happens now. Rank and step are remembered for the places after."""
        self._rank = self._rank if rank is None else rank
        self._step = self._step if step is None else step
        for fault in self._read():
            if fault.place is place and self._fits(fault) and self._claim(fault):
                _ACTS[fault.act](fault.value)

    def install(self, optimizer: Any = None) -> None:
        """Reach the places inside: the optimizer's step, connecting, files."""
        if optimizer is not None:
            optimizer.register_step_pre_hook(lambda *_: self.at(Place.REDUCED))
            optimizer.register_step_post_hook(lambda *_: self.at(Place.STEPPED))
        threading.setprofile(self._thread_begins)
        sys.addaudithook(self._audit)

    def state_dict(self) -> dict[str, Any]:
        """Travel with the state: this is called when the state is given away."""
        self.at(Place.GIVING)
        return {"faults": 0}

    def load_state_dict(self, _state: dict[str, Any], /) -> None:
        """Arrive with the state."""
        self.at(Place.TAKING)

    def _read(self) -> tuple[Fault, ...]:
        with suppress(FileNotFoundError):
            size = self._plan.stat().st_size  # it only grows; times are coarse on some systems
            if size != self._read_size:
                lines = [json.loads(line) for line in self._plan.read_text().splitlines()]
                made = (line | {"place": Place(line["place"]), "act": Act(line["act"])} for line in lines)
                self._known = tuple(Fault(**line) for line in made)
                self._read_size = size
        return self._known

    def _fits(self, fault: Fault) -> bool:
        if fault.id in self._done:
            return False
        if fault.step is not None and (self._step is None or self._step < fault.step):
            return False
        if fault.exactly and self._step != fault.step:
            return False
        return fault.task in (None, self._task) and fault.rank in (None, self._rank)

    def _claim(self, fault: Fault) -> bool:
        """Tell whether this occasion is one of the fault's `times`.

        A claim is the target of a link: made at once or not at all, by one task only, also if the disk is full.
        """
        folder = _claims_of(self._plan)
        folder.mkdir(exist_ok=True)
        for place in range(fault.times):
            claim = Claim(
                id=fault.id, task=self._task, pid=os.getpid(), step=self._step, rank=self._rank, at=time.time()
            )
            with suppress(FileExistsError):  # another was first
                (folder / f"{fault.id}-{place}").symlink_to(json.dumps(asdict(claim)))
                self._done.add(fault.id)
                return True
        return False

    def _thread_begins(self, _frame: Any, _event: str, _value: Any) -> None:
        """Called at the first line of every thread that Python starts."""
        sys.setprofile(None)
        if threading.current_thread().name.startswith("pliant-form-"):
            self.at(Place.FORMING)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event not in ("open", "os.rename") or self._watched is None:
            return
        path, writes = str(args[0]), event == "os.rename" or "w" in str(args[1])
        if writes and path.startswith(self._watched):
            self.at(Place.NAMING if event == "os.rename" else Place.SAVING)


def _kill(_value: float) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop(_value: float) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _hang(_value: float) -> None:
    _EVER.wait()


def _raise(_value: float) -> None:
    raise FaultError("a fault of the plan")


def _exit(value: float) -> None:
    os._exit(int(value))


def _oom(value: float) -> None:
    taken = bytearray(int(value * 1e6))
    for place in range(0, len(taken), 4096):
        taken[place] = 1
    os.kill(os.getpid(), signal.SIGKILL)


def _memory(value: float) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + int(value * 1e6)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    taken = [bytearray(int(1e6))]
    while True:
        taken.append(bytearray(len(taken[-1])))


def _full(value: float) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if value < 0 else int(value), hard))


def _cut(value: float) -> None:
    """Shut the connections to the server, now and for a while."""
    _shut_connections()
    threading.Thread(target=_keep_cut, args=(time.monotonic() + value,), name="faults-cut", daemon=True).start()


def _keep_cut(until: float) -> None:
    while time.monotonic() < until:
        _shut_connections()
        time.sleep(_CUT_EVERY_S)


def _shut_connections() -> None:
    port = urlsplit(os.environ["PLIANT_URL"]).port
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # closed by now, or not connected
            if not stat.S_ISSOCK(os.stat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as connection:
                if connection.family is socket.AF_INET and connection.getpeername()[1] == port:
                    connection.shutdown(socket.SHUT_RDWR)


_ACTS: Final[dict[Act, Callable[[float], None]]] = {
    Act.KILL: _kill,
    Act.STOP: _stop,
    Act.HANG: _hang,
    Act.PAUSE: time.sleep,
    Act.RAISE: _raise,
    Act.EXIT: _exit,
    Act.OOM: _oom,
    Act.MEMORY: _memory,
    Act.CUT: _cut,
    Act.FULL: _full,
}
