"""What a pulse of a task costs a server: real WebSockets into the real ends of the links, and nobody behind them.

Run as a program it is the server: `python -m bench.growth.links SOCKET`. `measure` starts that, connects tasks, has
them say that they live, and takes the processor time that the server needed.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from websockets.asyncio.client import ClientConnection, unix_connect

from bench.nodes.__main__ import cpu_s
from bench.peers.processes import Processes
from bench.peers.server import until
from pliant.api.link import LINK_PATH, encode
from pliant.control.jobs.leases import Leases
from pliant.core.job import TaskId
from pliant.core.link import FromTask, Hello, Pulse
from pliant.core.link_proof import LinkAnswer
from pliant.entry.server.http.websocket import BoundedWebSocket
from pliant.server.links import LinkHub

_LEASE_S: Final = 2.0
_START_S: Final = 30.0
_PER_TASK: Final = 10.0
"""Pulses a second, more than tasks send: what each costs is asked for, and not what a server stands."""
_HEADER_BYTES: Final = 6
"""Of a WebSocket frame that a client sends, masked and short."""
TLS_BYTES: Final = 22
"""Of a record of TLS 1.3: its head, its kind and its tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PulseCost:
    """What one pulse costs."""

    seconds: float
    """Of the server's processor."""
    num_bytes: int
    """On the wire, with TLS."""
    num_sent: int


class _Nobody:
    """Renews leases, as control does, and lets everybody in."""

    def __init__(self) -> None:
        self._leases = Leases(_LEASE_S)

    def answer_task(self, _task_id: str, _authorization: str) -> LinkAnswer:
        return LinkAnswer(is_open=True, proof="")

    def receive(
        self, task_id: TaskId, message: FromTask, _number: int = 0, _stored: Callable[[], None] | None = None
    ) -> None:
        self._leases.renew(task_id, message)

    def disconnect(self, _task_id: TaskId, _goodbye: bool = False) -> None:
        return

    def note_listening(self) -> None:
        self._leases.listen(time.monotonic())


def serve(path: str) -> None:
    """Serve links on a socket until a signal comes."""
    hub, nobody = LinkHub(), _Nobody()

    async def link(websocket: WebSocket) -> None:
        await hub.serve(websocket, nobody)

    @asynccontextmanager
    async def listening(_app: Starlette) -> AsyncIterator[None]:
        hub.attach(asyncio.get_running_loop())
        task = asyncio.create_task(hub.listen(nobody))
        yield
        task.cancel()

    app = Starlette(routes=[WebSocketRoute(LINK_PATH, link)], lifespan=listening)
    uvicorn.run(app, uds=path, ws=BoundedWebSocket, log_level="warning", loop="asyncio")


def measure(folder: Path, num_tasks: int, seconds: float) -> PulseCost:
    """Have so many tasks say for so long that they live."""
    path = folder / "links"
    processes = Processes(folder / "links.log")
    try:
        server = processes.start((sys.executable, "-m", "bench.growth.links", path), env={"PYTHONPATH": os.getcwd()})
        until(lambda: path.exists() or server.poll() is not None, "the links are served", _START_S)
        used, num_sent = asyncio.run(_pulse(str(path), server.pid, num_tasks, seconds))
    finally:
        processes.end()
    num_bytes = len(encode(Pulse(step=100_000))) + _HEADER_BYTES + TLS_BYTES
    return PulseCost(seconds=used / num_sent, num_bytes=num_bytes, num_sent=num_sent)


async def _pulse(path: str, pid: int, num_tasks: int, seconds: float) -> tuple[float, int]:
    """Return the processor time of the server, and how many pulses it was for."""
    tasks = [await _connect(path, TaskId(f"job-1.{number}")) for number in range(num_tasks)]
    frame = encode(Pulse(step=100_000))
    before, until_at, num_sent = cpu_s(pid), time.monotonic() + seconds, 0
    while time.monotonic() < until_at:
        turn_at = time.monotonic()
        for task in tasks:
            await task.send(frame)
        num_sent += num_tasks
        await asyncio.sleep(max(0.0, turn_at + 1 / _PER_TASK - time.monotonic()))
    used = cpu_s(pid) - before
    for task in tasks:
        await task.close()
    return used, num_sent


async def _connect(path: str, task_id: TaskId) -> ClientConnection:
    link = await unix_connect(path, f"ws://server{LINK_PATH}?task={task_id}", compression=None)
    await link.send(encode(Hello(task_id=task_id, pid=1)))
    return link


if __name__ == "__main__":
    serve(sys.argv[1])
