"""One training of one system through all events: 2 → 4 → 2 → 3 workers, then SIGKILL of one of the three."""

import os
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers.processes import Processes
from bench.peers.server import until
from bench.peers.sides import Kind, Place, Side
from bench.peers.spare import SpareMemory
from bench.peers.steplog import NUM_AFTER, NUM_USUAL, Logs, Lost, lost_time, new_steps, settled, usual_by_size
from pliant.core.errors import PliantError

EVENTS = ("2 → 4", "4 → 2", "2 → 3", "SIGKILL of one of 3")
SIZES = dict(zip(EVENTS, ((2, 4), (4, 2), (2, 3), (3, 2)), strict=True))
"""Workers before and after each event."""
MEMORY = Path("/dev/shm")


@dataclass(slots=True)
class Outcome:
    """What a session found: what every event cost, and why it went no further if it did not."""

    lost: dict[str, list[Lost]] = field(default_factory=dict)
    usual_s: dict[int, float] = field(default_factory=dict)
    """What a step took with each number of workers."""
    trouble: str = ""
    took_s: float = 0.0


def longer_s(outcomes: Sequence[Outcome], event: str) -> float:
    """Return by how much steps are longer with as many workers as there are after an event, seconds."""
    before, after = SIZES[event]
    found = [
        one.usual_s[after] - one.usual_s[before] for one in outcomes if before in one.usual_s and after in one.usual_s
    ]
    return max(0.0, statistics.median(found)) if found else 0.0


def play(
    kind: Kind, model: str, python: Path, victim: Callable[[Logs], int] | None = None, *, rounds: int = 1
) -> Outcome:
    """Play all events, so many times; never raises for what a system does.

    Args:
        victim: says which process is killed, one of three workers; if nothing is given, the one with the highest rank.
    """
    outcome, began = Outcome(), time.monotonic()
    spare = SpareMemory(model)
    with open_place(model, python) as place:
        logs = Logs(place.steps)
        try:
            side = kind.make(place)
            spare.hold()
            _begin(side, logs, began + kind.limit_s)
            for number in range(rounds):
                if number:
                    _return_to_two(side, logs, began + kind.limit_s)
                for event, lost in _events(side, logs, kind, began + kind.limit_s, victim or _last, spare):
                    outcome.lost.setdefault(event, []).append(lost)
            side.close()
        except (TimeoutError, RuntimeError, OSError, KeyError, PliantError) as error:
            outcome.trouble = f"{error}; its last words: {place.processes.tail(3)[-400:]!r}"
        outcome.usual_s = usual_by_size(logs.read())
    outcome.took_s = time.monotonic() - began
    return outcome


def _begin(side: Side, logs: Logs, deadline: float) -> None:
    side.start(2)
    _wait(logs, 0.0, 2, "2 workers train", deadline, num_more=NUM_USUAL)


def _return_to_two(side: Side, logs: Logs, deadline: float) -> None:
    """Go from three workers, once the successor of the killed one trains, to two."""
    _wait(logs, time.monotonic(), 3, "3 workers train again", deadline)
    since = time.monotonic()
    side.shrink(1)
    _wait(logs, since, 2, "2 workers train again", deadline, num_more=NUM_USUAL)


def _events(
    side: Side, logs: Logs, kind: Kind, deadline: float, victim: Callable[[Logs], int], spare: SpareMemory
) -> Iterator[tuple[str, Lost]]:
    changes: tuple[tuple[str, Callable[[], None], int | None], ...] = (
        (EVENTS[0], lambda: side.grow(2), 4),
        (EVENTS[1], lambda: side.shrink(2), 2),
        (EVENTS[2], lambda: side.grow(1), 3),
        (EVENTS[3], lambda: os.kill(pid, signal.SIGKILL), kind.size_after_kill),
    )
    pid = 0
    for event, change, size in changes:
        spare.free()
        if event == EVENTS[3]:
            pid = victim(logs)
            wait_half_a_step(logs, deadline)
        since = time.monotonic()
        change()
        _wait(logs, since, size, f"steps after {event}", deadline)
        yield event, lost_time(logs.read(), since=since, size=size)
        spare.hold()
        _wait(logs, time.monotonic(), None, f"more steps after {event}", deadline, num_more=NUM_USUAL)


def _wait(logs: Logs, since: float, size: int | None, what: str, deadline: float, *, num_more: int = 0) -> None:
    def done() -> bool:
        steps = logs.read()
        return settled(steps, since=since, size=size) and (
            len({step.number for step in steps if step.at > since}) >= NUM_AFTER + num_more
        )

    until(done, what, max(0.0, deadline - time.monotonic()))


def _last(logs: Logs) -> int:
    """Return the worker of the highest rank: nobody that others depend on for more than its share."""
    members = logs.members(3)
    return members[max(members)]


def wait_half_a_step(logs: Logs, deadline: float) -> None:
    """Return in the middle of a step: what a loss costs depends on when in a step it comes."""
    steps = logs.read()
    usual_s, done = usual_by_size(steps)[steps[-1].size], new_steps(steps)[-1].number
    until(lambda: logs.read()[-1].number > done, "a step", max(0.0, deadline - time.monotonic()), look_s=0.002)
    middle = new_steps(logs.read())[-1].at + usual_s / 2
    time.sleep(max(0.0, middle - time.monotonic()))


@contextmanager
def open_place(model: str, python: Path) -> Iterator[Place]:
    """Yield what a side is given; what it has started there ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="plb-"))
    memory = Path(tempfile.mkdtemp(prefix="plb-", dir=MEMORY if MEMORY.is_dir() else None))
    (folder / "steps").mkdir()
    processes = Processes(folder / "output.log")
    try:
        yield Place(model=model, steps=folder / "steps", memory=memory, processes=processes, python=python)
    finally:
        processes.end()
        for made in (folder, memory):
            with suppress(OSError):
                shutil.rmtree(made)
