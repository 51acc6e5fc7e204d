"""How an endpoint comes, grows, gives back and is overloaded.

Pliant alone: each figure is a time, or a ratio to another one of Pliant.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bench._report import Claim, spread, table
from bench.peers.server import until
from bench.serve.load import Measured, Target, ask_once, closed_loop, open_loop
from bench.serve.payload import cnn_target
from bench.serve.place import Place
from bench.serve.pliant_server import PliantServer
from bench.serve.scripts import pliant_model
from pliant.core.event import Event, EventKind

SLOW_S = 0.02
"""What a request takes the kernels that are loaded in steps."""
OVERLOAD_S = 0.005
LIMIT_S = 60.0
NUM_SLOTS = 4
MAX_QUEUE = 6
PYTHON, TORCH = "a Python class", "the CNN"


@dataclass(slots=True)
class LifeFound:
    """What was found, seconds, once per time."""

    decided_s: list[float] = field(default_factory=list)
    answered_s: list[float] = field(default_factory=list)
    """From the decision to the first answer of another kernel."""
    returned_s: list[float] = field(default_factory=list)
    from_zero_s: dict[str, list[float]] = field(default_factory=dict)
    overload: list["Overload"] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """One endpoint at its peak, at 70 percent of that, and at three times as much."""

    peak: float
    usual: Measured
    heavy: Measured


def measure(place: Place, *, num_times: int, seconds: float, tell: Callable[[str], None]) -> LifeFound:
    """Measure all of it on one server."""
    found = LifeFound()
    with PliantServer(place, slots=NUM_SLOTS) as server:
        for _ in range(num_times):
            found.overload.append(_overload(server, max(2.0, seconds)))
        tell("overload: done")
        for name, source in ((PYTHON, pliant_model.SLOW.format(seconds=0)), (TORCH, pliant_model.CNN)):
            found.from_zero_s[name] = _from_zero(server, name, source, num_times)
        tell("0 → 1: done")
        for _ in range(num_times):
            decided_s, answered_s = _step(server)
            found.decided_s.append(decided_s)
            found.answered_s.append(answered_s)
        tell("a step of load: done")
        found.returned_s = _slots_returned(server, num_times)
        tell("a slot back to a training: done")
    return found


def _overload(server: PliantServer, seconds: float) -> Overload:
    """Load a kernel that takes a fixed time for each request, and sleeps meanwhile."""
    source = pliant_model.SLOW.format(seconds=OVERLOAD_S)
    settings = {"kernel_min": 1, "kernel_max": 1, "batch_size": 1, "pipe_size": 2, "max_queue": MAX_QUEUE}
    view = server.deploy("overload", source, **settings)
    until(lambda: server.version("overload").num_ready == 1, "a kernel is ready", LIMIT_S)
    target = server.raw_target(view)
    try:
        peak = asyncio.run(closed_loop(target, 4, seconds)).rate
        usual = asyncio.run(open_loop(target, 0.7 * peak, seconds))
        heavy = asyncio.run(open_loop(target, 3 * peak, seconds))
        return Overload(peak=peak, usual=usual, heavy=heavy)
    finally:
        _remove(server, "overload")


def _from_zero(server: PliantServer, what: str, source: str, num_times: int) -> list[float]:
    """Ask an endpoint that holds nothing, a new one each time: one that is soon asked again keeps its kernel longer."""
    name = "torch" if what == TORCH else "python"
    times = []
    for _ in range(num_times + 1):  # the first one fills caches of the disk
        view = server.deploy(name, source, kernel_min=0, kernel_max=1, release_delay_s=0)
        target = server.raw_target(view)
        if what == TORCH:
            target = cnn_target(target.port, f"/v2/models/{name}/infer", server.token)
        until(lambda: server.version(name).num_kernels == 0, f"{name} holds no slot", LIMIT_S)
        answer = asyncio.run(ask_once(target))
        if not answer.is_good:
            raise RuntimeError(f"{name} answered with the status {answer.status}")
        times.append(answer.latency_s)
        _remove(server, name)
    return times[1:]


def _step(server: PliantServer) -> tuple[float, float]:
    """Let a load begin that one kernel cannot carry.

    Returns:
        The times to the decision, and from it to the first answer of another kernel.
    """
    source = pliant_model.SLOW.format(seconds=SLOW_S)
    settings = {"kernel_min": 1, "kernel_max": NUM_SLOTS, "batch_size": 1, "latency_objective_s": 0.1}
    view = server.deploy("step", source, **settings)
    until(lambda: server.version("step").num_ready == 1, "a kernel is ready", LIMIT_S)
    target = server.raw_target(view)
    try:
        before = asyncio.run(_ask_for(target, 1, 2.0))  # a light load before
        first = {answer.kernel for answer in before.answers}
        epoch, clock = time.time(), time.perf_counter()
        heavy = asyncio.run(closed_loop(target, 24, 4.0, warm_s=0))
        others = [one.at for one in heavy.answers if one.is_good and one.kernel not in first]
        if not others:
            raise RuntimeError(f"no other kernel answered within 4 s: {server.version('step').demand}")
        decided_s = _decided_at(server, epoch) - epoch
        return decided_s, min(others) - clock - decided_s
    finally:
        _remove(server, "step")


async def _ask_for(target: Target, num_clients: int, seconds: float) -> Measured:
    return await closed_loop(target, num_clients, seconds)


def _decided_at(server: PliantServer, since: float) -> float:
    """Return when the server decided, after this moment, that the endpoint needs more kernels."""
    return min(event.at for event, wanted in _demands(server, "step") if event.at >= since and wanted > 1)


def _demands(server: PliantServer, name: str) -> Iterator[tuple[Event, int]]:
    """Yield how many kernels an endpoint was found to need, and when."""
    job_id = server.version(name).job_id
    for event in server.client.events(job_id=job_id, limit=1000).events:
        if event.kind == EventKind.DEMAND:
            yield event, int(event.data["to"] or 0)


TRAINING = """
import time

import torch
from torch.utils.data import TensorDataset

from pliant.train import Run

model = torch.nn.Linear(8, 2)
data = TensorDataset(torch.randn(512, 8), torch.zeros(512, dtype=torch.long))
run = Run(model, torch.optim.SGD(model.parameters(), lr=0.1), data, batch_size=64)
for epoch in run.epochs(100_000):
    for x, y in run:
        time.sleep(0.05)
        run.step(torch.nn.functional.cross_entropy(model(x), y))
"""


def _slots_returned(server: PliantServer, num_times: int) -> list[float]:
    """Let an endpoint take a slot of a training that has all, and see when the training has it again.

    Counted from the decision that the endpoint needs no kernel any more, which comes after `release_delay_s` and once
    the kernel is not held any more, to the start of the training's next task: the kernel is told, ends, and the
    scheduler gives its slot to the training.
    """
    script = server.write_script(TRAINING)
    job = server.client.submit(script, script=script.name, max_tasks=NUM_SLOTS, virtual_workers=NUM_SLOTS)
    source = pliant_model.SLOW.format(seconds=0)
    times = []
    for _ in range(num_times):  # a new one each time: one that is soon asked again keeps its kernel longer
        view = server.deploy("guest", source, kernel_min=0, kernel_max=1, release_delay_s=0)
        target = server.raw_target(view)
        until(lambda: server.version("guest").num_kernels == 0, "the guest holds no slot", LIMIT_S)
        until(lambda: _num_tasks(server, job.id) == NUM_SLOTS, "the training has all slots", LIMIT_S)
        since = time.time()
        answer = asyncio.run(ask_once(target))
        if not answer.is_good:
            raise RuntimeError(f"the guest answered with the status {answer.status}")
        times.append(_await_return(server, job.id, since))
        _remove(server, "guest")
    server.client.stop(job.id)
    return times


def _await_return(server: PliantServer, job_id: str, since: float) -> float:
    found: list[float] = []

    def is_back() -> bool:
        found[:] = _came_back(server, job_id, since)
        return bool(found)

    until(is_back, "the slot comes back", LIMIT_S)
    return found[0]


def _num_tasks(server: PliantServer, job_id: str) -> int:
    return sum(task.state == "training" for task in server.client.job(job_id).tasks)


def _came_back(server: PliantServer, job_id: str, since: float) -> list[float]:
    """Return the seconds from the decision to need no kernel to the next start of a task; empty before that."""
    freed = [event.at for event, wanted in _demands(server, "guest") if event.at > since and wanted == 0]
    started = sorted(task.started_at for task in server.client.job(job_id).tasks if task.started_at > since)
    return [at - freed[0] for at in started if freed and at >= freed[0]][:1]


def _remove(server: PliantServer, name: str) -> None:
    server.client.endpoints.remove(name)
    until(lambda: _is_gone(server, name), "its slots are free", LIMIT_S)


def _is_gone(server: PliantServer, name: str) -> bool:
    """Tell whether no endpoint of this name holds anything any more."""
    return all(one.name != name for one in server.client.endpoints.list().endpoints)


def claims(found: LifeFound) -> Iterator[Claim]:
    """Yield every claim with what was found."""
    yield _at_most("a step of load: decided within 1 s", found.decided_s, 1.0)
    yield _at_most("another kernel answers at most 1 s after that", found.answered_s, 1.0)
    yield _at_most("a slot is back at the training within 200 ms of the decision", found.returned_s, 0.2)
    for name, most_s in ((PYTHON, 1.0), (TORCH, 2.0)):
        yield _at_most(f"0 → 1, {name}: at most {most_s:g} s", found.from_zero_s.get(name, []), most_s)
    tails = [one.heavy.latency_s(99) / one.usual.latency_s(99) for one in found.overload]
    kept = [one.heavy.rate / one.peak for one in found.overload]
    yield Claim(
        text="3 × overload: p99 of what is accepted at most 3 × that at 70 % load",
        found=spread(tails, 2) if tails else "",
        holds=statistics.median(tails) <= 3.0 if tails else None,
    )
    yield Claim(
        text="3 × overload: at least 95 % of the peak are answered",
        found=spread([share * 100 for share in kept], 1) + " %" if kept else "",
        holds=statistics.median(kept) >= 0.95 if kept else None,
    )


def _at_most(text: str, values: list[float], most_s: float) -> Claim:
    return Claim(
        text=text,
        found=f"{spread([value * 1000 for value in values], 0)} ms" if values else "",
        holds=statistics.median(values) <= most_s if values else None,
    )


def section(found: LifeFound) -> str:
    """Return the tables of the report."""
    rows = [
        ("a step of load → the decision", found.decided_s),
        ("the decision → the first answer of another kernel", found.answered_s),
        ("the decision to need no kernel → the training's next task starts on its slot", found.returned_s),
        *((f"0 → 1: the first request's answer, {name}", times) for name, times in found.from_zero_s.items()),
    ]
    times = table(
        ("what", "ms, median [min max]"),
        *((name, spread([value * 1000 for value in values], 0)) for name, values in rows if values),
    )
    loads = [
        (
            f"{one.peak:.0f}",
            f"{one.usual.latency_s(50) * 1000:.1f} / {one.usual.latency_s(99) * 1000:.1f}",
            f"{one.heavy.rate:.0f}",
            f"{one.heavy.latency_s(50) * 1000:.1f} / {one.heavy.latency_s(99) * 1000:.1f}",
            f"{one.heavy.num_failed / max(1, len(one.heavy.answers)) * 100:.0f} %",
        )
        for one in found.overload
    ]
    columns = (
        "peak, a second",
        "p50 / p99 at 70 %, ms",
        "answered at 3 ×, a second",
        "p50 / p99 of these, ms",
        "refused (429)",
    )
    return (
        f"## How an endpoint comes, grows and gives back\n\n{ABOUT}\n{times}\n### Overload\n\n{table(columns, *loads)}"
    )


ABOUT = f"""Pliant alone, with {NUM_SLOTS} slots on a warm server. A step of load: from one client to 24 at a kernel
that takes {SLOW_S * 1000:.0f} ms for each request; decisions are timed by the server's events. The training beside the
endpoint is elastic and has all slots before and after; `release_delay_s` is 0, and its slot counts as back when its
next task is started. 0 → 1 is what the first request takes whose endpoint holds nothing. Overload: one kernel that
takes {OVERLOAD_S * 1000:.0f} ms a request and no processor, and `max_queue` {MAX_QUEUE}: what a queue may hold decides
how long its last request waits. Poisson arrivals; latencies count from when a request was due.
"""
