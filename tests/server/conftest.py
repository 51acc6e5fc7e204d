"""A real server on a free loopback port, over the real store and a simulated cluster, and real clients."""

import asyncio
import io
import json
import socket
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from pliant.control.loop import Control
from pliant.control.orders import job_token
from pliant.control.settings import ControlSettings
from pliant.core.job import JobId, NodeId
from pliant.core.plan import NodeView, Policy
from pliant.core.ports import Cluster
from pliant.server.app import make_app
from pliant.server.bell import Bell
from pliant.server.context import Context
from pliant.server.links import LinkHub
from pliant.sim.clock import VirtualClock
from pliant.sim.cluster import SimCluster
from pliant.store.sql import SqlStore
from pliant.wire.link import MAX_FRAME_BYTES

TOKEN = "the-token"
SECRET = b"s" * 32


class Served:
    """A server, and what tests need to reach it and to move it on."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "uploads").mkdir()
        self.clock = VirtualClock(1000.0)
        self.cluster = SimCluster(self.clock, [NodeView(id=NodeId("local"), slots=(0, 1, 2, 3))])
        self.store = SqlStore(f"sqlite:///{home / 'pliant.db'}")
        self.links, self.bell = LinkHub(), Bell()
        self.num_shutdowns = 0
        cluster: Cluster = self.cluster
        settings = ControlSettings(home=home, url="http://test", secret=SECRET, policy=Policy(cooldown_s=0.0))
        self.control = Control(store=self.store, cluster=cluster, links=self.links, clock=self.clock, settings=settings)
        self.control.start()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        context = Context(
            control=self.control,
            bell=self.bell,
            links=self.links,
            uploads=home / "uploads",
            shut_down=self._shut_down,
        )
        config = uvicorn.Config(
            make_app(context, token=TOKEN),
            log_config=None,
            ws="websockets-sansio",
            ws_max_size=MAX_FRAME_BYTES,
            timeout_graceful_shutdown=5,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._server.serve(sockets=[self._listener])), daemon=True
        )
        self._thread.start()
        wait_for(lambda: self._server.started)
        self.http = httpx.Client(
            base_url=f"http://{self.address}/v1", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=10
        )

    def _shut_down(self) -> None:
        self.num_shutdowns += 1

    def tick(self, seconds: float = 0.01) -> None:
        self.control.tick()
        self.clock.advance(seconds)
        self.control.tick()

    def submit(self, files: Mapping[str, str] | None = None, **job: object) -> httpx.Response:
        body = {"script": "train.py"} | job
        archive = packed(files if files is not None else {"train.py": "print()"})
        return self.http.post("/jobs", files={"job": (None, json.dumps(body)), "code": ("c.tar.gz", archive)})

    def link_url(self, task_id: str) -> str:
        return f"ws://{self.address}/v1/link?task={task_id}"

    def link_headers(self, job_id: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {job_token(SECRET, JobId(job_id))}"}

    def close(self) -> None:
        self.http.close()
        self.bell.close()
        self.links.close_all()
        self._server.should_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._listener.close()
        self.store.close()


def wait_for(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Return what the condition returns as soon as that is true; fail after the deadline."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.005)
    return found


def packed(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    yield served
    served.close()


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any]], Any]:
    return wait_for
